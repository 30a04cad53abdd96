"""What a watched program did: findings by line with seconds and a page of the book, as text, JSON, HTML."""

from __future__ import annotations

import atexit
import dataclasses
import functools
import json
import os
import pathlib
import re
import runpy
import sys
import textwrap
import typing

from . import paging, raising
from .timer import in_unit
from .watching import (
    Arrival,
    Compilation,
    Place,
    Span,
    Watcher,
    now,
    ours,
)

HERE = pathlib.Path(__file__).parent
# How often something happens at a line before it counts as a loop.
OFTEN = 10
# Operations at one line; bytes of an array that is passed again, in all.
MANY, LARGE = 100, 1_000_000
# A wait that lasts longer is for work that is worth it; the part of a timing that is worth a word.
LONG, PART = 0.1, 0.05
# The part of a program's time that compiling a loop takes before it is worth a word.
SHARE = 0.05
NAMED, MOST = 5, 20
UNDER_JIT = "put the call into a function under jit"
WRAPPED: dict = {"width": 79, "subsequent_indent": "    "}
WRAPPED |= {"break_long_words": False, "break_on_hyphens": False}
# What shells say of a program that Ctrl-C has ended.
STOPPED = 130
PAGES = {
    "compiled": "timing/wrong_timings.html#the-first-call-among-the-others",
    "unfinished": "timing/wrong_timings.html#not-waiting-for-the-result",
    "sent": "timing/wrong_timings.html#conversion-inside-the-loop",
    "float64": "timing/wrong_timings.html#different-dtypes",
    "wait": "timing/dispatch.html#operations-that-wait-implicitly",
    "operations": "claims/jax_docs.html#without-jit-jax-compiles-each-operation",
    "constant": "pitfalls/side_effects.html#what-is-frozen",
    "donated": "start/arrays.html#some-donated-buffers-were-not-usable",
    "again": "tracing/retracing.html#what-a-log-says",
    "unrolled": "pitfalls/unrolled_loops.html#what-to-do",
}


@dataclasses.dataclass
class Finding:
    """What costs time or misleads: its kind, line, words, seconds if they are known, and page."""

    kind: str
    file: str
    line: int
    text: str
    seconds: float | None
    page: str

    @property
    def at(self) -> str:
        """Its file and line; the file alone for what is the whole program's."""
        return f"{self.file}:{self.line}" if self.line else self.file


def finding(
    kind: str, at: Place | None, text: str, seconds=None, page=None
) -> Finding:
    """Return a finding at a line; without one it is the whole program's."""
    file, line = at or ("", 0)
    return Finding(kind, shown(file), line, text, seconds, page or PAGES[kind])


def shown(file: str) -> str:
    """Return a path as it is shortest from here."""
    relative = os.path.relpath(file) if file else "the program"
    return min(relative, file, key=len) if file else relative


def times(number: int) -> str:
    """Return how often, in words."""
    return "once" if number == 1 else f"{number} times"


def size(number: float) -> str:
    """Return bytes in three digits."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if number < 1000 or unit == "GB":
            return f"{number:.3g} {unit}"
        number /= 1000
    return ""


def matcher(pattern: str) -> typing.Callable[[str], bool]:
    """Return what says whether a line is as a pattern says, as `matcher` of docs/_static/logs.js does."""
    seen: list[str] = []

    def piece(found: re.Match) -> str:
        letter = found[0]
        if letter == "…":
            return ".*"
        seen.append(letter)
        again = letter in seen[:-1]
        return f"(?P={letter})" if again else rf"(?P<{letter}>[^\[\]]*)"

    source = re.sub(r"…|\b[A-Z]\b", piece, re.escape(pattern))
    whole = re.compile(source, re.IGNORECASE)

    def fits(line: str) -> bool:
        found = whole.fullmatch(line)
        values = found.groupdict().values() if found else ()
        return found is not None and len({*values}) == len(values)

    return fits


@functools.cache
def causes() -> list[tuple[list, str, str, str]]:
    """Return (patterns, what changed, what to do, page) of the table of the book."""
    rows = json.loads((HERE / "causes.json").read_text("utf8"))
    return [([*map(matcher, row[0])], *row[1:]) for row in rows]


def cause_of(line: str) -> tuple[str, str, str] | None:
    """Return what changed, what to do and the page, for a line of JAX's log."""
    for patterns, *cause in causes():
        if any(fits(line) for fits in patterns):
            return tuple(cause)
    return None


def joined(reason: str) -> list[str]:
    """Return the lines of a reason; what is in brackets goes over several, and becomes one."""
    whole: list[str] = []
    depth = 0
    for line in reason.splitlines():
        if depth > 0 and not line.lstrip().startswith("* "):
            whole[-1] += f" {line.strip()}"
        else:
            depth = 0
            whole.append(re.sub(r"^(\* )?(key with )?", "", line.strip()))
        depth += sum((c in "([{") - (c in ")]}") for c in line)
    return whole


def why(
    each: Compilation, before: list[Compilation]
) -> tuple[str, str, str, str]:
    """Return what changed, what to do, the page, and JAX's own words, of a later compilation."""
    lines = joined(each.reason)
    if lines and lines[0] == "never seen function:":
        lines = [f"never seen function: {each.name} (again)"]
    elif lines:
        lines = [*lines[1:], " ".join(lines[1:])]
    elif each.mapping:
        lines = differences(each, before)
    else:
        lines = ["compiled again, not lowered again"]
    for line in lines:
        if line and (cause := cause_of(line)):
            return *cause, line
    last = next(filter(None, reversed(lines)), "")
    return "a reason not in the table", "", PAGES["again"], last


def differences(each: Compilation, before: list[Compilation]) -> list[str]:
    """Return how the placement of arguments differs from the most similar one before."""
    parts = parts_of(each.mapping)
    found = [
        [
            f"mapping now {new} and before {old}"
            for new, old in zip(parts, parts_of(other.mapping), strict=False)
            if new != old
        ]
        for other in before
        if other.types == each.types
    ]
    if not found:
        return ["compiled again, other arguments"]
    return min(found, key=len) or [
        f"compiled again, arguments as before: {each.types}"
    ]


def parts_of(mapping: str) -> list[str]:
    """Return the parts of a tuple as Python writes it, some of which have commas in brackets."""
    parts, depth = [""], 0
    for letter in re.sub(r"^[(\[]|[)\]]$", "", mapping):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


def without_others(group: list[Compilation]) -> list[Compilation]:
    """Return compilations without the first of functions that are made of it elsewhere, as its gradient is."""
    kept: list[Compilation] = []
    places: set[Place | None] = set()
    for each in group:
        fresh = each.reason.lstrip().startswith("never seen function:")
        if not (kept and fresh) or each.place in places:
            kept.append(each)
        places.add(each.place)
    return kept


def compiled_again(watcher: Watcher) -> list[Finding]:
    """Return a finding for each function that was compiled more than once, and why."""
    groups: dict[tuple, list[Compilation]] = {}
    for each in watcher.compilations:
        where = each.defined or each.place
        groups.setdefault((each.name, where), []).append(each)
    found = []
    for (name, _), group in groups.items():
        own = any(each.defined for each in group)
        # What is only traced is a part of another function, or of `eval_shape`.
        group = without_others([each for each in group if each.compiled])
        later = group[1:]
        if len(group) < (2 if own else OFTEN):
            continue
        seconds, page = sum(each.seconds for each in later), None
        text = f"`{name}`, an operation outside of jit, was compiled {times(len(group))}: {UNDER_JIT}, or keep the shape"
        if own:
            reasons: dict[tuple, list] = {}
            for number, each in enumerate(later, 1):
                *cause, line = why(each, group[:number])
                reasons.setdefault(tuple(cause), []).append(line)
            _, fix, page = max(reasons, key=lambda each: len(reasons[each]))
            said = "; ".join(
                f"{len(lines)} × {cause[0]}: {textwrap.shorten(lines[-1], 200, placeholder='…')}"
                for cause, lines in reasons.items()
            )
            text = f"`{name}` was compiled {times(len(group))}: {said}"
            if not ours(group[0].defined or "<"):
                # A library makes it in each call.
                fix, page = UNDER_JIT, PAGES["operations"]
            text += f". To do: {fix}" if fix else ""
        page = page or PAGES["operations"]
        at = later[0].place if own else group[-1].place
        found.append(finding("again", at, text, seconds, page))
    return found


def timings(watcher: Watcher) -> tuple[list[Finding], list[dict]]:
    """Return the findings in timings, and all timings with what happened inside."""
    found, listed = [], []
    for (start, stop), spans in watcher.spans.items():
        # What computes nothing converts nothing and compiles nothing that is timed.
        busy = [span for span in spans if span.calls]
        problems = [
            *compiling(watcher, (start, stop), spans, busy),
            *unfinished(stop, spans),
            *sending(stop, busy),
            *([] if busy else doubles(watcher, (start, stop))),
        ]
        found += problems
        inside = "; ".join(each.text for each in problems)
        of = {"file": shown(stop[0]), "from": start[1], "to": stop[1]}
        of |= {"times": len(spans), "misleads": bool(problems)}
        of["seconds"] = sum(span.seconds for span in spans)
        listed.append(of | {"inside": inside or "nothing that misleads"})
    return found, listed


def compiling(watcher: Watcher, key, spans, busy: list[Span]) -> list[Finding]:
    """Return a finding where compiling is a part of a timing, unless that is what is timed."""
    with_it = [span for span in busy if span.compilations]
    compiled = [each for span in with_it for each in span.compilations]
    seconds = sum(each.seconds for each in compiled)
    if seconds < PART * sum(span.seconds for span in with_it) or not with_it:
        return []
    names = sorted({each.name for each in compiled})
    apart = len(with_it) == len(spans) and any(
        span.functions.intersection(names) and not span.compilations
        for other, others in watcher.spans.items()
        if other != key
        for span in others
    )
    if apart:
        return []
    what = f"{len(names)} functions" if names[1:] else f"`{names[0]}`"
    since = f"since line {key[0][1]}"
    which = f"{len(with_it)} of {len(spans)} timings {since} include"
    which += "" if with_it[1:] else "s"
    which = which if spans[1:] else f"the timing {since} includes"
    text = f"{which} compiling {what}: call once before the clock starts"
    return [finding("compiled", key[1], text, seconds)]


def unfinished(stop: Place, spans: list[Span]) -> list[Finding]:
    """Return a finding where the clock was read before the work was done."""
    early = [
        span
        for span in spans
        if span.unfinished and lateness(span) >= PART * span.seconds
    ]
    if not early:
        return []
    late = [each for span in early for each in span.late]
    after = late and f", and was there {in_unit(sum(late) / len(late))} later"
    text = f"the clock is read before {early[0].unfinished[-1]} is finished ({times(len(early))}){after or ''}: wait with jax.block_until_ready"
    return [finding("unfinished", stop, text, sum(late) if late else None)]


def lateness(span: Span) -> float:
    """Return seconds by which a result came after the clock was read; many where nobody knows."""
    return sum(span.late) if span.late else span.seconds


def sending(stop: Place, busy: list[Span]) -> list[Finding]:
    """Return a finding where arrays of NumPy were converted again within a timing."""
    sent = [each for span in busy for each in span.sent]
    if not sent:
        return []
    total = size(sum(number for _, number in sent))
    text = f"the timing converts arrays of NumPy that were there before ({times(len(sent))}, {total}; {sent[0][0]}): convert them before the clock starts"
    return [finding("sent", stop, text)]


def doubles(watcher: Watcher, key) -> list[Finding]:
    """Return a finding where something else computes in float64 what JAX computes in float32."""
    if watcher.x64:
        return []
    single = {
        shape
        for other, found in watcher.shapes.items()
        if any(span.calls for span in watcher.spans[other])
        for kind, shape in found.values()
        if kind in ("jaxlib float32", "numpy float64")
    }
    for name, (kind, shape) in watcher.shapes.get(key, {}).items():
        if kind in ("numpy float64", "torch float64") and shape in single:
            text = f"`{name}` is float64 here, and JAX computes with the same shape in float32: compare equal dtypes"
            return [finding("float64", key[1], text)]
    return []


def loops(watcher: Watcher) -> list[Finding]:
    """Return findings of waits, operations outside of jit, and arrays that are passed again."""
    found = []
    for (at, what), wait in watcher.waits.items():
        count, seconds, first, last, ends = wait
        count -= ends
        each = (last - first) / max(1, count - 1)
        if count >= OFTEN and seconds < LONG * count and each <= OFTEN:
            text = f"{what} of an array waits for the device in a loop ({times(count)}): keep the arrays, and read them after the loop"
            found.append(finding("wait", at, text, seconds))
    lines = [
        (at, count)
        for at, count in watcher.operations.most_common()
        if count >= MANY and count > 3 * watcher.called
    ]
    rest = sum(count for _, count in lines[NAMED:])
    cost = dispatching(watcher) if lines else None
    for at, count in [*lines[:NAMED], (None, rest)]:
        what = "put them into one function under jit"
        if at is None:
            what = f"at {len(lines) - NAMED} more lines"
        if count:
            text = f"{count} operations outside of jit: {what}"
            seconds = cost and cost * count
            found.append(finding("operations", at, text, seconds))
    for (at, where), (_, again, total, array) in watcher.given.items():
        if again >= 3 and total >= LARGE:
            text = f"the same NumPy array, {array}, goes to the device again and again ({where}; {again + 1} times, {size(total)}): put it there once, with jax.device_put"
            found.append(finding("sent", at, text))
    return found


def dispatching(watcher: Watcher) -> float | None:
    """Return about how many seconds an operation outside of jit takes here."""
    try:
        one = watcher.jax.numpy.zeros(())
        (one + one).block_until_ready()
        start = now()
        for _ in range(20):
            one + one
        return (now() - start) / 20
    except Exception:  # The program has left JAX in no state to compute.
        return None


def compiler(watcher: Watcher) -> list[Finding]:
    """Return findings of what the compiler warned of."""
    found = []
    for (name, _), (at, text) in watcher.constants.items():
        amount = re.search(r"\(([\d.]+\w+) total\)|: (\w+\[.*?\])", text)
        what = next(filter(None, amount.groups())) if amount else "much"
        said = f"`{name}` holds arrays as constants ({what}): pass them as arguments"
        found.append(finding("constant", at, said))
    for (name, _), (at, arrays) in watcher.donated.items():
        said = f"`{name}` cannot use donated arrays: {arrays}; no result has their shape and dtype"
        found.append(finding("donated", at, said))
    return found


def unrolled(watcher: Watcher, spent: float) -> list[Finding]:
    """Return findings of loops that JAX unrolled, where compiling took a part of the program.

    `watching.unrolled` says which loops these are. `spent` are the program's seconds.
    """
    groups: dict[tuple, list[Compilation]] = {}
    for each in watcher.compilations:
        if each.loop:
            groups.setdefault((each.name, each.loop.place), []).append(each)
    found = []
    for (name, at), group in groups.items():
        seconds = sum(each.seconds for each in group)
        loop = max(each.loop for each in group)
        if seconds >= SHARE * spent:
            text = f"this loop is unrolled in `{name}`: JAX traced its body {times(loop.times)}, and {loop.equations} of the {loop.program} equations to compile come from it: use lax.scan or lax.fori_loop, which trace it once"
            found.append(finding("unrolled", at, text, seconds))
    return found


@dataclasses.dataclass
class Report:
    """All that is said of a program that has ended."""

    program: str
    seconds: float
    status: int
    findings: list[Finding]
    timings: list[dict]
    memory: dict
    unseen: list[str]

    def json(self) -> str:
        """Return it as one line of JSON."""
        return json.dumps(dataclasses.asdict(self), ensure_ascii=False)

    def head(self) -> str:
        """Return how much was found, in one line."""
        number = len(self.findings)
        what = f"{number} finding{'s' * (number > 1)}"
        what = what if number else "nothing found"
        return f"{what} in {self.program}, which took {in_unit(self.seconds)}"

    def held(self) -> str:
        """Return how much memory arrays took, and who held it."""
        if not self.memory["bytes"]:
            return ""
        held = self.memory["holders"]
        largest = sorted(held, key=held.get, reverse=True)[:NAMED]
        said = ", ".join(f"{name} {size(held[name])}" for name in largest)
        text = f"arrays took {size(self.memory['bytes'])} at most"
        return f"{text}: {said}" if said else text

    def rows(self) -> list[tuple[str, int, str, str]]:
        """Return of each timing its lines, how often, its mean, and what is to be said of it."""
        return [
            (
                f"{of['file']}:{of['from']}-{of['to']}",
                of["times"],
                in_unit(of["seconds"] / of["times"]),
                "see above" if of["misleads"] else "nothing that misleads",
            )
            for of in self.timings
        ]

    def text(self, book: str, coloured: bool) -> str:
        """Return it for a terminal."""
        bold, dim, end = (
            ("\x1b[1m", "\x1b[2m", "\x1b[0m") if coloured else ("",) * 3
        )
        lines = ["", f"{bold}jax-measured watch: {self.head()}{end}"]
        for each in self.findings:
            cost = each.seconds
            spent = "" if cost is None else f" [{in_unit(cost)}]"
            said = textwrap.fill(f"{each.at}{spent} {each.text}", **WRAPPED)
            lines.append(said.replace(each.at, f"{bold}{each.at}{end}", 1))
            lines.append(f"    {dim}{book}{each.page}{end}")
        for at, times, mean, right in self.rows()[:MOST]:
            number = f"{times} × " if times > 1 else ""
            lines.append(f"timing {at}: {number}{mean}, {right}")
        if len(self.timings) > MOST:
            lines.append(f"{len(self.timings) - MOST} more timings: --json")
        lines += filter(None, [self.held()])
        lines += [f"not seen: {each}" for each in self.unseen]
        return "\n".join(lines)

    def page(self, book: str) -> str:
        """Return it as a page, with links."""
        found = []
        for each in self.findings:
            cost = "" if each.seconds is None else f", {in_unit(each.seconds)}"
            at, text = paging.words(each.at), paging.words(each.text)
            said = f"<b>{at}</b>{cost}: {text}"
            found.append(
                f"{said}<br>{paging.link(book + each.page, each.page)}"
            )
        head = "lines", "times", "mean", "what it includes"
        return paging.page(
            f"jax-measured watch: {self.head()}",
            paging.items(found),
            paging.section("Timings", paging.table(head, self.rows())),
            paging.paragraphs(filter(None, [self.held()])),
            paging.paragraphs(f"not seen: {each}" for each in self.unseen),
        )


def report_of(
    watcher: Watcher,
    program: str,
    status: int,
    start: float,
    names: dict,
    error,
) -> Report:
    """Return the report of a program that has ended, perhaps by an error."""
    seconds = now() - start
    watcher.end(names)
    in_timings, listed = timings(watcher)
    found = [
        *in_timings,
        *compiled_again(watcher),
        *loops(watcher),
        *unrolled(watcher, seconds),
        *compiler(watcher),
    ]
    found.sort(key=lambda each: -(each.seconds or 0))
    if error is not None and (known := raising.answer(error)):
        at, text, page = known
        found.insert(0, finding("raised", at, text, page=page))
    memory = {"bytes": watcher.peak, "holders": dict(watcher.holders)}
    unseen = watcher.unseen + other_clocks(program)
    return Report(program, seconds, status, found, listed, memory, unseen)


def other_clocks(program: str) -> list[str]:
    """Return in words where the reader's files take readings of a `now()` from each other."""
    modules = [vars(each).get("__file__") for each in [*sys.modules.values()]]
    found = []
    for path in {program, *filter(None, modules)}:
        if not ours(path) or not path.endswith(".py"):
            continue
        text = pathlib.Path(path).read_text("utf8", "replace")
        for start in re.findall(r"([\w.]+) = [\w.]+\.(?:utc)?now\(", text):
            if minus := re.search(rf"- {re.escape(start)}\b", text):
                line = text.count("\n", 0, minus.start()) + 1
                clock = "a clock that is not watched, as those of `time` are"
                found.append(f"{shown(path)}:{line} reads `now()`, {clock}")
    return sorted(set(found))


def tell(report: Report, as_json: bool, page: str | None, book: str) -> None:
    """Print a report, and write it as a page if that was asked for."""
    if page:
        try:
            pathlib.Path(page).write_text(report.page(book), "utf8")
        except OSError as error:
            print(
                f"{page} cannot be written: {error.strerror}", file=sys.stderr
            )
    if as_json:
        print(report.json(), flush=True)
        return
    coloured = sys.stderr.isatty() and "NO_COLOR" not in os.environ
    print(report.text(book, coloured), file=sys.stderr, flush=True)


def started(
    words: list[str], module: bool, names: dict
) -> tuple[int, BaseException | None]:
    """Run a program in this process as Python would; return its exit status, and what it raised.

    `names` gets what the program has bound at its end.
    """
    sys.argv = list(words)
    if not sys.flags.safe_path:
        sys.path[0] = (
            os.getcwd()
            if module
            else str(pathlib.Path(words[0]).resolve().parent)
        )
    try:
        if module:
            names |= runpy.run_module(
                words[0], run_name="__main__", alter_sys=True
            )
        else:
            names |= runpy.run_path(words[0], run_name="__main__")
    except SystemExit as left:
        if left.code is None or isinstance(left.code, int):
            return left.code or 0, None
        print(left.code, file=sys.stderr)
        return 1, None
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        return STOPPED, None
    except BaseException as error:  # Whatever the program raises ends it.
        raising.shown(error)
        return 1, error
    return 0, None


def watch(
    words: list[str], module: bool, as_json: bool, page: str | None, book: str
) -> int:
    """Run a program, and report at its end what it did; return its exit status."""
    words = words[1:] if words[:1] == ["--"] else words
    if not words or not (module or pathlib.Path(words[0]).exists()):
        what = f"there is no file {words[0]!r}" if words else "name a program"
        print(f"{what}: jax-measured watch train.py", file=sys.stderr)
        return 2
    watcher, process, start = Watcher(), os.getpid(), now()
    watcher.watch_clocks()
    if "jax" in sys.modules:
        watcher.watch_jax()
    else:
        sys.meta_path.insert(0, Arrival("jax", watcher.watch_jax))
    names: dict = {}
    if sys.stderr.isatty():
        text = "the report comes at its end, or after Ctrl-C"
        print(f"watching {words[0]}: {text}", file=sys.stderr, flush=True)
    status, error = started(words, module, names)
    if os.getpid() == process:
        # Threads of the program may still be at work; Python waits for them before this is called.
        atexit.register(
            lambda: tell(
                report_of(watcher, words[0], status, start, names, error),
                as_json,
                page,
                book,
            )
        )
    return status
