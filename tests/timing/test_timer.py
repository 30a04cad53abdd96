import collections
import datetime
import gc
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
import tensorflow as tf
import torch
import torch.utils.benchmark
from _ext.measurements.schema import Schema
from hypothesis import given, settings
from hypothesis import strategies as st

from snippets.timing import timer

SAMPLES = st.lists(st.floats(1e-9, 1e3), min_size=2, max_size=50)


class Clock:
    """A clock that stands still until a fake function moves it."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    def takes(self, *durations):
        """Return a function whose calls last `durations`, then the last of them for ever."""
        waiting = collections.deque(durations)

        def function(*args):
            self.now += waiting.popleft() if len(waiting) > 1 else waiting[0]
            function.calls += 1
            return args[0] if args else None

        function.calls = 0
        return function


@pytest.fixture
def clock(monkeypatch):
    fake = Clock()
    monkeypatch.setattr(timer.time, "perf_counter", fake)
    return fake


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
    }
    return timer.Measurement(**given_fields | fields)


def test_the_first_call_is_kept_apart(clock):
    m = timer.measure("a/first", clock.takes(7.0, 0.02), np.ones(3))
    assert m.first_call == pytest.approx(7.0)
    assert m.median == pytest.approx(0.02)
    assert max(m.samples) == pytest.approx(0.02)


@settings(deadline=None)
@given(st.floats(2e-5, 5.0))
def test_one_sample_lasts_at_least_ten_milliseconds(seconds):
    with pytest.MonkeyPatch.context() as patch:
        clock = Clock()
        patch.setattr(timer.time, "perf_counter", clock)
        m = timer.measure("a/any", clock.takes(seconds), budget=0.5)
    assert m.calls_per_sample * seconds >= 0.01 * (1 - 1e-6)
    assert m.calls_per_sample == 1 or m.calls_per_sample * seconds < 0.02 * (1 + 1e-6)
    assert m.median == pytest.approx(seconds, rel=1e-6)
    assert 5 <= len(m.samples) <= 50
    if len(m.samples) > 5:
        assert sum(m.samples[:-1]) * m.calls_per_sample < 0.5 * (1 + 1e-6)


def test_a_slow_call_is_made_seven_times(clock):
    slow = clock.takes(3.0)
    timer.measure("a/slow", slow)
    assert slow.calls == 1 + 1 + 5


def test_at_most_fifty_samples(clock):
    m = timer.measure("a/fast", clock.takes(0.01), budget=1000)
    assert len(m.samples) == 50


def test_calls_can_be_fixed(clock):
    fast = clock.takes(1e-6)
    m = timer.measure("a/fixed", fast, calls=1)
    assert m.calls_per_sample == 1
    assert fast.calls == 1 + 50


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
    function = clock.takes(0.004)
    m = timer.measure("a/every", function, np.ones(2), wait=waited.append)
    assert m.calls_per_sample == 4
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
    assert m.median == pytest.approx(float(np.median(samples)))
    assert m.spread == pytest.approx(float(np.std(samples, ddof=1) / np.mean(samples)), abs=1e-12)
    assert m.stable == (m.spread < 0.10)


def test_unstable_from_a_tenth_of_the_mean_on():
    apart = 0.1 / math.sqrt(2)
    assert a_measurement([1 - 0.99 * apart, 1 + 0.99 * apart]).stable
    assert not a_measurement([1 - 1.01 * apart, 1 + 1.01 * apart]).stable
    assert "unstable" in repr(a_measurement([1.0, 2.0]))
    assert "unstable" not in repr(a_measurement([1.0, 1.0]))


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
    assert set(m.record()) == set(schema.rules["properties"])
    assert schema.media_type == timer.RECORD_TYPE
    assert schema.functions == (timer.measure.__name__,)


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


def test_processor_name(monkeypatch, tmp_path):
    assert timer.processor_name()
    monkeypatch.setattr(os.path, "exists", lambda path: False)
    monkeypatch.setattr(timer.platform, "processor", lambda: "")
    monkeypatch.setattr(timer.platform, "machine", lambda: "some64")
    assert timer.processor_name() == "some64"


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

    m = timer.measure("a/donated", function, budget=0, inputs=[jnp.zeros(3)])
    assert m.device_kind == latest[0].device.device_kind
    assert float(latest[0][0]) == 7


def test_only_installed_frameworks_are_asked(monkeypatch):
    known = {"numpy": "some", "torch": "some"}
    monkeypatch.setattr(timer.importlib.util, "find_spec", known.get)
    assert timer.installed_frameworks() == ["numpy", "torch"]


def test_a_page_may_record_the_precision_that_was_used(clock):
    x = jnp.ones(2)
    assert timer.measure("a/asked", clock.takes(0.02), x).precision == "default"
    m = timer.measure("a/used", clock.takes(0.02), x, precision="TF32")
    assert m.record()["precision"] == "TF32"
