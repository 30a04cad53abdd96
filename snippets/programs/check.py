"""Find timings of JAX, PyTorch and TensorFlow that measure something else.

Usage: python check.py [--book ADDRESS] FILE ...

Reads .py, .ipynb and .md files, and runs none of them. Needs Python 3.9 or newer.
"""

import argparse
import ast
import dataclasses
import itertools
import json
import pathlib
import re
import sys
import textwrap
import typing
import warnings

BOOK = ""
RULES = {
    "wait": (
        "timing/wrong_timings.html#not-waiting-for-the-result",
        "The clock stops, and nothing has waited for `{}`.",
    ),
    "synchronize": (
        "timing/dispatch.html#pytorch-and-tensorflow",
        "The clock stops, and no synchronize has waited for `{}`.",
    ),
    "first": (
        "timing/wrong_timings.html#the-first-call-among-the-others",
        "The first call of `{}` compiles, and this timing includes it.",
    ),
    "jit": (
        "timing/wrong_timings.html#compiling-again-in-every-iteration",
        "`{}` wraps a function again in every iteration or call.",
    ),
    "wrap": (
        "timing/check.html#wrapping-is-not-compiling",
        "`{}` only wraps: nothing is compiled or computed in this timing.",
    ),
    "convert": (
        "timing/wrong_timings.html#conversion-inside-the-loop",
        "`{}` converts an array within the timing.",
    ),
    "dtype": (
        "timing/wrong_timings.html#different-dtypes",
        "`{}` computes in float64 and is compared with float32.",
    ),
    "unused": (
        "timing/check.html#work-that-the-compiler-drops",
        "The compiler drops or merges `{}`: the result does not depend on all of it.",
    ),
    "captured": (
        "timing/check.html#work-that-the-compiler-drops",
        "`{}` takes no argument: the compiler may compute its result beforehand.",
    ),
}
EXTENSIONS = (".py", ".ipynb", ".md")
# Loops and recursion are followed so far; what comes behind is then looked at by itself.
MOST_STEPS = 60_000
DEEPEST = 25
CLOCKS = set(
    """
    time.time time.perf_counter time.monotonic time.process_time time.time_ns
    time.perf_counter_ns time.monotonic_ns timeit.default_timer datetime.datetime.now
    """.split()
)
COMPILERS = {
    "jax.jit": "jax",
    "jax.pmap": "jax",
    "jax.experimental.pjit.pjit": "jax",
    "equinox.filter_jit": "jax",
    "flax.nnx.jit": "jax",
    "torch.compile": "torch",
    "tensorflow.function": "tensorflow",
}
TRANSFORMS = set(
    """
    jax.grad jax.value_and_grad jax.vmap jax.jacfwd jax.jacrev jax.hessian
    jax.checkpoint jax.remat jax.jacobian
    """.split()
)
MAPS = {"jax.tree.map", "jax.tree_map", "jax.tree_util.tree_map"}
# Packages whose functions take and return arrays of JAX, and do not wait for them.
ON_JAX = (
    *("diffrax.", "equinox.", "flax.", "haiku.", "jaxopt.", "lineax."),
    *("optax.", "optimistix.", "ott."),
)
KEYS = {"key", "PRNGKey", "split", "fold_in", "wrap_key_data"}
JAX_OPERATIONS = (
    *("jax.numpy.", "jax.lax.", "jax.nn.", "jax.scipy."),
    *("jax.random.", "jax.image.", "jax.ops."),
)
TO_ARRAY = {
    "jax.numpy.array": "jax",
    "jax.numpy.asarray": "jax",
    "jax.device_put": "jax",
    "torch.from_numpy": "torch",
    "torch.tensor": "torch",
    "torch.as_tensor": "torch",
    "tensorflow.constant": "tensorflow",
    "tensorflow.convert_to_tensor": "tensorflow",
}
WAITS_FOR_ALL = {
    "torch.cuda.synchronize": "torch",
    "torch.mps.synchronize": "torch",
    "torch.xpu.synchronize": "torch",
    "torch.accelerator.synchronize": "torch",
    "tensorflow.test.experimental.sync_devices": "tensorflow",
    "jax.effects_barrier": "jax",
}
NOT_FOLDED = re.compile(r"random|_loop|scan|\bcum|\bkey\b")
LEAVES = {"item", "tolist", "numpy", "__array__", "cpu", "block_until_ready"}
NO_WORK = set(
    """
    shape dtype ndim size device devices sharding aval nbytes itemsize is_ready
    copy_to_host_async delete eval train parameters named_parameters state_dict
    zero_grad requires_grad_ dim numel stride addressable_shards weak_type
    """.split()
)
METHODS = set(
    """
    sum mean std var min max dot matmul mm astype reshape transpose ravel flatten
    argmax argmin cumsum prod sort argsort clip round all any conj copy repeat take
    set add multiply trace diagonal squeeze swapaxes to cuda float double half relu
    softmax backward pow exp log sqrt sigmoid tanh get apply forward
    """.split()
)
FLOAT64 = set(
    """
    ones zeros empty linspace eye identity logspace rand randn random normal uniform
    standard_normal random_sample exponential gamma beta hanning
    """.split()
)
# Words beside a timing that say that its author means what would else be a mistake.
INTENDED = {
    "first": r"compil(e|ing|ation)\b|\b(first|1st)\b|warm|cold|tracing|includ",
    "wait": r"dispatch|\basync|(not?|without) (wait|block|sync)|unblock",
    "convert": r"transfer|to host|copy|copies|convers|convert|end.to.end|includ",
    "jit": r"compil(e|ing|ation)\b|retrac|recompil",
    "dtype": r"float64|double|f64",
}
MAGIC = re.compile(r"^(\s*)(?:\w+\s*=\s*)?%(timeit|time)\b[ \t]*(.*)$")
OPTIONS = re.compile(r"(?:-[nrpv]\s*[\d$]\w*|-[tcqo]+)(?:\s+|$)")
FENCE = re.compile(
    r"^(\s*)(`{3,}|~{3,}) *(\{code-cell\}|\{code-block\}|\{code\})? *(\S*)"
)
PYTHON = re.compile(r"(i?python3?|py|jupyter-python|pycon)$", re.IGNORECASE)
SYNC = re.compile(r"sync|block|wait|ready|barrier", re.IGNORECASE)
ACCELERATOR = re.compile(r"(/device:|/)?(cuda|mps|xpu|gpu)", re.IGNORECASE)
# A comment that only says what a line does is none on what its timing includes.
COMPILES = re.compile(r"compil|trac(e|ing)", re.IGNORECASE)
ON_TIME = re.compile(
    r"measur|tim(e|es|ing)\b|includ|cost|overhead|first|1st|warm|cold|trigger",
    re.IGNORECASE,
)
JUST_IN_TIME = re.compile(r"just.in.time", re.IGNORECASE)


@dataclasses.dataclass(frozen=True, order=True)
class Finding:
    """A wrong timing: where it is, lines counted from 1, and which rule it breaks."""

    cell: int
    line: int
    rule: str
    code: str

    @property
    def sentence(self):
        """Say what is wrong."""
        return RULES[self.rule][1].format(self.code)

    @property
    def address(self):
        """Return the section that shows the effect, from the front page of the book."""
        return RULES[self.rule][0]


@dataclasses.dataclass
class Cell:
    """A piece of code: its number, the line of its file before it, and its text."""

    number: int
    offset: int
    text: str


class Unknown:
    """A value of which nothing is known."""


@dataclasses.dataclass
class Const:
    """A number, text or None that is written in the code."""

    value: typing.Any


@dataclasses.dataclass
class Ref:
    """A name of a library, as `jax.numpy.dot`."""

    path: str


@dataclasses.dataclass
class Array:
    """An array, or anything made of arrays.

    `at` is the event whose work it waits for, `made` the moment at which it was made,
    and `origin` names the array that it was converted from.
    """

    kind: str
    dtype: str = ""
    at: int = -1
    made: int = 0
    shape: typing.Any = None
    gpu: bool = False
    origin: int = 0


@dataclasses.dataclass
class Method:
    """A method of a value, not yet called."""

    owner: typing.Any
    name: str


@dataclasses.dataclass(eq=False)
class Func:
    """A function that the file defines, and the moment at which it was made."""

    node: typing.Any
    scope: typing.Any
    made: int
    cell: int = 0
    owner: typing.Any = None
    context: bool = False
    warm: set = dataclasses.field(default_factory=set)


@dataclasses.dataclass(eq=False)
class Partial:
    """A function with arguments given before, or transformed by `jax.grad`."""

    inner: typing.Any
    args: list
    kwargs: dict
    made: int
    warm: set = dataclasses.field(default_factory=set)
    ran: set = dataclasses.field(default_factory=set)


@dataclasses.dataclass(eq=False)
class Jit:
    """A compiled function."""

    inner: typing.Any
    kind: str
    made: int
    warm: set
    static: tuple = ()


@dataclasses.dataclass(eq=False)
class Klass:
    """A class that the file defines."""

    node: typing.Any
    scope: typing.Any
    methods: dict
    module: bool = False
    on_jax: bool = False


@dataclasses.dataclass(eq=False)
class Instance:
    """An object of such a class."""

    klass: Klass
    attributes: dict


@dataclasses.dataclass(eq=False)
class Seq:
    """A list or tuple with known elements."""

    items: list


@dataclasses.dataclass(eq=False)
class Map:
    """A dict with known keys."""

    items: dict


@dataclasses.dataclass(eq=False)
class Clock:
    """A look at the clock: the moment, the place, and the name it was given."""

    at: int
    where: tuple
    name: str = ""


@dataclasses.dataclass(eq=False)
class Span:
    """A time between two looks at the clock."""

    regions: list


@dataclasses.dataclass(eq=False)
class Region:
    """What happened between two looks at the clock."""

    start: int
    stop: int
    text: str
    mixed: bool = False
    certain: bool = True
    waits: tuple = ()
    where: tuple = ()
    depth: int = 0


@dataclasses.dataclass
class Event:
    """Something that happened: work, a wait, a compilation, a conversion."""

    kind: str
    where: tuple
    code: str
    framework: str = ""
    value: typing.Any = None
    first: bool = False
    upto: int = -1
    dtype: str = ""
    names: frozenset = frozenset()
    origins: frozenset = frozenset()
    depth: int = 0


class Scope:
    """The names of a function or file, and those around it."""

    def __init__(self, parent=None):
        """Make a scope without names, inside of another."""
        self.names, self.parent = {}, parent

    def find(self, name):
        """Return the value of a name; what nobody defined may be built in."""
        scope = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.parent
        return Ref(f"builtins.{name}")


class TooMuch(Exception):
    """The file would take too long to follow."""


def flat(values):
    """Return all values, those within lists and dicts too."""
    found = []
    for value in values:
        if isinstance(value, Seq):
            found += flat(value.items)
        elif isinstance(value, Map):
            found += flat(value.items.values())
        else:
            found.append(value)
    return found


def arrays(values, kind=None):
    """Return the arrays among values, of one framework or of all."""
    found = [value for value in flat(values) if isinstance(value, Array)]
    return [array for array in found if kind in (None, array.kind)]


def spans(values):
    """Return the regions of all times among values."""
    found = [
        value.regions for value in flat(values) if isinstance(value, Span)
    ]
    return list(itertools.chain.from_iterable(found))


def texts(node):
    """Return all texts that are written in a piece of code."""
    found = [n.value for n in ast.walk(node) if isinstance(n, ast.Constant)]
    return " ".join(value for value in found if isinstance(value, str))


def short(node):
    """Return code as one short line."""
    node = node.func if isinstance(node, ast.Call) else node
    line = " ".join(ast.unparse(node).split())
    return line if len(line) <= 50 else line[:47] + "..."


def dtype_named(value):
    """Return the dtype that a value names, empty where it names none."""
    if isinstance(value, Const) and isinstance(value.value, str):
        return value.value
    if isinstance(value, Ref):
        name = value.path.rpartition(".")[2]
        return "float64" if name in ("float", "double") else name
    return ""


def fences(text):
    """Yield (line, code) of every block of Python in Markdown."""
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        found = FENCE.match(lines[at])
        at += 1
        if not found:
            continue
        start, fence = at, found[2]
        while at < len(lines) and not is_end(lines[at].strip(), fence):
            at += 1
        code = [line[len(found[1]) :] for line in lines[start:at]]
        at += 1
        # A cell without a language is one of the page's kernel.
        language = found[4] or ("python" if found[3] == "{code-cell}" else "-")
        if PYTHON.match(language.strip("{.}")):
            yield start, "\n".join(without_options(without_prompts(code)))


def is_end(line, fence):
    """Return whether a line ends the block that a fence began."""
    return line.startswith(fence) and not line.strip(fence[0])


def without_options(lines):
    """Blank out the options of a MyST cell, which come before its code."""
    for number, line in enumerate(lines):
        if not re.match(r":[\w-]+:", line):
            break
        lines[number] = ""
    if lines and lines[0].strip() == "---" and "---" in lines[1:]:
        end = lines.index("---", 1)
        lines[: end + 1] = [""] * (end + 1)
    return lines


def without_prompts(lines):
    """Blank out what a Python prompt printed, and the prompts."""
    if not any(line.startswith(">>> ") for line in lines):
        return lines
    return [
        line[4:] if line.startswith((">>> ", "... ")) else "" for line in lines
    ]


def read_cells(path):
    """Return the cells of a file; raises OSError or ValueError if it is unreadable."""
    text = pathlib.Path(path).read_text("utf8")
    if path.suffix == ".py":
        return [Cell(0, 0, text)]
    if path.suffix == ".md":
        return [Cell(n, *found) for n, found in enumerate(fences(text), 1)]
    try:
        cells = [
            c for c in json.loads(text)["cells"] if c["cell_type"] == "code"
        ]
        return [
            Cell(n, 0, "".join(c["source"])) for n, c in enumerate(cells, 1)
        ]
    except (KeyError, TypeError):
        raise ValueError("this is no notebook of version 4") from None


def magic(kind, words):
    """Return what a line magic times as a `with`, and its options."""
    options = ""
    while kind == "timeit" and OPTIONS.match(words):
        found = OPTIONS.match(words)[0]
        options, words = options + found, words[len(found) :]
    return f"with __magic__({kind!r}, {options!r}): ", words


def parse(text):
    """Return the syntax tree of a cell, whose magics have become `with` statements."""
    lines = text.split("\n")
    first = next((n for n, line in enumerate(lines) if line.strip()), 0)
    head = re.match(r"%%(\w+)[ \t]*(.*)", lines[first])
    around = None
    if head and head[1] not in ("time", "timeit", "capture", "prun"):
        return ast.parse("")
    if head:
        around, setup = magic(head[1], head[2])
        lines[first] = setup if head[1] == "timeit" else ""
    for number, line in enumerate(lines):
        found = MAGIC.match(line)
        if found:
            begin, words = magic(found[2], found[3])
            lines[number] = found[1] + begin + (words.strip() or "pass")
        elif re.match(r"\s*(?:\w+\s*=\s*)?[%!]", line):
            lines[number] = re.match(r"\s*", line)[0] + "pass"
        elif re.match(r"\s*\?|.*\w\?+\s*$", line) and "#" not in line:
            lines[number] = ""
    tree = ast.parse("\n".join(lines))
    if around and head[1] in ("time", "timeit"):
        timed = [node for node in tree.body if node.lineno > first + 1]
        block = ast.parse(around + "pass").body[0]
        block.lineno = block.end_lineno = first + 1
        block.body = timed or [ast.Pass(lineno=first + 1, col_offset=0)]
        tree.body = [
            node for node in tree.body if node.lineno <= first + 1
        ] + [block]
    return tree


def dropped(node):
    """Yield the parts of a compiled function on which its result does not depend."""
    inside = list(ast.walk(node))
    stores = (ast.Attribute, ast.Subscript)
    writes = any(
        isinstance(n, stores) and isinstance(n.ctx, ast.Store) for n in inside
    )
    special = (ast.Global, ast.Nonlocal, ast.Yield, ast.YieldFrom)
    if writes or any(isinstance(n, special) for n in inside):
        return
    loaded = {n.id for n in inside if isinstance(n, ast.Name) and is_read(n)}
    for statement in inside:
        if isinstance(statement, ast.For):
            yield from repeated(statement)
        if isinstance(statement, ast.Assign) and is_work(statement.value):
            names = [
                t.id for t in statement.targets if isinstance(t, ast.Name)
            ]
            if names and not loaded & set(names):
                yield statement.value
        if isinstance(statement, ast.Expr) and is_work(statement.value):
            yield statement.value


def may_be_folded(node):
    """Return whether the compiler may compute a function without arguments."""
    spec = node.args
    given = spec.args or spec.kwonlyargs or spec.vararg or spec.kwarg
    return not given and not NOT_FOLDED.search(ast.unparse(node))


def is_read(name):
    """Return whether a name is read here."""
    return isinstance(name.ctx, ast.Load)


def is_work(node):
    """Return whether code multiplies matrices or calls an array function."""
    for n in ast.walk(node):
        if isinstance(n, ast.BinOp) and isinstance(n.op, ast.MatMult):
            return True
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute):
            root = n.func.value
            while isinstance(root, ast.Attribute):
                root = root.value
            names = ("jnp", "np", "numpy", "lax", "jax", "nn", "torch", "tf")
            if isinstance(root, ast.Name) and root.id in names:
                return n.func.attr not in ("print", "callback", "breakpoint")
    return False


def repeated(loop):
    """Yield what a loop computes again in every iteration, from the same values."""
    changed = {
        n.id
        for n in ast.walk(loop)
        if isinstance(n, ast.Name) and not is_read(n)
    }
    for statement in loop.body:
        if isinstance(statement, ast.Assign) and is_work(statement.value):
            read = {
                n.id
                for n in ast.walk(statement.value)
                if isinstance(n, ast.Name)
            }
            if not read & changed:
                yield statement.value


class Follower:
    """Follows a file and notes what happens between two looks at the clock."""

    def __init__(self, text):
        """Start with a file of which the whole text is known."""
        self.x64 = "enable_x64" in text.lower()
        self.tensorflow_gpu = bool(
            re.search(
                r"device\([^)]*GPU|physical_devices\(.GPU|gpu_device",
                text,
                re.IGNORECASE,
            )
        )
        self.torch_gpu = self.sweeping = self.tensorflow_placed = False
        self.events, self.regions, self.findings = [], [], set()
        self.tracing, self.yields, self.functions = [], [], []
        self.names = []
        self.known = {}
        self.steps = self.depth = self.origins = self.cell = 0
        self.tics, self.entered, self.module = [], set(), Scope()
        self.lines = {}
        self.unread = []
        self.returned = False
        self.current = self.module

    def follow(self, cells):
        """Follow all cells; return the findings, sorted."""
        for cell in cells:
            self.cell = cell.number
            self.lines[cell.number] = cell.text.split("\n")
            try:
                tree = parse(cell.text)
            except (SyntaxError, ValueError) as error:
                line = getattr(error, "lineno", None) or 1
                self.unread.append((cell.number, line))
                continue
            self.quietly(self.block, tree.body, self.module)
        self.sweeping, self.steps = True, 0
        # Those that are defined meanwhile are followed, too.
        for function in self.functions:
            if function.node not in self.entered:
                self.cell = function.cell
                self.quietly(self.call, function, [], {}, function.node)
        self.decide()
        return sorted(self.findings)

    def quietly(self, action, *args):
        """Do something, and stop where the file is too much to follow."""
        try:
            action(*args)
        except (TooMuch, RecursionError):
            self.steps = MOST_STEPS if self.sweeping else 0
            self.depth, self.tracing = 0, []

    def where(self, node):
        """Return the place of code."""
        return self.cell, getattr(node, "lineno", 1)

    def find(self, rule, event):
        """Note a finding at the place of an event."""
        self.findings.add(Finding(*event.where, rule, event.code))

    def note(self, kind, node, **more):
        """Note an event, unless it happens while a function is traced."""
        if self.tracing:
            return -1
        event = Event(kind, self.where(node), short(node), **more)
        event.depth = self.depth
        self.events.append(event)
        return len(self.events) - 1

    def work(self, kind, node, name, args, gpu=True, dtype="", shape=None):
        """Note work of a framework; return the array that it makes."""
        if self.tracing:
            self.tracing[-1].add(name)
            return Array("jax", "float32", made=len(self.events), shape=shape)
        given = arrays(args)
        known = {array.dtype for array in given if array.dtype}
        if not dtype:
            dtype = "float64" if "float64" in known else min(known, default="")
        if kind == "jax" and not self.x64 and dtype == "float64":
            dtype = "float32"
        at = self.note(
            "work",
            node,
            framework=kind,
            value=gpu,
            dtype=dtype,
            names=frozenset([name, *self.names]),
            origins=frozenset(a.origin for a in given if a.origin),
        )
        return Array(kind, dtype, at if gpu else -1, at, shape, gpu)

    def wait(self, values, node, kind=""):
        """Note a wait for what the values depend on; for all, where None is given."""
        if values is None:
            self.note("wait", node, framework=kind, upto=len(self.events))
            return
        for array in arrays(values):
            if array.at >= 0:
                self.note("wait", node, framework=array.kind, upto=array.at)

    def comments(self, start, stop):
        """Return the comments between two places, and on a line of their own above."""
        lines = self.lines.get(start[0], [])
        if start[0] != stop[0]:
            return ""
        first = start[1] - 1
        above = lines[first - 1].strip() if 0 < first <= len(lines) else ""
        found = [above] if above.startswith("#") else []
        found += [line.partition("#")[2] for line in lines[first : stop[1]]]
        found = [JUST_IN_TIME.sub("", comment) for comment in found]
        return " ".join(
            comment
            for comment in found
            if not COMPILES.search(comment) or ON_TIME.search(comment)
        )

    def close(self, start, stop, text, where, **more):
        """Note a timing, unless it is a total around others."""
        region = Region(start, stop, text, where=where, **more)
        region.depth = self.depth
        region.certain = region.certain and not self.sweeping
        inner = any(
            start <= r.start
            and r.stop <= stop
            and (r.start, r.stop) != (start, stop)
            for r in self.regions
        )
        if not inner:
            self.regions.append(region)
        return region

    def inside(self, region):
        """Return (number, event) of all that happened in a region."""
        return list(enumerate(self.events))[region.start : region.stop]

    def decide(self):
        """Judge all regions."""
        for region in self.regions:
            events = self.inside(region)
            self.judge_waiting(region, events)
            wrapped = self.judge_jit(region, events)
            self.judge_conversion(region, events)
            self.judge_first(region, events, wrapped)
            self.judge_unused(events)
        self.judge_dtypes()

    def means(self, region, rule):
        """Return whether the words around a timing say that it is meant to be so."""
        return re.search(
            INTENDED[rule], region.text.replace("_", " "), re.IGNORECASE
        )

    def judge_waiting(self, region, events):
        """Find work that nobody waits for."""
        if self.means(region, "wait"):
            return
        for kind in ("jax", "torch", "tensorflow"):
            if kind in region.waits:
                continue
            waits = [
                e.upto
                for _, e in events
                if e.kind == "wait" and e.framework in ("", kind)
            ]
            pending = [
                event
                for number, event in events
                if event.kind == "work"
                and event.framework == kind
                and event.value
                if number > max(waits, default=-1)
            ]
            if pending:
                self.find(
                    "wait" if kind == "jax" else "synchronize", pending[-1]
                )

    def judge_jit(self, region, events):
        """Find functions that are compiled again in every iteration."""
        made = [event for _, event in events if event.kind == "jit"]
        places = [event.where for event in made]
        kinds = {event.kind for _, event in events}
        if made and not kinds & {"call", "work", "lower"}:
            self.find("wrap", made[-1])
            return []
        if "lower" in kinds or self.means(region, "jit"):
            return []
        # A new function, made within a function that is called in the timing.
        again = [
            event
            for event in made
            if places.count(event.where) > 1
            or (event.depth > region.depth and event.upto >= region.start)
        ]
        for event in again:
            self.find("jit", event)
        return again

    def judge_conversion(self, region, events):
        """Find arrays that are converted although they were there before."""
        if self.means(region, "convert"):
            return
        converted = [event for _, event in events if event.kind == "convert"]
        if any(
            event.kind == "work" and event.names and event.framework != "numpy"
            for _, event in events
        ):
            for event in converted:
                if event.upto < region.start:
                    self.find("convert", event)

    def judge_first(self, region, events, wrapped):
        """Find first calls, unless they are timed apart from later ones."""
        if any(event.kind == "lower" for _, event in events) or self.means(
            region, "first"
        ):
            return
        calls = [event for _, event in events if event.kind == "call"]
        for event in calls:
            function = event.value
            fresh = wrapped and function.made >= region.start
            if not event.first or fresh or not region.certain:
                continue
            if region.mixed or not self.timed_later(region, function):
                self.find("first", event)

    def timed_later(self, region, function):
        """Return whether a later timing has calls of a function, and not the first."""
        for later in self.regions:
            calls = [e for _, e in self.inside(later) if e.kind == "call"]
            same = [e.first for e in calls if e.value.warm is function.warm]
            if later.start >= region.stop and same and not any(same):
                return True
        return False

    def judge_unused(self, events):
        """Find work in timed functions on which their results do not depend."""
        for _, event in events:
            inner = getattr(event.value, "inner", None)
            if event.kind == "call" and isinstance(inner, Func):
                if event.upto == 0 and may_be_folded(inner.node):
                    self.find("captured", event)
                for node in (
                    dropped(inner.node) if hasattr(inner.node, "name") else ()
                ):
                    code = " ".join(ast.unparse(node).split())
                    place = (inner.cell, node.lineno)
                    self.find("unused", Event("unused", place, code[:50]))

    def judge_dtypes(self):
        """Find NumPy's float64 where the same is timed in JAX's float32."""
        timed = []
        for region in self.regions:
            work = [e for _, e in self.inside(region) if e.kind == "work"]
            timed.append((region, work))
        for region, work in timed:
            double = [
                e
                for e in work
                if (e.framework, e.dtype) == ("numpy", "float64")
            ]
            if not double or self.means(region, "dtype"):
                continue
            names = frozenset().union(*(e.names for e in work))
            origins = frozenset().union(*(e.origins for e in work))
            alike = {
                (e.framework, e.dtype)
                for other, events in timed
                if other is not region and not self.means(other, "dtype")
                for e in events
                if e.names & names or e.origins & origins
            }
            if ("jax", "float32") in alike and (
                "numpy",
                "float32",
            ) not in alike:
                self.find("dtype", double[0])

    def block(self, statements, scope):
        """Follow statements; return what they return, if anything."""
        result = None
        for statement in statements:
            if self.returned:
                break
            self.steps += 1
            if self.steps > MOST_STEPS:
                raise TooMuch
            method = getattr(
                self, "do_" + type(statement).__name__.lower(), None
            )
            found = method(statement, scope) if method else None
            if found is not None and (result is None or not is_nothing(found)):
                result = found
        return result

    def do_expr(self, node, scope):
        """Follow an expression."""
        self.value(node.value, scope)

    def do_return(self, node, scope):
        """Return a value."""
        return self.value(node.value, scope) if node.value else Const(None)

    def do_assert(self, node, scope):
        """Follow a condition."""
        self.wait([self.value(node.test, scope)], node)

    def do_import(self, node, scope):
        """Bind what is imported."""
        for alias in node.names:
            path = alias.name if alias.asname else alias.name.split(".")[0]
            scope.names[alias.asname or path] = Ref(path)

    def do_importfrom(self, node, scope):
        """Bind what is imported."""
        for alias in node.names:
            scope.names[alias.asname or alias.name] = Ref(
                f"{node.module}.{alias.name}"
            )

    def do_assign(self, node, scope):
        """Bind a value."""
        value = self.value(node.value, scope)
        for target in node.targets:
            self.bind(target, value, scope)

    def do_annassign(self, node, scope):
        """Bind a value."""
        if node.value:
            self.bind(node.target, self.value(node.value, scope), scope)

    def do_augassign(self, node, scope):
        """Bind a value made from the one before."""
        before, more = (
            self.value(node.target, scope),
            self.value(node.value, scope),
        )
        for region in spans([more]):
            region.mixed = True
        self.bind(
            node.target, self.operate(node, node.op, before, more), scope
        )

    def bind(self, target, value, scope):
        """Give a value to a name, an attribute, or several names."""
        if isinstance(target, ast.Name):
            scope.names[target.id] = value
            if isinstance(value, Clock):
                value.name = value.name or target.id
            for region in spans([value]):
                region.text += " " + target.id
        elif isinstance(target, (ast.Tuple, ast.List)):
            items = value.items if isinstance(value, Seq) else []
            for number, inner in enumerate(target.elts):
                known = len(items) == len(target.elts)
                self.bind(
                    inner, items[number] if known else part(value), scope
                )
        elif isinstance(target, ast.Starred):
            self.bind(target.value, part(value), scope)
        elif isinstance(target, ast.Attribute):
            owner = self.value(target.value, scope)
            if isinstance(owner, Instance):
                owner.attributes[target.attr] = value
        elif isinstance(target, ast.Subscript):
            owner, key = (
                self.value(target.value, scope),
                self.value(target.slice, scope),
            )
            for region in spans([value]):
                region.text += " " + texts(target.slice)
            if isinstance(owner, Map):
                owner.items[getattr(key, "value", id(key))] = value
            elif not isinstance(owner, Seq):
                self.wait([value], target)

    def do_if(self, node, scope):
        """Follow both branches, unless texts are compared that are known."""
        test = self.value(node.test, scope)
        if isinstance(test, Const) and isinstance(test.value, bool):
            taken = node.body if test.value else node.orelse
            result = self.block(taken, scope)
            self.returned = bool(taken) and isinstance(taken[-1], ast.Return)
            return result
        self.wait([test], node)
        first, second = (
            self.block(node.body, scope),
            self.block(node.orelse, scope),
        )
        if arrays([test], "jax"):
            # Nobody knows whether the last iteration has done it.
            self.wait(None, node, "jax")
        return second if first is None or is_nothing(first) else first

    def do_match(self, node, scope):
        """Follow the case of a known text, or all: each may be the one."""
        subject = self.value(node.subject, scope)
        self.wait([subject], node)
        known = [
            case
            for case in node.cases
            if isinstance(subject, Const)
            and getattr(getattr(case.pattern, "value", None), "value", self)
            == subject.value
        ]
        results = [
            self.block(case.body, scope) for case in known or node.cases
        ]
        return next((result for result in results if result is not None), None)

    def do_for(self, node, scope):
        """Follow a loop: with each known element, or twice."""
        result = None
        for element in self.elements(self.value(node.iter, scope)):
            self.bind(node.target, element, scope)
            result = self.block(node.body, scope) or result
        return self.block(node.orelse, scope) or result

    def do_while(self, node, scope):
        """Follow a loop twice."""
        result = None
        for _ in range(2):
            self.wait([self.value(node.test, scope)], node)
            result = self.block(node.body, scope) or result
        return result

    def do_try(self, node, scope):
        """Follow everything, as if each part were run."""
        parts = [
            node.body,
            *(h.body for h in node.handlers),
            node.orelse,
            node.finalbody,
        ]
        results = [self.block(statements, scope) for statements in parts]
        return next((result for result in results if result is not None), None)

    def do_with(self, node, scope):
        """Follow a block within its contexts."""
        return self.enter(node, list(node.items), scope)

    def enter(self, node, items, scope):
        """Enter the first context and then the others; then follow the block."""
        if not items:
            return self.block(node.body, scope)
        item, rest = items[0], items[1:]
        call = item.context_expr
        name = getattr(getattr(call, "func", None), "id", "")
        if name == "__magic__":
            return self.timed_by_magic(node, call, scope)
        value = self.value(call, scope)
        bound = value

        def body():
            if item.optional_vars is not None:
                self.bind(item.optional_vars, bound, scope)
            return self.enter(node, rest, scope)

        if isinstance(value, Instance) and "__enter__" in value.klass.methods:
            entered = self.call(
                self.attribute(value, "__enter__"), [], {}, node
            )
            bound = value if is_nothing(entered) else entered
            result = body()
            self.call(
                self.attribute(value, "__exit__"), [Unknown()] * 3, {}, node
            )
            return result
        if isinstance(value, Method) and value.name == "device":
            before = self.tensorflow_gpu, self.tensorflow_placed
            self.tensorflow_gpu = on_gpu(value.owner) or (
                before[0] and not isinstance(value.owner, Const)
            )
            self.tensorflow_placed = isinstance(value.owner, Const)
            result = body()
            self.tensorflow_gpu, self.tensorflow_placed = before
            return result
        if isinstance(value, Method) and value.name == "with":
            results = []
            bound = Unknown()
            self.yields.append(lambda: results.append(body()))
            self.call_function(value.owner[0], *value.owner[1:], node)
            if results:
                return results[-1]
            self.yields.pop()
            return body()
        if isinstance(value, Ref) and value.path == "quantecon.Timer()":
            start = len(self.events)
            result = body()
            words = self.comments(self.where(node), self.end(node))
            self.span(start, words, self.where(node))
            return result
        return body()

    def end(self, node):
        """Return the place where code ends."""
        return self.cell, node.end_lineno

    def timed_by_magic(self, node, call, scope):
        """Follow what a magic of IPython times."""
        kind, options = (argument.value for argument in call.args)
        self.note("clock", call)
        start, words = (
            len(self.events),
            self.comments(self.where(node), self.last(node)),
        )
        for _ in range(2 if kind == "timeit" else 1):
            self.block(node.body, scope)
        count = "-n" in options
        self.span(
            start,
            words,
            self.where(node),
            certain=kind == "time" or count,
            mixed=count,
        )

    def last(self, node):
        """Return the last place in a block."""
        return self.cell, max(
            getattr(n, "end_lineno", 0) or 0 for n in ast.walk(node)
        )

    def span(self, start, text, where, **more):
        """Close a region at this moment; return its time."""
        if self.tracing:
            return Unknown()
        stop = len(self.events)
        return Span([self.close(start, stop, text, where, **more)])

    def do_functiondef(self, node, scope):
        """Bind a function, with its decorators."""
        value = self.function(node, scope)
        for decorator in reversed(node.decorator_list):
            value = self.call(
                self.value(decorator, scope), [value], {}, decorator
            )
        scope.names[node.name] = value

    do_asyncfunctiondef = do_functiondef

    def function(self, node, scope):
        """Return a function made at this moment."""
        made = Func(node, scope, len(self.events), self.cell)
        if hasattr(node, "name"):
            self.functions.append(made)
        return made

    def do_classdef(self, node, scope):
        """Bind a class."""
        inner = Scope(scope)
        self.block(node.body, inner)
        bases = [self.value(base, scope) for base in node.bases]
        module = any(
            isinstance(b, Ref) and b.path.endswith("torch.nn.Module")
            for b in bases
        )
        methods = {
            name: v for name, v in inner.names.items() if isinstance(v, Func)
        }
        on_jax = any(
            isinstance(b, Ref) and b.path.startswith(ON_JAX) for b in bases
        )
        scope.names[node.name] = Klass(node, scope, methods, module, on_jax)

    def value(self, node, scope):
        """Return the value of an expression."""
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise TooMuch
        method = getattr(self, "of_" + type(node).__name__.lower(), None)
        if method:
            return method(node, scope)
        for inner in ast.iter_child_nodes(node):
            if isinstance(inner, ast.expr):
                self.value(inner, scope)
        return Unknown()

    def of_constant(self, node, scope):
        """Return what is written."""
        return Const(node.value)

    def of_name(self, node, scope):
        """Return the value of a name."""
        return scope.find(node.id)

    def of_namedexpr(self, node, scope):
        """Bind a value and return it."""
        value = self.value(node.value, scope)
        self.bind(node.target, value, scope)
        return value

    def of_tuple(self, node, scope):
        """Return known elements."""
        items = []
        for inner in node.elts:
            value = self.value(inner.value if is_star(inner) else inner, scope)
            items += self.spread(value) if is_star(inner) else [value]
        return Seq(items)

    of_list = of_set = of_tuple

    def spread(self, value):
        """Return the elements of a starred value."""
        return value.items if isinstance(value, Seq) else [part(value)]

    def of_dict(self, node, scope):
        """Return known keys and values."""
        items = {}
        for key, inner in zip(node.keys, node.values):
            known = self.value(key, scope) if key else Unknown()
            items[getattr(known, "value", id(key))] = self.value(inner, scope)
        return Map(items)

    def of_lambda(self, node, scope):
        """Return a function."""
        return self.function(node, scope)

    def of_ifexp(self, node, scope):
        """Return one of two values: that of a GPU, if one of them is."""
        self.wait([self.value(node.test, scope)], node)
        both = [self.value(node.body, scope), self.value(node.orelse, scope)]
        return next((value for value in both if on_gpu(value)), both[0])

    def of_joinedstr(self, node, scope):
        """Follow a text with values, which waits for them."""
        values = [
            self.value(v.value, scope)
            for v in node.values
            if isinstance(v, ast.FormattedValue)
        ]
        self.wait(values, node)
        for region in spans(values):
            region.text += " " + texts(node)
        return (
            Seq([v for v in values if isinstance(v, Span)])
            if spans(values)
            else Unknown()
        )

    def of_binop(self, node, scope):
        """Return the result of an operator."""
        left, right = (
            self.value(node.left, scope),
            self.value(node.right, scope),
        )
        return self.operate(node, node.op, left, right)

    def operate(self, node, operator, left, right):
        """Return the result of an operator: a time, an array, a number."""
        if isinstance(left, Clock) and isinstance(right, Clock):
            words = (
                self.comments(right.where, left.where)
                + f" {right.name} {left.name}"
            )
            words += " " + texts(node)
            region = self.close(right.at, left.at, words, right.where)
            return Span([region]) if not self.tracing else Unknown()
        regions = spans([left, right])
        if regions:
            return Span(regions)
        if isinstance(left, Const) and isinstance(right, Const):
            return number(operator, left.value, right.value)
        if isinstance(left, Seq) and isinstance(operator, (ast.Mult, ast.Add)):
            return Seq(
                left.items + (right.items if isinstance(right, Seq) else [])
            )
        name = type(operator).__name__.lower()
        return self.compute(
            node, "matmul" if name == "matmult" else "", [left, right]
        )

    def compute(self, node, name, values):
        """Return the result of an operation of the framework that has the values."""
        kinds = {array.kind for array in arrays(values)}
        name = {"dot": "matmul", "mm": "matmul"}.get(name, name) or "operator"
        if self.tracing and kinds:
            return self.work("jax", node, name, values)
        for kind in ("jax", "torch", "tensorflow"):
            if kind in kinds:
                if kind == "jax":
                    self.implicit(node, values)
                gpu = kind == "jax" or any(
                    array.gpu for array in arrays(values)
                )
                return self.work(kind, node, name, values, gpu)
        if "numpy" in kinds:
            return self.work("numpy", node, name, values, False)
        return Unknown()

    def implicit(self, node, values):
        """Note NumPy arrays that JAX has to convert."""
        for number, value in enumerate(values):
            # A tuple that comes later, such as a shape, has numbers.
            listed = isinstance(value, Seq) and number == 0
            for array in value.items if listed else [value]:
                if isinstance(array, Array) and array.kind == "numpy":
                    self.note("convert", node, upto=array.made)

    def of_compare(self, node, scope):
        """Return the result of a comparison."""
        values = [
            self.value(inner, scope)
            for inner in (node.left, *node.comparators)
        ]
        known = [v.value for v in values if isinstance(v, Const)]
        texts = [v for v in known if isinstance(v, str)]
        if len(values) == len(texts) == 2:
            if isinstance(node.ops[0], (ast.Eq, ast.NotEq)):
                equal = texts[0] == texts[1]
                return Const(equal == isinstance(node.ops[0], ast.Eq))
        return self.compute(node, "", values)

    def of_boolop(self, node, scope):
        """Follow conditions, each of which waits."""
        values = [self.value(inner, scope) for inner in node.values]
        self.wait(values, node)
        return values[-1]

    def of_unaryop(self, node, scope):
        """Return the result of an operator with one operand."""
        value = self.value(node.operand, scope)
        if isinstance(node.op, ast.Not):
            self.wait([value], node)
        if isinstance(value, (Const, Span)):
            return value
        return self.compute(node, "", [value])

    def of_subscript(self, node, scope):
        """Return a part of a value."""
        value, key = (
            self.value(node.value, scope),
            self.value(node.slice, scope),
        )
        known = getattr(key, "value", None)
        if isinstance(value, Map):
            return value.items.get(known, Unknown())
        if isinstance(value, Seq):
            if isinstance(node.slice, ast.Slice):
                bounds = [
                    getattr(b, "value", None)
                    for b in (node.slice.lower, node.slice.upper)
                ]
                usable = all(b is None or isinstance(b, int) for b in bounds)
                return Seq(
                    value.items[slice(*bounds)] if usable else value.items
                )
            usable = isinstance(known, int) and -len(
                value.items
            ) <= known < len(value.items)
            return value.items[known] if usable else part(value)
        if isinstance(value, Array) and value.kind in (
            "jax",
            "torch",
            "tensorflow",
        ):
            return self.compute(node, "getitem", [value])
        return part(value, len(self.events))

    def of_attribute(self, node, scope):
        """Return an attribute."""
        return self.attribute(self.value(node.value, scope), node.attr)

    def attribute(self, value, name):
        """Return an attribute of a value."""
        if isinstance(value, Ref):
            return Ref(f"{value.path}.{name}")
        if isinstance(value, Instance):
            if name in value.attributes:
                return value.attributes[name]
            method = value.klass.methods.get(name)
            if method:
                return dataclasses.replace(method, owner=value)
            return Method(value, name)
        if isinstance(value, Array) and name not in METHODS | LEAVES:
            return Unknown() if name in NO_WORK else value
        return Method(value, name)

    def of_listcomp(self, node, scope):
        """Return a list with an element for each iteration."""
        inner = Scope(scope)
        return Seq(self.iterations(list(node.generators), node.elt, inner))

    of_generatorexp = of_setcomp = of_listcomp

    def of_dictcomp(self, node, scope):
        """Follow the values."""
        inner = Scope(scope)
        values = self.iterations(list(node.generators), node.value, inner)
        return Map(dict(enumerate(values)))

    def iterations(self, generators, element, scope):
        """Return the element of a comprehension for each iteration."""
        if not generators:
            return [self.value(element, scope)]
        found = []
        for value in self.elements(self.value(generators[0].iter, scope)):
            self.bind(generators[0].target, value, scope)
            found += self.iterations(generators[1:], element, scope)
        return found

    def elements(self, value):
        """Return the elements that a loop is followed with."""
        items = value.items if isinstance(value, Seq) else []
        if items:
            return items[:8] if len(items) > 1 else items * 2
        if isinstance(value, Map) and value.items:
            return [Const(key) for key in value.items][:8]
        return [part(value, len(self.events)) for _ in range(2)]

    def of_yield(self, node, scope):
        """Follow the block of a `with` at the `yield` of its context."""
        if node.value:
            self.value(node.value, scope)
        if self.yields:
            self.yields.pop()()
        return Unknown()

    def of_await(self, node, scope):
        """Return what is awaited."""
        return self.value(node.value, scope)

    def of_call(self, node, scope):
        """Call a function."""
        function = self.value(node.func, scope)
        args, kwargs = [], {}
        for inner in node.args:
            value = self.value(inner.value if is_star(inner) else inner, scope)
            args += self.spread(value) if is_star(inner) else [value]
        for keyword in node.keywords:
            value = self.value(keyword.value, scope)
            if keyword.arg:
                kwargs[keyword.arg] = value
            elif isinstance(value, Map):
                kwargs.update(
                    (k, v)
                    for k, v in value.items.items()
                    if isinstance(k, str)
                )
        self.current = scope
        self.moved(node.func, [*args, *kwargs.values()], scope)
        for region in spans([*args, *kwargs.values()]):
            region.text += " " + texts(node)
        result = self.call(function, args, kwargs, node)
        if isinstance(function, Func) and SYNC.match(
            short(node).rpartition(".")[2]
        ):
            self.wait(args, node)
        return result

    def moved(self, function, args, scope):
        """Note that a model of another package was moved to a GPU."""
        name = getattr(function, "attr", "")
        if name != "cuda" and not (name == "to" and any(map(on_gpu, args))):
            return
        owner = function.value
        while isinstance(owner, (ast.Call, ast.Attribute)):
            owner = owner.func if isinstance(owner, ast.Call) else owner.value
        if isinstance(owner, ast.Name):
            if isinstance(scope.find(owner.id), Unknown):
                model = Array("torch", gpu=True, made=len(self.events))
                scope.names[owner.id] = model

    def call(self, function, args, kwargs, node):
        """Return what a call returns."""
        values = [*args, *kwargs.values()]
        if isinstance(function, Ref):
            return self.library(function.path, args, kwargs, node)
        if isinstance(function, Func):
            if function.context:
                return Method((function, args, kwargs), "with")
            return self.call_function(function, args, kwargs, node)
        if isinstance(function, Jit):
            return self.call_compiled(function, args, kwargs, node)
        if isinstance(function, Partial):
            return self.call_partial(function, args, kwargs, node)
        if isinstance(function, Method):
            return self.call_method(
                function.owner, function.name, args, kwargs, node
            )
        if isinstance(function, Klass):
            return self.instantiate(function, args, kwargs, node)
        if (
            isinstance(function, Instance)
            and "__call__" in function.klass.methods
        ):
            return self.call(
                self.attribute(function, "__call__"), args, kwargs, node
            )
        if isinstance(function, Array):
            if function.gpu and function.kind != "jax":
                return self.work(
                    function.kind, node, "call", [function, *values]
                )
            if function.kind != "jax":
                return dataclasses.replace(function, at=-1)
            # What a transformation returned is a function, too.
            return self.work("jax", node, "call", [function, *values])
        if SYNC.search(short(node)):
            self.wait(None, node)
        self.wait(values, node)
        return Unknown()

    def instantiate(self, klass, args, kwargs, node):
        """Return a new object."""
        made = Instance(klass, {})
        if "__init__" in klass.methods:
            self.call(self.attribute(made, "__init__"), args, kwargs, node)
        return made

    def call_function(self, function, args, kwargs, node):
        """Follow a function of the file with these arguments."""
        if self.depth > DEEPEST:
            return Unknown()
        spec, scope = function.node.args, Scope(function.scope)
        self.entered.add(function.node)
        if function.owner is not None:
            args = [function.owner, *args]
        names = [a.arg for a in (*spec.posonlyargs, *spec.args)]
        for name in (*names, *(a.arg for a in spec.kwonlyargs)):
            scope.names[name] = Unknown()
        for name, default in zip(names[::-1], spec.defaults[::-1]):
            scope.names[name] = self.value(default, function.scope)
        for inner, default in zip(spec.kwonlyargs, spec.kw_defaults):
            if default is not None:
                scope.names[inner.arg] = self.value(default, function.scope)
        scope.names.update(zip(names, args))
        scope.names.update(
            (k, v) for k, v in kwargs.items() if k in scope.names
        )
        if spec.vararg:
            scope.names[spec.vararg.arg] = Seq(list(args[len(names) :]))
        if spec.kwarg:
            more = {k: v for k, v in kwargs.items() if k not in scope.names}
            scope.names[spec.kwarg.arg] = Map(more)
        cell, self.cell = self.cell, function.cell
        name = getattr(function.node, "name", "lambda")
        if self.tracing:
            self.tracing[-1].add(name)
        self.names.append(name)
        self.depth += 1
        try:
            if isinstance(function.node, ast.Lambda):
                return self.value(function.node.body, scope)
            return self.block(function.node.body, scope) or Const(None)
        finally:
            self.cell, self.depth = cell, self.depth - 1
            self.returned = False
            self.names.pop()

    def call_compiled(self, function, args, kwargs, node):
        """Call a compiled function: it may compile, and its work is dispatched."""
        values = [*args, *kwargs.values()]
        if function.kind == "jax" and not self.tracing:
            self.implicit(node, values)
        shapes = tuple(array.shape for array in arrays(values))
        known = None if None in shapes or not shapes else shapes
        first = not function.warm or not (
            {None, known} & function.warm or known is None
        )
        constants = static_values(function.static, args, kwargs)
        if constants:
            first = first or constants not in function.warm
            function.warm.add(constants)
        traced = [as_traced(value) for value in args]
        self.tracing.append(set())
        try:
            named = {key: as_traced(value) for key, value in kwargs.items()}
            result = self.call(function.inner, traced, named, node)
        finally:
            names = self.tracing.pop()
        if self.tracing:
            self.tracing[-1] |= names
            return result if arrays([result]) else Array("jax", "float32")
        function.warm.add(known)
        # Without arguments it computes from constants.
        count = len(values) if function.kind == "jax" else -1
        self.note("call", node, value=function, first=first, upto=count)
        gpu = {"torch": any(a.gpu for a in arrays(values)), "jax": True}.get(
            function.kind, self.tensorflow_gpu
        )
        dtype = "" if values or function.kind != "jax" else "float32"
        made = self.work(function.kind, node, "compiled", values, gpu, dtype)
        self.events[made.made].names |= names
        return as_result(result, made)

    def call_partial(self, function, args, kwargs, node):
        """Call a function with some arguments given before."""
        if "__transform__" not in function.kwargs:
            given = {**function.kwargs, **kwargs}
            return self.call(
                function.inner, [*function.args, *args], given, node
            )
        values = [*args, *kwargs.values()]
        if not self.tracing:
            self.implicit(node, values)
        self.tracing.append(set())
        try:
            self.call(function.inner, [as_traced(v) for v in args], {}, node)
        finally:
            names = self.tracing.pop()
        if isinstance(function.inner, Jit) and not self.tracing:
            # It is compiled again, for a batch or a derivative.
            shapes = tuple(array.shape for array in arrays(values))
            known = None if None in shapes else shapes
            first = not function.ran
            function.ran.add(known)
            called = dataclasses.replace(function, warm=function.ran)
            self.note("call", node, value=called, first=first)
        made = self.work("jax", node, "transformed", values)
        if self.tracing:
            self.tracing[-1] |= names
        else:
            self.events[made.made].names |= names
        return made

    def call_method(self, owner, name, args, kwargs, node):
        """Call a method of an array, a list, a dict, a timer."""
        values = [owner, *args, *kwargs.values()]
        if isinstance(owner, Array):
            return self.call_array(owner, name, args, kwargs, node)
        if isinstance(owner, Seq):
            if name == "append":
                owner.items += args
                return Const(None)
            if name in ("mean", "sum"):
                for region in spans([owner]):
                    region.mixed = True
                return Span(spans([owner])) if spans([owner]) else Unknown()
            return owner
        if isinstance(owner, Map):
            if name == "items":
                return Seq(
                    [Seq([Const(k), v]) for k, v in owner.items.items()]
                )
            if name in ("values", "copy"):
                return (
                    Seq(list(owner.items.values()))
                    if name == "values"
                    else owner
                )
            known = getattr(args[0], "value", None) if args else None
            return (
                owner.items.get(known, Unknown())
                if name == "get"
                else Unknown()
            )
        if isinstance(owner, Jit) or isinstance(owner, (Func, Partial)):
            if name in ("lower", "trace", "compile"):
                self.note("lower", node)
                return Method(owner, "lowered")
            return Unknown()
        if isinstance(owner, Method) and owner.name == "lowered":
            if name == "compile":
                self.note("lower", node)
                if isinstance(owner.owner, Jit):
                    owner.owner.warm.add(None)
                return Jit(owner.owner, "jax", len(self.events), {None})
            return owner
        if isinstance(owner, Method) and owner.name == "timer":
            return self.timed_by_library(owner.owner, name, args, kwargs, node)
        if name == "cuda" or (
            name == "to" and any(on_gpu(v) for v in values[1:])
        ):
            return Array("torch", gpu=True, made=len(self.events))
        if name == "to" and isinstance(owner, Instance):
            return owner
        if isinstance(owner, Instance) and owner.klass.on_jax:
            if arrays(values, "jax") or self.tracing:
                return self.work("jax", node, name, values)
        if SYNC.search(name):
            self.wait(None, node)
        self.wait(values, node)
        return Unknown()

    def call_array(self, owner, name, args, kwargs, node):
        """Call a method of an array."""
        values = [owner, *args, *kwargs.values()]
        given = [getattr(v, "value", None) for v in values[1:]]
        if name in LEAVES or (name == "to" and "cpu" in given):
            self.wait([owner], node)
            if name == "block_until_ready":
                return owner
            if name in ("numpy", "__array__") and owner.kind != "numpy":
                self.note("convert", node, upto=owner.made)
                return self.fresh("numpy", owner.dtype, origin=owner.origin)
            return (
                self.fresh(owner.kind, owner.dtype)
                if name in ("cpu", "to")
                else Unknown()
            )
        if owner.kind == "torch" and name in ("to", "cuda"):
            gpu = (
                name == "cuda"
                or owner.gpu
                or any(on_gpu(v) for v in values[1:])
            )
            return dataclasses.replace(owner, gpu=gpu, at=-1)
        if name == "astype":
            made = self.compute(node, name, [owner])
            dtype = dtype_named(values[1]) if len(values) > 1 else ""
            return dataclasses.replace(made, dtype=dtype, shape=owner.shape)
        return self.compute(node, name, values)

    def fresh(self, kind, dtype="", shape=None, origin=0, gpu=False):
        """Return an array that is there."""
        if not origin:
            self.origins += 1
            origin = self.origins
        made = len(self.events)
        return Array(kind, dtype, -1, made, shape, gpu, origin)

    def library(self, path, args, kwargs, node):
        """Return what a function of a library returns."""
        values = [*args, *kwargs.values()]
        name = path.rpartition(".")[2]
        if path in CLOCKS:
            if self.tracing:
                return Unknown()
            self.note("clock", node)
            return Clock(len(self.events) - 1, self.where(node))
        if path in COMPILERS:
            return self.compiled(path, args, kwargs, node)
        if path in TRANSFORMS and args:
            made = Partial(
                args[0], [], {"__transform__": True}, len(self.events)
            )
            if isinstance(args[0], Jit):
                key = path, id(args[0].warm)
                made.ran = self.known.setdefault(key, set())
            return made
        if path == "functools.partial" and args:
            return Partial(args[0], args[1:], kwargs, len(self.events))
        if path in ("functools.wraps", "functools.lru_cache"):
            return Ref("identity")
        if path == "contextlib.contextmanager" and isinstance(args[0], Func):
            args[0].context = True
            return args[0]
        if path in ("identity", "builtins.staticmethod", "functools.cache"):
            return args[0] if args else Unknown()
        if path in WAITS_FOR_ALL:
            self.wait(None, node, WAITS_FOR_ALL[path])
            return Unknown()
        if path in ("jax.block_until_ready", "jax.device_get"):
            self.wait(values, node)
            found = arrays(values)
            if path.endswith("device_get") and found:
                return self.fresh(
                    "numpy", found[0].dtype, origin=found[0].origin
                )
            return args[0] if args else Unknown()
        if path == "builtins.map" and len(args) > 1:
            elements = self.elements(args[1])
            return Seq(
                [
                    self.call(args[0], [element], {}, node)
                    for element in elements
                ]
            )
        if path in MAPS and len(args) > 1:
            return self.mapped(args[0], args[1], node)
        if path.startswith("timeit.") or path == "torch.utils.benchmark.Timer":
            return self.timed_by_library(
                (path, args, kwargs), name, [], {}, node
            )
        if path.split(".")[0] in ("quantecon", "qe"):
            return self.quantecon(name, args, node)
        if path in TO_ARRAY:
            return self.converted(path, args, kwargs, node)
        if path.startswith("jax."):
            return self.jax(path, name, args, kwargs, node)
        if path.startswith("numpy."):
            return self.numpy(path, name, args, kwargs, node)
        if path.startswith(("torch.", "tensorflow.")):
            return self.torch_or_tensorflow(path, name, args, kwargs, node)
        if path.startswith(ON_JAX):
            if arrays(values) or self.tracing:
                return self.work("jax", node, name, values)
            return Ref(f"{path}()")
        return self.python(path, name, args, kwargs, node)

    def mapped(self, function, tree, node):
        """Return a tree with a function applied to its leaves."""
        if isinstance(tree, Seq):
            return Seq(
                [self.mapped(function, inner, node) for inner in tree.items]
            )
        if isinstance(tree, Map):
            items = tree.items.items()
            return Map(
                {k: self.mapped(function, inner, node) for k, inner in items}
            )
        return self.call(function, [tree], {}, node)

    def python(self, path, name, args, kwargs, node):
        """Return what a function of Python or of an unknown library returns."""
        values = [*args, *kwargs.values()]
        if path in ("builtins.sum", "statistics.mean", "statistics.fmean"):
            for region in spans(values):
                region.mixed = True
        if spans(values):
            return Span(spans(values))
        if (
            path in ("builtins.list", "builtins.tuple", "builtins.sorted")
            and args
        ):
            return args[0]
        if path == "builtins.list":
            return Seq([])
        if path in ("builtins.enumerate", "builtins.zip"):
            columns = [self.elements(value) for value in args]
            rows = [Seq(list(row)) for row in zip(*columns)]
            if name == "enumerate":
                rows = [Seq([Unknown(), *row.items]) for row in rows]
            return (
                Seq(rows)
                if all(isinstance(v, Seq) for v in args)
                else Unknown()
            )
        if path == "builtins.getattr" and len(args) > 1:
            return self.attribute(args[0], str(getattr(args[1], "value", "")))
        if path in ("builtins.len", "builtins.isinstance", "builtins.hasattr"):
            return Unknown()
        found = arrays(values, "jax")
        if name[:1].isupper() and found:
            # A container that another file defines.
            return max(found, key=lambda array: array.at)
        if SYNC.search(name):
            self.wait(None, node)
        self.wait(values, node)
        return Unknown()

    def compiled(self, path, args, kwargs, node):
        """Return a compiled function; its cache belongs to what is compiled."""
        kind = COMPILERS[path]
        inner = args[0] if args else kwargs.get("fun")
        if inner is None:
            return Ref(path)
        if isinstance(inner, Jit):
            return inner
        if isinstance(inner, Ref):
            warm = self.known.setdefault(inner.path, set())
        else:
            warm = getattr(inner, "warm", None)
        if isinstance(inner, Array):
            return (
                inner
                if kind == "torch" and not inner.gpu
                else Jit(inner, kind, 0, set())
            )
        static = [
            v.value
            for key, given in kwargs.items()
            if key in ("static_argnums", "static_argnames")
            for v in flat([given])
            if isinstance(v, Const)
        ]
        made = getattr(inner, "made", -1)
        self.note("jit", node, upto=made)
        warm = set() if warm is None else warm
        return Jit(inner, kind, made, warm, tuple(static))

    def converted(self, path, args, kwargs, node):
        """Return an array of a framework, made from another or from numbers."""
        kind = TO_ARRAY[path]
        given = arrays(args[:1])
        dtype = dtype_named(
            kwargs.get("dtype", args[1] if len(args) > 1 else None)
        )
        gpu = (
            kind == "jax"
            or any(on_gpu(v) for v in kwargs.values())
            or self.torch_gpu
        )
        if self.tracing:
            return Array("jax", "float32")
        source = given[0] if given else None
        if kind == "jax":
            dtype = dtype or (source.dtype if source else "float32")
            if dtype == "float64" and not self.x64:
                dtype = "float32"
        if source is None or source.kind == kind:
            return self.fresh(
                kind, dtype, source.shape if source else None, gpu=gpu
            )
        if source.kind == "numpy":
            self.note("convert", node, upto=source.made)
        else:
            self.wait([source], node)
        at = self.note("work", node, framework=kind, value=False)
        made = self.fresh(
            kind, dtype or source.dtype, source.shape, source.origin, gpu
        )
        made.at = at if kind == "jax" else -1
        return made

    def jax(self, path, name, args, kwargs, node):
        """Return what a function of JAX returns."""
        values = [*args, *kwargs.values()]
        if path in ("jax.jvp", "jax.vjp", "jax.linearize") and args:
            return self.call_partial(
                Partial(args[0], [], {"__transform__": True}, 0),
                args[1:],
                {},
                node,
            )
        if not path.startswith(JAX_OPERATIONS):
            return Unknown()
        if path.startswith("jax.random.") and name in KEYS:
            return self.fresh("jax")
        if name in (
            "float32",
            "float64",
            "dtype",
            "shape",
            "ndim",
        ) and not arrays(values):
            return Unknown()
        if not self.tracing:
            self.implicit(node, values)
        dtype = dtype_named(kwargs.get("dtype")) or "float32"
        if dtype == "float32" and self.x64:
            dtype = "float64"
        created = not arrays(values) or path.startswith("jax.random.")
        shape = shape_of(args) if created else None
        name = {"dot": "matmul"}.get(name, name)
        return self.work(
            "jax",
            node,
            name,
            values,
            dtype=dtype if created else "",
            shape=shape,
        )

    def numpy(self, path, name, args, kwargs, node):
        """Return what a function of NumPy returns; it waits for arrays of others."""
        values = [*args, *kwargs.values()]
        if spans(values):
            if name in ("mean", "sum", "average"):
                for region in spans(values):
                    region.mixed = True
            return (
                args[0]
                if name in ("array", "asarray")
                else Span(spans(values))
            )
        foreign = [array for array in arrays(values) if array.kind != "numpy"]
        self.wait(foreign, node)
        for array in foreign:
            self.note("convert", node, upto=max(array.made, array.at))
        dtype = dtype_named(kwargs.get("dtype"))
        if name in ("float32", "float64", "float16"):
            return self.fresh("numpy", name) if arrays(values) else Unknown()
        if name in ("default_rng", "RandomState"):
            return Ref("numpy.random")
        if name in ("seed", "printoptions", "set_printoptions"):
            return Unknown()
        if name in FLOAT64 or (
            path.startswith("numpy.random.") and not arrays(values)
        ):
            made = self.fresh(
                "numpy", dtype or "float64", shape_of(args, kwargs)
            )
            if name in ("integers", "randint", "choice", "permutation"):
                made.dtype = "int"
            return made
        if name in (
            "array",
            "asarray",
            "full",
            "arange",
            "zeros_like",
            "ones_like",
        ):
            given = arrays(values)
            if not dtype and len(args) > 1:
                dtype = dtype_named(args[1])
            known = dtype or (given[0].dtype if given else "")
            if not known and any(
                isinstance(getattr(v, "value", 0), float) for v in flat(args)
            ):
                known = "float64"
            origin = given[0].origin if given else 0
            return self.fresh("numpy", known, shape_of(args), origin)
        if not arrays(values):
            return Unknown()
        name = {"dot": "matmul"}.get(name, name)
        made = self.work("numpy", node, name, values, False, dtype)
        return Unknown() if self.tracing else made

    def torch_or_tensorflow(self, path, name, args, kwargs, node):
        """Return what a function of PyTorch or TensorFlow returns."""
        values = [*args, *kwargs.values()]
        kind = path.split(".")[0]
        if path == "torch.device":
            return args[0] if args else Unknown()
        if path == "torch.set_default_device":
            self.torch_gpu = any(on_gpu(value) for value in values)
        if path.startswith(
            ("torch.cuda.", "torch.backends.", "torch.set_", "torch.no_grad")
        ):
            if SYNC.search(name):
                self.wait(None, node, kind)
            return Unknown()
        if path == "tensorflow.device" and args:
            return Method(args[0], "device")
        if path.startswith(("tensorflow.config", "tensorflow.keras")):
            return Unknown()
        gpu = any(on_gpu(v) for v in values) or any(
            a.gpu for a in arrays(values)
        )
        if kind == "tensorflow":
            if self.tensorflow_placed and not self.tensorflow_gpu:
                # What comes from a GPU is copied, which waits.
                self.wait(values, node)
                gpu = False
            gpu = gpu or self.tensorflow_gpu
        else:
            gpu = gpu or self.torch_gpu
        name = {"mm": "matmul", "dot": "matmul"}.get(name, name)
        if path.startswith("torch.nn.") and name[:1].isupper():
            return Array(
                kind, "float32", gpu=self.torch_gpu, made=len(self.events)
            )
        return self.work(
            kind,
            node,
            name,
            values,
            gpu,
            dtype=dtype_named(kwargs.get("dtype")),
        )

    def quantecon(self, name, args, node):
        """Follow the timers of QuantEcon."""
        if name == "Timer":
            return Ref("quantecon.Timer()")
        if name == "tic":
            self.note("clock", node)
            self.tics.append((len(self.events), self.where(node)))
        if name in ("toc", "tac") and self.tics:
            start, where = self.tics[-1]
            words = self.comments(where, self.where(node))
            return self.span(start, words, where)
        return Unknown()

    def timed_by_library(self, timer, name, args, kwargs, node):
        """Follow what `timeit` or PyTorch's timer times."""
        path, given, options = timer
        if name == "Timer":
            return Method((path, given, options), "timer")
        if path.endswith("default_timer"):
            return Unknown()
        statement = given[0] if given else options.get("stmt", Unknown())
        ours = self.current
        scope = Scope(ours)
        offered = options.get("globals")
        if isinstance(offered, Map):
            scope.names.update(offered.items)
        setup = options.get("setup", given[1] if len(given) > 1 else None)
        self.run(setup, scope, node)
        self.note("clock", node)
        start = len(self.events)
        for _ in range(2):
            self.run(statement, scope, node)
        words = self.comments(self.where(node), self.end(node))
        theirs = path.startswith("torch")
        certain = not theirs and name in ("timeit", "repeat")
        mixed = name == "timeit"
        waits = ("torch",) if theirs else ()
        first = self.span(
            start,
            words,
            self.where(node),
            certain=certain,
            mixed=mixed,
            waits=waits,
        )
        if name != "repeat":
            return first
        start = len(self.events)
        self.run(statement, scope, node)
        return Seq([first, self.span(start, words, self.where(node))])

    def run(self, code, scope, node):
        """Run a function, or a text of code, that a timer was given."""
        if isinstance(code, Const) and isinstance(code.value, str):
            try:
                tree = ast.parse(textwrap.dedent(code.value))
            except SyntaxError:
                return
            for inner in ast.walk(tree):
                if hasattr(inner, "lineno"):
                    inner.lineno = inner.end_lineno = node.lineno
                if (
                    isinstance(inner, ast.ImportFrom)
                    and inner.module == "__main__"
                ):
                    inner.names = []
            self.block(tree.body, scope)
        elif code is not None and not isinstance(code, (Const, Unknown)):
            self.call(code, [], {}, node)


def is_nothing(value):
    """Return whether a value is unknown or None."""
    return isinstance(value, Unknown) or (
        isinstance(value, Const) and value.value is None
    )


def is_star(node):
    """Return whether an argument is starred."""
    return isinstance(node, ast.Starred)


def on_gpu(value):
    """Return whether a value names an accelerator of PyTorch."""
    text = getattr(value, "value", None)
    return isinstance(text, str) and bool(ACCELERATOR.match(text))


def part(value, made=None):
    """Return a part of a value: of arrays an array, of all else unknown."""
    if isinstance(value, Array):
        later = value.made if made is None or value.kind != "numpy" else made
        return dataclasses.replace(value, shape=None, made=later)
    if isinstance(value, Seq) and value.items:
        return next(
            (v for v in value.items if isinstance(v, (Array, Span))), Unknown()
        )
    return Unknown()


def static_values(static, args, kwargs):
    """Return the values of static arguments as a text, empty if one is unknown."""
    given = dict(enumerate(args), **{str(k): v for k, v in kwargs.items()})
    found = {key: given[key] for key in static if key in given}
    if not all(isinstance(value, Const) for value in found.values()):
        return ""
    return " ".join(f"{key}={value.value!r}" for key, value in found.items())


def as_traced(value):
    """Return an argument as a traced function sees it."""
    if isinstance(value, (Array, Unknown)):
        return Array("jax", "float32", shape=getattr(value, "shape", None))
    if isinstance(value, Seq):
        return Seq([as_traced(item) for item in value.items])
    if isinstance(value, Map):
        return Map({key: as_traced(item) for key, item in value.items.items()})
    return value


def as_result(traced, made):
    """Return the result of a compiled function, of the form that tracing found."""
    if isinstance(traced, Seq):
        return Seq([as_result(item, made) for item in traced.items])
    if isinstance(traced, Map):
        return Map(
            {key: as_result(item, made) for key, item in traced.items.items()}
        )
    return made


def shape_of(args, kwargs=()):
    """Return the lengths that a call gives, None where one of them is unknown."""
    given = [kwargs["size"]] if "size" in kwargs else list(args)
    given = [v for v in given if not isinstance(v, (Array, Ref))]
    values = flat(given)
    numbers = tuple(getattr(value, "value", None) for value in values)
    return numbers if numbers and None not in numbers else None


def number(operator, left, right):
    """Return what an operator makes of two numbers that are written."""
    try:
        if isinstance(operator, ast.Pow) and abs(right) > 20:
            return Unknown()
        kind = type(operator)
        names = {ast.Add: "__add__", ast.Sub: "__sub__", ast.Mult: "__mul__"}
        names[ast.Pow], names[ast.FloorDiv] = "__pow__", "__floordiv__"
        if (
            not isinstance(left, int)
            or not isinstance(right, int)
            or kind not in names
        ):
            return Unknown()
        return Const(getattr(left, names[kind])(right))
    except (TypeError, ValueError, ZeroDivisionError):
        return Unknown()


def check(path):
    """Return the findings in a file, sorted, lines counted within their cells.

    Raises OSError and ValueError where the file cannot be read.
    """
    return examine(path)[0]


def examine(path):
    """Return the findings in a file, and one line that says what was read.

    Raises OSError and ValueError where the file cannot be read.
    """
    path = pathlib.Path(path)
    cells = read_cells(path)
    follower = Follower("\n".join(cell.text for cell in cells))
    findings = follower.follow(cells)
    if follower.unread and path.suffix == ".py":
        _, line = follower.unread[0]
        raise ValueError(f"line {line} is no Python; nothing was read")
    count = len({region.where for region in follower.regions})
    said = ", ".join(
        [counted(len(cells), "cell") + " of Python"] * (path.suffix != ".py")
        + [counted(count, "timing") if count else "no timing"]
    )
    for number, line in follower.unread:
        said += f"; cell {number} is no Python (line {line}), and was not read"
    lines = sorted({(f.cell, f.line) for f in findings})
    if lines:
        said += f"; {counted(len(lines), 'line')} above may be wrong"
    elif count:
        said += "; none looks wrong" if count > 1 else "; it looks right"
    return findings, said


def counted(number, word):
    """Return a number with its word, in the plural where there are several."""
    return f"{number} {word}{'s' * (number != 1)}"


def report(path, finding, book=BOOK):
    """Return where and what, and on a second line the section that explains it."""
    path = pathlib.Path(path)
    place = f"{path}:{finding.line}"
    if path.suffix == ".ipynb":
        place = f"{path}: cell {finding.cell}, line {finding.line}"
    if path.suffix == ".md":
        cell = read_cells(path)[finding.cell - 1]
        place = f"{path}:{cell.offset + finding.line} (cell {finding.cell})"
    return f"{place}: {finding.sentence}\n    {book}{finding.address}"


def main(arguments=None):
    """Check the files named; return 1 with findings, 2 if one is unreadable."""
    parser = argparse.ArgumentParser(description="Find timings that mislead.")
    parser.add_argument("files", nargs="+", type=pathlib.Path, metavar="FILE")
    parser.add_argument(
        "--book", default=BOOK, help="the address of the book's front page"
    )
    given = parser.parse_args(arguments)
    status = 0
    # What Python thinks of the texts in a file is not asked here.
    warnings.simplefilter("ignore", SyntaxWarning)
    for path in given.files:
        if path.suffix not in EXTENSIONS:
            parser.error(f"{path} is none of {', '.join(EXTENSIONS)}")
        try:
            findings, said = examine(path)
        except (OSError, ValueError) as error:
            print(f"{path}: {error}", file=sys.stderr)
            status = 2
            continue
        for finding in findings:
            print(report(path, finding, given.book))
        print(f"{path}: {said}.")
        status = max(status, bool(findings))
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
