"""The one timer of the book: `measure` for one call, `compare` for several."""

import contextlib
import dataclasses
import datetime
import gc
import hashlib
import importlib.metadata
import itertools
import math
import operator
import os
import platform
import random
import re
import statistics
import sys
import threading
import time
import typing
from concurrent import futures

RECORD_TYPE = "application/vnd.jax-measured.record+json"
# Raised by hand: where a record has another form, and where its numbers mean something else.
VERSION = 3
METHOD = 2
FRAMEWORKS = ("jax", "torch", "tensorflow")
PACKAGES = ("jax", "jaxlib", "torch", "tensorflow", "tensorflow-cpu", "numpy")
# Seconds: long beside the microsecond in which both clocks are read, and short enough to fit
# between two calm moments.
SHORTEST_SAMPLE = 0.004
# The fewest whose range leaves out a value at each end, see `middle`.
ROUNDS = 9
# Once a comparison of slow functions has taken so many seconds it ends after fewer rounds: ten
# processes of each are to be waited for. The ends of five miss the true median in one of 16 cases.
LONG = 0.5
LONG_ROUNDS = 5
# Calls that an accelerator is given at once: what is under way takes its memory.
HANDED_OVER = 64
# Seconds: twice as long as the threads of OpenBLAS spin after a call, which are the most patient.
# On a machine whose threads never rest nobody waits longer.
LONGEST_REST = 0.2
# Seconds. To a longer call it is little to wake threads and fill caches, and a call before it that
# does not count would double what it takes to be timed.
WARMS_ITSELF = 0.02
# A build that only shows that what pages measure works: one call after the first, at any moment.
PREVIEW = False
# It takes 0.1 ms: long beside the clock, and short beside the sample before and after which it is
# done.
COUNTED = 4000
# To hash as many bytes takes as long, and other threads need not wait for it as for counting.
HASHED = bytes(100_000)
# Seconds. What is fast has to be known before the first sample; where a slow phase outlasts this,
# whatever is faster later corrects it.
FIRST_LOOK = 0.25
# The frequency of a core changes by a tenth or a fifth all the time, and to wait for its best would
# never end. A busy other half of the core takes nearly half of the speed.
SLOW = 1.5
# Seconds. Some machines are never calm, and on these no more is lost than LONG.
PATIENCE = 0.5
# Of the cores that a function keeps busy at best. With less it had lost one of two, or half of one.
FEWER = 0.6
# The share of ranges that may miss the true median: the usual one.
MISSED = 0.05
# Of two whose ratio is not known to a tenth nobody should read that they are equal.
ALIKE = 1.1
# In ten processes a function against itself has come out up to 1.5 % away from 1 (timer/same of
# docs/timing/timer.md), by where code and arrays lie in memory, and others report 3 %.
INDISTINCT = 1.03
# Of one core. An idle system takes a few hundredths for itself, a program at work all of one.
TAKEN = 0.25
# The system counts in hundredths of a second, and rounds eight numbers of which a sum is made.
TICKS = 3
# What a time may depend on besides code and versions, as far as it can be asked for.
VARIABLES = (
    "XLA_FLAGS PJRT_NPROC NPROC OMP_NUM_THREADS MKL_NUM_THREADS OPENBLAS_NUM_THREADS "
    "TF_NUM_INTRAOP_THREADS GOMP_SPINCOUNT OPENBLAS_THREAD_TIMEOUT"
).split()
SWITCHES = {
    "jax": "config.jax_enable_x64 config.jax_default_matmul_precision",
    "torch": "get_num_threads get_float32_matmul_precision",
    "tensorflow": (
        "config.experimental.tensor_float_32_execution_enabled "
        "config.threading.get_intra_op_parallelism_threads"
    ),
}
ON_ACCELERATORS = {
    "torch": (
        "backends.cudnn.benchmark backends.cudnn.conv.fp32_precision "
        "backends.cudnn.rnn.fp32_precision"
    )
}
LIBRARIES = {
    "jax": {
        "CUDA": "_src.lib.cuda_versions.cuda_runtime_get_version",
        "cuDNN": "_src.lib.cuda_versions.cudnn_get_version",
    },
    "torch": {"CUDA": "version.cuda", "cuDNN": "backends.cudnn.version"},
}
# Vendor, family and models: what a virtual machine says of its processor in place of a name.
MICROARCHITECTURES = (
    ("AuthenticAMD", 23, range(0x30), "Zen"),
    ("AuthenticAMD", 23, range(0x30, 0x100), "Zen 2"),
    ("AuthenticAMD", 25, (*range(0x10), *range(0x20, 0x60)), "Zen 3"),
    ("AuthenticAMD", 25, (*range(0x10, 0x20), *range(0x60, 0xB0)), "Zen 4"),
    ("AuthenticAMD", 26, (*range(0x50), *range(0x60, 0x80)), "Zen 5"),
    ("GenuineIntel", 6, (63,), "Haswell"),
    ("GenuineIntel", 6, (79,), "Broadwell"),
    ("GenuineIntel", 6, (85,), "Skylake or Cascade Lake"),
    ("GenuineIntel", 6, (106,), "Ice Lake"),
    ("GenuineIntel", 6, (143,), "Sapphire Rapids"),
    ("GenuineIntel", 6, (207,), "Emerald Rapids"),
    ("GenuineIntel", 6, (173,), "Granite Rapids"),
)


@dataclasses.dataclass
class Measurement:
    """One measured call, as this process saw it. All times are seconds of one call.

    `latency` has a time for each round, of calls whose results were waited for, the
    mean of `calls` in a row. `throughput`, on an accelerator, is that of calls which
    are dispatched together. `cores` is the processor time over the elapsed time.
    `dropped` is the number of rounds left out, see `steady`.
    """

    name: str
    framework: str
    device_kind: str
    processor: str
    shape: list
    dtype: str
    precision: str
    work: float | None
    error: float | None
    versions: dict
    settings: dict
    date: str
    first_call: float
    calls: int
    latency: list
    throughput: list | None
    cores: float | None
    disturbed: bool
    dropped: int = 0

    @property
    def median(self):
        """Median latency, in seconds."""
        return statistics.median(self.latency)

    @property
    def reference(self):
        """What pages call it, such as 'selu/jit@jax'."""
        return f"{self.name}@{self.framework}"

    def record(self):
        """Return what is known, as plain data: a record of measurement.schema.json."""
        known = dataclasses.asdict(self)
        names = [
            "date",
            "first_call",
            "calls",
            "latency",
            "throughput",
            "cores",
        ]
        names += ["disturbed", "dropped"]
        process = {name: known.pop(name) for name in names}
        for name in ("first_call", "latency", "throughput"):
            process[name] = rounded(process[name])
        if self.throughput is None:
            del process["throughput"]
        if not self.dropped:
            del process["dropped"]
        return {
            "version": VERSION,
            "method": METHOD,
            **known,
            "processes": [process],
        }

    def __repr__(self):
        low, high = map(in_unit, middle(self.latency))
        parts = [
            f"{self.name} [{self.framework}] {in_unit(self.median)} ({low} to {high})",
            f"first {in_unit(self.first_call)}",
        ]
        if self.throughput:
            each = in_unit(statistics.median(self.throughput))
            parts.append(f"{each} each of many")
        if self.dropped:
            parts.append(f"rounds dropped: {self.dropped}")
        return ", ".join([*parts, "disturbed"] if self.disturbed else parts)

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/plain": repr(self), RECORD_TYPE: self.record()}


@dataclasses.dataclass
class Ratio:
    """How many times as long one alternative takes as another, in this process.

    `value` is the median of the rounds' ratios, see `median_ratio`. The range from `low`
    to `high` is that of `middle`.
    """

    value: float
    low: float
    high: float

    @property
    def away(self):
        """How far the range goes from 1, as a factor."""
        return max(self.high, 1 / self.low)

    @property
    def equal(self):
        """True where the range lies within 10 % of 1, and holds it or nearly does."""
        near = max(self.value, 1 / self.value) <= INDISTINCT
        return self.away <= ALIKE and (near or self.low <= 1 <= self.high)

    @property
    def different(self):
        """True where the two are not equal and the range leaves out 1."""
        return not self.equal and not self.low <= 1 <= self.high

    def __repr__(self):
        if self.different:
            ends = self.value, self.low, self.high
            if self.value < 1:
                ends = 1 / self.value, 1 / self.high, 1 / self.low
            value, low, high = map(as_factor, ends)
            return f"{value}× {'slower' if self.value > 1 else 'faster'} ({low}–{high})"
        if self.equal:
            percent = max(1, math.ceil(100 * self.away - 100))
            return f"about equal (within {percent} %)"
        return f"cannot tell ({as_factor(self.low)}–{as_factor(self.high)}×)"


@dataclasses.dataclass
class Comparison:
    """Alternatives that took turns, by their keys, each a `Measurement`."""

    name: str
    alternatives: dict

    def ratio(self, above, below):
        """Return how many times as long the one takes as the other, as a `Ratio`."""
        rounds = (self.alternatives[key].latency for key in (above, below))
        ratios = [one / other for one, other in zip(*rounds, strict=True)]
        return Ratio(median_ratio(ratios), *middle(ratios))

    def record(self):
        """Return what is known, as plain data: a record of measurement.schema.json."""
        known = [each.record() for each in self.alternatives.values()]
        return {
            "version": VERSION,
            "method": METHOD,
            "name": self.name,
            "alternatives": known,
        }

    def __repr__(self):
        lines = [repr(each) for each in self.alternatives.values()]
        first, *others = self.alternatives
        lines += [
            f"{key} against {first}: {self.ratio(key, first)}"
            for key in others
        ]
        return "\n".join(lines)

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/plain": repr(self), RECORD_TYPE: self.record()}


def display(result):
    """Show a result: in a notebook with its record, anywhere else as text."""
    if "IPython" in sys.modules:
        from IPython.display import display as show
    else:
        show = print
    show(result)


def rounded(seconds):
    """Round a time, or each in a list, to four significant digits."""
    if isinstance(seconds, list):
        return [rounded(each) for each in seconds]
    return seconds and float(f"{seconds:.4g}")


def in_unit(seconds):
    """Write a time given in seconds with three significant digits and a readable unit."""
    for unit, scale in (("s", 1), ("ms", 1e3), ("µs", 1e6), ("ns", 1e9)):
        if seconds * scale >= 0.9995 or unit == "ns":
            return f"{float(f'{seconds * scale:.3g}'):g} {unit}"


def as_factor(factor):
    """Write a factor with two significant digits, near 1 with as many as tell it from 1."""
    away = abs(factor - 1)
    if 0 < away < 0.095:
        return f"{factor:.{min(4, math.ceil(-math.log10(away)))}f}"
    digits = 1 - math.floor(math.log10(float(f"{factor:.2g}")))
    return f"{factor:.{max(0, digits)}f}"


def middle(values):
    """Return two of the values that have the true median between them.

    They are the closest of equal rank, from below and above, that miss the
    median of what the values are drawn from in at most 5 % of all draws: a
    value lies below it as often as a coin shows tails. Up to five values are
    too few; their ends are left.
    """
    ordered, rank = sorted(values), 0
    while 2 * sum(math.comb(len(ordered), k) for k in range(rank + 2)) <= (
        MISSED * 2 ** len(ordered)
    ):
        rank += 1
    return ordered[rank], ordered[-1 - rank]


def median_ratio(ratios):
    """Return the median, of an even number the geometric mean of the two in the middle.

    So the ratio the other way round is the inverse.
    """
    return math.sqrt(
        statistics.median_low(ratios) * statistics.median_high(ratios)
    )


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
    return getattr(
        array.dtype, "name", str(array.dtype).removeprefix("torch.")
    )


def no_wait(result):
    """Return at once, whatever the device is still doing."""


def library(framework):
    """Return the module of a framework, or None for NumPy's and Python's own work."""
    return (
        importlib.import_module(framework) if framework in FRAMEWORKS else None
    )


def waiter(framework):
    """Return the function that blocks until a result of `framework` exists.

    JAX waits for the arrays themselves; for refs see `waiter_for_refs`.
    PyTorch and TensorFlow compute at once on a CPU, and wait for the whole
    device where there is an accelerator.
    """
    module = library(framework)
    if framework == "jax":
        return module.block_until_ready
    if framework == "torch" and module.accelerator.is_available():
        return lambda result: module.accelerator.synchronize()
    if framework == "tensorflow" and module.config.list_physical_devices(
        "GPU"
    ):
        return lambda result: module.test.experimental.sync_devices()
    return no_wait


def waiter_for_refs(args):
    """Return what waits for a function of JAX that returned no array, but changed refs.

    JAX waits for no ref, so an element of each among `args` is read: a call of its own.
    ValueError where there is none, or a time would be that of handing over the work.
    """
    jax = library("jax")
    refs = [each for each in arrays_in(args) if isinstance(each, jax.Ref)]
    if not refs:
        raise ValueError(
            "the function returns no array to wait for, and no ref is among its arguments; let it "
            "return one that it computes, or pass `wait`"
        )
    peek = jax.jit(lambda refs: [ref[(0,) * ref.ndim] for ref in refs])
    return lambda result: jax.block_until_ready(peek(refs))


def device_kind(framework, array):
    """Name the kind of device that holds `array`, such as 'cpu' or 'NVIDIA H200'."""
    module = library(framework)
    if framework == "jax":
        return next(iter(array.sharding.device_set)).device_kind
    if framework == "torch":
        cuda = array.is_cuda
        return (
            module.cuda.get_device_name(array.device)
            if cuda
            else array.device.type
        )
    if framework == "tensorflow" and "GPU" in array.device:
        gpu = module.config.list_physical_devices("GPU")[0]
        return module.config.experimental.get_device_details(gpu)[
            "device_name"
        ]
    return "cpu"


def default_kind(framework):
    """Name the kind of device that `framework` computes on where it is not told.

    That of PyTorch would be the CPU; but who has an accelerator and names none of its
    arrays is taken to use it.
    """
    module = library(framework)
    if framework == "torch":
        found = module.accelerator.current_accelerator(check_available=True)
        return device_kind(framework, module.zeros((), device=found or "cpu"))
    if framework == "jax":
        return device_kind(framework, module.numpy.zeros(()))
    if framework == "tensorflow":
        return device_kind(framework, module.zeros(()))
    return "cpu"


def where_it_ran(framework, arrays, device=None):
    """Name the kind of device that a function used, by its result and arguments.

    `device` is what the caller says: a kind, or a device of JAX. ValueError where the
    framework's arrays are all on others. Without any array it is believed.
    """
    held = [each for each in arrays if framework_of(each) == framework]
    places = [device_kind(framework, each) for each in held]
    if device is None:
        return places[0] if places else default_kind(framework)
    kind = getattr(device, "device_kind", device)
    if kind != device:
        places = [place for each in held for place in each.sharding.device_set]
    if places and device not in places:
        others = " and ".join(sorted(set(map(str, places))))
        raise ValueError(
            f"{device} is said to do the work, but arrays are on {others}"
        )
    return kind


def float32_precision(framework):
    """Say how `framework` is set to multiply float32 numbers right now."""
    module = library(framework)
    if framework == "jax":
        return str(module.config.jax_default_matmul_precision or "default")
    if framework == "torch":
        return module.get_float32_matmul_precision()
    if framework == "tensorflow":
        allowed = (
            module.config.experimental.tensor_float_32_execution_enabled()
        )
        return "tf32 allowed" if allowed else "highest"
    return "highest"


def text_of(path):
    """Return what a file of the system holds, or an empty text where there is none."""
    try:
        with open(path) as file:
            return file.read()
    except (OSError, ValueError):
        return ""


def processor_name():
    """Return the processor for people: '2 virtual cores of an AMD EPYC, Zen 5'.

    A name that says nothing, as virtual machines have, is followed by the
    microarchitecture, or by family and model where that is not known.
    """
    facts = {}
    for line in text_of("/proc/cpuinfo").splitlines():
        key, _, value = line.partition(":")
        facts.setdefault(key.strip(), value.strip())
    name = (
        facts.get("model name") or platform.processor() or platform.machine()
    )
    name = re.sub(
        r"\((R|TM)\)| CPU\b| Processor\b| @.*", "", name, flags=re.I
    ).strip()
    numbers = [facts.get(key, "") for key in ("cpu family", "model")]
    if not any(map(str.isdigit, name)) and all(map(str.isdigit, numbers)):
        family, model = map(int, numbers)
        more = f"family {family}, model {model}"
        for vendor, of, models, called in MICROARCHITECTURES:
            if (vendor, of) == (
                facts.get("vendor_id"),
                family,
            ) and model in models:
                more = called
        name = f"{name}, {more}"
    count = usable_cores()
    virtual = (
        "virtual " if "hypervisor" in facts.get("flags", "").split() else ""
    )
    article = "an" if name[:1].upper() in "AEIOU" else "a"
    return f"{count} {virtual}core{'s' * (count != 1)} of {article} {name}"


def usable_cores():
    """Return the number of CPU cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count()


def installed_versions():
    """Return the versions of Python and of the frameworks that are installed."""
    versions = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def allocator():
    """Name the libraries of LD_PRELOAD that were loaded, or the C library."""
    asked = re.split("[: ]", os.environ.get("LD_PRELOAD", ""))
    names = [os.path.basename(each) for each in asked if each]
    loaded = [
        line.split("/")[-1] for line in text_of("/proc/self/maps").splitlines()
    ]
    found = [
        name for name in names if any(each.startswith(name) for each in loaded)
    ]
    if not found and hasattr(os, "confstr"):
        with contextlib.suppress(OSError, ValueError):
            return os.confstr("CS_GNU_LIBC_VERSION")
    return ", ".join(found)


def driver():
    """Return the version of NVIDIA's driver, or an empty text."""
    first = text_of("/proc/driver/nvidia/version").partition("\n")[0]
    found = re.search(r"\d+\.\d[\d.]*", first)
    return found[0] if found else ""


def asked(framework, path):
    """Return an attribute of a framework, called if it is a function, or None."""
    try:
        found = operator.attrgetter(path)(library(framework))
        return found() if callable(found) else found
    except (AttributeError, ImportError, RuntimeError):
        return None


def settings(framework, accelerated=False):
    """Return what a time may depend on besides the code: texts, if they are known."""
    huge = text_of("/sys/kernel/mm/transparent_hugepage/enabled")
    known = {
        "allocator": allocator(),
        "huge pages": "".join(re.findall(r"\[(.+)\]", huge)),
    }
    known |= {name: os.environ.get(name) for name in VARIABLES}
    paths = SWITCHES.get(framework, "").split()
    if accelerated:
        paths += ON_ACCELERATORS.get(framework, "").split()
        libraries = LIBRARIES.get(framework, {})
        known |= {
            name: asked(framework, path) for name, path in libraries.items()
        }
        known["driver"] = driver()
    if isinstance(known.get("CUDA"), int):
        known["CUDA"] = f"{known['CUDA'] // 1000}.{known['CUDA'] % 1000 // 10}"
    known |= {f"{framework}.{path}": asked(framework, path) for path in paths}
    texts = {
        name: " ".join(str(value).split())
        for name, value in known.items()
        if value is not None
    }
    return {name: text for name, text in texts.items() if text}


def time_calls(function, args, wait, settle, calls):
    """Return the seconds that calls in a row take, and those of processors.

    `settle` waits for the last result after the clock was read, so that no
    unfinished work runs into the next sample.
    """
    used, start = time.process_time(), time.perf_counter()
    for _ in range(calls - 1):
        wait(function(*args))
    result = function(*args)
    wait(result)
    elapsed = time.perf_counter() - start
    used = time.process_time() - used
    settle(result)
    return elapsed, used


def enough(count, start):
    """Say whether `count` rounds since `start` are enough: 9, or 5 in half a second."""
    if PREVIEW:
        return count >= 1
    long = time.perf_counter() - start > LONG
    return count >= (LONG_ROUNDS if long else ROUNDS)


def threads_running():
    """Return how many threads run or could: of this process, and of all others.

    This thread does not count. Linux says so; elsewhere the answer is (0, 0). Asking each
    thread takes a while, so the whole machine is asked first: the fourth figure of its
    load is what runs just now.
    """
    load, folder = text_of("/proc/loadavg").split(), "/proc/self/task"
    everywhere = int(load[3].partition("/")[0]) - 1 if load else 0
    if (load and everywhere < 1) or not os.path.isdir(folder):
        return 0, 0
    own = 0
    for thread in os.listdir(folder):
        state = text_of(f"{folder}/{thread}/stat").rpartition(")")[2].split()
        own += state[:1] == ["R"] and thread != str(threading.get_native_id())
    return own, max(0, everywhere - own)


def rest():
    """Sleep until this process' other threads rest too, 0.2 seconds at most.

    After a call the threads of a library may spin on for a while, to be ready for the
    next: those of OpenBLAS for 100 ms, those of OpenMP for 10. That slows others down.
    """
    end = time.perf_counter() + LONGEST_REST
    while threads_running()[0] and time.perf_counter() < end:
        time.sleep(0.001)


def count_to(number):
    """Return the seconds that Python takes to count: its speed just now."""
    start, counted = time.perf_counter(), 0
    for _ in range(number):
        counted += 1
    return time.perf_counter() - start


def hash_on(core, together):
    """Return the seconds that a core takes to hash, in step with what is `together`."""
    os.sched_setaffinity(0, {core})
    together.wait()
    start = time.perf_counter()
    hashlib.blake2b(HASHED)
    return time.perf_counter() - start


class Moments:
    """Takes samples in calm moments of the processor, while patience lasts.

    A core of a virtual machine is often half of a real one. While the other half works
    for somebody else it gives about half of its speed, and no counter of the system
    tells. A function with several threads also waits for the slowest of its cores. `lost`
    are the seconds spent on waiting and on samples thrown away.
    """

    fastest: typing.ClassVar = {}

    def __init__(self):
        """Start with all patience; the first of a process learns what is fast."""
        self.cores = ()
        if hasattr(os, "sched_setaffinity"):
            self.cores = sorted(os.sched_getaffinity(0))
        self.hashing = futures.ThreadPoolExecutor(len(self.cores) or 1)
        self.together = threading.Barrier(len(self.cores) or 1)
        self.lost, self.calm = 0.0, True
        if PREVIEW:
            return
        end = time.perf_counter() + FIRST_LOOK * (not Moments.fastest)
        self.calm = self.look()
        while time.perf_counter() < end:
            self.calm = self.look()

    def look(self):
        """Say whether no other program runs, and all cores are about as fast as ever.

        One counts, and then all hash at once. None may take half longer than it ever did.
        """
        rest()
        _, others = threads_running()
        seconds = {None: count_to(COUNTED)}
        pairs = [self.cores, [self.together] * len(self.cores)]
        seconds |= zip(
            self.cores, self.hashing.map(hash_on, *pairs), strict=True
        )
        for core, each in seconds.items():
            Moments.fastest[core] = min(each, Moments.fastest.get(core, each))
        return not others and all(
            each <= SLOW * Moments.fastest[core]
            for core, each in seconds.items()
        )

    def take(self, sample):
        """Return `sample()` from between two calm moments, in the end any."""
        while not PREVIEW:
            start, calm = time.perf_counter(), self.calm
            patient = self.lost < PATIENCE
            if calm or not patient:
                seconds = sample()
            self.calm = self.look()
            if (calm and self.calm) or not patient:
                return seconds
            self.lost += time.perf_counter() - start
        return sample()


def turns(samplers, seed=0, moments=None):
    """Let functions that return seconds take turns, in random order.

    Takes a list of them and returns a list of samples for each, one of each
    round; see `enough`. They are taken in calm `moments`, if given.
    """
    shuffled, start = random.Random(seed), time.perf_counter()
    samples = [[] for _ in samplers]
    while not enough(
        len(samples[0]), start + (moments.lost if moments else 0)
    ):
        for number in shuffled.sample(range(len(samplers)), len(samplers)):
            take = samplers[number]
            samples[number].append(moments.take(take) if moments else take())
    return samples


def steady(cores):
    """Return the rounds in which no function had far fewer cores than in its best.

    Takes, for each function, how many cores it kept busy in each round. With fewer than
    0.6 of the most, and a quarter of a core less, another program had the rest. All are
    returned where no more than half would be left: then it is the function's own way.
    """
    rounds = range(len(cores[0]))
    least = [min(FEWER * max(each), max(each) - TAKEN) for each in cores]
    kept = [
        number
        for number in rounds
        if all(
            each[number] >= enough
            for each, enough in zip(cores, least, strict=True)
        )
    ]
    return kept if 2 * len(kept) > len(rounds) else list(rounds)


@contextlib.contextmanager
def no_garbage_collection():
    """Keep Python's garbage collector off, and then leave it as it was."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def taken_by_others():
    """Return the seconds for which cores worked for others, and those of a clock.

    Others are processes but this one, and virtual machines, of which Linux tells;
    elsewhere the answer is (0, 0).
    """
    ticks = [
        int(each)
        for each in text_of("/proc/stat").partition("\n")[0].split()[1:9]
    ]
    if len(ticks) < 8:
        return 0.0, 0.0
    busy = sum(ticks) - ticks[3] - ticks[4]
    return busy / os.sysconf("SC_CLK_TCK") - sum(
        os.times()[:4]
    ), time.monotonic()


def taken_by_children():
    """Return the processor seconds of processes that this one started and that still run.

    Linux says so; elsewhere the answer is 0.
    """
    ticks, folder = 0, "/proc/self/task"
    for thread in os.listdir(folder) if os.path.isdir(folder) else []:
        for child in text_of(f"{folder}/{thread}/children").split():
            said = text_of(f"/proc/{child}/stat").rpartition(")")[2].split()
            ticks += sum(map(int, said[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK") if ticks else 0.0


def disturbed_since(before, own=0.0):
    """Say whether others kept a quarter of a core busy since `taken_by_others()`.

    `own` are seconds of processes that work for this one. The system counts in
    hundredths of a second, so a few of them say nothing.
    """
    taken, elapsed = (
        b - a for a, b in zip(before, taken_by_others(), strict=True)
    )
    return taken - own > max(TAKEN * elapsed, TICKS / 100)


class Timed:
    """A function that is ready to be timed: called once, and asked what it works on."""

    last = cores = elapsed = used = 0.0

    def __init__(
        self,
        function,
        args=(),
        framework=None,
        wait=None,
        inputs=None,
        device=None,
    ):
        """Call the function for the first time, which may trace and compile."""
        waiters = {
            known: waiter(known)
            for known in FRAMEWORKS
            if known in sys.modules
        }
        start = time.perf_counter()
        result = function(*args)
        bound = getattr(function, "args", ())
        arrays = list(arrays_in([result, args, bound]))
        self.framework = framework or next(map(framework_of, arrays), "python")
        self.settle = waiters.get(self.framework) or waiter(self.framework)
        if self.framework == "jax" and result is None and wait is None:
            self.settle = waiter_for_refs([args, bound])
        self.wait = wait or self.settle
        self.wait(result)
        self.first_call = time.perf_counter() - start
        self.settle(result)
        self.kind = where_it_ran(self.framework, arrays, device)
        shown = list(
            arrays_in([args, bound] if inputs is None else list(inputs))
        )
        self.shape = [list(x.shape) for x in shown]
        self.dtype = dtype_name(shown[0]) if shown else ""
        self.function, self.args, self.calls = function, args, None

    def run(self, calls):
        """Return the seconds of `calls` calls in a row, and those of processors."""
        return time_calls(
            self.function, self.args, self.wait, self.settle, calls
        )

    def latency(self):
        """Return the time of one call, the mean of one sample, in seconds.

        A call that does not count comes first. It wakes the function's own threads and
        fills the caches, after those of others have come to rest. To a call of more
        than 20 ms that is a small part of its time, and it goes without.
        """
        if self.last < WARMS_ITSELF and not PREVIEW:
            self.run(1)
        elapsed, used = self.run(self.calls)
        self.elapsed, self.used = self.elapsed + elapsed, self.used + used
        self.cores = used / elapsed
        self.last = elapsed / self.calls
        return self.last

    def throughput(self):
        """Return the time that one more call adds to many with one wait, in seconds.

        That is the slope between a quarter of them and all. There are at most 64, and
        no result but the last is kept, so that memory has room for what is under way.
        """
        needed = math.ceil(
            10 * SHORTEST_SAMPLE / (self.last or self.first_call)
        )
        many = min(HANDED_OVER, max(2, needed))
        few = max(1, many // 4)
        shorter, longer = self.handed_over(few), self.handed_over(many)
        slope = (longer - shorter) / (many - few)
        return slope if slope > 0 else longer / many

    def handed_over(self, calls):
        """Return the seconds of `calls` calls of which only the last is waited for."""
        start = time.perf_counter()
        for _ in range(calls):
            result = self.function(*self.args)
        self.settle(result)
        return time.perf_counter() - start

    def samplers(self):
        """Return what takes its samples: of the latency, and on an accelerator more."""
        return (
            [self.latency]
            if self.kind == "cpu"
            else [self.latency, self.throughput]
        )

    def enough_calls(self):
        """Double the calls until they take 4 ms; return how many are enough."""
        calls = 1
        while (seconds := self.run(calls)[0]) < SHORTEST_SAMPLE:
            calls *= 2
        self.last = seconds / calls
        return math.ceil(calls * SHORTEST_SAMPLE / seconds)

    def measurement(
        self,
        name,
        disturbed,
        latency,
        throughput=None,
        *,
        dropped=0,
        precision=None,
        work=None,
        error=None,
    ):
        """Return the `Measurement` of this function."""
        return Measurement(
            name=name,
            framework=self.framework,
            device_kind=self.kind,
            processor=processor_name(),
            shape=self.shape,
            dtype=self.dtype,
            precision=precision or float32_precision(self.framework),
            work=work,
            error=error,
            versions=installed_versions(),
            settings=settings(self.framework, self.kind != "cpu"),
            date=datetime.datetime.now(datetime.UTC).isoformat("T", "seconds"),
            first_call=self.first_call,
            calls=self.calls,
            latency=latency,
            throughput=throughput,
            cores=round(self.used / self.elapsed, 1) if self.elapsed else None,
            disturbed=disturbed,
            dropped=dropped,
        )


def option_of(value, key):
    """Return what an argument of `compare` means for the alternative of that key."""
    return value.get(key) if isinstance(value, dict) else value


def choose_calls(timed, calls=None):
    """Give each `Timed` of a dictionary its number of calls in a sample.

    That is `calls`, one for all or a dictionary, or as many as last 4 ms. Functions of
    similar speed, within a factor of 2, get the same number: a mean over more calls
    holds more of the slow moments, and chance would look like a difference.
    """
    for key, each in timed.items():
        chosen = 1 if PREVIEW else option_of(calls, key)
        each.calls = chosen or each.enough_calls()
    if calls is None and not PREVIEW:
        moments = Moments()
        seconds = {
            key: moments.take(each.latency) for key, each in timed.items()
        }
        for key, each in timed.items():
            near = [
                s for s in seconds.values() if s / 2 <= seconds[key] <= 2 * s
            ]
            each.calls = math.ceil(SHORTEST_SAMPLE / min(near))


def take_samples(timed, calls=None):
    """Let each `Timed` of a dictionary take its samples; they take turns.

    Returns for each key a list: its latencies and, on an accelerator, throughputs. All
    are of the same rounds. Returns also how many were left out, see `steady`.
    """

    def with_cores(each, take):
        return lambda: (take(), each.cores)

    with no_garbage_collection():
        choose_calls(timed, calls)
        samplers = {
            key: [with_cores(each, take) for take in each.samplers()]
            for key, each in timed.items()
        }
        flat = list(itertools.chain.from_iterable(samplers.values()))
        turned = iter(turns(flat, moments=Moments()))
    samples = {
        key: [next(turned) for _ in own] for key, own in samplers.items()
    }
    busy = [
        [cores for _, cores in samples[key][0]]
        for key, each in timed.items()
        if each.kind == "cpu"
    ]
    count = len(next(iter(samples.values()))[0])
    kept = steady(busy) if busy else range(count)
    chosen = {
        key: [[clock[number][0] for number in kept] for clock in own]
        for key, own in samples.items()
    }
    return chosen, count - len(kept)


def measured(timed, names, calls, **said):
    """Return a `Measurement` for each `Timed` of a dictionary, by the same keys.

    `said` are `precision`, `work` and `error`, one for all or dictionaries.
    """
    before, own = taken_by_others(), taken_by_children()
    samples, dropped = take_samples(timed, calls)
    disturbed = disturbed_since(before, taken_by_children() - own)
    return {
        key: each.measurement(
            names[key],
            disturbed,
            *samples[key],
            dropped=dropped,
            **{
                option: option_of(value, key) for option, value in said.items()
            },
        )
        for key, each in timed.items()
    }


def measure(
    name,
    function,
    *args,
    framework=None,
    wait=None,
    work=None,
    error=None,
    calls=None,
    inputs=None,
    precision=None,
    device=None,
):
    """Time `function(*args)` and return a `Measurement`, which is also displayed.

    The first call is timed alone, for it may trace and compile. Then come the
    samples, with the garbage collector off. One sample is `calls` calls, or as
    many as last 4 ms. `wait` blocks until a result exists; by default it is that of
    the result's framework, or of `framework`.
    `inputs` replaces `args` as the source of shape and dtype in the record, and
    `precision` what the framework is set to, where the page knows what was used.
    `device` is the kind of the device that does the work, or a device of JAX, where
    neither result nor arguments are on it; ValueError where they are on others.
    """
    timed = {name: Timed(function, args, framework, wait, inputs, device)}
    said = {"precision": precision, "work": work, "error": error}
    measurement = measured(timed, {name: name}, calls, **said)[name]
    display(measurement)
    return measurement


def alternative_name(name, key):
    """Return the name and the framework, or None, of an alternative by its key.

    The key is a framework, or a label, or a label with a framework: `eager@torch`.
    """
    if key in ("numpy", *FRAMEWORKS):
        return name, key
    label, _, framework = key.partition("@")
    return f"{name}/{label}", framework or None


def compare(
    name,
    alternatives,
    *args,
    framework=None,
    wait=None,
    work=None,
    error=None,
    calls=None,
    inputs=None,
    precision=None,
    device=None,
):
    """Time functions that take turns; return a `Comparison`, which is also displayed.

    `alternatives` maps keys to functions, all of which are called with `args`. They
    take turns in random order. The other arguments are those of `measure`; a
    dictionary with the same keys gives each alternative its own. ValueError where two
    alternatives would have the same name.
    """
    timed, names = {}, {}
    for key, function in alternatives.items():
        names[key], chosen = alternative_name(name, key)
        chosen = chosen or option_of(framework, key)
        given = (option_of(each, key) for each in (wait, inputs, device))
        timed[key] = Timed(function, args, chosen, *given)
    references = [(names[key], each.framework) for key, each in timed.items()]
    if len(set(references)) < len(references):
        raise ValueError(f"two alternatives of {name} have the same name")
    said = {"precision": precision, "work": work, "error": error}
    comparison = Comparison(name, measured(timed, names, calls, **said))
    display(comparison)
    return comparison
