"""The one timer of the book: `measure` for one call, `compare` for several."""

import contextlib
import dataclasses
import datetime
import gc
import importlib.metadata
import importlib.util
import itertools
import math
import os
import platform
import random
import re
import statistics
import sys
import threading
import time

import numpy as np

RECORD_TYPE = "application/vnd.jax-measured.record+json"
FRAMEWORKS = ("jax", "torch", "tensorflow")
PACKAGES = ("jax", "jaxlib", "torch", "tensorflow", "tensorflow-cpu", "numpy")
SHORTEST_SAMPLE = 0.004
ROUNDS = 20
LONG = 1.0
LONG_ROUNDS = 7
LONGEST_REST = 0.2
WARMS_ITSELF = 0.02
COUNTED = 4000
FIRST_LOOK = 0.25
SLOW = 1.5
PATIENCE = 0.5
UNSTABLE = 0.20
FENCE = 1.5
RESAMPLES = 2000
WITHIN = (0.01, 0.99)
MOST_STEAL = 0.05
MOST_CORES_OF_OTHERS = 0.25
PROCESSOR_NUMBERS = {"family": "cpu family", "model": "model"}
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
    machine: dict

    @property
    def median(self):
        """Median of the samples, in seconds."""
        return statistics.median(self.samples)

    @property
    def quartiles(self):
        """The two times, in seconds, between which half of the samples lie."""
        low, _, high = statistics.quantiles(self.samples, n=4, method="inclusive")
        return [low, high]

    @property
    def spread(self):
        """Distance of the quartiles as a fraction of the median."""
        low, high = self.quartiles
        return (high - low) / self.median

    @property
    def outliers(self):
        """Number of samples outside of Tukey's fences, which stay in the record."""
        low, high = self.quartiles
        fence = FENCE * (high - low)
        return sum(not low - fence <= each <= high + fence for each in self.samples)

    @property
    def stable(self):
        """False where half of the samples spread over more than 20 % of the median."""
        return self.spread <= UNSTABLE

    @property
    def rate(self):
        """Work done per second, in floating-point operations, or None."""
        return None if self.work is None else self.work / self.median

    @property
    def reference(self):
        """What pages call it, such as 'selu/jit@jax'."""
        return f"{self.name}@{self.framework}"

    def record(self):
        """Return what is known, as plain data: version 2 of measurement.schema.json."""
        derived = ("median", "quartiles", "spread", "outliers", "stable", "rate")
        known = dataclasses.asdict(self) | {key: getattr(self, key) for key in derived}
        return {"version": 2} | known

    def __repr__(self):
        low, high = map(in_unit, self.quartiles)
        outliers = f", {self.outliers} of {len(self.samples)} far off"
        return (
            f"{self.name} [{self.framework}] {in_unit(self.median)} ({low} to {high}), "
            f"first {in_unit(self.first_call)}"
            f"{outliers if self.outliers else ''}{'' if self.stable else ', unstable'}"
        )

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/plain": repr(self), RECORD_TYPE: self.record()}


@dataclasses.dataclass
class Ratio:
    """How many times as long one alternative takes as another.

    `value` is the median of the rounds' ratios, `low` and `high` are the ends of a
    95 % interval. `floor` is the noise floor of the comparison: how far from 1 the
    ratio of a function to itself was.
    """

    value: float
    low: float
    high: float
    floor: float

    @property
    def different(self):
        """True where the interval leaves out 1."""
        return not self.low <= 1 <= self.high

    def __repr__(self):
        interval = f"{self.low:.3g} to {self.high:.3g}"
        if self.different:
            return f"{self.value:.3g}× ({interval})"
        return f"no difference measured ({interval})"


@dataclasses.dataclass
class Comparison:
    """Alternatives that were timed in turns, by their keys, each a `Measurement`.

    `control` holds samples in seconds of the first alternative, taken as if it were
    one more. `ratios` maps pairs of keys to each `Ratio`.
    """

    name: str
    alternatives: dict
    control: list
    floor: float
    ratios: dict

    @classmethod
    def of(cls, name, alternatives, control):
        """Compare what was measured with intervals from the bootstrap."""
        first = next(iter(alternatives.values()))
        same = ratio_of(first.samples, control).value
        floor = max(same, 1 / same) - 1
        ratios = {}
        for above, below in itertools.combinations(alternatives, 2):
            pair = alternatives[above].samples, alternatives[below].samples
            ratios[above, below] = ratio_of(*pair, floor)
        return cls(name, alternatives, control, floor, ratios)

    def ratio(self, above, below):
        """Return how many times as long the one takes as the other, as a `Ratio`."""
        if (above, below) in self.ratios:
            return self.ratios[above, below]
        turned = self.ratios[below, above]
        ends = 1 / turned.high, 1 / turned.low
        return Ratio(1 / turned.value, *ends, turned.floor)

    def record(self):
        """Return what is known, as plain data: version 2 of measurement.schema.json."""
        known = self.alternatives
        return {
            "version": 2,
            "name": self.name,
            "alternatives": [each.record() for each in known.values()],
            "control": self.control,
            "floor": self.floor,
            "ratios": [
                {
                    "above": known[above].reference,
                    "below": known[below].reference,
                    "ratio": ratio.value,
                    "low": ratio.low,
                    "high": ratio.high,
                }
                for (above, below), ratio in self.ratios.items()
            ],
        }

    def __repr__(self):
        lines = [repr(each) for each in self.alternatives.values()]
        first, *others = self.alternatives
        lines += [f"{first} / {other}: {self.ratio(first, other)}" for other in others]
        rounds = f"{len(self.control)} rounds, noise floor {self.floor:.1%}"
        return "\n".join([*lines, rounds])

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/plain": repr(self), RECORD_TYPE: self.record()}


def display(result):
    """Show a result: in a notebook with its record, anywhere else as text."""
    if "IPython" in sys.modules:
        from IPython.display import display as show
    else:
        show = print
    show(result)


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
    """Return the processor's model name as the operating system gives it.

    In a virtual machine it may be that of a whole line of products. Family and model
    follow then, which tell a slow processor of that name from a fast one.
    """
    facts = {}
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo") as lines:
            for line in lines:
                key, _, value = line.partition(":")
                facts.setdefault(key.strip(), value.strip())
    name = facts.get("model name") or platform.processor() or platform.machine()
    if any(map(str.isdigit, name)):
        return name
    known = [(short, facts.get(key)) for short, key in PROCESSOR_NUMBERS.items()]
    return ", ".join([name, *(f"{short} {value}" for short, value in known if value)])


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


def enough(count, start):
    """Say whether `count` samples since `start` are enough: 20, or 7 in a second."""
    long = time.perf_counter() - start > LONG
    return count >= (LONG_ROUNDS if long else ROUNDS)


def calls_for_a_sample(time_them):
    """Double the calls until they take 4 ms; return how many are enough."""
    calls = 1
    while (seconds := time_them(calls)) < SHORTEST_SAMPLE:
        calls *= 2
    return math.ceil(calls * SHORTEST_SAMPLE / seconds)


def resampled_medians(samples, seed=0):
    """Return the medians of 2000 lists drawn from `samples`, each as long as they."""
    drawn = np.random.default_rng(seed).choice(samples, (RESAMPLES, len(samples)))
    return np.median(drawn, axis=1)


def middle_ranks(samples):
    """Return two of at least 7 samples that have the true median between them.

    They are the closest of equal rank, from below and above, that miss the median of
    what the samples are drawn from in less than 2 % of all draws: a sample lies below
    it as often as a coin shows tails (the interval of the sign test).
    """
    ordered, rank = sorted(samples), 0
    while sum(math.comb(len(ordered), k) for k in range(rank + 2)) < (
        WITHIN[0] * 2 ** len(ordered)
    ):
        rank += 1
    return ordered[rank], ordered[-1 - rank]


def ratio_of(above, below, floor=0.0):
    """Return the `Ratio` of samples that took turns: the median of the rounds' ratios.

    The interval is the middle 98 % of a percentile bootstrap (Efron, 1979) of the
    rounds, or of fewer than 20 rounds their `middle_ranks`, widened by the noise floor.
    """
    rounds = np.log(above) - np.log(below)
    if len(rounds) < ROUNDS:
        ends = middle_ranks(rounds)
    else:
        ends = np.quantile(resampled_medians(rounds), WITHIN)
    low, high = np.exp(ends)
    value = math.exp(np.median(rounds))
    return Ratio(value, float(low / (1 + floor)), float(high * (1 + floor)), floor)


def alike(calls, seconds):
    """Give functions of similar speed, within a factor of 2, the same number of calls.

    Equal functions must be timed equally: a mean over more calls holds more of the
    slow moments, and a chance in the search for a number of calls would look like a
    difference. `seconds` says how long a call of each takes.
    """
    known = list(zip(calls, seconds, strict=True))
    return [
        max(c for c, s in known if own <= 2 * s and s <= 2 * own) for own in seconds
    ]


def threads_running():
    """Return how many other threads of this process run, or would if they could.

    Linux says so; elsewhere the answer is 0. Asking each of them takes a while, so the
    whole machine is asked first: the fourth figure of its load is what runs just now.
    """
    running, folder = 0, "/proc/self/task"
    with contextlib.suppress(OSError), open("/proc/loadavg") as file:
        if file.read().split()[3].startswith("1/"):
            return 0
    for thread in os.listdir(folder) if os.path.isdir(folder) else []:
        try:
            with open(f"{folder}/{thread}/stat") as file:
                state = file.read().rpartition(")")[2].split()[0]
        except OSError:
            continue
        running += state == "R" and thread != str(threading.get_native_id())
    return running


def rest():
    """Sleep until this process' other threads rest too, 0.2 seconds at most.

    After a call the threads of a library may spin on for a while, to be ready for the
    next: those of OpenBLAS for 100 ms, those of OpenMP for 10. That slows others down.
    """
    end = time.perf_counter() + LONGEST_REST
    while threads_running() and time.perf_counter() < end:
        time.sleep(0.001)


def count_to(number):
    """Return the seconds that Python takes to count: what a core gives just now."""
    start, counted = time.perf_counter(), 0
    for _ in range(number):
        counted += 1
    return time.perf_counter() - start


def fastest_count():
    """Return the shortest time of counting within a quarter of a second."""
    end, shortest = time.perf_counter() + FIRST_LOOK, count_to(COUNTED)
    while time.perf_counter() < end:
        shortest = min(shortest, count_to(COUNTED))
    return shortest


class Moments:
    """Takes samples in calm moments of the processor, while patience lasts.

    A core of a virtual machine is often half of a real one. While the other half works
    for somebody else it gives about half of its speed, and no counter of the system
    tells. `lost` are the seconds spent on waiting and on samples thrown away.
    """

    fastest = math.inf

    def __init__(self):
        """Start with half a second of patience."""
        if Moments.fastest == math.inf:
            Moments.fastest = fastest_count()
        self.lost, self.calm = 0.0, self.look()

    def look(self):
        """Say whether counting takes at most half longer than it ever did here."""
        rest()
        seconds = count_to(COUNTED)
        Moments.fastest = min(Moments.fastest, seconds)
        return seconds <= SLOW * Moments.fastest

    def take(self, sample):
        """Return `sample()` from between two calm moments, in the end any."""
        while True:
            start, calm = time.perf_counter(), self.calm
            patient = self.lost < PATIENCE
            if calm or not patient:
                seconds = sample()
            self.calm = self.look()
            if (calm and self.calm) or not patient:
                return seconds
            self.lost += time.perf_counter() - start


def sample(time_them, calls):
    """Take 20 samples of `calls` calls each, or fewer long ones; see `enough`."""
    samples, moments, start = [], Moments(), time.perf_counter()
    while not enough(len(samples), start + moments.lost):
        samples.append(moments.take(lambda: time_them(calls) / calls))
    return samples


def choose_calls(timed, calls=None):
    """Give each `Timed` of a dictionary its number of calls in a sample.

    That is `calls`, one for all or a dictionary, or what a sample needs; see `alike`.
    """
    for key, each in timed.items():
        each.calls = option_of(calls, key) or calls_for_a_sample(each.seconds)
    if calls is None:
        moments = Moments()
        seconds = [moments.take(each.sample) for each in timed.values()]
        found = [
            max(each.calls, math.ceil(SHORTEST_SAMPLE / own))
            for each, own in zip(timed.values(), seconds, strict=True)
        ]
        equal = alike(found, seconds)
        for each, number in zip(timed.values(), equal, strict=True):
            each.calls = number


def turns(alternatives, seed=0, moments=None):
    """Let functions that return seconds take turns, in random order in each round.

    Takes a list of them and returns a list of samples for each: those of 20 rounds, or
    of fewer long ones; see `enough`. They are taken in calm `moments`, if given.
    """
    shuffled, start = random.Random(seed), time.perf_counter()
    samples = [[] for _ in alternatives]
    while not enough(len(samples[0]), start + (moments.lost if moments else 0)):
        for number in shuffled.sample(range(len(alternatives)), len(alternatives)):
            take = alternatives[number]
            samples[number].append(moments.take(take) if moments else take())
    return samples


def moody_machine(seed):
    """Return a function that gives about 1 second, by a machine with slow moments.

    A moment resembles the one before it: a random walk that is drawn back to 1.
    """
    noise, mood = random.Random(seed), [0.0]

    def seconds():
        mood[0] = 0.9 * mood[0] + noise.gauss(0, 0.05)
        return math.exp(mood[0])

    return seconds


def false_differences(experiments, in_turns, rounds=ROUNDS):
    """Return how many times one function seems to be two of different speed."""
    found = 0
    for seed in range(experiments):
        seconds = moody_machine(seed)
        if in_turns:
            one, same = turns([seconds, seconds], seed)
        else:
            one, same = ([seconds() for _ in range(rounds)] for _ in range(2))
        ratio = ratio_of(one, same)
        found += not ratio.low <= 1 <= ratio.high
    return found


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


def processor_seconds():
    """Return the seconds that all cores spent: in all, stolen, busy, for this process.

    Stolen is what another virtual machine got. Without Linux it is None.
    """
    try:
        with open("/proc/stat") as lines:
            ticks = [int(each) for each in lines.readline().split()[1:9]]
    except (OSError, ValueError):
        return None
    total, stolen = sum(ticks), ticks[7]
    idle = ticks[3] + ticks[4]
    own = sum(os.times()[:4])
    hertz = os.sysconf("SC_CLK_TCK")
    return total / hertz, stolen / hertz, (total - idle - stolen) / hertz, own


def frequency():
    """Return the mean frequency of the cores in MHz, or None where it is not given."""
    try:
        with open("/proc/cpuinfo") as file:
            found = re.findall(r"^cpu MHz\s*: ([\d.]+)", file.read(), re.MULTILINE)
    except OSError:
        return None
    return statistics.fmean(map(float, found)) if found else None


def machine_since(before):
    """Say what else the machine did since `before = processor_seconds()`.

    `steal` is a fraction of all processor time, `others` the number of cores that
    other processes kept busy, `load` the system's mean of one minute.
    """
    after, steal, others = processor_seconds(), None, None
    if before and after and after[0] > before[0]:
        total, stolen, busy, own = (b - a for a, b in zip(before, after, strict=True))
        steal = stolen / total
        others = max(0.0, busy - own) / total * os.cpu_count()
    variables = {name for names in THREAD_VARIABLES.values() for name in names}
    limits = {name: os.environ[name] for name in variables if name in os.environ}
    return {
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "steal": steal,
        "others": others,
        "megahertz": frequency(),
        "limits": limits | {"cores": f"{usable_cores()} of {os.cpu_count()}"},
        "disturbed": (steal or 0) > MOST_STEAL or (others or 0) > MOST_CORES_OF_OTHERS,
    }


class Timed:
    """A function that is ready to be timed: called once, and asked what it works on."""

    def __init__(self, function, args=(), framework=None, wait=None, inputs=None):
        """Call the function for the first time, which may trace and compile."""
        waiters = {known: waiter(known) for known in FRAMEWORKS if known in sys.modules}
        start = time.perf_counter()
        result = function(*args)
        bound = getattr(function, "args", ())
        arrays = list(arrays_in([result, args, bound]))
        self.framework = framework or next(map(framework_of, arrays), "python")
        self.settle = waiters.get(self.framework) or waiter(self.framework)
        self.wait = wait or self.settle
        self.wait(result)
        self.first_call = time.perf_counter() - start
        self.settle(result)
        held = next((x for x in arrays if framework_of(x) == self.framework), None)
        self.kind = "cpu" if held is None else device_kind(self.framework, held)
        shown = list(arrays_in([args, bound] if inputs is None else list(inputs)))
        self.shape = [list(x.shape) for x in shown]
        self.dtype = dtype_name(shown[0]) if shown else ""
        self.function, self.args, self.calls = function, args, None
        self.last = 0.0

    def seconds(self, calls):
        """Return the time of `calls` calls in a row, in seconds."""
        return time_calls(self.function, self.args, self.wait, self.settle, calls)

    def sample(self):
        """Return the time of one call, the mean of one sample, in seconds.

        A call that does not count comes first. It wakes the function's own threads and
        fills the caches, after those of others have come to rest. To a call of more
        than 20 ms that is a small part of its time, and it goes without.
        """
        if self.last < WARMS_ITSELF:
            self.seconds(1)
        self.last = self.seconds(self.calls) / self.calls
        return self.last

    def measurement(
        self, name, samples, machine, precision=None, work=None, error=None
    ):
        """Return the `Measurement` of this function."""
        return Measurement(
            name=name,
            framework=self.framework,
            device_kind=self.kind,
            processor=processor_name(),
            threads=thread_count(self.framework),
            shape=self.shape,
            dtype=self.dtype,
            precision=precision or float32_precision(self.framework),
            samples=samples,
            calls_per_sample=self.calls,
            first_call=self.first_call,
            work=work,
            error=error,
            versions=installed_versions(),
            date=datetime.datetime.now(datetime.UTC).isoformat("T", "seconds"),
            machine=machine,
        )


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
):
    """Time `function(*args)` and return a `Measurement`, which is also displayed.

    The first call is timed alone, for it may trace and compile. Then come the
    samples, with the garbage collector off. One sample is `calls` calls, or as
    many as last 4 ms. `wait` blocks until a result exists; by default it is that of
    the result's framework, or of `framework`.
    `inputs` replaces `args` as the source of shape and dtype in the record, and
    `precision` what the framework is set to, where the page knows what was used.
    """
    timed = Timed(function, args, framework, wait, inputs)
    before = processor_seconds()
    with no_garbage_collection():
        timed.calls = calls or calls_for_a_sample(timed.seconds)
        samples = sample(timed.seconds, timed.calls)
    machine = machine_since(before)
    measurement = timed.measurement(name, samples, machine, precision, work, error)
    display(measurement)
    return measurement


def option_of(value, key):
    """Return what an argument of `compare` means for the alternative of that key."""
    return value.get(key) if isinstance(value, dict) else value


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
):
    """Time functions in turns; return a `Comparison`, which is also displayed.

    `alternatives` maps keys to functions, all of which are called with `args`. They
    take turns in random order, and the first takes part twice, as a control. The other
    arguments are those of `measure`; a dictionary with the same keys gives each
    alternative its own. ValueError where two alternatives would have the same name.
    """

    timed, names = {}, {}
    for key, function in alternatives.items():
        names[key], chosen = alternative_name(name, key)
        chosen = chosen or option_of(framework, key)
        timed[key] = Timed(
            function, args, chosen, option_of(wait, key), option_of(inputs, key)
        )
    references = [(names[key], each.framework) for key, each in timed.items()]
    if len(set(references)) < len(references):
        raise ValueError(f"two alternatives of {name} have the same name")
    before = processor_seconds()
    with no_garbage_collection():
        choose_calls(timed, calls)
        contestants = [*timed.values(), next(iter(timed.values()))]
        samplers = [each.sample for each in contestants]
        *samples, control = turns(samplers, moments=Moments())
    machine = machine_since(before)
    measured = {
        key: each.measurement(
            names[key],
            samples_of_each,
            machine,
            option_of(precision, key),
            option_of(work, key),
            option_of(error, key),
        )
        for (key, each), samples_of_each in zip(timed.items(), samples, strict=True)
    }
    comparison = Comparison.of(name, measured, control)
    display(comparison)
    return comparison
