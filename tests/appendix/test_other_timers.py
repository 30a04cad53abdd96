import timeit

import pytest
import torch

from snippets.appendix import other_timers
from snippets.timing import timer


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    """Let all three timers read one clock that only fake functions move."""
    fake = Clock()
    monkeypatch.setattr(timer.time, "perf_counter", fake)
    monkeypatch.setattr(timeit.Timer.__init__, "__defaults__", ("pass", "pass", fake, None))
    monkeypatch.setattr(timeit.repeat, "__defaults__", ("pass", "pass", fake, 5, 1000000, None))
    stock = torch.utils.benchmark.Timer
    monkeypatch.setattr(
        torch.utils.benchmark, "Timer", lambda *args, **named: stock(*args, timer=fake, **named)
    )
    return fake


@pytest.mark.parametrize("seconds", [0.001, 0.004, 0.03])
def test_all_three_give_the_same_time(clock, seconds):
    def function(x):
        clock.now += seconds
        return x

    x = torch.ones(2)
    assert other_timers.by_timeit(function, x, calls=3) == pytest.approx(seconds)
    assert other_timers.by_torch(function, x) == pytest.approx(seconds)
    ratios = other_timers.in_turns("a/compared", function, x)
    assert ratios == pytest.approx({"timeit / measure": 1.0, "torch / measure": 1.0})


def test_torch_is_told_to_use_as_many_threads(monkeypatch):
    told = {}

    class Watch:
        def __init__(self, statement, **settings):
            told.update(settings)

        def blocked_autorange(self, min_run_time):
            return type("Result", (), {"median": 1.0})

    monkeypatch.setattr(torch.utils.benchmark, "Timer", Watch)
    other_timers.by_torch(len, "abc")
    assert told["num_threads"] == torch.get_num_threads()
