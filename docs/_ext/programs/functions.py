"""Functions that pages show compiled, their records, and whether a record still belongs to them.

Neither Sphinx nor a framework is needed here. `nox -s compile -- --list` prints the states:

    PYTHONPATH=docs python -m _ext.programs.functions
"""

import ast
import dataclasses
import datetime
import hashlib
import json
import math
import pathlib
import re
import sys

from ..source.snippets import Library, SnippetError

PAGES = pathlib.Path("docs")
RECORDS = PAGES / "_recorded" / "compiled"
SNIPPETS = "snippets"
COMMAND = "nox -s compile"
FORM = 1
TARGETS = {
    "cpu": "CPU",
    "gpu-h200": "NVIDIA H200",
    "gpu-a100": "NVIDIA A100",
    "tpu-v5e": "TPU v5e",
    "tpu-v6e": "TPU v6e",
}
# On how many devices a step is compiled, for each target.
CHIPS = {"tpu-v5e": (1, 4, 16, 64, 256), "gpu-h200": (8,)}
MOST_BYTES = 400_000
MOST_LINES = 1_000
LONGEST_LINE = 2_000
DIRECTIVES = {"compiled": "COMPILED", "compiled-cost": "COMPILED", "compiled-scale": "SCALED"}
FENCE = re.compile(r"\s*(`{3,}|:{3,})\s*(?:\{([\w-]+)\}\s*(\S*))?")
ROLE = re.compile(r"\{compiled\}`([^`]+)`")
BEFORE = "before"
REFERENCE = re.compile(r"(?P<name>[\w.]+)@(?P<target>[\w-]+)\.(?P<field>\w+)")


class ProgramError(Exception):
    """A function cannot be compiled as a page asks; the message says why and what to do."""


class RecordError(Exception):
    """A record cannot be used; the message says what is wrong with it."""


@dataclasses.dataclass(frozen=True)
class Program:
    """A function with the abstract arguments that its module declares for it.

    `kind` is COMPILED, for one device of each target, or SCALED, for many.
    """

    name: str
    kind: str
    definition: object
    code: str
    arguments: object

    @property
    def key(self):
        """A SHA-256 over the self-contained code."""
        return hashlib.sha256(self.code.encode()).hexdigest()

    @property
    def title(self):
        """What messages call it."""
        return self.name + (" at scale" if self.kind == "SCALED" else "")

    @property
    def file(self):
        """The name of the record's file."""
        return self.name + (".scale.json" if self.kind == "SCALED" else ".json")


def find(library, written, kind, chapter=""):
    """Return the Program that a page calls `written`; raises SnippetError or ProgramError."""
    definition = library.find(written, chapter)
    module = library.module(definition.module)
    declared = module.definitions.get(kind)
    if declared is None:
        raise ProgramError(
            f"{module.path} declares no {kind}, so that nobody knows for which shapes "
            f"'{definition.name}' is to be compiled"
        )
    try:
        arguments = _literal(module, declared.source)
    except (ValueError, SyntaxError, KeyError, RecursionError):
        raise ProgramError(
            f"{kind} of {module.path} must be a dict of plain data that maps the name of a "
            'function to its arguments, such as {"softmax": ["float32[1024,1024]"]}'
        ) from None
    if not isinstance(arguments, dict) or definition.name not in arguments:
        raise ProgramError(f"{kind} of {module.path} has no arguments for '{definition.name}'")
    excerpt = library.excerpt([definition])
    code = "\n\n\n".join(
        ["\n".join(excerpt.imports), *(definition.source for definition in excerpt.definitions)]
    )
    name = f"{definition.module}.{definition.name}"
    return Program(name, kind, definition, code, arguments[definition.name])


def _literal(module, source):
    """Evaluate plain data; it may use other constants of the module by their names."""

    class Inline(ast.NodeTransformer):
        def visit_Name(self, node):
            value = ast.parse(module.definitions[node.id].source).body[0].value
            return self.visit(value)

    return ast.literal_eval(Inline().visit(ast.parse(source).body[0].value))


@dataclasses.dataclass(frozen=True)
class Wanted:
    """A place where a page names a function: what it calls it, and in which way."""

    docname: str
    line: int
    kind: str
    written: str


def wanted_by(docname, text):
    """Return what the text of a page names, in directives and roles; examples in code are none."""
    found, fences = [], []
    for number, line in enumerate(text.splitlines(), 1):
        match = FENCE.match(line)
        literal = any(mark[0] == "`" for mark in fences)
        if match and fences and match[2] is None and match[1].startswith(fences[-1]):
            fences.pop()
        elif match and not literal:
            fences.append(match[1])
            if match[2] in DIRECTIVES:
                found.append(Wanted(docname, number, DIRECTIVES[match[2]], match[3]))
        elif not literal:
            for expression in ROLE.findall(line):
                for part in expression.split(" / "):
                    name = part.partition("@")[0].strip()
                    found.append(Wanted(docname, number, "COMPILED", name))
    return found


def find_all(pages=PAGES, snippets=SNIPPETS):
    """Return the programs that pages name, by their files, and a list of problems."""
    library, programs, problems = Library(snippets), {}, []
    for path in sorted(pathlib.Path(pages).rglob("*.md")):
        relative = path.relative_to(pages)
        if any(part.startswith("_") for part in relative.parts):
            continue
        docname = relative.with_suffix("").as_posix()
        for wanted in wanted_by(docname, path.read_text("utf8")):
            try:
                program = find(library, wanted.written, wanted.kind, chapter(docname))
                programs[program.file] = program
            except (SnippetError, ProgramError) as error:
                problems.append(f"{path}:{wanted.line}: {error}")
    return programs, problems


def chapter(docname):
    """Return the chapter of a page, as snippets are named in it."""
    return docname.rpartition("/")[0].replace("/", ".")


# Records


def read(path):
    """Return the record in a file, checked; raises RecordError, or FileNotFoundError."""
    path = pathlib.Path(path)
    size = path.stat().st_size
    if size > MOST_BYTES:
        raise RecordError(f"it has {size} bytes, more than {MOST_BYTES}")
    try:
        text = path.read_text("utf8")
    except UnicodeDecodeError:
        raise RecordError("it is not UTF-8") from None
    for mark in ("<<<<<<< ", ">>>>>>> "):
        if text.startswith(mark) or "\n" + mark in text:
            line = text[: text.index(mark)].count("\n") + 1
            raise RecordError(f"line {line} is a mark of a merge conflict")
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RecordError(f"it is no JSON: {error}") from None
    _check(record, SCALE_FORM if path.name.endswith(".scale.json") else PROGRAM_FORM, "record")
    return record


def written(record):
    """Return the text of a record as it is kept, the same for the same record."""
    return json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _check(value, form, place):
    """Compare a value with a form: a type, a list of one form, a dict of forms, or a function."""
    if isinstance(form, dict):
        _expect(isinstance(value, dict), place, "an object")
        if str in form:
            for key, inner in value.items():
                _check(key, _line, f"a name in {place}")
                _check(inner, form[str], f"{place}.{key}")
            return
        missing = [key for key in form if key not in value]
        unknown = [key for key in value if key not in form]
        _expect(not missing, place, f"to have {', '.join(missing)}")
        _expect(not unknown, place, f"to have no {', '.join(unknown)}")
        for key, inner in form.items():
            _check(value[key], inner, f"{place}.{key}")
    elif isinstance(form, list):
        _expect(isinstance(value, list), place, "a list")
        _expect(len(value) <= MOST_LINES, place, f"at most {MOST_LINES} entries long")
        for number, inner in enumerate(value):
            _check(inner, form[0], f"{place}[{number}]")
    else:
        form(value, place)


def _expect(truth, place, what):
    if not truth:
        raise RecordError(f"{place} is expected {'' if what.startswith('to ') else 'to be '}{what}")


def _line(value, place):
    _expect(isinstance(value, str), place, "a text")
    _expect(len(value) <= LONGEST_LINE, place, f"at most {LONGEST_LINE} characters long")
    _expect(value.isprintable(), place, "printable")


def _text(value, place):
    _expect(isinstance(value, list) and value, place, "a list of lines")
    _expect(len(value) <= MOST_LINES, place, f"at most {MOST_LINES} lines long")
    for number, line in enumerate(value, 1):
        _line(line, f"line {number} of {place}")


def _number(value, place):
    good = isinstance(value, (int, float)) and not isinstance(value, bool)
    _expect(good and math.isfinite(value) and value >= 0, place, "a number, zero or more")


def _count(value, place):
    _expect(isinstance(value, int) and not isinstance(value, bool), place, "a whole number")
    _expect(value >= 0, place, "zero or more")


def _anything(value, place):
    pass


def _hash(value, place):
    good = isinstance(value, str) and re.fullmatch(r"[0-9a-f]{64}", value)
    _expect(good, place, "a SHA-256")


def _date(value, place):
    try:
        datetime.datetime.fromisoformat(value)
    except (TypeError, ValueError):
        _expect(False, place, "a date")


def _form(value, place):
    _expect(value == FORM, place, f"{FORM}")


def _or_none(form):
    def check(value, place):
        if value is not None:
            _check(value, form, place)

    return check


def _targets(form):
    def check(value, place):
        _expect(isinstance(value, dict), place, "an object")
        for target, inner in value.items():
            _expect(target in TARGETS, place, f"to name known devices, not {ascii(target)[:40]}")
            _check(inner, form, f"{place}.{target}")

    return check


def _target_names(value, place):
    _expect(isinstance(value, list) and value, place, "a list of devices")
    _expect(all(name in TARGETS for name in map(str, value)), place, "a list of known devices")


HEAD = {
    "form": _form,
    "function": _line,
    "source": _hash,
    "arguments": _anything,
    "command": _line,
    "date": _date,
    "versions": {str: _line},
}
COST = {"flops": _number, "transcendentals": _number, "bytes": _number}
MEMORY = {"arguments": _count, "results": _count, "temporaries": _count}
PROGRAM_FORM = HEAD | {
    "jaxpr": _text,
    "operations": {str: _count},
    "picture": {
        "nodes": [{"label": _line, "detail": _line, "kind": _line, "x": _number, "y": _number}],
        "edges": [{"from": _count, "to": _count, "through": [[_number]]}],
    },
    "stablehlo": [{"targets": _target_names, "text": _text}],
    "unoptimized": _or_none(COST),
    "targets": _targets(
        {
            "device": _line,
            "hlo": _text,
            "cost": _or_none(COST | {"estimate": _or_none(_number)}),
            "memory": MEMORY,
        }
    ),
}
SCALE_FORM = HEAD | {
    "parameters": _count,
    "runs": [
        {
            "case": _line,
            "target": _line,
            "device": _line,
            "chips": _count,
            "batch": _count,
            "collectives": [{"kind": _line, "count": _count, "bytes": _count}],
            "cost": _or_none(COST | {"estimate": _or_none(_number)}),
            "memory": MEMORY,
        }
    ],
}


# What a run on many devices comes to


def moved(run):
    """Return the bytes that all collectives of one step combine, on each device."""
    return sum(entry["bytes"] for entry in run["collectives"])


def sent(run):
    """Return the bytes that each device must send at least to all-reduce as much as `moved`."""
    return 2 * (run["chips"] - 1) / run["chips"] * moved(run)


def memory(run):
    """Return the bytes that one step needs on each device."""
    return sum(run["memory"].values())


# States


@dataclasses.dataclass(frozen=True)
class State:
    """Whether a record belongs to a program: current, stale, missing or unreadable, and why."""

    word: str
    why: str = ""

    def __str__(self):
        return f"{self.word}: {self.why}" if self.why else self.word


def state(folder, program):
    """Return (record or None, State) of a program."""
    path = pathlib.Path(folder, program.file)
    try:
        record = read(path)
    except FileNotFoundError:
        return None, State("missing")
    except (RecordError, OSError) as error:
        return None, State("unreadable", str(error))
    if record["function"] != program.name:
        return None, State("unreadable", f"it is of {record['function']}")
    if problem := inconsistency(record):
        return None, State("unreadable", problem)
    changed = []
    if record["source"] != program.key:
        changed.append("the source changed")
    if record["arguments"] != plain(program.arguments):
        changed.append("the arguments changed")
    if changed:
        return record, State("stale", " and ".join(changed))
    absent = [TARGETS[target] for target in absent_targets(record)]
    if absent:
        return record, State("missing", f"not compiled for {', '.join(absent)}")
    return record, State("current")


def inconsistency(record):
    """Say what of a record contradicts itself, or None."""
    if "picture" in record:
        count = len(record["picture"]["nodes"])
        for edge in record["picture"]["edges"]:
            if edge["from"] >= count or edge["to"] >= count:
                return "an edge of the picture leads nowhere"
            if any(len(point) != 2 for point in edge["through"]):
                return "an edge of the picture has a point without two numbers"
        texts = {name for part in record["stablehlo"] for name in part["targets"]}
        if texts != set(record["targets"]):
            return "it does not have StableHLO for each device"
    return None


def absent_targets(record):
    """Return the targets that a record should have and has not."""
    if "targets" in record:
        return [target for target in TARGETS if target not in record["targets"]]
    present = {(run["target"], run["chips"]) for run in record["runs"]}
    return [
        target
        for target, counts in CHIPS.items()
        if any((target, chips) not in present for chips in counts)
    ]


def plain(value):
    """Return plain data as JSON would give it back."""
    return json.loads(json.dumps(value))


def left_over(folder, programs):
    """Return the files of records that no page asks for."""
    folder = pathlib.Path(folder)
    return sorted(path for path in folder.glob("*.json") if path.name not in programs)


def main():
    """Print the state of every function and device; leave with 1 where a strict build fails."""
    programs, problems = find_all()
    red = bool(problems)
    for program in programs.values():
        record, found = state(RECORDS, program)
        red = red or found.word != "current"
        print(f"{program.title}: {found}")
        absent = absent_targets(record) if record else ()
        for target in TARGETS if program.kind == "COMPILED" else CHIPS:
            word = found.word if found.word == "stale" or not record else "current"
            print(f"  {target:<10} {'missing' if target in absent else word}")
    for path in left_over(RECORDS, programs):
        print(f"{path}: no page asks for it; remove it")
        red = True
    for problem in problems:
        print(problem, file=sys.stderr)
    if red:
        print(f"A strict build fails on what is not current. '{COMMAND}' compiles it.")
    sys.exit(1 if red else 0)


if __name__ == "__main__":
    main()
