"""The same operation timed by `measure`, `timeit` and `torch.utils.benchmark`."""

import statistics
import timeit

import torch
import torch.utils.benchmark

from snippets.timing.timer import measure


def by_timeit(function, *args, calls, repeat=10):
    """Return the median time of one call in seconds, by the standard library."""
    samples = timeit.repeat(lambda: function(*args), number=calls, repeat=repeat)
    return statistics.median(samples) / calls


def by_torch(function, *args, seconds=0.2):
    """Return the median time of one call in seconds, by PyTorch's own timer."""
    watch = torch.utils.benchmark.Timer(
        "function(*args)",
        globals={"function": function, "args": args},
        num_threads=torch.get_num_threads(),
    )
    return watch.blocked_autorange(min_run_time=seconds).median


def in_turns(name, function, *args, rounds=3):
    """Time one operation by three timers in turn; return the ratios to ours.

    Each ratio is the median over `rounds`. Taking turns spreads a slow moment
    of the machine over all three.
    """
    by_us, theirs, of_torch = [], [], []
    for number in range(rounds):
        ours = measure(f"{name}/{number + 1}", function, *args, budget=0.2)
        by_us.append(ours.median)
        theirs.append(by_timeit(function, *args, calls=ours.calls_per_sample))
        of_torch.append(by_torch(function, *args))

    def ratio(times):
        return statistics.median(
            time / own for time, own in zip(times, by_us, strict=True)
        )

    return {"timeit / measure": ratio(theirs), "torch / measure": ratio(of_torch)}
