"""The one form of what a page printed on one device, whether cached here or recorded.

It is a notebook as it was executed: the code that ran, its outputs, and among its metadata the
facts of the run. Cells are named by the hashes of their code.
"""

import dataclasses
import json
from typing import Annotated

import nbformat
from nbformat import NotebookNode

from .. import typed_json
from ..files import Unusable
from ..typed_json import bounds

FORM = 3
KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}
LANGUAGE = {"name": "python"}
Said = Annotated[str, bounds(maxLength=300, format="printable line")]
Named = Annotated[str, bounds(minLength=1, maxLength=300, format="printable line")]


@dataclasses.dataclass(frozen=True)
class RunMetadata:
    """On what a page was executed.

    `executed` is a date with its time in ISO format, `seconds` how long it took. `process` is
    "forked" where the kernel was forked from a warm parent, "own" where it was started for this
    page alone.
    `cores` is how many cores the page kept busy on average, with all processes that it started,
    and `started` the part of this work that was theirs. `driver` and `memory` are of an
    accelerator.
    """

    page: Named
    device: Annotated[str, bounds(maxLength=300, pattern="^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    device_kind: Named
    executed: Annotated[str, bounds(maxLength=300, format="moment")]
    seconds: Annotated[float, bounds(minimum=0, maximum=1e9, format="finite")]
    processor: Said
    threads: Annotated[int, bounds(minimum=0, maximum=1_000_000)]
    versions: Annotated[dict[Said, Said], bounds(maxProperties=100)]
    process: Annotated[str, bounds(enum=("own", "forked"))] = "own"
    cores: Annotated[float, bounds(minimum=0, maximum=1_000_000, format="finite")] = 1.0
    started: Annotated[float, bounds(minimum=0, maximum=1, format="finite")] = 0.0
    driver: Said = ""
    memory: Said = ""

    @property
    def day(self) -> str:
        """The date without its time."""
        return self.executed[:10]


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Head(RunMetadata):
    """What a file says besides: its form, and the command that made it."""

    form: Annotated[int, bounds(const=FORM)]
    command: Said = ""


HEAD = typed_json.validator(typed_json.schema_of(_Head))


@dataclasses.dataclass(frozen=True)
class CellOutputs:
    """What one cell printed, by the key of its code.

    `source` is the code that ran. `missing` names the framework without which it could not be
    executed. `standing` says how the code stands to that of the page today; see `matching`.
    """

    key: str
    outputs: tuple[NotebookNode, ...] = ()
    missing: str = ""
    source: str = ""
    standing: str = ""


@dataclasses.dataclass(frozen=True)
class PageOutputs:
    """What all cells of a page printed, in order."""

    facts: RunMetadata
    cells: tuple[CellOutputs, ...]

    def cell(self, key: str) -> CellOutputs | None:
        """Return the outputs of the cell whose code has this key."""
        return next((cell for cell in self.cells if cell.key == key), None)


def write(outputs: PageOutputs, command: str = "") -> str:
    """Return the text in which outputs are kept, the same for the same outputs."""
    head = _Head(**vars(outputs.facts), form=FORM, command=command)
    said = {key: value for key, value in typed_json.untyped(head).items() if value != ""}
    metadata = {"kernelspec": KERNEL, "language_info": LANGUAGE, "recording": said}
    notebook = nbformat.v4.new_notebook(metadata=metadata)
    notebook.nbformat_minor = 5
    for cell in outputs.cells:
        # nbformat.v4.new_code_cell would check each by itself; all are checked when written.
        kept = NotebookNode(
            cell_type="code",
            execution_count=None,
            id=cell.key,
            metadata=NotebookNode(),
            outputs=list(cell.outputs),
            source=cell.source,
        )
        if cell.missing:
            kept.metadata["missing"] = cell.missing
        notebook.cells.append(kept)
    return str(nbformat.writes(notebook)) + "\n"


def read(text: str, page: str, device: str) -> PageOutputs:
    """Return the outputs of a page on a device; raises Unusable for what is none of them."""
    if any(line.startswith(("<<<<<<< ", ">>>>>>> ")) for line in text.splitlines()):
        raise Unusable("it has the marks of a merge conflict")
    try:
        wrong: dict[str, Exception] = {}
        notebook = nbformat.reads(text, as_version=4, capture_validation_error=wrong)
        if wrong:
            raise wrong["ValidationError"]
        json.dumps(notebook, ensure_ascii=False).encode("utf8")
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
    if false := next(HEAD.iter_errors(facts), None):
        place = ".".join(map(str, false.absolute_path))
        raise Unusable(f"its facts are wrong: {place} {false.message[:200]}".replace("  ", " "))
    for name, expected in (("page", page), ("device", device)):
        if facts[name] != expected:
            raise Unusable(f"it is a recording of the {name} {facts[name]}")
    cells = []
    for number, cell in enumerate(notebook.cells, 1):
        missing = cell.get("metadata", {}).get("missing", "")
        if cell.cell_type != "code" or "id" not in cell:
            raise Unusable(f"its cell {number} is no code that was executed")
        if not (isinstance(missing, str) and len(missing) <= 300 and missing.isprintable()):
            raise Unusable(f"its cell {number} says nothing understandable about itself")
        cells.append(CellOutputs(cell.id, tuple(cell.outputs), missing, cell.source))
    head = typed_json.typed(_Head, facts)
    kept = {field.name: getattr(head, field.name) for field in dataclasses.fields(RunMetadata)}
    return PageOutputs(RunMetadata(**kept), tuple(cells))
