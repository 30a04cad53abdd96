"""Check the timer on this machine: what it claims of equal functions, and of unequal ones.

Run it with `nox -s timer_check`, on a machine with nothing else to do; it takes a quarter of an
hour. `--experiments 20` is a short version.
"""

import argparse
import multiprocessing
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import timeit

ROOT = pathlib.Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import pyperf  # noqa: E402
import torch  # noqa: E402
import torch.utils.benchmark  # noqa: E402

from snippets.timing import timer  # noqa: E402

BUSY_LOOPS = 2
SLOWER = 1.2
rows = []


def note(what, value, target="", reached=True):
    """Print a row of the table, and keep it for the summary."""
    rows.append(reached)
    said = f"to reach: {target}, {'reached' if reached else 'MISSED'}" if target else ""
    print(f"| {what:<52} | {value:>22} | {said:<26} |", flush=True)


def loop():
    """Keep one core busy."""
    while True:
        pass


def compared(alternatives, *args, budget):
    """Return the ratio of two alternatives, by the book's timer."""
    found = timer.compare("check", alternatives, *args, budget=budget)
    return found.ratio(*alternatives)


def a_a(experiments, budget):
    """Compare a compiled product with itself, in turns and one after the other."""
    x = jnp.ones((300, 300))
    product = jax.jit(jnp.dot)
    in_turns, loose = [], []
    for _ in range(experiments):
        in_turns.append(compared({"one": product, "other": product}, x, x, budget=budget))
        one, other = (
            timer.measure("check", product, x, x, budget=budget).samples for _ in range(2)
        )
        loose.append(timer.ratio_of(one, other))
    return in_turns, loose


def unequal(experiments, budget):
    """Compare a sum of so many numbers with one of a fifth more."""
    counts = 100_000, round(SLOWER * 100_000)
    less, more = (lambda n=count: sum(range(n)) for count in counts)
    alternatives = {"more": more, "less": less}
    return [compared(alternatives, budget=budget) for _ in range(experiments)]


def check_machine(name, experiments, budget):
    """Print what the timer finds while the machine is as it is now."""
    in_turns, loose = a_a(experiments, budget)
    false = sum(ratio.different for ratio in in_turns)
    outside = sum(not ratio.low <= 1 <= ratio.high for ratio in in_turns)
    apart = sum(not ratio.low <= 1 <= ratio.high for ratio in loose)
    errors = [abs(ratio.value - 1) for ratio in in_turns]
    floors = [ratio.floor for ratio in in_turns]
    limit = f"{0.05 * experiments:g} of {experiments}"
    note(f"{name}: equal, called different", false, limit, false <= 0.05 * experiments)
    note(f"{name}: equal, interval without 1", outside, limit, outside <= 0.05 * experiments)
    note(f"{name}: the same, one after the other", apart)
    note(f"{name}: error of the ratio, median", f"{statistics.median(errors):.1%}")
    note(f"{name}: error of the ratio, worst", f"{max(errors):.1%}")
    note(f"{name}: noise floor, median", f"{statistics.median(floors):.1%}")
    slower = unequal(experiments, budget)
    found = sum(ratio.different and ratio.value > 1 for ratio in slower)
    limit = f"{0.95 * experiments:g} of {experiments}"
    note(f"{name}: a fifth slower, found", found, limit, found >= 0.95 * experiments)


def check_others(budget):
    """Time one operation with the timers of others."""
    x = torch.ones(300, 300)
    ours = timer.measure("check", torch.matmul, x, x, budget=budget)
    names = {"torch": torch, "x": x}
    calls = ours.calls_per_sample
    note("torch.matmul: measure", timer.in_unit(ours.median))
    found = timeit.repeat("torch.matmul(x, x)", globals=names, number=calls, repeat=30)
    theirs = {"timeit": statistics.median(found) / calls}
    watch = torch.utils.benchmark.Timer(
        "torch.matmul(x, x)", globals=names, num_threads=torch.get_num_threads()
    )
    theirs["torch.utils.benchmark"] = watch.blocked_autorange(min_run_time=budget).median
    theirs["pyperf, its own processes"] = by_pyperf()
    for name, seconds in theirs.items():
        ratio = seconds / ours.median
        value = f"{timer.in_unit(seconds)}, {ratio:.2f}×"
        note(f"torch.matmul: {name}", value)


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
    parser.add_argument("--experiments", type=int, default=200)
    parser.add_argument("--budget", type=float, default=0.3, help="seconds for an alternative")
    asked = parser.parse_args()
    timer.display = lambda shown: None
    print(f"{asked.experiments} experiments on {timer.processor_name()}, {timer.frequency()} MHz")
    before = timer.processor_seconds()
    check_machine("quiet", asked.experiments, asked.budget)
    others = timer.machine_since(before)["others"]
    note("quiet: cores that others kept busy", "–" if others is None else f"{others:.2f}")
    loops = [multiprocessing.get_context("spawn").Process(target=loop) for _ in range(BUSY_LOOPS)]
    for each in loops:
        each.start()
    try:
        check_machine("busy", asked.experiments, asked.budget)
    finally:
        for each in loops:
            each.terminate()
    check_others(asked.budget)
    missed = rows.count(False)
    print(f"{missed} missed" if missed else "all reached")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
