"""What modules declare to be compiled. No framework is needed."""

import ast
import dataclasses
import json
from collections.abc import Iterable
from typing import Any

from executed.names import nearest
from executed.source.code import fingerprint
from executed.source.snippets import Definition, Library, Module

# In which a module declares programs for one device of each target, and for many.
CONSTANTS = ("COMPILED", "SCALED")


class ProgramError(Exception):
    """A page asks for a function in a way that cannot be; the message says why."""


@dataclasses.dataclass(frozen=True)
class Case:
    """Arguments of a step for many devices, options of the compiler, and for which targets.

    Without targets the step is compiled for all; without chips, for the numbers of each target.
    """

    arguments: list[Any]
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    targets: list[str] = dataclasses.field(default_factory=list)
    chips: list[int] = dataclasses.field(default_factory=list)

    def numbers(self, target: str, usual: Iterable[int]) -> list[int]:
        """Return for how many devices of a target the step is compiled."""
        wanted = not self.targets or target in self.targets
        return list(self.chips or usual) if wanted else []


@dataclasses.dataclass(frozen=True)
class Program:
    """A function with the abstract arguments that its module declares for it.

    `kind` is COMPILED, for one device of each target, or SCALED, for many. `arguments` is plain
    data: the list of arguments, or {case: list of arguments, or the fields of a Case} for SCALED.
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
    def cases(self) -> dict[str, Case]:
        """The cases of a step for many devices."""
        return {
            name: Case(**case) if isinstance(case, dict) else Case(case)
            for name, case in self.arguments.items()
        }

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
    arguments = declared(module, kind)
    if definition.name not in arguments:
        hint = nearest(definition.name, arguments)
        raise ProgramError(
            f"{kind} of {module.path} has no arguments for '{definition.name}'{hint}"
        )
    code = library.excerpt([definition]).code
    name = f"{definition.module}.{definition.name}"
    return Program(name, kind, definition, code, arguments[definition.name])


def declares(module: Module, kind: str) -> bool:
    """Say whether a module says what to compile: a constant of that name may be something else."""
    constant = module.definitions.get(kind)
    return constant is not None and isinstance(_value(constant), ast.Dict)


def declared(module: Module, kind: str) -> dict[str, Any]:
    """Return the plain data of COMPILED or SCALED; it may use other constants of the module."""

    class Inline(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> Any:
            return self.visit(_value(module.definitions[node.id]))

    of_one = list if kind == "COMPILED" else dict
    try:
        value = ast.literal_eval(Inline().visit(_value(module.definitions[kind])))
        plain: dict[str, Any] = json.loads(json.dumps(value))
        if all(isinstance(each, of_one) for each in plain.values()):
            cases = [case for each in plain.values() if kind == "SCALED" for case in each.values()]
            if all(isinstance(case, list) or "arguments" in case for case in cases):
                return plain
    except (ValueError, TypeError, SyntaxError, AttributeError, KeyError, RecursionError):
        pass
    example = '["float32[1024,1024]"]'
    example = example if kind == "COMPILED" else f'{{"the batch grows": {example}}}'
    raise ProgramError(
        f"{kind} of {module.path} must be a dict of plain data that maps the name of a "
        f'function to its arguments, such as {{"softmax": {example}}}'
    )


def _value(definition: Definition) -> Any:
    return ast.parse(definition.source).body[0].value  # type: ignore[attr-defined]
