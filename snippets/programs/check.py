"""Find timings of JAX that measure something else, as far as a reader of the code can be sure.

Usage: python check.py [--book ADDRESS] FILE ...

Reads .py, .ipynb and .md files, and runs none of them. Needs Python 3.9 or newer. Where a function
of another file may wait, it says that it cannot tell. `jax-measured watch` sees what happens.
"""

import argparse
import ast
import dataclasses
import json
import pathlib
import re
import sys
import warnings

BOOK = ""
RULES = {
    "wait": (
        "timing/wrong_timings.html#not-waiting-for-the-result",
        "The clock stops, and nothing has waited for `{}`.",
    ),
    "first": (
        "timing/wrong_timings.html#the-first-call-among-the-others",
        "The first call of `{}` compiles, and this timing includes it.",
    ),
    "jit": (
        "timing/wrong_timings.html#recompiling-in-every-iteration",
        "`{}` wraps a function again in every iteration or call.",
    ),
    "wrap": (
        "timing/check.html#wrapping-isn-t-compiling",
        "`{}` only wraps: nothing is compiled or computed in this timing.",
    ),
}
EXTENSIONS = (".py", ".ipynb", ".md")
DEEPEST = 5
CLOCKS = set(
    """
    time.time time.perf_counter time.monotonic time.process_time time.time_ns
    time.perf_counter_ns time.monotonic_ns timeit.default_timer
    """.split()
)
COMPILERS = {"jax.jit", "jax.pmap", "equinox.filter_jit", "flax.nnx.jit"}
TRANSFORMS = set(
    "jax.grad jax.value_and_grad jax.vmap jax.jacfwd jax.jacrev jax.hessian".split()
)
OPERATIONS = (
    *("jax.numpy.", "jax.lax.", "jax.nn.", "jax.scipy.", "jax.random."),
    *("jax.image.", "jax.ops."),
)
# What makes an array without work that is worth a wait, or no array at all.
NOTHING = re.compile(
    r"jax\.(random\.(key|PRNGKey|split|fold_in)|numpy\.(float|int|bfloat|uint)\w*|tree\.\w+)$"
)
# Packages whose objects and functions compute with JAX, and do not wait.
ON_JAX = (
    *("diffrax.", "equinox.", "flax.", "haiku.", "jaxopt.", "optax."),
    *("optimistix.", "ott."),
)
WAITING = {"jax.block_until_ready", "jax.device_get", "jax.effects_barrier"}
LEAVES = {
    "item",
    "tolist",
    "numpy",
    "__array__",
    "block_until_ready",
    "copy_to_host",
}
# Methods of arrays that compute, and what never waits.
METHODS = set(
    """
    sum mean std var min max dot astype reshape transpose ravel flatten argmax argmin
    cumsum prod sort argsort clip round all any conj copy repeat take set add multiply
    trace diagonal squeeze swapaxes
    """.split()
)
INNOCENT = set(
    """
    range len enumerate zip list tuple dict isinstance getattr append extend update keys
    values items lower compile sorted reversed partial get format join split
    """.split()
)
SHOWING = {"print", "float", "int", "bool", "str", "complex", "repr"}
# Words beside a timing that say that its author means what would else be a mistake.
INTENDED = {
    "first": r"compil(e|ing|ation)\b|\b(first|1st)\b|warm|cold|tracing|includ",
    "wait": r"dispatch|\basync|(not?|without) (wait|block|sync)|unblock",
    "jit": r"compil(e|ing|ation)\b|retrac|recompil",
    "wrap": r"wrapp",
}
MAGIC = re.compile(r"^(\s*)(?:\w+\s*=\s*)?%(timeit|time)\b[ \t]*(.*)$")
OPTIONS = re.compile(r"(?:-[nrpv]\s*[\d$]\w*|-[tcqo]+)(?:\s+|$)")
FENCE = re.compile(
    r"^(\s*)(`{3,}|~{3,}) *(\{code-cell\}|\{code-block\}|\{code\})? *(\S*)"
)
PYTHON = re.compile(r"(i?python3?|py|jupyter-python|pycon)$", re.IGNORECASE)
# A comment that only says what a line does is none on what its timing includes.
COMPILES = re.compile(r"compil|trac(e|ing)", re.IGNORECASE)
ON_TIME = re.compile(
    r"measur|tim(e|es|ing)\b|includ|cost|overhead|first|1st|warm|cold|trigger",
    re.IGNORECASE,
)


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


@dataclasses.dataclass
class Region:
    """The code between two looks at the clock: its statements, and where it is."""

    cell: int
    body: list
    words: str
    inner: bool
    times: int = 1
    mixed: bool = False

    @property
    def lines(self):
        """Return the first and the last line."""
        return self.body[0].lineno, max(map(last_line, self.body))


@dataclasses.dataclass
class Event:
    """What happens in a timing: work, a wait, a wrap, or a call that is not known."""

    kind: str
    line: int
    code: str
    name: str = ""
    again: bool = False
    upto: int = -1


def last_line(node):
    """Return the last line of code."""
    return getattr(node, "end_lineno", node.lineno)


def short(node):
    """Return code as one short line."""
    node = node.func if isinstance(node, ast.Call) else node
    line = " ".join(ast.unparse(node).split())
    return line if len(line) <= 50 else line[:47] + "..."


def showing(statements, name, stop):
    """Return the statements that show a time: they use its start, its stop or itself."""
    names = {name}
    for node in ast.walk(stop):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return [
        each
        for each in statements
        if any(
            isinstance(n, ast.Name) and n.id in names for n in ast.walk(each)
        )
        and isinstance(each, (ast.Expr, ast.Assign, ast.Return))
    ]


def blocks(node):
    """Yield all lists of statements in code, each with whether it may run again."""
    waiting = [(node, False)]
    while waiting:
        node, inner = waiting.pop()
        for field in ("body", "orelse", "finalbody"):
            found = getattr(node, field, None)
            if isinstance(found, list) and found:
                yield found, inner
        again = (ast.For, ast.While, ast.FunctionDef, ast.AsyncFunctionDef)
        waiting += [
            (child, inner or isinstance(child, again))
            for child in ast.iter_child_nodes(node)
        ]


class Reader:
    """Reads a file and judges its timings."""

    def __init__(self):
        """Start with nothing."""
        self.paths, self.functions, self.jitted = {}, {}, {}
        self.arrays, self.cells, self.lines = set(), [], {}
        self.models = set()
        self.regions, self.findings, self.unread = [], set(), []
        self.untold = 0

    def follow(self, cells):
        """Read all cells; return the findings, sorted."""
        for cell in cells:
            self.lines[cell.number] = cell.text.split("\n")
            try:
                self.cells.append((cell.number, parse(cell.text)))
            except (SyntaxError, ValueError) as error:
                line = getattr(error, "lineno", None) or 1
                self.unread.append((cell.number, line))
        for _, tree in self.cells:
            for node in ast.walk(tree):
                self.learn(node)
        for number, tree in self.cells:
            for body, inner in blocks(tree):
                self.find_regions(number, body, inner)
            self.find_timeit(number, tree)
        for region in self.regions:
            self.judge(region)
        return sorted(self.findings)

    def learn(self, node):
        """Learn what a name is: imported, a function, compiled, an array."""
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.asname or alias.name.partition(".")[0]
                self.paths[name] = alias.name if alias.asname else name
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                name = alias.asname or alias.name
                self.paths[name] = f"{node.module}.{alias.name}"
        elif isinstance(node, ast.FunctionDef):
            self.functions[node.name] = node
            if any(self.compiles(each) for each in node.decorator_list):
                self.jitted[node.name] = node
        elif isinstance(node, ast.Assign) and isinstance(
            node.targets[0], ast.Name
        ):
            name = node.targets[0].id
            if isinstance(node.value, ast.Lambda):
                self.functions[name] = node.value
            elif self.compiles(node.value):
                self.jitted[name] = node.value
            elif isinstance(node.value, ast.Call) and self.path(
                node.value.func
            ).startswith(ON_JAX):
                self.models.add(name)
            elif self.is_array(node.value):
                self.arrays.add(name)
            else:
                self.arrays.discard(name)

    def path(self, node):
        """Return the dotted name of a function of a library; empty for all else."""
        parts = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        root = self.paths.get(node.id, f"builtins.{node.id}")
        return ".".join([root, *parts[::-1]])

    def compiles(self, node):
        """Return whether code is a compiled function, or makes one as a decorator."""
        if self.path(node) in COMPILERS:
            return True
        if not isinstance(node, ast.Call):
            return False
        if self.path(node.func) == "functools.partial" and node.args:
            return self.path(node.args[0]) in COMPILERS
        return self.path(node.func) in COMPILERS

    def is_array(self, node):
        """Return whether code is an array of JAX for sure."""
        if isinstance(node, ast.Name):
            return node.id in self.arrays
        if isinstance(node, (ast.BinOp, ast.Subscript, ast.UnaryOp)):
            return any(map(self.is_array, ast.iter_child_nodes(node)))
        if isinstance(node, ast.Call):
            path = self.path(node.func)
            if isinstance(node.func, ast.Attribute) and not path.startswith(
                OPERATIONS
            ):
                kept = node.func.attr in METHODS | {"block_until_ready"}
                return kept and self.is_array(node.func.value)
            if self.of_jitted(node.func):
                return True
            return path.startswith(OPERATIONS) and not NOTHING.match(path)
        return False

    def of_jitted(self, function):
        """Return the name of a compiled function that is called, or nothing."""
        if isinstance(function, ast.Name) and function.id in self.jitted:
            return function.id
        return short(function) if self.compiles(function) else ""

    # Timings.

    def is_clock(self, node):
        """Return whether code reads a clock."""
        return isinstance(node, ast.Call) and self.path(node.func) in CLOCKS

    def find_regions(self, cell, body, inner):
        """Find what is timed in a list of statements."""
        started = {}
        for number, statement in enumerate(body):
            if isinstance(statement, ast.With):
                self.find_with(cell, statement, inner)
            reads = [n for n in ast.walk(statement) if self.is_clock(n)]
            simple = isinstance(
                statement, (ast.Assign, ast.Expr, ast.Return, ast.AugAssign)
            )
            if not reads or not simple:
                continue
            stored = {
                n.id
                for n in ast.walk(statement)
                if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
            }
            # A name that is bound anew is read before, or it starts anew.
            stopped = {
                name
                for name in started
                if any(
                    isinstance(n, ast.Name)
                    and n.id == name
                    and isinstance(n.ctx, ast.Load)
                    for later in body[
                        number : number + 1 if name in stored else None
                    ]
                    for n in ast.walk(later)
                )
            }
            if stopped:
                name = max(stopped, key=started.get)
                inside = body[started[name] + 1 : number]
                if inside:
                    later = showing(body[number:], name, statement)
                    self.add(cell, inside, inner, statement, later=later)
            if isinstance(statement, ast.Assign) and self.is_clock(
                statement.value
            ):
                target = statement.targets[0]
                if isinstance(target, ast.Name):
                    started[target.id] = number

    def find_with(self, cell, statement, inner):
        """Find what is timed by a magic of IPython, or by a context of the file."""
        call = statement.items[0].context_expr
        name = getattr(getattr(call, "func", None), "id", "")
        if name == "__magic__":
            times = 2 if call.args[0].value == "timeit" else 1
            self.add(cell, statement.body, inner, statement, times)
        function = self.functions.get(name)
        decorators = getattr(function, "decorator_list", [])
        if any("contextmanager" in ast.unparse(each) for each in decorators):
            if any(map(self.is_clock, ast.walk(function))):
                stop = statement.body[-1]
                self.add(cell, statement.body, inner, stop, later=[call])

    def find_timeit(self, cell, tree):
        """Find what `timeit` is given as a function."""
        repeated = (ast.For, ast.While, ast.FunctionDef)
        again = {
            id(n)
            for each in ast.walk(tree)
            if isinstance(each, repeated)
            for n in ast.walk(each)
        }
        for node in ast.walk(tree):
            inner = id(node) in again
            if not isinstance(node, ast.Call) or not node.args:
                continue
            if self.path(node.func) in ("timeit.timeit", "timeit.repeat"):
                timed = node.args[0]
                code = timed.body if isinstance(timed, ast.Lambda) else None
                if isinstance(timed, ast.Name):
                    code = ast.Call(timed, [], [])
                if code is not None:
                    body = ast.copy_location(ast.Expr(code), node)
                    body = [ast.fix_missing_locations(body)]
                    self.add(cell, body, inner, node, 2, mixed=True)

    def add(self, cell, body, inner, stop, times=1, later=(), mixed=False):
        """Note a timing, with the comments within it and the texts shown with its time."""
        lines = self.lines[cell]
        first = max(0, body[0].lineno - 2)
        above = lines[first - 1].strip() if first else ""
        found = [above] if above.startswith("#") else []
        found += [
            line.partition("#")[2] for line in lines[first : last_line(stop)]
        ]
        found = [
            each
            for each in found
            if not COMPILES.search(each) or ON_TIME.search(each)
        ]
        for node in [n for each in (stop, *later) for n in ast.walk(each)]:
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.append(node.id)
        words = " ".join(found).replace("_", " ")
        self.regions.append(Region(cell, body, words, inner, times, mixed))

    # What happens in a timing.

    def events(self, nodes, again=False, depth=0, bound=None):
        """Return what happens in code, in the order in which it does."""
        found = []
        bound = {} if bound is None else bound
        for node in nodes:
            if isinstance(node, (ast.FunctionDef, ast.Lambda, ast.ClassDef)):
                continue
            loops = (ast.For, ast.While, ast.ListComp, ast.GeneratorExp)
            inner = again or isinstance(node, loops)
            children = list(ast.iter_child_nodes(node))
            if isinstance(node, ast.Assign):
                children = [node.value, *node.targets]
            before = len(found)
            found += self.events(children, inner, depth, bound)
            if isinstance(node, ast.Call):
                found += self.of_call(node, again, depth, bound)
            elif isinstance(node, (ast.BinOp, ast.UnaryOp)) and self.is_array(
                node
            ):
                found.append(Event("work", node.lineno, short(node)))
            elif isinstance(
                node, (ast.FormattedValue, ast.If, ast.While, ast.Assert)
            ):
                test = getattr(node, "test", None) or getattr(
                    node, "value", None
                )
                if not isinstance(test, ast.Constant):
                    found.append(self.waits_for(test, bound, len(found)))
            elif isinstance(node, (ast.Assign, ast.AugAssign)):
                stored = getattr(node, "target", None) or node.targets[0]
                if isinstance(stored, ast.Subscript):
                    # An array of NumPy waits for what it stores.
                    found.append(Event("wait", node.lineno, ""))
                for target in ast.walk(stored):
                    if isinstance(target, ast.Name):
                        bound[target.id] = (before, found[before:])
        return found

    def waits_for(self, node, bound, now):
        """Return a wait for a value: a name from before waits for nothing of the timing."""
        if isinstance(node, ast.Name) and node.id in self.arrays:
            known = node.id in bound
            work = bound[node.id][1] if known else []
            return Event(
                "wait for",
                node.lineno,
                node.id,
                name=id(work[-1]) if work else "",
            )
        return Event("wait", getattr(node, "lineno", 0), "")

    def of_call(self, node, again, depth, bound):
        """Return what a call does, after its arguments."""
        path, line, code = self.path(node.func), node.lineno, short(node)
        name = path.rpartition(".")[2] or getattr(node.func, "attr", "")
        values = [
            each.value if isinstance(each, ast.Starred) else each
            for each in node.args
        ]
        if (
            isinstance(node.func, ast.Attribute)
            and name in LEAVES
            and not path.startswith("jax")
        ):
            return [self.waits_for(node.func.value, bound, 0)]
        if path in CLOCKS:
            return []
        if path in WAITING or name in SHOWING or path.startswith("numpy."):
            arrays = [
                each for each in values if not isinstance(each, ast.Constant)
            ]
            return [self.waits_for(each, bound, 0) for each in arrays]
        if path in COMPILERS:
            fresh = not values or isinstance(values[0], (ast.Lambda, ast.Call))
            return [Event("wrap", line, code, again=again and fresh)]
        if NOTHING.match(path):
            return []
        if self.works(node, path):
            called = self.of_jitted(node.func)
            return [Event("work", line, code, name=called)]
        if isinstance(node.func, ast.Attribute) and self.is_array(
            node.func.value
        ):
            return []
        if isinstance(node.func, ast.Name) and name in self.functions:
            return self.of_function(node, name, again, depth)
        known = name in INNOCENT or path in TRANSFORMS
        return [] if known else [Event("unknown", line, code)]

    def works(self, node, path):
        """Return whether a call computes with JAX, and does not wait."""
        function = node.func
        root = function
        while isinstance(root, ast.Attribute):
            root = root.value
        if isinstance(root, ast.Name) and root.id in self.models:
            return True
        if isinstance(function, ast.Call):
            if self.path(function.func) in TRANSFORMS:
                return True
        if isinstance(function, ast.Attribute) and function.attr in METHODS:
            if self.is_array(function.value):
                return True
        return bool(self.of_jitted(function)) or path.startswith(OPERATIONS)

    def of_function(self, node, name, again, depth):
        """Return what a function of the file does; its work is that of the call."""
        if depth > DEEPEST:
            return [Event("unknown", node.lineno, short(node))]
        function = self.functions[name]
        body = (
            [function.body]
            if isinstance(function, ast.Lambda)
            else function.body
        )
        found = self.events(body, again, depth + 1)
        inside = {
            each.name
            for each in ast.walk(function)
            if isinstance(each, ast.FunctionDef)
        }
        for each in found:
            if each.kind == "wrap":
                each.again = True
            each.again = each.again or bool(inside & set([each.name]))
        if not found and not isinstance(function, ast.Lambda):
            return [Event("unknown", node.lineno, short(node))]
        return found

    # Judgements.

    def judge(self, region):
        """Find what is wrong with a timing, as far as that is sure."""
        found = self.events(region.body, region.times > 1)
        self.judge_wraps(region, found)
        self.judge_first(region, found)
        if self.means(region, "wait"):
            return
        pending = None
        for number, event in enumerate(found):
            if event.kind == "work":
                pending = event
            elif event.kind == "wait for":
                waited = [
                    n
                    for n, e in enumerate(found[:number])
                    if id(e) == event.name
                ]
                later = [
                    e
                    for e in found[max(waited, default=-1) + 1 : number]
                    if e.kind == "work"
                ]
                pending = (
                    later[-1]
                    if later and pending
                    else (None if waited else pending)
                )
            elif event.kind in ("wait", "unknown"):
                pending = None
        if pending:
            self.note(region, "wait", pending)
        elif any(event.kind == "unknown" for event in found):
            self.untold += 1

    def note(self, region, rule, event):
        """Note a finding."""
        self.findings.add(Finding(region.cell, event.line, rule, event.code))

    def means(self, region, rule):
        """Return whether the words around a timing say that it is meant to be so."""
        return re.search(INTENDED[rule], region.words, re.IGNORECASE)

    def judge_wraps(self, region, found):
        """Find functions that are compiled again, and timings that only wrap."""
        wraps = [event for event in found if event.kind == "wrap"]
        if wraps and not any(e.kind in ("work", "unknown") for e in found):
            lowers = any("lower" in ast.unparse(each) for each in region.body)
            if not lowers and not self.means(region, "wrap"):
                self.note(region, "wrap", wraps[-1])
        elif not self.means(region, "jit"):
            for event in wraps:
                if event.again:
                    self.note(region, "jit", event)

    def judge_first(self, region, found):
        """Find a first call in a timing that runs once, of a function that nobody has named before."""
        once = region.times == 1 or region.mixed
        if region.inner or not once or self.means(region, "first"):
            return
        first, last = region.lines
        for event in found:
            node = self.jitted.get(event.name)
            if event.kind != "work" or node is None:
                continue
            named = [
                (number, each.lineno)
                for number, tree in self.cells
                for each in ast.walk(tree)
                if isinstance(each, ast.Name)
                and each.id == event.name
                and isinstance(each.ctx, ast.Load)
            ]
            start, stop = (region.cell, first), (region.cell, last)
            # A timing that is repeated later tells the first call from the others.
            if not any(
                each < start or (each > stop and not region.mixed)
                for each in named
            ):
                self.note(region, "first", event)


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
    reader = Reader()
    findings = reader.follow(cells)
    if reader.unread and path.suffix == ".py":
        _, line = reader.unread[0]
        raise ValueError(f"line {line} is no Python; nothing was read")
    count = len({(r.cell, r.lines) for r in reader.regions})
    said = ", ".join(
        [counted(len(cells), "cell") + " of Python"] * (path.suffix != ".py")
        + [counted(count, "timing") if count else "no timing"]
    )
    for number, line in reader.unread:
        said += f"; cell {number} is no Python (line {line}), and was not read"
    lines = sorted({(f.cell, f.line) for f in findings})
    if lines:
        said += f"; {counted(len(lines), 'line')} above may be wrong"
    elif count > reader.untold:
        said += "; none looks wrong" if count > 1 else "; it looks right"
    if reader.untold:
        some = f" about {reader.untold}" if reader.untold < count else ""
        said += f"; it cannot tell{some}"
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
