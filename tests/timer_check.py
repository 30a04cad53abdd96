"""Check the timer on this machine: what it claims of equal functions, and of unequal ones.

Run it with `nox -s timer_check`, on a machine with nothing else to do; it takes seven minutes.
`--experiments 20 --slower 10` is a short version.
"""

import argparse
import contextlib
import functools
import importlib
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

from snippets.timing import timer  # noqa: E402

BUSY_LOOPS = 2
# How many times a product is timed alone, and in a race.
MOMENTS = 3
# Seconds for a sample of equal functions, as long as the shortest on a page.
SAMPLE = 0.004
# To sum up so many numbers takes a fifth more than so few. Seconds for each alternative.
MORE, LESS, BUDGET = 120_000, 100_000, 0.2
SIZES = 64, 256, 1024
# A loop that takes about as long as a sample, and how many groups of 20 samples are looked at.
COUNTED, GROUPS = 200_000, 100
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


def equal(experiments):
    """Compare a compiled product with itself."""
    x = jnp.ones((300, 300))
    product = jax.jit(jnp.dot)
    calls = max(1, round(SAMPLE / (timer.Timed(product, (x, x)).seconds(200) / 200)))
    both = {"one": product, "other": product}
    found = [timer.compare("check", both, x, x, calls=calls) for _ in range(experiments)]
    return [each.ratio("one", "other") for each in found]


def unequal(experiments):
    """Compare a sum of so many numbers with one of a fifth more."""
    both = {"more": lambda: sum(range(MORE)), "less": lambda: sum(range(LESS))}
    found = [timer.compare("check", both) for _ in range(experiments)]
    return [each.ratio("more", "less") for each in found]


def count_on(core, ends):
    """Count as often as the other end of a pipe asks for it, on one core."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
    while ends.recv():
        ends.send(timer.count_to(COUNTED))


def check_steadiness(name, cores):
    """Print how often equal times spread widely that no library has anything to do with.

    A loop of Python runs on each of some cores at once, and the slowest counts, as in an
    operation that is split between them. No timer can find a machine steadier than this.
    """
    spawned = multiprocessing.get_context("spawn")
    pipes = []
    for core in cores:
        mine, its = spawned.Pipe()
        spawned.Process(target=count_on, args=(core, its), daemon=True).start()
        pipes.append(mine)

    def seconds():
        for pipe in pipes:
            pipe.send(True)
        return max(pipe.recv() for pipe in pipes)

    seconds()
    groups = [[seconds() for _ in range(timer.ROUNDS)] for _ in range(GROUPS)]
    for pipe in pipes:
        pipe.send(False)
    quartiles = [statistics.quantiles(group, n=4, method="inclusive") for group in groups]
    wide = sum(high - low > timer.UNSTABLE * middle for low, middle, high in quartiles)
    note(f"{name}: groups of 20 that are unstable", f"{wide} of {GROUPS}")


def check_machine(name, experiments, slower):
    """Print what the timer finds while the machine is as it is now."""
    before = timer.processor_seconds()
    found = equal(experiments)
    false = sum(ratio.different for ratio in found)
    errors = [abs(ratio.value - 1) for ratio in found]
    floors = [ratio.floor for ratio in found]
    most = round(0.05 * experiments)
    note(
        f"{name}: equal, called different", f"{false} of {experiments}", f"≤ {most}", false <= most
    )
    note(f"{name}: error of the ratio, median", f"{statistics.median(errors):.1%}")
    note(f"{name}: error of the ratio, worst", f"{max(errors):.1%}")
    note(f"{name}: noise floor, median", f"{statistics.median(floors):.1%}")
    found = unequal(slower)
    seen = sum(ratio.different and ratio.value > 1 for ratio in found)
    inside = sum(ratio.low <= MORE / LESS <= ratio.high for ratio in found)
    least = math.ceil(0.95 * slower)
    note(f"{name}: a fifth more, found", f"{seen} of {slower}", f"≥ {least}", seen >= least)
    note(f"{name}: a fifth more, in the interval", f"{inside} of {slower}")
    machine = timer.machine_since(before)
    others = machine["others"]
    note(f"{name}: cores of others", "–" if others is None else f"{others:.2f}")


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
    calls = ours.calls_per_sample
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
    """Run all checks; leave with 1 where a figure was missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--experiments", type=int, default=200, help="of equal functions")
    parser.add_argument("--slower", type=int, default=60, help="of a fifth more work")
    asked = parser.parse_args()
    timer.display = lambda shown: None
    start = time.perf_counter()
    print(f"{timer.processor_name()}, {timer.usable_cores()} cores, {timer.frequency()} MHz")
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]
    check_steadiness("loop on one core", cores[:1])
    check_steadiness("loops on all cores", cores)
    check_machine("quiet", asked.experiments, asked.slower)
    for size in SIZES:
        check_race(size)
    check_others()
    with busy_loops():
        check_machine("busy", asked.experiments, asked.slower)
    missed = rows.count(False)
    print(f"{time.perf_counter() - start:.0f} s; {f'{missed} missed' if missed else 'all reached'}")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
