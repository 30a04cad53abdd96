"""The one timer of the book: every benchmark page measures with `measure`."""

import dataclasses
import datetime
import gc
import importlib.metadata
import os
import platform
import statistics
import sys
import time

from IPython.display import display

RECORD_TYPE = "application/vnd.jax-measured.record+json"
PACKAGES = ("jax", "jaxlib", "torch", "tensorflow", "tensorflow-cpu", "numpy")


@dataclasses.dataclass
class Measurement:
    """One measured call. All times are seconds for a single call.

    `samples` are the raw timings after the first call, each the mean of
    `calls_per_sample` calls in a row; `work` is the number of floating-point
    operations of one call, where the page gives it.
    """

    name: str
    framework: str
    device_kind: str
    processor: str
    threads: int
    shape: list
    dtype: str
    precision: str
    samples: list
    calls_per_sample: int
    first_call: float
    work: float | None
    versions: dict
    date: str

    @property
    def median(self):
        """Median of the samples, in seconds."""
        return statistics.median(self.samples)

    @property
    def spread(self):
        """Standard deviation of the samples as a fraction of their mean."""
        return statistics.stdev(self.samples) / statistics.fmean(self.samples)

    @property
    def stable(self):
        """False where the spread is 10 % or more, the rule of pyperf."""
        return self.spread < 0.10

    @property
    def rate(self):
        """Work done per second, in floating-point operations, or None."""
        return None if self.work is None else self.work / self.median

    def record(self):
        """Return everything that is known about the measurement, as plain data."""
        derived = ("median", "spread", "stable", "rate")
        return dataclasses.asdict(self) | {key: getattr(self, key) for key in derived}

    def __repr__(self):
        warning = "" if self.stable else ", unstable"
        return (
            f"{self.name} [{self.framework}] {in_unit(self.median)} "
            f"± {self.spread:.0%} (first call {in_unit(self.first_call)}{warning})"
        )

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/plain": repr(self), RECORD_TYPE: self.record()}


def in_unit(seconds):
    """Write a time given in seconds with three digits and a readable unit."""
    for unit, scale in (("s", 1), ("ms", 1e3), ("µs", 1e6)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def framework_of(value):
    """Name the framework whose array `value` is (or holds), else 'python'."""
    if isinstance(value, (list, tuple, dict)):
        items = list(value.values()) if isinstance(value, dict) else value
        return framework_of(items[0]) if items else "python"
    package = type(value).__module__.split(".")[0]
    names = {"jaxlib": "jax", "jax": "jax", "torch": "torch", "numpy": "numpy"}
    return names.get(package, "tensorflow" if package == "tensorflow" else "python")


def no_wait(result):
    """Return at once, whatever the device is still doing."""


def waiter(framework):
    """Return the function that blocks until a result of `framework` exists."""
    if framework == "jax":
        import jax

        return jax.block_until_ready
    if framework == "torch":
        import torch

        if torch.cuda.is_available():
            return lambda result: torch.cuda.synchronize()
    if framework == "tensorflow":
        import tensorflow as tf

        if tf.config.list_physical_devices("GPU"):
            return lambda result: tf.test.experimental.sync_devices()
    return no_wait


def device_kind(framework, value):
    """Name the kind of device that holds `value`, such as 'cpu' or 'NVIDIA H200'."""
    if framework == "jax":
        return next(iter(value.devices())).device_kind
    if framework == "torch" and value.is_cuda:
        import torch

        return torch.cuda.get_device_name(value.device)
    if framework == "tensorflow" and "GPU" in value.device:
        import tensorflow as tf

        gpu = tf.config.list_physical_devices("GPU")[0]
        return tf.config.experimental.get_device_details(gpu)["device_name"]
    return "cpu"


def float32_precision(framework):
    """Say how `framework` is set to multiply float32 numbers right now."""
    if framework == "jax":
        import jax

        return str(jax.config.jax_default_matmul_precision or "default")
    if framework == "torch":
        import torch

        return torch.get_float32_matmul_precision()
    if framework == "tensorflow":
        import tensorflow as tf

        allowed = tf.config.experimental.tensor_float_32_execution_enabled()
        return "tf32 allowed" if allowed else "highest"
    return "highest"


def processor_name():
    """Return the processor's model name as the operating system gives it."""
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def thread_count(framework):
    """Return the number of CPU threads that one operation may use."""
    if framework == "torch":
        import torch

        return torch.get_num_threads()
    if framework == "tensorflow":
        import tensorflow as tf

        chosen = tf.config.threading.get_intra_op_parallelism_threads()
        return chosen or len(os.sched_getaffinity(0))
    return len(os.sched_getaffinity(0))


def dtype_name(array):
    """Return the dtype of any framework's array as NumPy spells it."""
    return getattr(array.dtype, "name", str(array.dtype).removeprefix("torch."))


def installed_versions():
    """Return the versions of Python and of the frameworks that are installed."""
    versions = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def time_calls(function, args, wait, calls):
    """Return the mean time of `calls` calls in a row, in seconds."""
    start = time.perf_counter()
    for _ in range(calls):
        wait(function(*args))
    return (time.perf_counter() - start) / calls


def measure(
    name, function, *args, framework=None, wait=None, work=None, budget=0.5, inputs=None
):
    """Time `function(*args)` and return a `Measurement`, which is also displayed.

    The first call is timed alone, for it may trace and compile. From a second
    call the timer chooses how many calls make one sample (at least 10 ms) and
    how many samples fit into `budget` seconds (5 to 50). `wait` blocks until a
    result exists; by default it is chosen from the framework of the first
    result, or from `framework`. `inputs` replaces `args` as the source of
    shape and dtype in the record.
    """
    start = time.perf_counter()
    result = function(*args)
    framework = framework or framework_of(result)
    wait = wait or waiter(framework)
    wait(result)
    first_call = time.perf_counter() - start

    collecting = gc.isenabled()
    gc.disable()
    try:
        once = time_calls(function, args, wait, 1)
        calls = max(1, round(0.01 / once))
        count = min(50, max(5, round(budget / (once * calls))))
        samples = [time_calls(function, args, wait, calls) for _ in range(count)]
    finally:
        if collecting:
            gc.enable()

    arrays = [x for x in (args if inputs is None else inputs) if hasattr(x, "dtype")]
    on_device = framework_of(result) == framework and framework != "python"
    measurement = Measurement(
        name=name,
        framework=framework,
        device_kind=device_kind(framework, result) if on_device else "cpu",
        processor=processor_name(),
        threads=thread_count(framework),
        shape=[list(x.shape) for x in arrays],
        dtype=dtype_name(arrays[0]) if arrays else "",
        precision=float32_precision(framework),
        samples=samples,
        calls_per_sample=calls,
        first_call=first_call,
        work=work,
        versions=installed_versions(),
        date=datetime.datetime.now(datetime.timezone.utc).isoformat("T", "seconds"),
    )
    display(measurement)
    return measurement
