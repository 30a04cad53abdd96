"""Check the timer on this machine: what it claims of equal functions, and of unequal ones.

As in a recording, each comparison is made by ten fresh processes. One process makes all of them
once. Run it with `nox -s timer_check`, on a machine with nothing else to do; it takes ten minutes.
`--experiments 20 --slower 10` is a short version.
"""

import argparse
import contextlib
import functools
import importlib
import json
import math
import multiprocessing
import os
import pathlib
import runpy
import statistics
import subprocess
import sys
import tempfile
import time
import timeit

ROOT = pathlib.Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

# What a page that measures finds on a CPU.
for framework in runpy.run_path(str(ROOT / "conf.py"))["book_frameworks"].values():
    for platform in ("", "cpu"):
        os.environ.update(framework.get("environment", {}).get(platform, {}))
    for module in framework.get("before", ()):
        with contextlib.suppress(ImportError):
            importlib.import_module(module)

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import pyperf  # noqa: E402
import tensorflow as tf  # noqa: E402
import torch  # noqa: E402
import torch.utils.benchmark  # noqa: E402

from snippets.programs import timer  # noqa: E402

BUSY_LOOPS = 2
PROCESSES = 10
# How many of equal functions may be called different. The range of ten misses the median of what
# they are drawn from in 2.1 % of all draws: of a hundred, three are more than two in every third
# run, and six or more in one of fifty.
MISSES = 0.05
# How many times a product is timed alone, and in a race.
MOMENTS = 3
# To sum up so many numbers takes a fifth more than so few. Seconds for each alternative.
MORE, LESS, BUDGET = 120_000, 100_000, 0.2
SIZES = 64, 256, 1024
# Times of one thing from different moments should agree within this factor.
FAR = 1.5
rows = []


def note(what, value, target="", reached=True):
    """Print a row of the table, and keep it for the summary."""
    rows.append(reached)
    said = f"to reach: {target}, {'reached' if reached else 'MISSED'}" if target else ""
    print(f"| {what:<52} | {value:>42} | {said:<32} |", flush=True)


def loop(parent):
    """Keep one core busy, as long as the process lives that asked for it."""
    while os.getppid() == parent:
        pass


@contextlib.contextmanager
def busy_loops():
    """Keep as many cores busy as there are loops."""
    spawned = multiprocessing.get_context("spawn")
    loops = [spawned.Process(target=loop, args=(os.getpid(),)) for _ in range(BUSY_LOOPS)]
    for each in loops:
        each.start()
    try:
        yield
    finally:
        for each in loops:
            each.terminate()


def equal(experiment):
    """Compare a function with itself, in turns one of JAX, of NumPy, of PyTorch and of Python."""
    size = 60 + 5 * experiment
    x = np.random.default_rng(experiment).standard_normal((size, size), dtype=np.float32)
    function, take = (
        (jax.jit(jnp.dot), jnp.asarray),
        (np.matmul, np.asarray),
        (torch.matmul, torch.tensor),
        (lambda x, y: sum(x.shape[0] * y for y in range(1000)), np.asarray),
    )[experiment % 4]
    both = {"one": function, "other": function}
    return timer.compare("check", both, take(x), take(x)).ratio("one", "other").value


def unequal(experiment):
    """Compare a sum of so many numbers with one of a fifth more."""
    more, less = MORE + 6 * experiment, LESS + 5 * experiment
    both = {"more": lambda: sum(range(more)), "less": lambda: sum(range(less))}
    return timer.compare("check", both).ratio("more", "less").value


def one_process(experiments, slower):
    """Print the ratios of all comparisons, as one process finds them."""
    found = [equal(each) for each in range(experiments)], [unequal(each) for each in range(slower)]
    print(json.dumps(found))


def over_processes(experiments, slower):
    """Return what ten processes find in each comparison, of equal functions and of unequal."""
    command = [sys.executable, __file__, "--one-process", *map(str, (experiments, slower))]
    found = []
    for _ in range(PROCESSES):
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        found.append(json.loads(done.stdout.splitlines()[-1]))
    return [
        [
            timer.Ratio(statistics.median(ratios), *timer.middle(ratios))
            for ratios in zip(*lists, strict=True)
        ]
        for lists in zip(*found, strict=True)
    ]


def check_machine(name, experiments, slower):
    """Print what the timer finds while the machine is as it is now."""
    equals, unequals = over_processes(experiments, slower)
    said = [repr(ratio) for ratio in equals]
    about = sum("about equal" in words for words in said)
    untold = sum("cannot tell" in words for words in said)
    most = MISSES * experiments
    false = experiments - about - untold
    note(f"{name}: equal, about equal", f"{about} of {experiments}")
    note(f"{name}: equal, cannot tell", f"{untold} of {experiments}")
    note(
        f"{name}: equal, called different",
        f"{false} of {experiments}",
        f"≤ {most:g}",
        false <= most,
    )
    errors = [abs(ratio.value - 1) for ratio in equals]
    note(f"{name}: error of the ratio, median", f"{statistics.median(errors):.1%}")
    note(f"{name}: error of the ratio, worst", f"{max(errors):.1%}")
    seen = sum(ratio.different and ratio.value > 1 for ratio in unequals)
    inside = sum(ratio.low <= MORE / LESS <= ratio.high for ratio in unequals)
    least = math.ceil(0.95 * slower)
    note(f"{name}: a fifth more, found", f"{seen} of {slower}", f"≥ {least}", seen >= least)
    note(f"{name}: a fifth more, in the range", f"{inside} of {slower}")


def contestants(size):
    """Return one product in each framework."""
    x = np.random.default_rng(0).standard_normal((size, size), dtype=np.float32)
    return {
        "numpy": functools.partial(np.matmul, x, x),
        "jax": functools.partial(jnp.matmul, jnp.asarray(x), jnp.asarray(x)),
        "torch": functools.partial(torch.matmul, torch.tensor(x), torch.tensor(x)),
        "tensorflow": functools.partial(tf.matmul, tf.constant(x), tf.constant(x)),
    }


def check_race(size):
    """Compare the times of products in races of frameworks with those of each alone.

    A call that wakes another core takes twice as long in some moments as in others, whoever
    is in the race. So races and times alone alternate, and their ranges are compared.
    """
    functions = contestants(size)
    raced, alone = ({key: [] for key in functions} for _ in range(2))
    for _ in range(MOMENTS):
        race = timer.compare("check", functions)
        for key, function in functions.items():
            both = {key: function, f"again@{key}": function}
            raced[key].append(race.alternatives[key].median)
            alone[key].append(timer.compare("check", both).alternatives[key].median)
    for key in functions:
        times = alone[key], raced[key]
        shown = "; ".join(f"{timer.in_unit(min(t))} to {timer.in_unit(max(t))}" for t in times)
        reached = min(times[0]) / FAR < max(times[1]) and min(times[1]) < max(times[0]) * FAR
        note(f"{key}, {size}: alone; in races", shown, f"within a factor of {FAR}", reached)


def check_others():
    """Time one operation with the timers of others."""
    x = torch.ones(300, 300)
    ours = timer.measure("check", torch.matmul, x, x)
    names = {"torch": torch, "x": x}
    calls = ours.calls
    note("torch.matmul: measure", timer.in_unit(ours.median))
    found = timeit.repeat("torch.matmul(x, x)", globals=names, number=calls, repeat=30)
    theirs = {"timeit": statistics.median(found) / calls}
    watch = torch.utils.benchmark.Timer(
        "torch.matmul(x, x)", globals=names, num_threads=torch.get_num_threads()
    )
    theirs["torch.utils.benchmark"] = watch.blocked_autorange(min_run_time=BUDGET).median
    theirs["pyperf, its own processes"] = by_pyperf()
    for name, seconds in theirs.items():
        ratio = seconds / ours.median
        value = f"{timer.in_unit(seconds)}, {ratio:.2f}×"
        target = f"{1 / FAR:.2f}× to {FAR}×"
        note(f"torch.matmul: {name}", value, target, 1 / FAR < ratio < FAR)


def by_pyperf():
    """Return the median of pyperf, which starts processes of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "result.json")
        command = [sys.executable, "-m", "pyperf", "timeit", "--fast", "--quiet", "-o", path]
        command += ["--setup", "import torch; x = torch.ones(300, 300)", "torch.matmul(x, x)"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return pyperf.Benchmark.load(str(path)).median()


def main():
    """Run all checks; return 1 where a figure was missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--experiments", type=int, default=100, help="of equal functions")
    parser.add_argument("--slower", type=int, default=20, help="of a fifth more work")
    parser.add_argument("--one-process", type=int, nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    timer.display = lambda shown: None
    if asked.one_process:
        return one_process(*asked.one_process)
    start = time.perf_counter()
    print(timer.processor_name())
    check_machine("quiet", asked.experiments, asked.slower)
    for size in SIZES:
        check_race(size)
    check_others()
    with busy_loops():
        check_machine("busy", asked.experiments, asked.slower)
    missed = rows.count(False)
    print(f"{time.perf_counter() - start:.0f} s; {f'{missed} missed' if missed else 'all reached'}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
