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
import statistics
import timeit

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
import tensorflow as tf
import torch
import torch.utils.benchmark
from _ext.execution import machine
from _ext.measurements import schema as shown
from _ext.measurements.schema import Schema
from hypothesis import given, settings
from hypothesis import strategies as st

from snippets.timing import timer

# What the timer has, before a fake clock gives it more.
LONG = timer.LONG
SAMPLES = st.lists(st.floats(1e-9, 1e3), min_size=2, max_size=50)


class Clock:
    """A clock that stands still until a fake function moves it."""

    def __init__(self):
        self.now = 0.0
        self.spinning = 0.0
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
    monkeypatch.setattr(timer, "threads_running", lambda: fake.now < fake.spinning)
    monkeypatch.setattr(timer, "count_to", fake.count_to)
    monkeypatch.setattr(timer.Moments, "fastest", math.inf)
    # Time for twenty rounds of the calls below, which take longer than those that need waking.
    monkeypatch.setattr(timer, "LONG", 2.0)
    return fake


@pytest.fixture
def clock(monkeypatch):
    return faked(monkeypatch)


def a_measurement(samples=(1.0, 1.0), **fields):
    given_fields = {
        "name": "a/b",
        "framework": "jax",
        "device_kind": "cpu",
        "processor": "some",
        "threads": 2,
        "shape": [[3]],
        "dtype": "float32",
        "precision": "highest",
        "samples": list(samples),
        "calls_per_sample": 1,
        "first_call": 2.0,
        "work": None,
        "error": None,
        "versions": {},
        "date": "2026-01-01",
        "machine": {},
    }
    return timer.Measurement(**given_fields | fields)


def test_the_first_call_is_kept_apart(clock):
    m = timer.measure("a/first", clock.takes(7.0, 0.02), np.ones(3))
    assert m.first_call == pytest.approx(7.0)
    assert m.median == pytest.approx(0.02)
    assert max(m.samples) == pytest.approx(0.02)


@settings(deadline=None)
@given(st.floats(2e-5, 5.0))
def test_one_sample_lasts_at_least_four_milliseconds(seconds):
    with pytest.MonkeyPatch.context() as patch:
        clock = faked(patch)
        patch.setattr(timer, "LONG", LONG)
        m = timer.measure("a/any", clock.takes(seconds))
    assert m.calls_per_sample * seconds >= 0.004 * (1 - 1e-6)
    assert (m.calls_per_sample - 1) * seconds < 0.004 * (1 + 1e-6)
    assert m.median == pytest.approx(seconds, rel=1e-6)
    assert (
        len(m.samples) in (7, 20) or 1.0 < seconds * len(m.samples) * (1 + 1e-6) <= 1.001 + seconds
    )


def test_a_slow_call_is_made_nine_times(clock):
    slow = clock.takes(3.0)
    timer.measure("a/slow", slow)
    assert slow.calls == 1 + 1 + 7


def test_there_are_twenty_samples(clock):
    m = timer.measure("a/fast", clock.takes(0.01))
    assert len(m.samples) == 20


def test_calls_can_be_fixed(clock):
    fast = clock.takes(1e-6)
    m = timer.measure("a/fixed", fast, calls=1)
    assert m.calls_per_sample == 1
    assert fast.calls == 1 + 20


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
    m = timer.measure("a/unblocked", clock.takes(0.02), x, wait=timer.no_wait, calls=1)
    assert m.median == pytest.approx(0.02)
    assert len(settled) == 1 + len(m.samples)
    assert all(each is x for each in settled)


def test_every_call_is_waited_for(clock):
    waited = []
    function = clock.takes(0.002)
    m = timer.measure("a/every", function, np.ones(2), wait=waited.append)
    assert m.calls_per_sample == 2
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


@given(SAMPLES)
def test_statistics_are_those_of_numpy(samples):
    m = a_measurement(samples)
    low, median, high = np.percentile(samples, [25, 50, 75])
    assert m.median == pytest.approx(median)
    assert m.quartiles == pytest.approx([low, high])
    assert m.spread == pytest.approx((high - low) / median, rel=1e-12, abs=1e-12)
    assert low - 1e-12 <= m.median <= high + 1e-12


@given(SAMPLES)
def test_the_engine_finds_the_same_in_the_samples(samples):
    ours = a_measurement(samples, date="2026-01-01T00:00:00Z")
    theirs = shown.Measurement.from_plain(ours.record() | {"page": "a", "device": "cpu"})
    assert list(theirs.quartiles) == ours.quartiles
    assert (theirs.outliers, theirs.spread, theirs.stable) == (
        ours.outliers,
        ours.spread,
        ours.stable,
    )


def test_unstable_where_half_of_the_samples_spread_over_a_fifth_of_the_median():
    assert a_measurement([0.91, 1.0, 1.09]).stable
    assert not a_measurement([0.79, 1.0, 1.21]).stable
    # Outliers decide nothing, however far they are.
    assert a_measurement([1.0 + k / 1000 for k in range(40)] + [9.0] * 5).stable
    assert not a_measurement([1.0] * 10 + [1.4] * 10).stable
    assert "unstable" in repr(a_measurement([1.0, 2.0]))
    assert "unstable" not in repr(a_measurement([1.0, 1.0]))


def test_an_outlier_is_counted_and_kept_and_decides_nothing():
    m = a_measurement([1.0, 1.01, 0.99, 1.02, 0.98] * 4 + [9.0])
    assert (m.outliers, m.stable, max(m.samples)) == (1, True, 9.0)
    assert "1 of 21 far off" in repr(m)
    assert "far off" not in repr(a_measurement([1.0, 1.0]))


def test_rate_is_work_per_second():
    assert a_measurement([0.5, 0.5], work=3e9).rate == pytest.approx(6e9)
    assert a_measurement([0.5, 0.5]).rate is None


def test_the_record_holds_what_a_reader_needs(clock):
    x = jnp.ones((3, 4))
    m = timer.measure("a/record", clock.takes(0.03), x, x, work=24, error=1e-7)
    record = m.record()
    assert set(record) == {
        *("version", "name", "framework", "device_kind", "processor", "threads", "shape", "dtype"),
        *("precision", "samples", "calls_per_sample", "first_call", "work", "error"),
        *("versions", "date", "median", "spread", "stable", "rate"),
        *("quartiles", "outliers", "machine"),
    }
    assert json.loads(json.dumps(record)) == record
    assert record["name"] == "a/record"
    assert record["framework"] == "jax"
    assert record["device_kind"] == "cpu"
    assert record["shape"] == [[3, 4], [3, 4]]
    assert record["dtype"] == "float32"
    assert record["error"] == 1e-7
    assert record["samples"] == m.samples
    assert record["versions"]["jax"] == jax.__version__
    assert datetime.datetime.fromisoformat(record["date"]).tzinfo is not None


@pytest.mark.parametrize("framework", ["jax", "numpy", "torch", "tensorflow", "python"])
def test_the_record_is_what_the_schema_beside_the_timer_says(clock, framework):
    path = pathlib.Path(timer.__file__).with_name("measurement.schema.json")
    schema = Schema.load(path)
    array = ARRAYS.get(framework, lambda: 3)()
    m = timer.measure("a/record", clock.takes(0.03), array, work=24, error=1e-7)
    assert m.framework == framework
    assert schema.problem(m.record()) is None
    known = set(schema.rules["$defs"]["measurement"]["properties"])
    assert set(m.record()) == known - {"processes", "method"}
    assert set(m.machine) == set(schema.rules["$defs"]["machine"]["properties"]) - {"repeated"}
    assert schema.media_type == timer.RECORD_TYPE
    assert schema.functions == (timer.measure.__name__,)
    assert schema.comparisons == (timer.compare.__name__,)
    assert schema.frameworks == ("numpy", *timer.FRAMEWORKS)
    assert (shown.UNSTABLE, shown.FENCE) == (timer.UNSTABLE, timer.FENCE)


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
def test_in_unit_keeps_three_digits(seconds):
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


def test_thread_counts(monkeypatch):
    for variables in timer.THREAD_VARIABLES.values():
        for variable in variables:
            monkeypatch.delenv(variable, raising=False)
    assert timer.thread_count("numpy") == timer.thread_count("jax") == timer.usable_cores()
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    assert timer.thread_count("numpy") == 7
    monkeypatch.setenv("PJRT_NPROC", "9")
    assert timer.thread_count("jax") == 9
    assert timer.thread_count("torch") == torch.get_num_threads()
    ask = "get_intra_op_parallelism_threads"
    monkeypatch.setattr(tf.config.threading, ask, lambda: 5)
    assert timer.thread_count("tensorflow") == 5
    monkeypatch.setattr(tf.config.threading, ask, lambda: 0)
    assert timer.thread_count("tensorflow") == timer.usable_cores()


def test_usable_cores_without_affinity(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert timer.usable_cores() == os.cpu_count()


def test_processor_name(monkeypatch):
    assert timer.processor_name()
    monkeypatch.setattr(os.path, "exists", lambda path: False)
    monkeypatch.setattr(timer.platform, "processor", lambda: "")
    monkeypatch.setattr(timer.platform, "machine", lambda: "some64")
    assert timer.processor_name() == "some64"


@pytest.mark.parametrize(
    ("lines", "name"),
    [
        (["cpu family\t: 25", "model\t\t: 17", "model name\t: A 7 B"], "A 7 B"),
        (["cpu family\t: 25", "model\t\t: 17", "model name\t: AB"], "AB, family 25, model 17"),
        (["model name\t: AB"], "AB"),
    ],
)
def test_a_name_without_a_number_is_followed_by_family_and_model(
    monkeypatch, tmp_path, lines, name
):
    """As the engine writes it, which records where a page was executed."""
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("\n".join([*lines, "", "model name\t: another"]))
    monkeypatch.setattr(timer.os.path, "exists", lambda path: True)
    monkeypatch.setattr(timer, "open", lambda path: cpuinfo.open(), raising=False)
    assert timer.processor_name() == name
    monkeypatch.setattr(machine, "CPUINFO", cpuinfo)
    machine.processor.cache_clear()
    assert machine.processor() == name
    machine.processor.cache_clear()


def test_versions_name_only_what_is_installed(monkeypatch):
    monkeypatch.setattr(timer, "PACKAGES", ("jax", "no-such-package"))
    assert set(timer.installed_versions()) == {"python", "jax"}


def test_a_result_may_be_given_away_by_the_next_call(clock):
    takes = clock.takes(0.02)
    step = jax.jit(lambda x: x + 1, donate_argnums=0)
    latest = [jnp.zeros(3)]

    def function():
        latest[0] = step(takes(latest[0]))
        return latest[0]

    m = timer.measure("a/donated", function, inputs=[jnp.zeros(3)])
    assert m.device_kind == latest[0].device.device_kind
    assert float(latest[0][0]) == 22


def test_only_installed_frameworks_are_asked(monkeypatch):
    known = {"numpy": "some", "torch": "some"}
    monkeypatch.setattr(timer.importlib.util, "find_spec", known.get)
    assert timer.installed_frameworks() == ["numpy", "torch"]


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


def test_alternatives_take_turns_in_random_order_with_the_first_twice(clock):
    _, calls = in_turns(clock, {"a": steady(0.007), "b": steady(0.007), "c": steady(0.007)})
    # Each sample comes after a call that does not count.
    assert calls[3::2] == calls[4::2]
    rounds = [tuple(calls[k : k + 8 : 2]) for k in range(3, len(calls), 8)]
    assert len(rounds) == timer.ROUNDS
    assert all(sorted(each) == ["a", "a", "b", "c"] for each in rounds)
    assert len(set(rounds)) > 3


def test_long_calls_have_fewer_rounds(clock):
    for seconds, rounds in ((0.02, 20), (0.06, 11), (1.0, 7)):
        found, _ = in_turns(clock, {"a": steady(seconds), "b": steady(seconds)})
        assert len(found.control) == rounds


def test_few_rounds_have_their_whole_range_as_an_interval():
    ratios = [1.1, 1.3, 1.2, 1.25, 1.15, 1.4, 1.02, 1.22]
    found = timer.ratio_of(ratios, [1.0] * 8, floor=0.01)
    assert (found.low, found.high) == pytest.approx((1.02 / 1.01, 1.4 * 1.01))
    assert found.different
    assert not timer.ratio_of([0.99, *ratios[1:]], [1.0] * 8).different


@pytest.mark.parametrize(
    ("count", "left_out"), [(7, 0), (10, 0), (11, 1), (13, 1), (14, 2), (17, 3), (19, 4)]
)
def test_more_rounds_may_leave_out_the_outermost(count, left_out):
    # As many as a binomial distribution of `count` and 1/2 has below its hundredth part.
    assert timer.middle_ranks(reversed(range(count))) == (left_out, count - 1 - left_out)


@pytest.mark.parametrize("count", [7, 12, 18])
def test_middle_ranks_hold_the_median_of_any_distribution(count):
    random = np.random.default_rng(count)
    drawn = [timer.middle_ranks(random.exponential(size=count)) for _ in range(4000)]
    missed = sum(not low <= math.log(2) <= high for low, high in drawn)
    assert 0 < missed < 0.03 * 4000


def test_a_ratio_is_that_of_the_medians(clock):
    found, _ = in_turns(clock, {"a": steady(0.06), "b": steady(0.02)})
    ratio = found.ratio("a", "b")
    assert (ratio.value, ratio.low, ratio.high) == pytest.approx((3, 3, 3))
    assert ratio.different
    assert found.floor == pytest.approx(0)
    assert found.ratio("b", "a").value == pytest.approx(1 / 3)


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


def test_a_comparison_is_one_record_that_the_engine_can_read(clock):
    schema = Schema.load(pathlib.Path(timer.__file__).with_name("measurement.schema.json"))
    found, _ = in_turns(clock, {"jax": noisy(0.04, 1), "b@torch": noisy(0.02, 2)})
    record = json.loads(json.dumps(found.record()))
    assert schema.problem(record) is None
    bundle = found._repr_mimebundle_()
    assert bundle[timer.RECORD_TYPE] == found.record()
    assert bundle["text/plain"] == repr(found)
    jax_, torch_ = (
        shown.Measurement.from_plain(each | {"page": "a", "device": "cpu"})
        for each in shown.single(record)
    )
    ours = found.ratio("jax", "b@torch")
    theirs = jax_.ratios["a/b@torch"]
    assert dataclasses.astuple(theirs) == pytest.approx(dataclasses.astuple(ours))
    back = dataclasses.astuple(found.ratio("b@torch", "jax"))
    assert dataclasses.astuple(torch_.ratios["a@jax"]) == pytest.approx(back)
    assert theirs.different is ours.different is True


def test_a_comparison_is_displayed_once_and_says_its_ratios(clock, monkeypatch):
    displayed = []
    monkeypatch.setattr(timer, "display", displayed.append)
    found, _ = in_turns(clock, {"a": steady(0.01), "b": steady(0.005), "c": steady(0.01)})
    assert displayed == [found]
    *_, first, second, last = repr(found).splitlines()
    assert first == "a / b: 2× (2 to 2)"
    assert second == "a / c: no difference measured (1 to 1)"
    assert last == "20 rounds, noise floor 0.0%"


NOISES = {
    "normal": lambda random, level: random.normal(0, 0.05),
    "drifting": lambda random, level: level + random.normal(0, 0.01),
    "heavy": lambda random, level: (
        random.normal(0, 0.02) + (math.log1p(random.pareto(1.5)) if random.random() < 0.15 else 0)
    ),
}


def taken_in_turns(noise, slower, seed):
    """Return samples of A, B and A once more, out of one stream of noise, as turns take them.

    A last one with its control comes first, of which every sample is within 1 %.
    """
    random = np.random.default_rng(seed)
    level = 0.0

    def taking(seconds):
        def sample():
            nonlocal level
            level = 0.9 * level + random.normal(0, 0.05)
            return seconds * math.exp(NOISES[noise](random, level))

        return sample

    def steadily():
        return math.exp(random.normal(0, 0.01))

    samplers = [steadily, taking(1.0), taking(slower), taking(1.0), steadily]
    return timer.turns(samplers, seed=seed)


def of_the_first(noise, slower, seed):
    """Return the ratio of A to B, where A has the control."""
    _, a, b, control, _ = taken_in_turns(noise, slower, seed)
    alternatives = {"a": a_measurement(a), "b": a_measurement(b)}
    return timer.Comparison.of("x", alternatives, control).ratio("a", "b")


def of_others(noise, slower, seed):
    """Return the ratio of A to B, where the control is that of a third, steadier one."""
    steady, a, b, _, control = taken_in_turns(noise, slower, seed)
    alternatives = {key: a_measurement(s) for key, s in (("s", steady), ("a", a), ("b", b))}
    return timer.Comparison.of("x", alternatives, control).ratio("a", "b")


@pytest.mark.parametrize("pair", [of_the_first, of_others])
@pytest.mark.parametrize("noise", NOISES)
def test_equal_functions_are_seldom_called_different(noise, pair):
    found = [pair(noise, 1.0, seed).different for seed in range(200)]
    assert sum(found) <= 0.05 * len(found)


@pytest.mark.parametrize("pair", [of_the_first, of_others])
@pytest.mark.parametrize("noise", NOISES)
def test_a_fifth_slower_is_found(noise, pair):
    found = [pair(noise, 1.2, seed) for seed in range(100)]
    assert sum(ratio.different for ratio in found) >= 0.95 * len(found)
    assert sum(ratio.low <= 1 / 1.2 <= ratio.high for ratio in found) >= 0.95 * len(found)


def test_moods_that_rounds_share_do_not_hide_a_difference(clock):
    """A machine that is now fast, now slow tells the two apart within each of its moods."""
    moods = [1.0, 1.5, 1.5, 1.0, 1.0, 1.0, 1.5, 1.5] * 7
    slow, fast = ([seconds * mood for mood in moods] for seconds in (1.2, 1.0))
    ratio = timer.ratio_of(slow, fast)
    assert (ratio.value, ratio.low, ratio.high) == pytest.approx((1.2, 1.2, 1.2))


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
    assert max(found.alternatives["hindered"].samples) == pytest.approx(0.02)


def test_samples_from_slow_moments_are_taken_again(clock):
    """Every other twentieth of a second half of the core works for somebody else."""
    clock.slowness = lambda now: 1.8 if now % 0.1 > 0.05 else 1.0
    lasting = {"a": 0.002, "b": 0.003}
    both = {key: functools.partial(clock.work, seconds) for key, seconds in lasting.items()}
    found = timer.compare("a", both, calls=1)
    for key, seconds in lasting.items():
        assert found.alternatives[key].samples == pytest.approx(timer.ROUNDS * [seconds])
    assert found.control == pytest.approx(timer.ROUNDS * [lasting["a"]])
    assert clock.now < 1


def test_patience_with_a_slow_processor_ends(clock):
    timer.Moments().look()
    clock.slowness, start = lambda now: 1.8, clock.now
    found = timer.measure("a", lambda: clock.work(0.001), calls=1)
    assert found.samples == pytest.approx(timer.ROUNDS * [0.0018])
    assert timer.PATIENCE < clock.now - start < timer.PATIENCE + 0.2


def test_one_measured_alone_waits_for_calm_moments_too(clock):
    clock.slowness = lambda now: 1.8 if now % 0.1 > 0.05 else 1.0
    found = timer.measure("a", lambda: clock.work(0.003), calls=1)
    assert found.samples == pytest.approx(timer.ROUNDS * [0.003])


def test_samples_are_not_chosen_by_their_own_time(clock):
    """What is slow now and then in calm moments keeps these samples."""
    times = itertools.cycle([0.02, 0.02, 0.05])
    found, _ = in_turns(clock, {"a": steady(0.02), "b": times})
    counted = collections.Counter(round(each, 6) for each in found.alternatives["b"].samples)
    assert counted[0.05] >= 6


def test_counting_takes_longer_for_more():
    assert 0 < min(timer.count_to(100) for _ in range(20)) < timer.count_to(200_000)


def test_threads_are_counted_by_their_state(monkeypatch, tmp_path):
    states = {"1": "1 (a) S 0 0", "2": "2 (b) R) R 0 0", "3": "3 (c) R 0 0", "4": "4 (R) S 0 0"}
    for thread, line in states.items():
        (tmp_path / thread).mkdir()
        (tmp_path / thread / "stat").write_text(line)
    real = open
    monkeypatch.setattr(timer.os, "listdir", lambda folder: [*states, "ended"])
    monkeypatch.setattr(timer.os.path, "isdir", lambda folder: True)
    monkeypatch.setattr(timer.threading, "get_native_id", lambda: 3)
    load = tmp_path / "loadavg"
    load.write_text("0.52 0.58 0.59 2/85 1234\n")

    def open_here(name):
        return real(name.replace("/proc/self/task", str(tmp_path)).replace("/proc", str(tmp_path)))

    monkeypatch.setattr(timer, "open", open_here, raising=False)
    assert timer.threads_running() == 1
    load.write_text("0.52 0.58 0.59 1/85 1234\n")
    assert timer.threads_running() == 0
    load.unlink()
    assert timer.threads_running() == 1
    monkeypatch.setattr(timer.os.path, "isdir", lambda folder: False)
    assert timer.threads_running() == 0


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
        assert max(each.samples) == pytest.approx(0.01)


def test_what_takes_long_is_called_once_for_a_sample(clock):
    calls = {}

    def lasting(key, seconds):
        def function():
            calls[key] = calls.get(key, 0) + 1
            clock.now += seconds

        return function

    times = {"short": 0.01, "long": 0.1}
    timed = {key: lasting(key, seconds) for key, seconds in times.items()}
    timer.compare("a", timed, calls=1)
    rounds = timer.ROUNDS
    assert calls["long"] < rounds + 5
    assert calls["short"] >= 2 * rounds


def test_an_interval_is_that_of_scipy():
    random = np.random.default_rng(3)
    above, below = random.lognormal(0, 0.1, 40), random.lognormal(0.1, 0.2, 40)

    def statistic(a, b, axis):
        return np.exp(np.median(np.log(a) - np.log(b), axis=axis))

    theirs = scipy.stats.bootstrap(
        (above, below),
        statistic,
        paired=True,
        n_resamples=20_000,
        confidence_level=timer.WITHIN[1] - timer.WITHIN[0],
        method="percentile",
        rng=random,
    ).confidence_interval
    ours = timer.ratio_of(above, below)
    assert ours.value == pytest.approx(statistic(above, below, 0))
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), rel=0.04)


def test_the_control_widens_the_interval_and_sets_the_floor():
    same, other = [1.0] * 30, [1.2] * 30
    alternatives = {"a": a_measurement(same), "b": a_measurement(other)}
    quiet = timer.Comparison.of("x", alternatives, [1.0] * 30)
    noisy = timer.Comparison.of("x", alternatives, [1.3] * 30)
    assert quiet.ratio("a", "b").different
    assert noisy.floor == pytest.approx(0.3)
    assert not noisy.ratio("a", "b").different
    ends = noisy.ratio("a", "b").low, noisy.ratio("a", "b").high
    assert ends == pytest.approx((1 / 1.2 / 1.3, 1.3 / 1.2))


def ticks(**seconds):
    """Return the first line of /proc/stat, in hundredths of a second."""
    names = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
    return "cpu " + " ".join(str(round(100 * seconds.get(name, 0))) for name in names) + " 0 0\n"


@pytest.fixture
def system(monkeypatch, tmp_path):
    """Return a function that says what the system and this process did so far, in seconds."""
    monkeypatch.setattr(timer.os, "sysconf", lambda name: 100)
    monkeypatch.setattr(timer.os, "cpu_count", lambda: 4)

    def has_done(own=0, **seconds):
        path = tmp_path / "stat"
        path.write_text(ticks(**seconds))
        mine = timer.os.times_result((own, 0, 0, 0, 0)) if own is not None else None
        monkeypatch.setattr(timer.os, "times", lambda: mine)
        real = open
        monkeypatch.setattr(
            timer, "open", lambda name: real(path if name == "/proc/stat" else name), raising=False
        )
        return timer.processor_seconds()

    return has_done


@pytest.mark.parametrize(
    ("done", "others", "steal", "disturbed"),
    [
        ({"own": 10, "user": 10, "idle": 30}, 0, 0, False),
        ({"own": 10, "user": 20, "idle": 20}, 1, 0, True),
        ({"own": 10, "user": 10, "idle": 26, "steal": 4}, 0, 0.1, True),
        ({"own": 10, "user": 9, "idle": 31}, 0, 0, False),
    ],
)
def test_the_record_says_what_else_the_machine_did(system, done, others, steal, disturbed):
    before = system(own=5, user=100, idle=100)
    after = {name: value + {"own": 5, "steal": 0}.get(name, 100) for name, value in done.items()}
    system(**after)
    found = timer.machine_since(before)
    assert found["others"] == pytest.approx(others)
    assert found["steal"] == pytest.approx(steal)
    assert found["disturbed"] is disturbed


def test_where_the_system_says_nothing_the_record_says_so(monkeypatch):
    def nothing(name):
        raise FileNotFoundError

    monkeypatch.setattr(timer, "open", nothing, raising=False)
    monkeypatch.delattr(timer.os, "getloadavg")
    assert timer.processor_seconds() is None
    found = timer.machine_since(None)
    named = ("load", "steal", "others", "megahertz")
    assert [found[name] for name in named] == [None] * 4
    assert found["disturbed"] is False


def test_limits_of_threads_are_recorded(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    limits = timer.machine_since(None)["limits"]
    assert limits["OMP_NUM_THREADS"] == "3"
    assert limits["cores"].startswith(f"{timer.usable_cores()} of ")


def test_the_frequency_is_the_mean_of_the_cores(monkeypatch, tmp_path):
    (tmp_path / "cpuinfo").write_text("cpu MHz\t\t: 2000.0\nx: 5\ncpu MHz\t\t: 3000.0\n")
    monkeypatch.setattr(timer, "open", lambda name: (tmp_path / "cpuinfo").open(), raising=False)
    assert timer.frequency() == 2500
    (tmp_path / "cpuinfo").write_text("nothing\n")
    assert timer.frequency() is None


def test_taking_turns_prevents_false_differences():
    assert timer.false_differences(100, in_turns=False) > 25
    assert timer.false_differences(100, in_turns=True) <= 5


def test_the_moods_of_a_machine_are_the_same_twice():
    first, again = timer.moody_machine(3), timer.moody_machine(3)
    assert [first() for _ in range(9)] == [again() for _ in range(9)]


@pytest.mark.parametrize(
    ("found", "seconds", "used"),
    [
        ([1, 4], [0.004, 0.003], [4, 4]),
        ([1, 4], [0.2, 0.003], [1, 4]),
        ([2, 1, 64, 32], [0.02, 0.03, 0.0002, 0.0003], [2, 2, 64, 64]),
        ([5], [1.0], [5]),
    ],
)
def test_functions_of_similar_speed_get_the_same_number_of_calls(found, seconds, used):
    assert timer.alike(found, seconds) == used


def test_a_sample_is_long_enough_although_the_search_met_a_slow_moment(clock):
    """The search takes the first call for 5 ms; the calm ones that follow take 0.25."""
    slow_at_first = clock.takes(0.005, 0.005, *itertools.repeat(0.00025, 400))
    found = timer.compare("a", {"a": slow_at_first}).alternatives["a"]
    assert found.calls_per_sample in (16, 17)


def test_a_process_that_starts_in_a_slow_moment_learns_what_is_fast(clock):
    clock.slowness = lambda now: 1.8 if now < timer.FIRST_LOOK / 2 else 1.0
    moments = timer.Moments()
    assert timer.Moments.fastest == pytest.approx(timer.COUNTED * 25e-9)
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
    assert {m.calls_per_sample for m in found.alternatives.values()} == {2}
