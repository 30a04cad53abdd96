"""An operation timed by `measure`, `timeit` and `torch.utils.benchmark`."""

import statistics
import timeit
from functools import partial

import torch
import torch.utils.benchmark
from IPython.display import display

from snippets.programs.timer import (
    Comparison,
    Moments,
    Timed,
    disturbed_since,
    taken_by_others,
    turns,
)


def threads_inside():
    """Return how many threads PyTorch has in a statement of its own timer."""
    seen = set()
    statement = "seen.add(torch.get_num_threads())"
    names = {"seen": seen, "torch": torch}
    torch.utils.benchmark.Timer(statement, globals=names).timeit(1)
    return max(seen)


def by_timeit(function, *args, calls, repeat=1):
    """Return the median time of a call in seconds, by the standard library."""
    samples = timeit.repeat(
        lambda: function(*args), number=calls, repeat=repeat
    )
    return statistics.median(samples) / calls


def by_torch(function, *args, seconds=0.01):
    """Return the median time of a call in seconds, by PyTorch's own timer."""
    watch = torch.utils.benchmark.Timer(
        "function(*args)",
        globals={"function": function, "args": args},
        num_threads=torch.get_num_threads(),
    )
    return watch.blocked_autorange(min_run_time=seconds).median


def three_timers(function, *args):
    """Return our timer and three functions that return seconds per call."""
    ours = Timed(function, args)
    ours.calls = ours.enough_calls()
    return ours, {
        "ours": ours.latency,
        "timeit": partial(by_timeit, function, *args, calls=ours.calls),
        "benchmark": partial(by_torch, function, *args),
    }


def compare_timers(name, function, *args):
    """Time an operation by three timers in turn, and display a comparison."""
    ours, timers = three_timers(function, *args)
    before = taken_by_others()
    samples = turns(list(timers.values()), moments=Moments())
    disturbed = disturbed_since(before)
    found = {
        key: ours.measurement(f"{name}/{key}", disturbed, times)
        for key, times in zip(timers, samples, strict=True)
    }
    display(comparison := Comparison(name, found))
    return comparison
