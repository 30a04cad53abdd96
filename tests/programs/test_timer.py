import ast
import collections
import dataclasses
import datetime
import functools
import gc
import itertools
import json
import math
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import threading
import time
import timeit
import types
import zlib

import jax
import jax.numpy as jnp
import jsonschema
import numpy as np
import pytest
import scipy.stats
import tensorflow as tf
import torch
import torch.utils.benchmark
from hypothesis import example, given, settings
from hypothesis import strategies as st

from snippets.programs import timer

ROOT = pathlib.Path(__file__).parents[2]
# What the timer has, before a fake clock gives it more.
LONG = timer.LONG


def a_measurement(latency=(1.0, 1.0), **fields):
    given_fields = {
        "name": "a/b",
        "framework": "jax",
        "device_kind": "cpu",
        "processor": "some",
        "shape": [[3]],
        "dtype": "float32",
        "precision": "highest",
        "work": None,
        "error": None,
        "versions": {"python": "3"},
        "settings": {"allocator": "some"},
        "date": "2026-01-01T00:00:00+00:00",
        "first_call": 2.0,
        "calls": 1,
        "latency": list(latency),
        "throughput": None,
        "cores": 1.0,
        "disturbed": False,
    }
    return timer.Measurement(**given_fields | fields)


class Clock:
    """A clock that stands still until a fake function moves it."""

    def __init__(self):
        self.now = 0.0
        self.spinning = self.beside = 0.0
        self.second_core = lambda now: 1.0
        self.slowness = lambda now: 1.0

    def __call__(self):
        return self.now

    def work(self, seconds):
        """Do what takes so many seconds while the processor gives all it has."""
        self.now += seconds * self.slowness(self.now)

    def count_to(self, number):
        """Return the seconds that counting takes, as `timer.count_to` does."""
        start = self.now
        self.work(number * 25e-9)
        return self.now - start

    def hash_on(self, core, together):
        """Return the seconds that hashing takes on a core, which is nothing to the clock."""
        second = core != min(os.sched_getaffinity(0))
        return 1e-4 * (self.second_core(self.now) if second else self.slowness(self.now))

    def sleep(self, seconds):
        self.now += seconds

    def takes(self, *durations):
        """Return a function whose calls last `durations`, then the last of them for ever."""
        waiting = collections.deque(durations)

        def function(*args):
            self.now += waiting.popleft() if len(waiting) > 1 else waiting[0]
            function.calls += 1
            return args[0] if args else None

        function.calls = 0
        return function


def faked(monkeypatch):
    """Let the timer read a clock that only fake functions move; return it."""
    fake = Clock()
    monkeypatch.setattr(timer.time, "perf_counter", fake)
    monkeypatch.setattr(timer.time, "sleep", fake.sleep)
    monkeypatch.setattr(
        timer, "threads_running", lambda: (fake.now < fake.spinning, fake.now < fake.beside)
    )
    monkeypatch.setattr(timer, "count_to", fake.count_to)
    monkeypatch.setattr(timer, "hash_on", fake.hash_on)
    monkeypatch.setattr(timer.Moments, "fastest", {})
    # Time for nine rounds of the calls below, which take longer than those that need waking.
    monkeypatch.setattr(timer, "LONG", 1.0)
    return fake


@pytest.fixture
def clock(monkeypatch):
    return faked(monkeypatch)


def test_the_first_call_is_kept_apart(clock):
    m = timer.measure("a/first", clock.takes(7.0, 0.02), np.ones(3))
    assert m.first_call == pytest.approx(7.0)
    assert m.median == pytest.approx(0.02)
    assert max(m.latency) == pytest.approx(0.02)


@settings(deadline=None)
@given(st.floats(2e-5, 5.0))
@example(0.0833276199917308)
def test_one_sample_lasts_at_least_four_milliseconds(seconds):
    with pytest.MonkeyPatch.context() as patch:
        clock = faked(patch)
        patch.setattr(timer, "LONG", LONG)
        m = timer.measure("a/any", clock.takes(seconds))
    assert m.calls * seconds >= 0.004 * (1 - 1e-6)
    assert (m.calls - 1) * seconds < 0.004 * (1 + 1e-6)
    assert m.median == pytest.approx(seconds, rel=1e-6)
    # What is not the calls themselves takes less than a millisecond.
    assert len(m.latency) in (5, 9) or 0.499 < seconds * len(m.latency) <= 0.501 + seconds


def test_a_slow_call_is_made_eight_times(clock):
    slow = clock.takes(3.0)
    timer.measure("a/slow", slow)
    # The first, one to find the number, one in a calm moment, and those of five rounds.
    assert slow.calls == 1 + 1 + 1 + 5


def test_there_are_nine_rounds(clock):
    m = timer.measure("a/fast", clock.takes(0.01))
    assert len(m.latency) == 9


def test_calls_can_be_fixed(clock):
    fast = clock.takes(1e-6)
    m = timer.measure("a/fixed", fast, calls=1)
    assert m.calls == 1
    # Each sample comes after a call that does not count.
    assert fast.calls == 1 + 2 * 9


def test_waiting_is_inside_the_clock(clock):
    def wait(result):
        clock.now += 0.5

    m = timer.measure("a/waits", clock.takes(0.25), wait=wait)
    assert m.median == pytest.approx(0.75)
    assert m.first_call == pytest.approx(0.75)


def test_settling_is_outside_the_clock(clock, monkeypatch):
    settled = []

    def settle(result):
        clock.now += 4.0
        settled.append(result)

    monkeypatch.setattr(timer, "waiter", lambda framework: settle)
    x = np.ones(2)
    m = timer.measure("a/unblocked", clock.takes(0.03), x, wait=timer.no_wait, calls=1)
    assert m.median == pytest.approx(0.03)
    assert len(settled) == 1 + 1 + len(m.latency)
    assert all(each is x for each in settled)


def test_every_call_is_waited_for(clock):
    waited = []
    function = clock.takes(0.002)
    m = timer.measure("a/every", function, np.ones(2), wait=waited.append)
    assert m.calls == 2
    assert len(waited) == function.calls


def test_the_garbage_collector_is_off_while_sampling(clock):
    seen = []
    takes = clock.takes(0.02)
    timer.measure("a/gc", lambda: (seen.append(gc.isenabled()), takes()))
    assert seen[0] is True
    assert not any(seen[1:])
    assert gc.isenabled()


def test_the_garbage_collector_comes_back_after_an_error(clock):
    def fails_later(calls=[]):  # noqa: B006
        calls.append(1)
        if len(calls) > 1:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        timer.measure("a/error", fails_later)
    assert gc.isenabled()


def test_agrees_with_timeit_and_torch(clock):
    durations = [0.002 + 0.0001 * (k % 7) for k in range(5000)]
    ours = timer.measure("a/agree", clock.takes(*durations)).median
    theirs = timeit.Timer(clock.takes(*durations), timer=clock).repeat(7, 100)
    of_torch = torch.utils.benchmark.Timer(
        "f()", globals={"f": clock.takes(*durations)}, timer=clock
    ).blocked_autorange(min_run_time=0.5)
    assert ours == pytest.approx(statistics.median(theirs) / 100, rel=0.05)
    assert ours == pytest.approx(of_torch.median, rel=0.05)


def test_the_record_is_displayed_once(clock, monkeypatch):
    shown = []
    monkeypatch.setattr(timer, "display", shown.append)
    m = timer.measure("a/shown", clock.takes(0.02))
    assert shown == [m]
    bundle = m._repr_mimebundle_()
    assert bundle[timer.RECORD_TYPE] == m.record()
    assert bundle["text/plain"] == repr(m)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 ns"),
        (2.5e-9, "2.5 ns"),
        (9.996e-7, "1 µs"),
        (1e-6, "1 µs"),
        (9.996e-4, "1 ms"),
        (0.012345, "12.3 ms"),
        (0.9999, "1 s"),
        (1234.5, "1230 s"),
    ],
)
def test_in_unit(seconds, text):
    assert timer.in_unit(seconds) == text


@given(st.floats(1e-9, 1e4))
def test_in_unit_keeps_three_significant_digits(seconds):
    number, unit = timer.in_unit(seconds).split()
    scale = {"s": 1, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}[unit]
    assert float(number) * scale == pytest.approx(seconds, rel=0.0051)
    assert unit in ("s", "ns") or 1 <= float(number) < 1000


ARRAYS = {
    "jax": lambda: jnp.ones((2, 3)),
    "numpy": lambda: np.ones((2, 3), np.float32),
    "torch": lambda: torch.ones((2, 3)),
    "tensorflow": lambda: tf.ones((2, 3)),
}


@pytest.mark.parametrize("framework", ARRAYS)
def test_each_framework_is_recognised(framework, clock):
    array = ARRAYS[framework]()
    assert timer.framework_of(array) == framework
    assert timer.dtype_name(array) == "float32"
    m = timer.measure("a/nested", lambda: {"x": [array], "y": (clock.takes(0.02)(array),)})
    assert m.framework == framework
    assert m.device_kind == "cpu"
    m = timer.measure("a/argument", lambda x: clock.takes(0.02)() or 1.0, array)
    assert m.framework == framework
    assert m.shape == [[2, 3]]


def test_neither_argument_nor_result_is_an_array(clock):
    m = timer.measure("a/python", clock.takes(0.02), 3)
    assert (m.framework, m.shape, m.dtype, m.device_kind) == ("python", [], "", "cpu")


def test_a_host_copy_counts_for_the_framework_that_made_it(clock):
    takes = clock.takes(0.02)
    m = timer.measure("a/host", lambda x: np.asarray(takes(x)), jnp.ones(3), framework="jax")
    assert m.framework == "jax"


def test_inputs_replace_the_arguments_in_the_record(clock):
    x = np.ones((5, 6), np.int32)
    m = timer.measure("a/closure", clock.takes(0.02), np.ones(2), inputs=[x])
    assert m.shape == [[5, 6]]
    assert m.dtype == "int32"


def test_arrays_are_found_in_nested_values():
    x = np.ones(1)
    assert list(timer.arrays_in({"a": [x, (x, {"b": x})], "c": 3, "d": "text"})) == [x] * 3


def test_jax_waits_for_the_arrays():
    assert timer.waiter("jax") is jax.block_until_ready


def test_torch_waits_for_the_accelerator(monkeypatch):
    waited = []
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(torch.accelerator, "synchronize", lambda: waited.append(1))
    timer.waiter("torch")(None)
    assert waited == [1]
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    assert timer.waiter("torch") is timer.no_wait


def test_tensorflow_waits_for_the_gpu(monkeypatch):
    waited = []
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [kind])
    monkeypatch.setattr(tf.test.experimental, "sync_devices", lambda: waited.append(1))
    timer.waiter("tensorflow")(None)
    assert waited == [1]
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [])
    assert timer.waiter("tensorflow") is timer.no_wait


def test_numpy_needs_no_waiting():
    assert timer.waiter("numpy") is timer.no_wait
    assert timer.no_wait(np.ones(1)) is None


class OnGpu:
    """Stands for an array on a GPU: it answers as torch and TensorFlow would."""

    is_cuda = True
    device = "/job:localhost/replica:0/task:0/device:GPU:0"


def test_the_kind_of_a_gpu_is_its_name(monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "Some GPU")
    assert timer.device_kind("torch", OnGpu()) == "Some GPU"
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: ["first"])
    monkeypatch.setattr(
        tf.config.experimental, "get_device_details", lambda gpu: {"device_name": f"{gpu} GPU"}
    )
    assert timer.device_kind("tensorflow", OnGpu()) == "first GPU"


def test_precision_is_what_the_framework_is_set_to(monkeypatch):
    with jax.default_matmul_precision("highest"):
        assert timer.float32_precision("jax") == "highest"
    assert timer.float32_precision("jax") == "default"
    assert timer.float32_precision("torch") == torch.get_float32_matmul_precision()
    for allowed, text in ((True, "tf32 allowed"), (False, "highest")):
        monkeypatch.setattr(
            tf.config.experimental, "tensor_float_32_execution_enabled", lambda a=allowed: a
        )
        assert timer.float32_precision("tensorflow") == text
    assert timer.float32_precision("numpy") == "highest"


def test_usable_cores_without_affinity(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert timer.usable_cores() == os.cpu_count()


def test_versions_name_only_what_is_installed(monkeypatch):
    monkeypatch.setattr(timer, "PACKAGES", ("jax", "no-such-package"))
    assert set(timer.installed_versions()) == {"python", "jax"}


def test_a_result_may_be_given_away_by_the_next_call(clock):
    takes = clock.takes(0.03)
    step = jax.jit(lambda x: x + 1, donate_argnums=0)
    latest = [jnp.zeros(3)]

    def function():
        latest[0] = step(takes(latest[0]))
        return latest[0]

    m = timer.measure("a/donated", function, inputs=[jnp.zeros(3)])
    assert m.device_kind == latest[0].device.device_kind
    assert float(latest[0][0]) == 1 + 1 + 1 + 9


def test_a_page_may_record_the_precision_that_was_used(clock):
    x = jnp.ones(2)
    assert timer.measure("a/asked", clock.takes(0.02), x).precision == "default"
    m = timer.measure("a/used", clock.takes(0.02), x, precision="TF32")
    assert m.record()["precision"] == "TF32"


def in_turns(clock, seconds, **settings):
    """Compare functions that take times from a dictionary of iterators."""
    calls = []

    def taking(key):
        def function(*args):
            clock.now += next(seconds[key])
            calls.append(key)

        return function

    alternatives = {key: taking(key) for key in seconds}
    return timer.compare("a", alternatives, calls=1, **settings), calls


def steady(seconds):
    return itertools.repeat(seconds)


def noisy(seconds, seed, spread=0.05):
    random = np.random.default_rng(seed)
    while True:
        yield seconds * math.exp(random.normal(0, spread))


def test_first_calls_and_settings_are_those_of_each_alternative(clock):
    first = {"a": itertools.chain([7.0], steady(0.02)), "b": itertools.chain([3.0], steady(0.02))}
    found, _ = in_turns(clock, first, work={"a": 4e9, "b": 2e9}, error={"b": 0.1}, precision="mine")
    a, b = found.alternatives.values()
    assert (a.first_call, b.first_call) == pytest.approx((7.0, 3.0))
    assert (a.work, b.work, a.error, b.error) == (4e9, 2e9, None, 0.1)
    assert a.precision == b.precision == "mine"


@pytest.mark.parametrize(
    ("key", "named"),
    [
        ("jax", ("a/b", "jax")),
        ("torch", ("a/b", "torch")),
        ("eager", ("a/b/eager", None)),
        ("eager@torch", ("a/b/eager", "torch")),
    ],
)
def test_an_alternative_is_called_by_its_key(key, named):
    assert timer.alternative_name("a/b", key) == named


def test_two_alternatives_of_one_name_are_refused(clock):
    same = clock.takes(0.02)
    with pytest.raises(ValueError, match="two alternatives of a have the same name"):
        timer.compare("a", {"b": same, "b@python": same})


def test_arguments_are_common_or_bound(clock):
    takes = clock.takes(0.02)
    x, y = jnp.ones((2, 3)), np.ones((4, 5), np.float32)
    found = timer.compare("a", {"jax": takes, "again": takes}, x)
    assert found.alternatives["jax"].shape == [[2, 3]]
    bound = {"jax": functools.partial(takes, x), "numpy": functools.partial(takes, y)}
    found = timer.compare("a", bound)
    assert [m.shape for m in found.alternatives.values()] == [[[2, 3]], [[4, 5]]]
    assert [m.reference for m in found.alternatives.values()] == ["a@jax", "a@numpy"]


def test_before_a_sample_the_threads_of_others_come_to_rest(clock):
    """One whose threads spin on for 100 ms does not slow down the next."""

    def spins():
        clock.now += 0.02
        clock.spinning = clock.now + 0.1

    def is_hindered():
        clock.now += 0.06 if clock.now < clock.spinning else 0.02

    timed = {"spins": spins, "hindered": is_hindered}
    found = timer.compare("a", timed, calls=1)
    assert found.alternatives["hindered"].median == pytest.approx(0.02)
    assert max(found.alternatives["hindered"].latency) == pytest.approx(0.02)


def test_samples_from_slow_moments_are_taken_again(clock):
    """Every other twentieth of a second half of the core works for somebody else."""
    clock.slowness = lambda now: 1.8 if now % 0.1 > 0.05 else 1.0
    lasting = {"a": 0.002, "b": 0.003}
    both = {key: functools.partial(clock.work, seconds) for key, seconds in lasting.items()}
    found = timer.compare("a", both, calls=1)
    for key, seconds in lasting.items():
        assert found.alternatives[key].latency == pytest.approx(timer.ROUNDS * [seconds])
    assert clock.now < 1


def test_samples_are_taken_again_where_the_second_core_is_slow(clock):
    """Counting in one thread, as fast as ever, would not notice."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("this process has one core")
    slow = lambda now: 2.0 if now % 0.1 > 0.05 else 1.0  # noqa: E731
    clock.second_core = slow

    def two_threads():
        clock.now += 0.003 * slow(clock.now)

    found = timer.measure("a", two_threads, calls=1)
    assert found.latency == pytest.approx(timer.ROUNDS * [0.003])


def test_no_sample_is_taken_while_another_program_runs(clock):
    timer.Moments()
    clock.beside = clock.now + 0.3
    found = timer.measure("a", lambda: clock.sleep(0.003 if clock.now > 0.3 else 0.03), calls=1)
    assert found.latency == pytest.approx(timer.ROUNDS * [0.003])


def test_each_core_is_asked():
    """Each thread runs on the core that it is to ask, whatever the others do."""
    if not hasattr(os, "sched_setaffinity"):
        pytest.skip("this system does not let a thread choose its core")
    before, moments, places = os.sched_getaffinity(0), timer.Moments(), {}

    def hash_on(core, together):
        seconds = timer_hash_on(core, together)
        places[core] = os.sched_getaffinity(0)
        return seconds

    timer_hash_on, timer.hash_on = timer.hash_on, hash_on
    try:
        moments.look()
    finally:
        timer.hash_on = timer_hash_on
    assert places == {core: {core} for core in before}
    assert os.sched_getaffinity(0) == before


@pytest.mark.parametrize(
    ("cores", "kept"),
    [
        ([[2.0, 2.0, 1.0, 2.0, 1.9]], [0, 1, 3, 4]),
        ([[1.0, 1.0, 1.0], [1.7, 1.0, 1.6]], [0, 2]),
        ([[1.0, 0.45, 1.0]], [0, 2]),
        ([[1.7, 1.1, 1.5, 1.3]], [0, 1, 2, 3]),
        # So little that the clock of processor time may err.
        ([[0.02, 0.3, 0.0]], [0, 1, 2]),
        # More often than not: the function itself has two ways.
        ([[2.0, 1.0, 1.0, 2.0, 1.0]], [0, 1, 2, 3, 4]),
    ],
)
def test_rounds_that_lacked_a_core_are_dropped(cores, kept):
    assert timer.steady(cores) == kept


def test_dropped_rounds_are_those_of_all_and_the_record_says_how_many(clock, monkeypatch):
    cores = itertools.chain([2.0, 2.0, 2.0, 1.0], itertools.repeat(2.0))
    monkeypatch.setattr(timer, "time_calls", lambda function, *_: (function(), 0.02 * next(cores)))

    def lasting(seconds):
        def function():
            clock.now += seconds
            return seconds

        return function

    found = timer.compare("a", {"a": lasting(0.02), "b": lasting(0.02)}, calls=1)
    for each in found.alternatives.values():
        assert len(each.latency) == timer.ROUNDS - 1
        assert each.record()["processes"][0]["dropped"] == 1
        assert "rounds dropped: 1" in repr(each)


def test_what_only_changes_a_ref_is_waited_for():
    """The read of an element comes after all that the function does."""
    ref = jax.new_ref(jnp.zeros(2_000_000))

    @jax.jit
    def change(ref):
        ref[...] = jnp.sin(jnp.tanh(ref[...] + 1)) + ref[...]

    timed = timer.Timed(change, (ref,), "jax")
    returns = min(timer.time_calls(change, (ref,), timer.no_wait, timed.wait, 1) for _ in range(5))
    waits = min(timer.time_calls(change, (ref,), timed.wait, timed.wait, 1) for _ in range(5))
    assert waits[0] > returns[0]


def test_what_returns_nothing_cannot_be_timed_in_jax():
    with pytest.raises(ValueError, match="no array to wait for"):
        timer.measure("a", lambda: None, framework="jax")
    timer.measure("a", lambda: None, framework="jax", wait=timer.no_wait)


def test_a_preview_calls_once_after_the_first_at_any_moment(clock, monkeypatch):
    monkeypatch.setattr(timer, "PREVIEW", True)
    clock.beside = math.inf
    called = []

    def work():
        called.append(clock.now)
        clock.work(0.0001)

    for calls in (None, 7):
        found = timer.measure("a", work, calls=calls)
        assert (found.calls, len(found.latency)) == (1, 1)
    assert len(called) == 4


def test_a_ratio_and_its_inverse_agree():
    found = timer.Comparison("a", {"a": a_measurement([1.0, 2.0]), "b": a_measurement([1.0, 1.0])})
    there, back = found.ratio("a", "b"), found.ratio("b", "a")
    assert there.value == pytest.approx(1 / back.value)


@pytest.mark.parametrize(
    ("value", "low", "high", "words"),
    [
        (1.02, 1.02, 1.02, "about equal (within 2 %)"),
        (1.025, 1.01, 1.06, "about equal (within 6 %)"),
        (1.04, 1.03, 1.05, "1.04× slower (1.03–1.05)"),
        (0.98, 0.97, 0.99, "about equal (within 4 %)"),
    ],
)
def test_two_percent_is_about_equal(value, low, high, words):
    assert repr(timer.Ratio(value, low, high)) == words


def test_patience_with_a_slow_processor_ends(clock):
    timer.Moments().look()
    clock.slowness, start = lambda now: 1.8, clock.now
    found = timer.measure("a", lambda: clock.work(0.001), calls=1)
    assert found.latency == pytest.approx(timer.ROUNDS * [0.0018])
    assert timer.PATIENCE < clock.now - start < timer.PATIENCE + 0.2


def test_one_measured_alone_waits_for_calm_moments_too(clock):
    clock.slowness = lambda now: 1.8 if now % 0.1 > 0.05 else 1.0
    found = timer.measure("a", lambda: clock.work(0.003), calls=1)
    assert found.latency == pytest.approx(timer.ROUNDS * [0.003])


def test_samples_are_not_chosen_by_their_own_time(clock):
    """What is slow now and then in calm moments keeps these samples."""
    times = itertools.cycle([0.02, 0.02, 0.05])
    found, _ = in_turns(clock, {"a": steady(0.02), "b": times})
    counted = collections.Counter(round(each, 6) for each in found.alternatives["b"].latency)
    assert counted[0.05] >= 2


def test_counting_takes_longer_for_more():
    assert 0 < min(timer.count_to(100) for _ in range(20)) < timer.count_to(200_000)


def test_a_process_that_never_rests_is_timed_all_the_same(clock):
    clock.spinning = math.inf
    timer.rest()
    assert timer.LONGEST_REST <= clock.now < timer.LONGEST_REST + 0.01


def test_the_first_call_after_others_does_not_count(clock):
    """A function whose caches are cold after another has run is timed as it is alone."""
    latest = []

    def cold_after_others(key):
        def function():
            clock.now += 0.01 if latest[-1:] == [key] else 0.015
            latest.append(key)

        return function

    found = timer.compare("a", {key: cold_after_others(key) for key in "ab"})
    for each in found.alternatives.values():
        assert max(each.latency) == pytest.approx(0.01)


def test_what_takes_long_is_called_once_for_a_sample(clock):
    calls = {}

    def lasting(key, seconds):
        def function():
            calls[key] = calls.get(key, 0) + 1
            clock.now += seconds

        return function

    times = {"short": 0.01, "long": 0.1}
    timed = {key: lasting(key, seconds) for key, seconds in times.items()}
    found = timer.compare("a", timed, calls=1)
    rounds = len(found.alternatives["long"].latency)
    assert calls["long"] < rounds + 5
    assert calls["short"] >= 2 * rounds


def test_a_sample_is_long_enough_although_the_search_met_a_slow_moment(clock):
    """The search takes the first call for 5 ms; the calm ones that follow take 0.25."""
    slow_at_first = clock.takes(0.005, 0.005, *itertools.repeat(0.00025, 400))
    found = timer.compare("a", {"a": slow_at_first}).alternatives["a"]
    assert found.calls in (16, 17)


def test_a_process_that_starts_in_a_slow_moment_learns_what_is_fast(clock):
    clock.slowness = lambda now: 1.8 if now < timer.FIRST_LOOK / 2 else 1.0
    moments = timer.Moments()
    assert timer.Moments.fastest[None] == pytest.approx(timer.COUNTED * 25e-9)
    clock.slowness = lambda now: 1.8
    assert not moments.look()


def test_the_frequency_of_a_core_may_vary(clock):
    moments = timer.Moments()
    clock.slowness = lambda now: 1.3
    assert moments.look()


def test_equal_functions_are_timed_equally_whatever_the_search_met(clock):
    hindered = {
        "a": itertools.chain([0.002, 0.02], steady(0.002)),
        "b": itertools.chain([0.002, 0.002], steady(0.002)),
    }
    calls = {key: clock.takes(*itertools.islice(times, 9)) for key, times in hindered.items()}
    found = timer.compare("a", calls)
    assert {m.calls for m in found.alternatives.values()} == {2}


def test_the_median_is_that_of_the_rounds():
    assert a_measurement([3.0, 1.0, 1.1, 1.2, 9.0]).median == 1.2


def test_a_record_holds_what_was_seen_and_nothing_derived(clock):
    x = jnp.ones((3, 4))
    m = timer.measure("a/record", clock.takes(0.0312345, 0.03), x, x, work=24, error=1e-7)
    record = m.record()
    assert json.loads(json.dumps(record)) == record
    (process,) = record.pop("processes")
    assert datetime.datetime.fromisoformat(process.pop("date")).tzinfo is not None
    assert process.pop("cores") >= 0
    assert process.pop("disturbed") in (True, False)
    assert process == {"first_call": 0.03123, "calls": 1, "latency": 9 * [0.03]}
    assert record.pop("versions")["jax"] == jax.__version__
    assert record.pop("settings") == timer.settings("jax")
    assert record.pop("processor") == timer.processor_name()
    assert record == {
        **{"version": 3, "method": 2, "name": "a/record", "framework": "jax"},
        **{"device_kind": "cpu", "shape": [[3, 4], [3, 4]], "dtype": "float32"},
        **{"precision": "default", "work": 24, "error": 1e-7},
    }


@pytest.fixture(scope="module")
def rules():
    path = pathlib.Path(timer.__file__).with_name("measurement.schema.json")
    return json.loads(path.read_text("utf8"))


def problems(rules, record):
    return [each.message for each in jsonschema.Draft202012Validator(rules).iter_errors(record)]


@pytest.mark.parametrize("framework", ["jax", "numpy", "torch", "tensorflow", "python"])
def test_the_record_is_what_the_schema_beside_the_timer_says(clock, rules, framework):
    array = ARRAYS.get(framework, lambda: 3)()
    m = timer.measure("a/record", clock.takes(0.03), array, work=24, error=1e-7)
    assert m.framework == framework
    assert problems(rules, m.record()) == []
    assert set(m.record()) == set(rules["$defs"]["measurement"]["properties"])
    known = set(rules["$defs"]["process"]["properties"]) - {"throughput", "dropped"}
    assert set(m.record()["processes"][0]) == known
    assert rules["mediaType"] == timer.RECORD_TYPE
    assert rules["method"] == timer.METHOD
    assert rules["properties"]["version"]["enum"] == [timer.VERSION]


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"method": 0},
        {"processes": []},
        {"median": 1.0},
        {"threads": 2},
        {"settings": {"allocator": 2}},
        {"settings": {"allocator": ""}},
        {"processor": "a\n"},
        {"name": "a b"},
    ],
)
def test_the_schema_is_strict(rules, change):
    assert problems(rules, a_measurement().record()) == []
    assert problems(rules, a_measurement().record() | change)
    both = timer.Comparison("a", {"a": a_measurement()}).record()
    assert problems(rules, both) == []
    assert problems(rules, both | {"alternatives": [both["alternatives"][0] | change]})


@pytest.mark.parametrize(
    "change",
    [
        {"samples": [1.0]},
        {"latency": []},
        {"latency": [0]},
        {"calls": 0},
        {"cores": "2"},
        {"disturbed": None},
        {"date": 3},
        {"throughput": None},
    ],
)
def test_the_schema_is_strict_with_a_process(rules, change):
    record = a_measurement(throughput=[1.0]).record()
    assert problems(rules, record) == []
    record["processes"] = [record["processes"][0] | change]
    assert problems(rules, record)


def test_seconds_keep_four_significant_digits():
    m = a_measurement([0.123456, 7.654321e-6], first_call=1.23456, throughput=[0.999999])
    (process,) = m.record()["processes"]
    assert process["latency"] == [0.1235, 7.654e-6]
    assert (process["first_call"], process["throughput"]) == (1.235, [1.0])


def test_alternatives_take_turns_in_random_order(clock):
    _, calls = in_turns(clock, {"a": steady(0.007), "b": steady(0.007), "c": steady(0.007)})
    # Each sample comes after a call that does not count.
    assert calls[3::2] == calls[4::2]
    rounds = [tuple(calls[k : k + 6 : 2]) for k in range(3, len(calls), 6)]
    assert len(rounds) == timer.ROUNDS == 9
    assert all(sorted(each) == ["a", "b", "c"] for each in rounds)
    assert len(set(rounds)) > 3


def test_long_calls_have_fewer_rounds(clock, monkeypatch):
    monkeypatch.setattr(timer, "LONG", LONG)
    for seconds, rounds in ((0.02, 9), (0.04, 6), (1.0, 5)):
        found, _ = in_turns(clock, {"a": steady(seconds), "b": steady(seconds)})
        assert {len(each.latency) for each in found.alternatives.values()} == {rounds}


@pytest.mark.parametrize(
    ("count", "left_out"),
    [(1, 0), (3, 0), (5, 0), (6, 0), (8, 0), (9, 1), (10, 1), (12, 2), (20, 5)],
)
def test_a_range_leaves_out_as_many_as_the_sign_test_allows(count, left_out):
    values = list(reversed(range(count)))
    assert timer.middle(values) == (left_out, count - 1 - left_out)
    assert left_out == 0 or 2 * scipy.stats.binom.cdf(left_out, count, 0.5) <= 0.05
    assert 2 * scipy.stats.binom.cdf(left_out + 1, count, 0.5) > 0.05


@pytest.mark.parametrize("count", [7, 9, 10])
def test_a_range_holds_the_median_of_any_distribution(count):
    random = np.random.default_rng(count)
    drawn = [timer.middle(random.exponential(size=count)) for _ in range(4000)]
    missed = sum(not low <= math.log(2) <= high for low, high in drawn)
    assert 0 < missed < 0.06 * 4000


def test_a_ratio_is_the_median_of_the_rounds(clock):
    """Moods that both share do not count."""
    moods = [1.0, 1.0, 3.0, 3.0, 1.0, 2.0, 2.0, 1.0, 3.0]
    slow = a_measurement([2.2 * mood for mood in moods])
    fast = a_measurement(moods)
    ratio = timer.Comparison("x", {"slow": slow, "fast": fast}).ratio("slow", "fast")
    assert dataclasses.astuple(ratio) == pytest.approx((2.2, 2.2, 2.2))
    back = timer.Comparison("x", {"slow": slow, "fast": fast}).ratio("fast", "slow")
    assert dataclasses.astuple(back) == pytest.approx((1 / 2.2, 1 / 2.2, 1 / 2.2))


@pytest.mark.parametrize(
    ("ratio", "words"),
    [
        ((2.2, 2.0, 2.4), "2.2× slower (2.0–2.4)"),
        ((1 / 2.2, 1 / 2.4, 1 / 2.0), "2.2× faster (2.0–2.4)"),
        ((1.0, 0.975, 1.03), "about equal (within 3 %)"),
        ((1.0, 1 / 1.03, 1.01), "about equal (within 3 %)"),
        ((1.0, 1.0, 1.0), "about equal (within 1 %)"),
        ((1.0, 0.8, 1.4), "cannot tell (0.80–1.4×)"),
        ((1.04, 0.999, 1.2), "cannot tell (0.999–1.2×)"),
        ((1.04, 1.02, 1.06), "1.04× slower (1.02–1.06)"),
        ((123.4, 98.0, 1502.0), "123× slower (98–1502)"),
    ],
)
def test_a_ratio_is_said_in_one_of_three_ways(ratio, words):
    assert repr(timer.Ratio(*ratio)) == words
    value, low, high = ratio
    turned = repr(timer.Ratio(1 / value, 1 / high, 1 / low))
    if "cannot" not in words:
        swapped = {"slower": "faster", "faster": "slower"}
        assert turned == re.sub("slower|faster", lambda found: swapped[found[0]], words)


@given(st.floats(1e-4, 1e4), st.floats(0, 0.5), st.floats(0, 0.5))
def test_a_range_with_1_is_never_called_a_difference(value, below, above):
    ratio = timer.Ratio(value, value * (1 - below), value * (1 + above))
    assert ratio.different is (not ratio.low <= 1 <= ratio.high and ratio.away > 1.02)
    assert ("slower" in repr(ratio) or "faster" in repr(ratio)) is ratio.different
    if "about equal" in repr(ratio):
        assert 0.9 < ratio.low <= ratio.high <= 1.1


def test_a_comparison_is_one_record_with_its_alternatives(clock, rules):
    found, _ = in_turns(
        clock, {"jax": noisy(0.04, 1), "b@torch": noisy(0.02, 2)}, wait=timer.no_wait
    )
    record = json.loads(json.dumps(found.record()))
    assert problems(rules, record) == []
    assert record["name"] == "a"
    assert [each["name"] for each in record["alternatives"]] == ["a", "a/b"]
    assert set(record) == {"version", "method", "name", "alternatives"}
    bundle = found._repr_mimebundle_()
    assert bundle[timer.RECORD_TYPE] == found.record()
    assert bundle["text/plain"] == repr(found)


def test_a_comparison_is_displayed_once_and_says_its_ratios(clock, monkeypatch):
    displayed = []
    monkeypatch.setattr(timer, "display", displayed.append)
    found, _ = in_turns(clock, {"a": steady(0.01), "b": steady(0.005), "c": steady(0.01)})
    assert displayed == [found]
    *_, first, second = repr(found).splitlines()
    assert first == "b against a: 2.0× faster (2.0–2.0)"
    assert second == "c against a: about equal (within 1 %)"


class Gpu:
    """Stands for a GPU: calls are handed over at once, and it works on them in order."""

    def __init__(self, clock, monkeypatch, launch, kernel, notice):
        self.clock, self.free_at, self.under_way = clock, 0.0, 0
        self.launch, self.kernel, self.notice = launch, kernel, notice
        self.most = 0
        monkeypatch.setattr(timer, "device_kind", lambda framework, array: "NVIDIA H200")
        monkeypatch.setattr(timer, "waiter", lambda framework: self.wait)

    def __call__(self, x):
        self.clock.now += self.launch
        self.free_at = max(self.free_at, self.clock.now) + self.kernel
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        return x

    def wait(self, result):
        self.clock.now = max(self.clock.now, self.free_at) + self.notice
        self.under_way = 0


@pytest.mark.parametrize(
    ("kernel", "most"), [(2e-5, 64), (1e-3, 37), (0.1, 2)], ids=["fast", "slow", "long"]
)
def test_on_an_accelerator_calls_are_timed_with_one_wait_too(
    clock, monkeypatch, rules, kernel, most
):
    gpu = Gpu(clock, monkeypatch, launch=5e-6, kernel=kernel, notice=1e-4)
    m = timer.measure("a/gpu", gpu, np.ones(2))
    assert m.device_kind == "NVIDIA H200"
    assert m.median == pytest.approx(5e-6 + kernel + 1e-4)
    assert m.throughput == pytest.approx(len(m.latency) * [kernel])
    assert gpu.most == most <= timer.HANDED_OVER
    assert problems(rules, m.record()) == []
    assert m.record()["processes"][0]["throughput"] == pytest.approx(m.throughput)
    assert f"{timer.in_unit(kernel)} each of many" in repr(m)


def test_where_starting_takes_longer_than_computing_that_is_the_throughput(clock, monkeypatch):
    gpu = Gpu(clock, monkeypatch, launch=5e-5, kernel=1e-6, notice=1e-4)
    x = np.ones(2)
    found = timer.compare("a", {"one": gpu, "two": lambda x: gpu(gpu(x))}, x)
    one, two = found.alternatives.values()
    assert one.throughput == pytest.approx(9 * [5e-5])
    assert two.throughput == pytest.approx(9 * [1e-4])
    assert len(one.latency) == len(two.latency) == 9


def test_on_a_cpu_there_is_one_clock(clock):
    m = timer.measure("a", clock.takes(0.02), np.ones(2))
    assert m.throughput is None
    assert "throughput" not in m.record()["processes"][0]


def test_the_device_is_that_of_the_framework_whose_arrays_are_nowhere(clock, monkeypatch):
    """NumPy goes in and comes out, and the work is done on an accelerator."""
    real = timer.device_kind
    monkeypatch.setattr(
        timer, "device_kind", lambda f, x: "NVIDIA H200" if f != "numpy" else real(f, x)
    )
    monkeypatch.setattr(timer, "waiter", lambda framework: timer.no_wait)
    x = np.ones(2)
    for framework in timer.FRAMEWORKS:
        m = timer.measure("a", clock.takes(0.02), x, framework=framework)
        assert (m.framework, m.device_kind) == (framework, "NVIDIA H200")
    assert timer.measure("a", clock.takes(0.02), x).device_kind == "cpu"


def test_who_measures_may_say_where_the_work_ran(clock):
    x = np.ones(2)
    m = timer.measure("a", clock.takes(0.02), x, framework="jax", device="NVIDIA H200")
    assert m.device_kind == "NVIDIA H200"
    functions = {"jax": clock.takes(0.02), "numpy": clock.takes(0.02)}
    found = timer.compare("a", functions, x, device={"jax": "NVIDIA H200"})
    kinds = [each.device_kind for each in found.alternatives.values()]
    assert kinds == ["NVIDIA H200", "cpu"]


def test_a_device_that_holds_none_of_the_arrays_is_refused(clock):
    with pytest.raises(
        ValueError, match="NVIDIA H200 is said to do the work, but arrays are on cpu"
    ):
        timer.measure("a", clock.takes(0.02), jnp.ones(2), device="NVIDIA H200")
    with pytest.raises(
        ValueError, match="NVIDIA H200 is said to do the work, but arrays are on cpu"
    ):
        timer.measure("a", clock.takes(0.02), np.ones(2), device="NVIDIA H200")


def test_an_array_on_another_of_the_devices_of_jax_is_refused(clock):
    first, *_, last = jax.devices()
    if first == last:
        pytest.skip("there is one device")
    x = jax.device_put(jnp.ones(2), last)
    assert timer.measure("a", clock.takes(0.02), x, device=last).device_kind == "cpu"
    with pytest.raises(ValueError, match=re.escape(f"{first} is said to do the work")) as caught:
        timer.measure("a", clock.takes(0.02), x, device=first)
    assert str(caught.value).endswith(f"on {last}")


def keep_busy(threads, seconds=0.03):
    """Compress numbers in so many threads at once, outside of Python's lock.

    Returns the seconds that one of them worked.
    """
    numbers = np.random.default_rng(0).bytes(400_000)
    took = []

    def work():
        start = time.thread_time()
        while time.thread_time() < start + seconds:
            zlib.compress(numbers)
        took.append(time.thread_time() - start)

    started = [threading.Thread(target=work) for _ in range(threads)]
    for each in started:
        each.start()
    for each in started:
        each.join()
    return sum(took) / threads if threads else seconds


@pytest.mark.parametrize("threads", [0, 1, 2])
def test_cores_are_those_that_were_seen_at_work(clock, threads):
    """The clock goes on as if each thread had had a core, however many there are."""

    def work():
        clock.now += keep_busy(threads)

    found = timer.measure("a", work, calls=1)
    assert found.cores == pytest.approx(threads, abs=0.3)


def test_cores_are_processor_seconds_over_those_of_the_clock(clock, monkeypatch):
    used = [0.0]
    monkeypatch.setattr(timer.time, "process_time", lambda: used[0])

    def lasting(seconds, cores):
        def function():
            clock.now += seconds
            used[0] += cores * seconds

        return function

    both = {"one": lasting(0.02, 1.0), "half": lasting(0.02, 0.5), "all": lasting(0.007, 15.6)}
    found = timer.compare("a", both)
    cores = {key: each.cores for key, each in found.alternatives.items()}
    assert cores == {"one": 1.0, "half": 0.5, "all": 15.6}


def test_who_does_not_wait_has_no_more_cores_than_he_saw(monkeypatch):
    """The work that goes on after the clock was read counts for nothing."""
    monkeypatch.setattr(timer, "waiter", lambda framework: lambda result: keep_busy(1))
    m = timer.measure("a", time.sleep, 0.01, wait=timer.no_wait, calls=1)
    assert m.cores <= 0.1


def elsewhere(code, **variables):
    """Return what code prints in another process with variables in its environment."""
    command = [sys.executable, "-c", f"from snippets.programs import timer; {code}"]
    known = {key: value for key, value in os.environ.items() if key not in timer.VARIABLES}
    found = subprocess.run(
        command, env=known | variables, capture_output=True, text=True, cwd=ROOT, check=True
    )
    return found.stdout.strip()


def test_the_allocator_is_the_c_library_or_what_was_loaded_before_it():
    here = [line.split()[-1] for line in open("/proc/self/maps") if ".so" in line]
    other = next(path for path in here if "/libm.so" in path or "/libm-" in path)
    code = "print(timer.settings('numpy')['allocator'])"
    assert elsewhere(code) == os.confstr("CS_GNU_LIBC_VERSION")
    assert elsewhere(code, LD_PRELOAD=other) == os.path.basename(other)
    assert elsewhere(code, LD_PRELOAD="/not/there.so") == os.confstr("CS_GNU_LIBC_VERSION")


def test_settings_name_the_variables_that_are_set():
    code = "print(timer.settings('numpy'))"
    flags = "--xla_cpu_prefer_vector_width=512\n --xla_dump_to="
    text = elsewhere(code, XLA_FLAGS=flags, OMP_NUM_THREADS="3", NPROC="")
    found = ast.literal_eval(text)
    assert found["XLA_FLAGS"] == "--xla_cpu_prefer_vector_width=512 --xla_dump_to="
    assert found["OMP_NUM_THREADS"] == "3"
    assert not {"NPROC", "MKL_NUM_THREADS"} & set(found)


def system(monkeypatch, tmp_path, **files):
    """Let the system's files say something else; those that are not given are missing."""
    monkeypatch.setattr(
        timer, "text_of", lambda path: files.get(path.rsplit("/", 1)[-1].replace(".", "_"), "")
    )


def test_huge_pages_are_as_the_system_is_set(monkeypatch, tmp_path):
    system(monkeypatch, tmp_path, enabled="always [madvise] never\n")
    assert timer.settings("numpy")["huge pages"] == "madvise"
    system(monkeypatch, tmp_path)
    assert "huge pages" not in timer.settings("numpy")


@pytest.mark.parametrize(
    ("said", "version"),
    [
        (
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct\nGCC 12.2",
            "535.129.03",
        ),
        ("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Rel", "570.86.15"),
    ],
)
def test_the_driver_is_named_where_an_accelerator_worked(monkeypatch, tmp_path, said, version):
    system(monkeypatch, tmp_path, version=said)
    assert timer.settings("jax", True)["driver"] == version
    assert "driver" not in timer.settings("jax")
    system(monkeypatch, tmp_path)
    assert "driver" not in timer.settings("jax", True)


def test_switches_of_jax_are_as_they_are_set(monkeypatch):
    with jax.default_matmul_precision("highest"):
        found = timer.settings("jax")
    assert found["jax.config.jax_default_matmul_precision"] == "highest"
    assert "jax.config.jax_default_matmul_precision" not in timer.settings("jax")
    before = jax.config.jax_enable_x64
    for on in (True, False):
        jax.config.update("jax_enable_x64", on)
        assert timer.settings("jax")["jax.config.jax_enable_x64"] == str(on)
    jax.config.update("jax_enable_x64", before)
    assert "CUDA" not in timer.settings("jax", True)
    versions = types.SimpleNamespace(
        cuda_runtime_get_version=lambda: 12090, cudnn_get_version=lambda: 91002
    )
    monkeypatch.setattr(jax._src.lib, "cuda_versions", versions)
    found = timer.settings("jax", True)
    assert (found["CUDA"], found["cuDNN"]) == ("12.9", "91002")
    assert "CUDA" not in timer.settings("jax")


def test_switches_of_torch_are_as_they_are_set(monkeypatch):
    cudnn = torch.backends.cudnn
    for on in (True, False):
        monkeypatch.setattr(cudnn, "benchmark", on)
        monkeypatch.setattr(cudnn.rnn, "fp32_precision", "ieee" if on else "tf32")
        found = timer.settings("torch", True)
        assert found["torch.backends.cudnn.benchmark"] == str(on)
        assert found["torch.backends.cudnn.rnn.fp32_precision"] == ("ieee" if on else "tf32")
        assert found["torch.backends.cudnn.conv.fp32_precision"] == "tf32"
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    assert timer.settings("torch")["torch.get_num_threads"] == "1"
    torch.set_num_threads(before)
    precision = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    assert timer.settings("torch")["torch.get_float32_matmul_precision"] == "high"
    torch.set_float32_matmul_precision(precision)
    monkeypatch.setattr(torch.version, "cuda", "12.8")
    assert timer.settings("torch", True)["CUDA"] == "12.8"
    assert not any("cudnn" in name for name in timer.settings("torch"))


def test_switches_of_tensorflow_are_as_they_are_set(monkeypatch):
    name = "config.experimental.tensor_float_32_execution_enabled"
    for allowed in (True, False):
        monkeypatch.setattr(
            tf.config.experimental, name.rpartition(".")[2], lambda allowed=allowed: allowed
        )
        assert timer.settings("tensorflow")[f"tensorflow.{name}"] == str(allowed)


VIRTUAL = "flags\t: fpu vme hypervisor lahf_lm"


def cpu(vendor, family, model, name, flags=""):
    lines = [f"vendor_id\t: {vendor}", f"cpu family\t: {family}", f"model\t\t: {model}"]
    return "\n".join([*lines, f"model name\t: {name}", flags, "", "model name\t: another"])


AMD, INTEL = "AuthenticAMD", "GenuineIntel"


@pytest.mark.parametrize(
    ("text", "count", "name"),
    [
        (cpu(AMD, 26, 2, "AMD EPYC", VIRTUAL), 2, "2 virtual cores of an AMD EPYC, Zen 5"),
        (cpu(AMD, 25, 17, "AMD EPYC Processor"), 1, "1 core of an AMD EPYC, Zen 4"),
        (cpu(AMD, 25, 1, "AMD EPYC"), 8, "8 cores of an AMD EPYC, Zen 3"),
        (cpu(AMD, 25, 97, "AMD Ryzen 9 7950X 16-Core Processor"), 32,
         "32 cores of an AMD Ryzen 9 7950X 16-Core"),
        (cpu(AMD, 23, 49, "AMD EPYC"), 2, "2 cores of an AMD EPYC, Zen 2"),
        (cpu(AMD, 99, 3, "AMD EPYC"), 2, "2 cores of an AMD EPYC, family 99, model 3"),
        (cpu(INTEL, 6, 143, "Intel(R) Xeon(R) Processor @ 2.10GHz", VIRTUAL), 4,
         "4 virtual cores of an Intel Xeon, Sapphire Rapids"),
        (cpu(INTEL, 6, 158, "Intel(R) Core(TM) i7-8700 CPU @ 3.20GHz"), 12,
         "12 cores of an Intel Core i7-8700"),
        ("model name\t: Some", 3, "3 cores of a Some"),
        ("", 3, "3 cores of a some64"),
    ],
)  # fmt: skip
def test_a_processor_is_named_for_people(monkeypatch, tmp_path, text, count, name):
    system(monkeypatch, tmp_path, cpuinfo=text)
    monkeypatch.setattr(timer, "usable_cores", lambda: count)
    monkeypatch.setattr(timer.platform, "processor", lambda: "")
    monkeypatch.setattr(timer.platform, "machine", lambda: "some64")
    assert timer.processor_name() == name


def test_this_processor_has_a_name():
    assert timer.processor_name().startswith(f"{timer.usable_cores()} ")


def ticks(**seconds):
    """Return the first line of /proc/stat, in hundredths of a second."""
    names = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
    return "cpu " + " ".join(str(round(100 * seconds.get(name, 0))) for name in names) + " 0 0\n"


@pytest.mark.parametrize(
    ("done", "disturbed"),
    [
        ({"own": 10, "user": 10, "idle": 30}, False),
        ({"own": 10, "user": 20, "idle": 20}, True),
        ({"own": 10, "user": 12, "idle": 28}, False),
        ({"own": 10, "user": 10, "idle": 26, "steal": 4}, True),
        ({"own": 10, "user": 9, "idle": 31}, False),
    ],
)
def test_a_record_says_whether_others_kept_cores_busy(monkeypatch, tmp_path, done, disturbed):
    """Ten seconds of four cores pass."""

    def so_far(own=0, **seconds):
        monkeypatch.setattr(timer.os, "sysconf", lambda name: 100)
        system(monkeypatch, tmp_path, stat=ticks(**seconds))
        mine = timer.os.times_result((own, 0, 0, 0, 0))
        monkeypatch.setattr(timer.os, "times", lambda: mine)
        monkeypatch.setattr(timer.time, "monotonic", lambda: sum(seconds.values()) / 4)

    so_far(own=5, user=100, idle=100)
    before = timer.taken_by_others()
    after = {name: value + {"own": 5, "steal": 0}.get(name, 100) for name, value in done.items()}
    so_far(**after)
    assert timer.disturbed_since(before) is disturbed
    assert not timer.disturbed_since(before, own=20)


def test_a_hundredth_of_a_second_disturbs_nobody(monkeypatch):
    """The system counts in these, so half of a core in 20 ms may be a chance."""
    monkeypatch.setattr(timer, "taken_by_others", lambda: (7.01, 3.02))
    assert not timer.disturbed_since((7.0, 3.0))
    assert timer.disturbed_since((6.9, 3.0))


WORKS_AND_WAITS = """
import time
while time.process_time() < 0.5:
    pass
input("done")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="Linux says what children have taken")
def test_a_process_that_was_started_to_work_disturbs_nobody(monkeypatch):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    others = timer.taken_by_children()
    with subprocess.Popen([sys.executable, "-c", WORKS_AND_WAITS], **pipes) as process:
        process.stdout.read(4)
        assert timer.taken_by_children() - others > 0.4
    assert timer.taken_by_children() == others
    taken, children = iter([(5.0, 1.0), (10.0, 4.0)]), iter([2.0, 7.0])
    monkeypatch.setattr(timer, "taken_by_others", lambda: next(taken))
    monkeypatch.setattr(timer, "taken_by_children", lambda: next(children))
    assert not timer.measure("x", sum, [1]).disturbed


def test_where_the_system_says_nothing_nothing_is_disturbed(monkeypatch, tmp_path):
    system(monkeypatch, tmp_path)
    assert timer.taken_by_others() == (0, 0)
    assert not timer.disturbed_since((0, 0))


def test_missing_files_of_the_system_say_nothing(tmp_path):
    assert timer.text_of(tmp_path / "missing") == ""
    (tmp_path / "there").write_text("some")
    assert timer.text_of(tmp_path / "there") == "some"


def test_threads_are_counted_by_their_state(monkeypatch, tmp_path):
    states = {"1": "1 (a) S 0 0", "2": "2 (b) R) R 0 0", "3": "3 (c) R 0 0", "4": "4 (R) S 0 0"}
    known = {f"/proc/self/task/{thread}/stat": line for thread, line in states.items()}
    monkeypatch.setattr(timer, "text_of", lambda path: known.get(path, ""))
    monkeypatch.setattr(timer.os, "listdir", lambda folder: [*states, "ended"])
    monkeypatch.setattr(timer.os.path, "isdir", lambda folder: True)
    monkeypatch.setattr(timer.threading, "get_native_id", lambda: 3)
    known["/proc/loadavg"] = "0.52 0.58 0.59 2/85 1234\n"
    assert timer.threads_running()[0] == 1
    known["/proc/loadavg"] = "0.52 0.58 0.59 1/85 1234\n"
    assert timer.threads_running() == (0, 0)
    del known["/proc/loadavg"]
    assert timer.threads_running()[0] == 1
    monkeypatch.setattr(timer.os.path, "isdir", lambda folder: False)
    assert timer.threads_running() == (0, 0)


@pytest.mark.parametrize(
    ("seconds", "used"),
    [
        ([0.0005, 0.0006], [8, 8]),
        ([0.0005, 0.0011], [8, 4]),
        ([0.2, 0.003], [1, 2]),
        ([1.0], [1]),
    ],
)
def test_functions_of_similar_speed_get_the_same_number_of_calls(clock, seconds, used):
    functions = {str(key): clock.takes(each) for key, each in enumerate(seconds)}
    found = timer.compare("a", functions)
    assert [each.calls for each in found.alternatives.values()] == used


def test_the_timer_needs_no_numpy(tmp_path):
    (tmp_path / "numpy.py").write_text("raise ImportError")
    shutil.copy(timer.__file__, tmp_path / "timer.py")
    code = "import timer; timer.compare('a', {'sum': sum, 'max': max}, [1, 2])"
    command = [sys.executable, "-c", code]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert found.stdout.splitlines()[-1].startswith("max against sum: ")
