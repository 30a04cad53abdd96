"""Watches a program while it runs: its clocks, compilations, transfers and waits, by line.

Nothing here imports a framework. What is needed of JAX is reached when the program has imported
it, and what a version of JAX lacks is named in `Watcher.unseen`.
"""

from __future__ import annotations

import ast
import collections
import contextlib
import dataclasses
import functools
import importlib.abc
import importlib.util
import linecache
import logging
import os
import queue
import re
import sys
import sysconfig
import threading
import time
import timeit
import types
import typing
import weakref

Place = tuple[str, int]

# What is used of JAX besides its documented interface, and what is not seen without it.
HOOKS = {
    "jax._src.api._post_hook_state": "calls, operations outside of jit, NumPy arrays passed again",
    "jax._src.interpreters.pxla.ExecuteReplicated": "results of first calls",
    "jax._src.interpreters.partial_eval.logger": "why a function is traced again",
    "jax._src.interpreters.pxla.logger": "why a function is compiled again without a trace",
    "jax._src.interpreters.mlir.warnings": "large constants, donated arrays that are not used",
    "jax._src.array.ArrayImpl": "waits",
    "jax._src.interpreters.mlir.lower_jaxpr_to_module": "loops that are unrolled",
}
OPTIONS = {
    "jax_explain_cache_misses": True,
    "jax_captured_constants_warn_bytes": 1_000_000,
    "jax_captured_constants_report_frames": 0,
}
CLOCKS = "time perf_counter monotonic process_time thread_time".split()
READ = {
    "__float__": "float()",
    "__int__": "int()",
    "__bool__": "bool()",
    "__index__": "an index",
    "__complex__": "complex()",
    "item": ".item()",
    "tolist": ".tolist()",
    "__array__": "a conversion to NumPy",
    "__format__": "formatting",
    "__str__": "printing",
    "__repr__": "printing",
}
TRACED = "/jax/core/compile/jaxpr_trace_duration"
LOWERED = "/jax/core/compile/jaxpr_to_mlir_module_duration"
COMPILED = "/jax/core/compile/backend_compile_duration"
# Operations that trace a function of the caller, and are compiled by their own name.
BODIES = set("scan while while_loop cond checkpoint shard_map".split())
# Python's own code, and that of packages.
FOREIGN = (
    sysconfig.get_path("stdlib"),
    sysconfig.get_path("platstdlib"),
    "<",
    __file__.rpartition("watching.py")[0],
)
OWN = os.path.join("jax", "_src")
# Calls whose results are asked whether they are ready; and spans kept of one timing.
LATEST, KEPT = 8, 1000
# Seconds between two looks at the memory.
PAUSE = 0.25
# Seconds of compiling from which on a loop is looked for, and iterations from which on it is one
# to scan: more than the layers of most models.
SLOW, UNROLLED = 1.0, 30
LOOPS = (
    ast.For,
    ast.While,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
)

now = time.perf_counter


@functools.cache
def ours(path: str) -> bool:
    """Say whether a file is the reader's: no package's, and not Python's."""
    apart = "site-packages" in path or "dist-packages" in path
    return not apart and not path.startswith(FOREIGN)


def reader(frame: types.FrameType | None) -> types.FrameType | None:
    """Return the nearest frame of the reader's code, from a frame on."""
    while frame is not None and not ours(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def place(frame: types.FrameType | None) -> Place | None:
    """Return the file and line of the nearest frame of the reader's code."""
    found = reader(frame)
    return found and (found.f_code.co_filename, found.f_lineno)


def bare(name: str) -> str:
    """Return the name of a function without what JAX puts around it."""
    inner = name.removeprefix("pjit(").removeprefix("jit(")
    return inner if inner == name else inner.removesuffix(")")


class Loop(typing.NamedTuple):
    """A Python loop in a traced function: its line, iterations, equations, and those of the program."""

    place: Place
    times: int
    equations: int
    program: int


@dataclasses.dataclass
class Compilation:
    """A function that was traced or compiled: where from, why as JAX says it, and seconds."""

    name: str
    place: Place | None
    defined: str = ""
    reason: str = ""
    types: str = ""
    mapping: str = ""
    seconds: float = 0.0
    traced: bool = False
    compiled: bool = False
    loop: Loop | None = None


@dataclasses.dataclass
class Moment:
    """What had happened when a clock was read."""

    watcher: Watcher
    number: int
    place: Place
    at: float
    compilations: int
    calls: int
    sent: int
    last_wait: tuple[Place, str] | None
    unfinished: list[typing.Any]
    done: set[int] = dataclasses.field(default_factory=set)


@dataclasses.dataclass
class Span:
    """What happened between two readings of a clock of which one was taken from the other."""

    start: int
    seconds: float
    calls: int
    compilations: list[Compilation]
    sent: list[tuple[str, int]]
    unfinished: list[str]
    functions: set[str]
    late: list[float] = dataclasses.field(default_factory=list)


class Reading:
    """What a clock said, a number of its kind. The difference of two of them is a timing."""

    moment: Moment

    def __sub__(self, other):
        """Return a difference, and note what happened meanwhile."""
        if isinstance(other, Reading):
            watcher, frame = self.moment.watcher, reader(sys._getframe(1))
            watcher.heard(watcher.span)(other.moment, self.moment, frame)
        return super().__sub__(other)  # type: ignore[misc]

    def __reduce__(self):
        """Be a plain number where somebody pickles or copies it."""
        kind = type(self).__bases__[1]
        return kind, (kind(self),)


class Seconds(Reading, float):
    """A reading in seconds, or what a program has made of one."""


class Count(Reading, int):
    """A reading in nanoseconds, or what a program has made of one."""


def still_a_reading(name: str):
    """Return a method for what remains a reading, such as one in milliseconds."""

    def method(self, *others):
        value = getattr(super(Reading, self), name)(*others)
        kind = {float: Seconds, int: Count}.get(type(value))
        return made(kind, value, self.moment) if kind else value

    return method


for name in "mul rmul truediv floordiv round".split():
    setattr(Reading, f"__{name}__", still_a_reading(f"__{name}__"))


def made(kind, value, moment: Moment):
    """Return a number as a reading."""
    found = kind(value)
    found.moment = moment
    return found


class Arrival(importlib.abc.MetaPathFinder):
    """Calls a function when a module has been imported for the first time."""

    def __init__(self, name: str, then: typing.Callable[[], None]) -> None:
        """Take the name of the module, and the function."""
        self.name, self.then = name, then

    def find_spec(self, name, path=None, target=None):
        """Find the module as it would be found, and call the function after it is there."""
        if name != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec and spec.loader:
            load = spec.loader.exec_module
            spec.loader.exec_module = lambda module: (
                load(module),
                self.then(),
            )  # type: ignore[method-assign, assignment]
        return spec


class After:
    """What JAX calls after each call of a compiled function, which its debugging sets anew."""

    def __init__(self, state, ours) -> None:
        """Take the setting of JAX, and what is called besides what JAX sets."""

        def both(theirs):
            if theirs is None:
                return ours
            return lambda *args: (ours(*args), theirs(*args))

        self.set_global = lambda theirs: state.set_global(both(theirs))
        self.set_local = lambda theirs: state.set_local(both(theirs))
        self.set_global(None)


def named(path: str) -> typing.Any:
    """Return what has a dotted name in an imported package, None where there is nothing."""
    module, _, name = path.rpartition(".")
    try:
        return getattr(importlib.import_module(module), name, None)
    except ImportError:
        return None


class Watcher:
    """What a program has done so far."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.compilations: list[Compilation] = []
        self.spans: dict[tuple[Place, Place], list[Span]] = {}
        self.shapes: dict[tuple[Place, Place], dict] = {}
        self.waits: dict[tuple[Place, str], list] = {}
        self.operations: collections.Counter = collections.Counter()
        self.called = self.calls = self.moments = 0
        self.lowering = ("a function", "")
        self.jaxpr: typing.Any = None
        self.functions: dict[str, int] = {}
        self.kinds: typing.Any = weakref.WeakKeyDictionary()
        self.latest: collections.deque = collections.deque(maxlen=LATEST)
        self.sent: collections.deque = collections.deque(maxlen=KEPT)
        self.sent_count = 0
        self.given: dict[tuple, list] = {}
        self.known: dict[int, list] = {}
        self.constants: dict[tuple[str, str], tuple[Place | None, str]] = {}
        self.donated: dict[tuple[str, str], tuple[Place | None, str]] = {}
        self.durations: dict[str, float] = {}
        self.peak, self.looked = 0, 0.0
        self.holders: collections.Counter = collections.Counter()
        self.unseen: list[str] = []
        self.last_wait: tuple[Place, str] | None = None
        self.waiting: queue.SimpleQueue = queue.SimpleQueue()
        self.follower: threading.Thread | None = None
        self.inside = threading.local()
        self.x64 = False

    # Clocks.

    def watch_clocks(self) -> None:
        """Replace the clocks of `time` and `timeit`."""
        for name in CLOCKS:
            for of, kind in ((name, Seconds), (f"{name}_ns", Count)):
                setattr(time, of, self.clock(getattr(time, of), kind))
        timer = time.perf_counter
        timeit.default_timer = timer
        for function in timeit.Timer.__init__, timeit.timeit, timeit.repeat:
            given = function.__defaults__ or ()
            function.__defaults__ = tuple(
                timer if each is now else each for each in given
            )

    def clock(self, read, kind):
        """Return a clock that notes who reads it."""
        moment = self.heard(self.moment)

        @functools.wraps(read)
        def reading():
            value = read()
            frame = sys._getframe(1)
            path = frame.f_code.co_filename
            if path == "<timeit-src>" or ours(path):
                found = place(frame)
                if found and (noted := moment(found)):
                    return made(kind, value, noted)
            return value

        return reading

    def moment(self, found: Place) -> Moment:
        """Return what has happened until now."""
        at = now()
        arrays = [each() for each in self.latest]
        late = [e for e in arrays if e is not None and not ready(e)]
        self.moments += 1
        return Moment(
            self,
            self.moments,
            found,
            at,
            len(self.compilations),
            self.calls,
            self.sent_count,
            self.last_wait,
            late + torch_stream(),
        )

    def span(self, start: Moment, stop: Moment, frame) -> None:
        """Note a timing: a reading minus an earlier one."""
        if start.number in stop.done:
            return
        stop.done.add(start.number)
        number = stop.sent - start.sent
        before = {id(each) for each in start.unfinished}
        late = [each for each in stop.unfinished if id(each) not in before]
        functions = self.functions.items()
        found = Span(
            start.number,
            stop.at - start.at,
            stop.calls - start.calls,
            self.compilations[start.compilations : stop.compilations],
            list(self.sent)[-number:] if number else [],
            list(map(described, late)),
            {name for name, last in functions if last > start.calls},
        )
        key = start.place, stop.place
        spans = self.spans.setdefault(key, [])
        if key not in self.shapes:
            self.shapes[key] = shapes(frame, *key)
        # A clock that goes on from one start is one timing, and the last of it counts.
        if spans and spans[-1].start == found.start:
            spans.pop()
        if len(spans) < KEPT:
            spans.append(found)
        if stop.last_wait and stop.last_wait != start.last_wait:
            self.waits[stop.last_wait][4] += 1
        if late and len(spans) <= 20 and not isinstance(late[-1], str):
            self.follow(late[-1], stop.at, found.late)

    def follow(self, array, at: float, late: list[float]) -> None:
        """Note when an array is ready, without letting the program wait for it."""
        if self.follower is None:
            self.follower = threading.Thread(target=self.followed, daemon=True)
            self.follower.start()
        self.waiting.put((array, at, late))

    def followed(self) -> None:
        """Wait for one array after the other."""
        while (item := self.waiting.get()) is not None:
            array, at, late = item
            try:
                array.block_until_ready()
                late.append(now() - at)
            except Exception:  # It was donated, or its program failed.
                continue

    # JAX.

    def watch_jax(self) -> None:
        """Put the hooks into JAX, which has just been imported."""
        import jax

        found = {path: named(path) for path in HOOKS}
        for path, hook in found.items():
            if hook is None:
                self.unseen.append(
                    f"{HOOKS[path]}: JAX {jax.__version__} has no {path}"
                )
        state, execute, reasons, lowering, warned, array, lower = (
            found.values()
        )
        self.jax, self.leaves = jax, jax.tree_util.tree_leaves
        if state is not None:
            after = After(state, self.heard(self.after))
            named("jax._src.api")._post_hook_state = after
        if execute is not None:
            self.watch_execution(execute)
        self.listen(reasons, self.explained)
        self.listen(lowering, self.lowered, logging.DEBUG)
        if warned is not None:
            mlir = named("jax._src.interpreters.mlir")
            mlir.warnings = types.SimpleNamespace(**vars(warned))
            mlir.warnings.warn = self.unless_ours(warned.warn)
        if array is not None:
            self.watch_array(array)
        if lower is not None:
            mlir = named("jax._src.interpreters.mlir")
            mlir.lower_jaxpr_to_module = self.keeping_jaxpr(lower)
        for name, value in OPTIONS.items():
            if hasattr(jax.config, name):
                jax.config.update(name, value)
            else:
                text = f"{name}: JAX {jax.__version__} has no such option"
                self.unseen.append(text)
        jax.monitoring.register_event_duration_secs_listener(self.lasted)
        for module, name in (
            (jax, "device_put"),
            (jax.numpy, "asarray"),
            (jax.numpy, "array"),
        ):
            setattr(module, name, self.sending(getattr(module, name)))

    def listen(self, logger, hear, level: int = 0) -> None:
        """Hear the messages of a logger, of which those are shown that would have been shown."""
        if logger is None:
            return
        before = logger.getEffectiveLevel()
        asked = getattr(self.jax.config, "jax_explain_cache_misses", False)

        def shown(record: logging.LogRecord) -> bool:
            heard = hear(record)
            return record.levelno >= before and (asked or not heard)

        logger.addFilter(shown)
        logger.setLevel(level or logger.level)

    def unless_ours(self, warn):
        """Return a function that warns, unless nobody would have been warned without the watcher."""

        @functools.wraps(warn)
        def warning(message, category=None, stacklevel=1, **options):
            if not self.warned(str(message)):
                warn(message, category, stacklevel + 1, **options)

        return warning

    def heard(self, function):
        """Return a function of the watcher that neither raises nor calls itself."""

        @functools.wraps(function)
        def safe(*args, **kwargs):
            if getattr(self.inside, "yes", False):
                return None
            self.inside.yes = True
            try:
                return function(*args, **kwargs)
            except Exception as error:  # The program goes on.
                text = f"{function.__name__}: {type(error).__name__}: {error}"
                if text not in self.unseen:
                    self.unseen.append(text)
                return None
            finally:
                self.inside.yes = False

        return safe

    def watch_execution(self, kind) -> None:
        """Look at what JAX executes by Python, such as first calls."""
        execute, done = kind.__call__, self.heard(self.executed)

        @functools.wraps(execute)
        def executing(program, *args):
            out = execute(program, *args)
            done(bare(program.name), args, out)
            return out

        kind.__call__ = executing

    def executed(self, name: str, args, out) -> None:
        """Note a program that Python has started."""
        own = any(
            each.name == name and each.defined
            for each in self.compilations[-LATEST:]
        )
        found = self.note(name, own, out, sys._getframe(2))
        self.send_all(args, found, name)

    def after(self, function, args, kwargs, out) -> None:
        """Note a call of a compiled function, with its arguments and results."""
        kind = self.kinds.get(function)
        if kind is None:
            kind = self.kinds[function] = kind_of(function)
        name, own = kind
        frame = sys._getframe(2)
        found = self.note(name, own, self.leaves(out), frame)
        self.send_all(self.leaves((args, kwargs)), found, name)

    def send_all(self, leaves, found: Place | None, name: str) -> None:
        """Note the arrays of NumPy among the arguments of a compiled function."""
        for number, leaf in enumerate(leaves):
            if type(leaf).__module__ == "numpy" and getattr(leaf, "ndim", 0):
                self.send(leaf, found, f"{name}, argument {number}")

    def note(self, name: str, own: bool, leaves, frame) -> Place | None:
        """Note that a program has been started, and keep one of its results."""
        found = place(frame)
        self.calls += 1
        if own:
            self.called += 1
        elif found and not of_keys(name, leaves):
            self.operations[found] += 1
        self.functions[name] = self.calls
        if leaves:
            first, last = leaves[0], leaves[-1]
            kept = first if first.size < last.size else last
            # Else what nobody has taken would be gone before it is ready.
            self.keeping = kept
            self.latest.append(weakref.ref(kept))
        if now() - self.looked > PAUSE:
            self.look(reader(frame))
        return found

    def sending(self, function):
        """Return a function that puts arrays on a device, and notes which."""
        send = self.heard(self.send)

        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            if not args or type(args[0]).__module__ != "numpy":
                return function(*args, **kwargs)
            found = place(sys._getframe(1))
            send(args[0], found, function.__name__)
            before = self.operations[found]
            try:
                return function(*args, **kwargs)
            finally:  # To another dtype is no operation of a line.
                self.operations[found] = before

        return wrapped

    def send(self, array, found: Place | None, where: str) -> None:
        """Note an array of NumPy that goes to a device."""
        if not getattr(array, "ndim", 0):
            return
        key = id(array)
        known = self.known.get(key)
        if known is None or known[0]() is not array:
            forget = functools.partial(self.known.pop, key)
            known = [weakref.ref(array, lambda _: forget(None)), 0]
            self.known[key] = known
        known[1] += 1
        if known[1] > 1 and array.nbytes >= 1 << 16:
            self.sent_count += 1
            self.sent.append((where, array.nbytes))
        if found is None:
            return
        given = self.given.setdefault((found, where), [None, 0, 0, ""])
        if given[0] is not None and given[0]() is array:
            given[1] += 1
            given[2] += array.nbytes
        given[0] = known[0]
        given[3] = described(array)

    def watch_array(self, kind) -> None:
        """Look at whatever takes the value of an array to Python."""
        for name, what in READ.items():
            if callable(method := getattr(kind, name, None)):
                setattr(kind, name, self.reading(method, what))
        numpy = sys.modules.get("numpy")
        # It finds NumPy's functions by their identity.
        if numpy is None or "numba" in sys.modules:
            return
        for name in ("asarray", "array"):
            convert = getattr(numpy, name)
            read = self.reading(convert, f"np.{name}()")

            def converted(*args, _read=read, _convert=convert, **kwargs):
                of_jax = args and isinstance(args[0], kind)
                # JAX looks at values itself, such as for `jax_debug_nans`.
                if of_jax and OWN not in sys._getframe(1).f_code.co_filename:
                    return _read(*args, **kwargs)
                return _convert(*args, **kwargs)

            setattr(numpy, name, functools.wraps(convert)(converted))

    def reading(self, method, what: str):
        """Return a method that takes a value to Python, and notes the wait."""

        @functools.wraps(method)
        def wrapped(*args, **kwargs):
            if getattr(self.inside, "yes", False):
                return method(*args, **kwargs)
            self.inside.yes = True
            start = now()
            try:
                return method(*args, **kwargs)
            finally:
                self.inside.yes = False
                self.waited(place(sys._getframe(1)), what, now() - start)

        return wrapped

    def waited(self, found: Place | None, what: str, seconds: float) -> None:
        """Note a wait: count, seconds, calls before the first and the last, how many end a timing.

        Values that are read one after the other, with no work between, are one wait.
        """
        if found is None:
            return
        calls = self.calls
        wait = self.waits.setdefault((found, what), [0, 0.0, calls, 0, 0])
        wait[0] += wait[3] != calls
        wait[1] += seconds
        wait[3] = calls
        self.last_wait = found, what

    # Compilations.

    def keeping_jaxpr(self, lower):
        """Return a function that lowers a jaxpr, and remembers which until it is compiled."""

        @functools.wraps(lower)
        def lowering(name, jaxpr, *args, **kwargs):
            self.jaxpr = weakref.ref(jaxpr)
            return lower(name, jaxpr, *args, **kwargs)

        return lowering

    def lasted(self, event: str, seconds: float, **details) -> None:
        """Note how long a stage of a compilation has taken."""
        if event not in (TRACED, LOWERED, COMPILED):
            return
        name = bare(str(details.get("fun_name", "a function")))
        spent = self.durations.pop(name, 0.0) + seconds
        if event != COMPILED:
            self.durations[name] = spent
            return
        waiting = self.compilation(name, lambda each: not each.compiled)
        waiting.compiled = True
        waiting.seconds = spent
        jaxpr, self.jaxpr = self.jaxpr and self.jaxpr(), None
        if jaxpr is not None and spent >= SLOW:
            waiting.loop = self.heard(unrolled)(jaxpr)

    def compilation(self, name: str, fits) -> Compilation:
        """Return the latest compilation of a function, if it fits, or a new one."""
        last = self.compilations[-1] if self.compilations else None
        if name in BODIES and last and last.traced and fits(last):
            return last
        latest = next(
            (e for e in reversed(self.compilations) if e.name == name), None
        )
        if latest is None or not fits(latest):
            defined = latest.defined if latest else ""
            latest = Compilation(name, place(sys._getframe(2)), defined)
            self.compilations.append(latest)
        return latest

    def explained(self, record: logging.LogRecord) -> bool:
        """Take a reason from JAX's log."""
        text = record.getMessage()
        head, _, rest = text.partition("\n")
        if not head.startswith("TRACING CACHE MISS"):
            return False
        lines = rest.splitlines()
        fresh = lines and lines[0].strip() == "never seen function:"
        of = (
            lines[1].strip()
            if fresh
            else lines[0].strip().removeprefix("for ")
        )
        name, _, defined = of.partition(" defined at ")
        name = name.partition(" id=")[0].rpartition(".")[2]
        found = Compilation(
            name, place(sys._getframe(1)), defined.rstrip(":"), rest
        )
        found.traced = True
        self.compilations.append(found)
        return True

    def lowered(self, record: logging.LogRecord) -> bool:
        """Take the types and the placement of arguments from JAX's log."""
        if record.args and str(record.msg).startswith("Compiling %s with"):
            name, types_of, mapping = map(str, record.args)
            found = self.compilation(
                bare(name), lambda each: not each.mapping and not each.compiled
            )
            found.types, found.mapping = types_of, mapping
            self.lowering = found.name, found.defined
        return False

    def warned(self, text: str) -> bool:
        """Take a warning of the compiler; say whether it was asked for by the watcher."""
        found = place(sys._getframe(2))
        if text.startswith("Some donated buffers were not usable"):
            arrays = text.partition(": ")[2].partition(".\n")[0]
            self.donated.setdefault(self.lowering, (found, arrays))
        constant = "constants were captured" in text or "Closed-over" in text
        if constant:
            self.constants.setdefault(self.lowering, (found, text))
        return constant

    # Memory.

    def look(self, frame: types.FrameType | None, *spaces: dict) -> None:
        """Add up all arrays, and find out who holds them where they are more than before."""
        self.looked = now()
        held = sum(each.nbytes for each in self.jax.live_arrays())
        # Names may have come a moment after the arrays.
        known = self.holders or held < 0.9 * self.peak
        if known and held <= 1.1 * self.peak:
            return
        self.peak, self.holders = max(held, self.peak), collections.Counter()
        while frame is not None:
            if ours(frame.f_code.co_filename):
                spaces += frame.f_locals, frame.f_globals
            frame = frame.f_back
        seen: set[int] = set()
        for name, value in [item for each in spaces for item in each.items()]:
            leaves: list = []
            with contextlib.suppress(Exception):  # It is a tree of no order.
                leaves = self.leaves(value)
            for leaf in leaves:
                if isinstance(leaf, self.jax.Array) and id(leaf) not in seen:
                    seen.add(id(leaf))
                    self.holders[name] += getattr(leaf, "nbytes", 0)

    def end(self, names: dict) -> None:
        """Wait for arrays that are followed, and look at the memory for the last time."""
        if self.follower is not None:
            self.waiting.put(None)
            self.follower.join(10)
        if hasattr(self, "jax"):
            self.x64 = bool(self.jax.config.jax_enable_x64)
            self.heard(self.look)(None, names)


def ready(array) -> bool:
    """Say whether an array is ready; one that is gone is."""
    try:
        return array.is_ready()
    except (RuntimeError, AttributeError):
        return True


def torch_stream() -> list[str]:
    """Return what PyTorch's GPU has not finished: its stream, or nothing."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is None or not cuda.is_initialized():
        return []
    return (
        []
        if cuda.current_stream().query()
        else [sys.intern("the stream of PyTorch")]
    )


def described(array) -> str:
    """Return the dtype and shape of an array."""
    if isinstance(array, str):
        return array
    return f"{array.dtype}[{','.join(map(str, array.shape))}]"


def kind_of(function) -> tuple[str, bool]:
    """Return the name of a compiled function, and whether it is none of JAX's own."""
    inner = getattr(function, "__wrapped__", None)
    name = getattr(function, "__name__", "a function")
    module = getattr(function, "__module__", None) or ""
    if not module.startswith(("jax.", "jaxlib.")):
        return name, True
    # Somebody has put a function of JAX under jit.
    known = getattr(sys.modules.get(module), name, None)
    return name, known is not None and known is inner


def of_keys(name: str, leaves) -> bool:
    """Say whether an operation makes or splits keys."""
    if any(word in name for word in ("split", "seed", "fold_in", "random_")):
        return True
    dtype = str(getattr(leaves[0], "dtype", "")) if leaves else ""
    return dtype.startswith("key") or dtype == "uint32"


def equations(jaxpr, seen: set[int]) -> typing.Iterator:
    """Return the equations of a jaxpr and of those inside it, each of which counts once."""
    for each in getattr(jaxpr, "jaxpr", jaxpr).eqns:
        yield each
        for inner in each.params.values():
            for of in inner if isinstance(inner, tuple) else (inner,):
                of = getattr(of, "jaxpr", of)
                if hasattr(of, "eqns") and id(of) not in seen:
                    seen.add(id(of))
                    yield from equations(of, seen)


def unrolled(jaxpr) -> Loop | None:
    """Return the loop of the reader that most equations of a program come from, if it is long.

    It is long where a line in it was traced `UNROLLED` times with one shape, so that it could
    be the body of a `scan`. JAX keeps with each equation the calls that it came from; each
    iteration has an object of its own for the same calls, which its derivatives share. What
    is repeated by other than a loop, or by one in a package, is no loop of the reader.
    """
    found = list(equations(jaxpr, set()))
    traces: dict[tuple, set[int]] = {}
    count, times = collections.Counter(), collections.Counter()
    for each in found:
        calls, shape = (
            each.source_info.traceback,
            str(each.outvars[:1] and each.outvars[0].aval),
        )
        around = loops_around(calls) if calls else ()
        count.update(around)
        if around:
            ids = traces.setdefault((calls, shape), set())
            ids.add(id(calls))
            times[around[-1]] = max(times[around[-1]], len(ids))
    for at, number in count.most_common():
        if times[at] >= UNROLLED and number > len(found) / 2:
            return Loop(at, times[at], number, len(found))
    return None


def loops_around(calls) -> list[Place]:
    """Return the loops of the reader that an equation is in, from the outermost on."""
    frames = list(zip(*calls.raw_frames(), strict=True))
    found = [
        (code.co_filename, start)
        for code, at in reversed(frames)
        if ours(code.co_filename)
        for start, end in loops_in(code.co_filename)
        if code.co_firstlineno
        <= start
        <= calls.code_addr2line(code, at)
        <= end
    ]
    return list(dict.fromkeys(found))


@functools.cache
def loops_in(path: str) -> list[tuple[int, int]]:
    """Return the first and the last line of each loop and comprehension of a file."""
    tree = ast.parse("".join(linecache.getlines(path)))
    found = [each for each in ast.walk(tree) if isinstance(each, LOOPS)]
    return sorted((each.lineno, each.end_lineno or 0) for each in found)


def shapes(frame, start: Place, stop: Place) -> dict[str, tuple[str, tuple]]:
    """Return {name: (package and dtype, shape)} of the arrays that the lines of a timing name."""
    if frame is None or {start[0], stop[0]} != {frame.f_code.co_filename}:
        return {}
    found = {}
    lines = linecache.getlines(start[0])[start[1] - 1 : stop[1]]
    for name in re.findall(r"\b[^\W\d]\w*", "".join(lines)):
        value = frame.f_locals.get(name, frame.f_globals.get(name))
        dtype, shape = (getattr(value, of, None) for of in ("dtype", "shape"))
        if dtype is not None and isinstance(shape, tuple) and shape:
            package = type(value).__module__.partition(".")[0]
            of = str(dtype).removeprefix("torch.")
            found[name] = (f"{package} {of}", tuple(shape))
    return found
