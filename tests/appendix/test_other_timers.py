import itertools
import timeit

import pytest
import torch

from snippets.appendix import other_timers
from snippets.programs import timer


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    """Let all three timers read one clock that only fake functions move."""
    fake = Clock()
    monkeypatch.setattr(timer.time, "perf_counter", fake)
    monkeypatch.setattr(timer.Moments, "fastest", {None: 0.0})
    monkeypatch.setattr(timer, "threads_running", lambda: (0, 0))
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
    found = other_timers.compare_timers("a/compared", function, x)
    assert [m.reference for m in found.alternatives.values()] == [
        f"a/compared/{key}@torch" for key in ("ours", "timeit", "benchmark")
    ]
    for above, below in itertools.combinations(found.alternatives, 2):
        assert found.ratio(above, below).value == pytest.approx(1.0)


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


def test_the_timer_of_torch_sets_one_thread_by_itself():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert other_timers.threads_inside() == 1
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_taking_turns_tells_a_timer_that_finds_more(clock, monkeypatch):
    def function(x):
        clock.now += 0.004
        return x

    monkeypatch.setattr(other_timers, "by_timeit", lambda *args, calls: 0.008)
    found = other_timers.compare_timers("a/compared", function, torch.ones(2))
    assert found.ratio("timeit", "ours").value == pytest.approx(2.0)
    assert found.ratio("timeit", "ours").different
