"""The one timer of the book: every benchmark page measures with `measure`."""

import dataclasses
import datetime
import gc
import importlib.metadata
import importlib.util
import os
import platform
import statistics
import sys
import time

from IPython.display import display

RECORD_TYPE = "application/vnd.jax-measured.record+json"
FRAMEWORKS = ("jax", "torch", "tensorflow")
PACKAGES = ("jax", "jaxlib", "torch", "tensorflow", "tensorflow-cpu", "numpy")
SHORTEST_SAMPLE = 0.01
FEWEST_SAMPLES = 5
MOST_SAMPLES = 50
THREAD_VARIABLES = {
    "numpy": ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"),
    "jax": ("PJRT_NPROC", "NPROC"),
    "tensorflow": ("TF_NUM_INTRAOP_THREADS",),
}


@dataclasses.dataclass
class Measurement:
    """One measured call. All times are seconds for a single call.

    `samples` are the raw timings after the first call, each the mean of
    `calls_per_sample` calls in a row. `work` is the number of floating-point
    operations of one call and `error` the relative error of its result, where
    the page gives them.
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
    error: float | None
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
        """Return what is known, as plain data: version 1 of measurement.schema.json."""
        derived = ("median", "spread", "stable", "rate")
        known = dataclasses.asdict(self) | {key: getattr(self, key) for key in derived}
        return {"version": 1} | known

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
    for unit, scale in (("s", 1), ("ms", 1e3), ("µs", 1e6), ("ns", 1e9)):
        if seconds * scale >= 0.9995 or unit == "ns":
            return f"{float(f'{seconds * scale:.3g}'):g} {unit}"


def arrays_in(value):
    """Yield the arrays of any framework in nested lists, tuples and dictionaries."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from arrays_in(item)
    elif hasattr(value, "dtype") and hasattr(value, "shape"):
        yield value


def framework_of(array):
    """Name the framework that an array belongs to, such as 'jax' or 'numpy'."""
    package = type(array).__module__.split(".")[0]
    return "jax" if package == "jaxlib" else package


def dtype_name(array):
    """Return the dtype of any framework's array as NumPy spells it."""
    return getattr(array.dtype, "name", str(array.dtype).removeprefix("torch."))


def no_wait(result):
    """Return at once, whatever the device is still doing."""


def waiter(framework):
    """Return the function that blocks until a result of `framework` exists.

    JAX waits for the arrays themselves. PyTorch and TensorFlow compute at once
    on a CPU, and wait for the whole device where there is an accelerator.
    """
    if framework == "jax":
        import jax

        return jax.block_until_ready
    if framework == "torch":
        import torch

        if torch.accelerator.is_available():
            return lambda result: torch.accelerator.synchronize()
    if framework == "tensorflow":
        import tensorflow as tf

        if tf.config.list_physical_devices("GPU"):
            return lambda result: tf.test.experimental.sync_devices()
    return no_wait


def device_kind(framework, array):
    """Name the kind of device that holds `array`, such as 'cpu' or 'NVIDIA H200'."""
    if framework == "jax":
        return next(iter(array.devices())).device_kind
    if framework == "torch" and array.is_cuda:
        import torch

        return torch.cuda.get_device_name(array.device)
    if framework == "tensorflow" and "GPU" in array.device:
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


def usable_cores():
    """Return the number of CPU cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count()


def thread_count(framework):
    """Return the number of CPU threads that one operation may use."""
    if framework == "torch":
        import torch

        return torch.get_num_threads()
    if framework == "tensorflow":
        import tensorflow as tf

        chosen = tf.config.threading.get_intra_op_parallelism_threads()
        if chosen:
            return chosen
    variables = THREAD_VARIABLES.get(framework, ())
    return int(
        next((os.environ[v] for v in variables if v in os.environ), usable_cores())
    )


def installed_versions():
    """Return the versions of Python and of the frameworks that are installed."""
    versions = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def installed_frameworks():
    """Return the names of NumPy and of those frameworks that are installed."""
    return [n for n in ("numpy", *FRAMEWORKS) if importlib.util.find_spec(n)]


def time_calls(function, args, wait, settle, calls):
    """Return the time that `calls` calls in a row take, in seconds.

    `settle` waits for the last result after the clock was read, so that no
    unfinished work runs into the next sample.
    """
    start = time.perf_counter()
    for _ in range(calls - 1):
        wait(function(*args))
    result = function(*args)
    wait(result)
    seconds = time.perf_counter() - start
    settle(result)
    return seconds


def calls_for_a_sample(time_them):
    """Double the number of calls until `time_them(calls)` takes at least 10 ms."""
    calls = 1
    while time_them(calls) < SHORTEST_SAMPLE:
        calls *= 2
    return calls


def sample(time_them, calls, budget):
    """Take 5 to 50 samples, as many as fit into `budget` seconds."""
    samples = []
    end = time.perf_counter() + budget
    while len(samples) < FEWEST_SAMPLES or (
        len(samples) < MOST_SAMPLES and time.perf_counter() < end
    ):
        samples.append(time_them(calls) / calls)
    return samples


def measure(
    name,
    function,
    *args,
    framework=None,
    wait=None,
    work=None,
    error=None,
    budget=0.3,
    calls=None,
    inputs=None,
    precision=None,
):
    """Time `function(*args)` and return a `Measurement`, which is also displayed.

    The first call is timed alone, for it may trace and compile. Then come the
    samples, with the garbage collector off. One sample is `calls` calls, or as
    many as last 10 ms. `budget` is in seconds. `wait` blocks until a result
    exists; by default it is that of the result's framework, or of `framework`.
    `inputs` replaces `args` as the source of shape and dtype in the record, and
    `precision` what the framework is set to, where the page knows what was used.
    """
    waiters = {known: waiter(known) for known in FRAMEWORKS if known in sys.modules}
    start = time.perf_counter()
    result = function(*args)
    arrays = list(arrays_in([result, args]))
    framework = framework or next(map(framework_of, arrays), "python")
    settle = waiters.get(framework) or waiter(framework)
    wait = wait or settle
    wait(result)
    first_call = time.perf_counter() - start
    settle(result)
    held = next((x for x in arrays if framework_of(x) == framework), None)
    kind = "cpu" if held is None else device_kind(framework, held)
    shown = list(arrays_in(list(args) if inputs is None else inputs))
    del result, arrays, held

    def time_them(calls):
        return time_calls(function, args, wait, settle, calls)

    collecting = gc.isenabled()
    gc.disable()
    try:
        calls = calls or calls_for_a_sample(time_them)
        samples = sample(time_them, calls, budget)
    finally:
        if collecting:
            gc.enable()

    measurement = Measurement(
        name=name,
        framework=framework,
        device_kind=kind,
        processor=processor_name(),
        threads=thread_count(framework),
        shape=[list(x.shape) for x in shown],
        dtype=dtype_name(shown[0]) if shown else "",
        precision=precision or float32_precision(framework),
        samples=samples,
        calls_per_sample=calls,
        first_call=first_call,
        work=work,
        error=error,
        versions=installed_versions(),
        date=datetime.datetime.now(datetime.UTC).isoformat("T", "seconds"),
    )
    display(measurement)
    return measurement
