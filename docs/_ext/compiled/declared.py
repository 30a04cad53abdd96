"""What modules declare to be compiled, and which of it pages name. No framework is needed."""

import ast
import dataclasses
import json
import re
from collections.abc import Iterator
from typing import Any

from executed.names import nearest
from executed.options import Options
from executed.source.snippets import Definition, Excerpt, Library, Module, SnippetError
from executed.source.syntax import fingerprint, joined

KINDS = {"compiled": "COMPILED", "compiled-scale": "SCALED"}
# Code within a line comes first: what it shows of a directive or a role is an example.
NAMED = re.compile(
    r"(?<!`)(?P<ticks>``+)(?!`).*?(?<!`)(?P=ticks)(?!`)|"
    r"^ *[`:]{3}\{(?P<directive>compiled|compiled-scale)\} *(?P<argument>\S+)|"
    r"\{compiled\}`(?P<role>[^@`]+)",
    re.MULTILINE,
)


class ProgramError(Exception):
    """A page asks for a function in a way that cannot be; the message says why."""


@dataclasses.dataclass(frozen=True)
class Program:
    """A function with the abstract arguments that its module declares for it.

    `kind` is COMPILED, for one device of each target, or SCALED, for many. `arguments` is plain
    data: the list of arguments, or {case: list of arguments} for SCALED.
    """

    name: str
    kind: str
    definition: Definition
    code: str
    arguments: Any

    @property
    def key(self) -> str:
        """A digest of the syntax of the self-contained code."""
        return fingerprint(self.code)

    @property
    def title(self) -> str:
        """What messages call it."""
        return self.name + (" at scale" if self.kind == "SCALED" else "")

    @property
    def file(self) -> str:
        """The name of the record's file."""
        return self.name + (".scale.json" if self.kind == "SCALED" else ".json")


def find(library: Library, written: str, kind: str, chapter: str = "") -> Program:
    """Return the Program that a page calls `written`; raises SnippetError or ProgramError."""
    definition = library.find(written, chapter)
    module = library.module(definition.module)
    assert module is not None
    if not isinstance(ast.parse(definition.source).body[0], ast.FunctionDef):
        raise ProgramError(f"'{definition.name}' of {module.path} is no function")
    if kind not in module.definitions:
        raise ProgramError(
            f"{module.path} declares no {kind}, so that nobody knows for which shapes "
            f"'{definition.name}' is to be compiled"
        )
    declared = _declared(module, kind)
    if definition.name not in declared:
        hint = nearest(definition.name, declared)
        raise ProgramError(
            f"{kind} of {module.path} has no arguments for '{definition.name}'{hint}"
        )
    code = _code(library.excerpt([definition]))
    name = f"{definition.module}.{definition.name}"
    return Program(name, kind, definition, code, declared[definition.name])


def _declared(module: Module, kind: str) -> dict[str, Any]:
    """Return the plain data of COMPILED or SCALED; it may use other constants of the module."""

    class Inline(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> Any:
            return self.visit(_value(module.definitions[node.id]))

    try:
        found = ast.literal_eval(Inline().visit(_value(module.definitions[kind])))
        declared: dict[str, Any] = json.loads(json.dumps(found))
        of_one = list if kind == "COMPILED" else dict
        good = isinstance(declared, dict) and all(isinstance(v, of_one) for v in declared.values())
    except (ValueError, TypeError, SyntaxError, AttributeError, KeyError, RecursionError):
        good = False
    if not good:
        example = '["float32[1024,1024]"]'
        example = example if kind == "COMPILED" else f'{{"the batch grows": {example}}}'
        raise ProgramError(
            f"{kind} of {module.path} must be a dict of plain data that maps the name of a "
            f'function to its arguments, such as {{"softmax": {example}}}'
        )
    return declared


def _value(definition: Definition) -> Any:
    return ast.parse(definition.source).body[0].value  # type: ignore[attr-defined]


def _code(excerpt: Excerpt) -> str:
    """Return self-contained code."""
    lines = "\n".join(dict.fromkeys(imported.lines for imported in excerpt.imports))
    return joined([lines, *(definition.source for definition in excerpt.definitions)])


def wanted_by(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield (line, kind, name) of the functions that directives and roles of a page name."""
    for found in NAMED.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        if found["directive"]:
            yield line, KINDS[found["directive"]], found["argument"]
        elif found["role"]:
            yield line, "COMPILED", found["role"].strip()


def find_all(options: Options) -> tuple[dict[str, Program], list[str]]:
    """Return the programs that pages name, by their files, and a list of problems."""
    library = Library.of(options)
    programs, problems = {}, []
    for docname, path in options.page_files.items():
        # What is no text names no function, and the build says so.
        for line, kind, name in wanted_by(path.read_text("utf8", "replace")):
            try:
                program = find(library, name, kind, chapter(docname))
                programs[program.file] = program
            except (SnippetError, ProgramError) as error:
                problems.append(f"{path}:{line}: {error}")
    return programs, problems


def chapter(docname: str) -> str:
    """Return the chapter of a page, as snippets are named in it."""
    return docname.rpartition("/")[0].replace("/", ".")
