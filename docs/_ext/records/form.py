"""The one form of what a page printed on one device, whether cached here or recorded.

It is a notebook without code, whose cells are named by the hashes of their code.
"""

import dataclasses
import datetime
import math
from collections.abc import Mapping
from typing import Any

import nbformat
from jsonschema import Draft202012Validator, FormatChecker
from nbformat import NotebookNode

from ..files import Unusable

FORM = 2
LONGEST = {"type": "string", "maxLength": 300}
NAMED = {"type": "string", "minLength": 1, "maxLength": 300}
SHA256 = {"type": "string", "pattern": "^[0-9a-f]*$", "maxLength": 64}
FORMATS = FormatChecker(formats=())


@FORMATS.checks("moment", raises=ValueError)
def _is_moment(value: object) -> bool:
    return isinstance(value, str) and bool(datetime.datetime.fromisoformat(value))


@FORMATS.checks("finite")
def _is_finite(value: object) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)


SCHEMA = Draft202012Validator(
    {
        "type": "object",
        "properties": {
            "form": {"const": FORM},
            "page": NAMED,
            "device": NAMED | {"pattern": "^[A-Za-z0-9][A-Za-z0-9._-]*$"},
            "device_kind": NAMED,
            "executed": NAMED | {"format": "moment"},
            "seconds": {"type": "number", "minimum": 0, "maximum": 1e9, "format": "finite"},
            "processor": LONGEST,
            "threads": {"type": "integer", "minimum": 0, "maximum": 1_000_000},
            "versions": {"type": "object", "additionalProperties": LONGEST, "maxProperties": 100},
            "process": {"enum": ["own", "forked"]},
            "driver": LONGEST,
            "memory": LONGEST,
            "command": LONGEST,
            "modules": {"type": "object", "additionalProperties": SHA256, "maxProperties": 1000},
        },
        "additionalProperties": False,
        "required": "form page device device_kind executed seconds processor threads versions "
        "process modules".split(),
    },
    format_checker=FORMATS,
)


@dataclasses.dataclass(frozen=True)
class Facts:
    """On what a page was executed.

    `executed` is a date in ISO format, `seconds` how long it took. `process` is "forked" where
    the kernel was forked from a warm parent, "own" where it was started for this page alone.
    `driver` and `memory` are of an accelerator.
    """

    page: str
    device: str
    device_kind: str
    executed: str
    seconds: float
    processor: str
    threads: int
    versions: Mapping[str, str]
    process: str = "own"
    driver: str = ""
    memory: str = ""


@dataclasses.dataclass(frozen=True)
class CellOutputs:
    """What one cell printed, by the key of its code.

    `missing` names the framework without which it could not be executed. `whole` names the
    file that holds all of an output that was too long for a page.
    """

    key: str
    outputs: tuple[NotebookNode, ...] = ()
    missing: str = ""
    whole: str = ""


@dataclasses.dataclass(frozen=True)
class PageOutputs:
    """What all cells of a page printed, in order; `modules` are digests of snippet modules."""

    facts: Facts
    cells: tuple[CellOutputs, ...]
    modules: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def cell(self, key: str) -> CellOutputs | None:
        """Return the outputs of the cell whose code has this key."""
        return next((cell for cell in self.cells if cell.key == key), None)


def write(outputs: PageOutputs, command: str = "") -> str:
    """Return the text in which outputs are kept, the same for the same outputs."""
    facts: dict[str, Any] = {
        key: value for key, value in dataclasses.asdict(outputs.facts).items() if value != ""
    }
    facts |= {"form": FORM, "modules": dict(outputs.modules)}
    if command:
        facts["command"] = command
    notebook = nbformat.v4.new_notebook(metadata={"recording": facts})
    notebook.nbformat_minor = 5
    for cell in outputs.cells:
        kept = nbformat.v4.new_code_cell("", id=cell.key, outputs=list(cell.outputs))
        for name in ("missing", "whole"):
            if getattr(cell, name):
                kept.metadata[name] = getattr(cell, name)
        notebook.cells.append(kept)
    return nbformat.writes(notebook) + "\n"


def read(text: str, page: str, device: str) -> PageOutputs:
    """Return the outputs of a page on a device; raises Unusable for what is none of them."""
    if any(line.startswith(("<<<<<<< ", ">>>>>>> ")) for line in text.splitlines()):
        raise Unusable("it has the marks of a merge conflict")
    try:
        notebook = nbformat.reads(text, as_version=4)
        nbformat.validate(notebook)
        nbformat.writes(notebook).encode("utf8")
        facts = dict(notebook.metadata["recording"])
    except Exception as error:
        # Any content must end here: the file may be from elsewhere, and nbformat raises what
        # it likes.
        first = str(error).strip().splitlines() or [""]
        problem = f"it is no recording ({type(error).__name__}: {first[0][:300]})"
        raise Unusable(problem) from None
    if facts.get("form") != FORM:
        raise Unusable(
            f"it has the form {str(facts.get('form', 1))[:9]}, and this book reads {FORM}"
        )
    if wrong := next(SCHEMA.iter_errors(facts), None):
        place = ".".join(map(str, wrong.absolute_path))
        raise Unusable(f"its facts are wrong: {place} {wrong.message[:200]}".replace("  ", " "))
    for name, expected in (("page", page), ("device", device)):
        if facts[name] != expected:
            raise Unusable(f"it is a recording of the {name} {facts[name]}")
    cells = []
    for number, cell in enumerate(notebook.cells, 1):
        said = [cell.get("metadata", {}).get(name, "") for name in ("missing", "whole")]
        if cell.cell_type != "code" or cell.source or "id" not in cell:
            raise Unusable(f"its cell {number} is not an output without code")
        if not all(isinstance(text, str) and len(text) <= 300 for text in said):
            raise Unusable(f"its cell {number} says nothing understandable about itself")
        cells.append(CellOutputs(cell.id, tuple(cell.outputs), *said))
    modules = facts.pop("modules")
    known = {field.name for field in dataclasses.fields(Facts)}
    kept = {key: value for key, value in facts.items() if key in known}
    return PageOutputs(Facts(**kept), tuple(cells), modules)
