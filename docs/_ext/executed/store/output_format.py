"""The one form of what a page printed on one device, whether cached here or recorded.

It is a notebook as it was executed: the code that ran, its outputs, and among its metadata the
facts of the run. Cells are named by the hashes of their code.
"""

import dataclasses
import enum
import pathlib

import nbformat
from nbformat import NotebookNode

from .. import files, typed_json
from .states import CellStanding

FORM = 3
KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}
LANGUAGE = {"name": "python"}


class Process(enum.StrEnum):
    """Where a kernel came from: started for one page alone, or forked from a warm parent."""

    OWN = "own"
    FORKED = "forked"


@dataclasses.dataclass(frozen=True)
class RunMetadata:
    """On what a page was executed.

    `executed` is a date with its time in ISO format, `seconds` how long it took.
    `cores` is how many cores the page kept busy on average, with all processes that it started,
    and `started` the part of this work that was theirs. `driver` and `memory` are of an
    accelerator.
    """

    page: str
    device: str
    device_kind: str
    executed: str
    seconds: float
    processor: str
    threads: int
    versions: dict[str, str]
    process: Process = Process.OWN
    cores: float = 1.0
    started: float = 0.0
    driver: str = ""
    memory: str = ""

    @property
    def day(self) -> str:
        """The date without its time."""
        return self.executed[:10]


@dataclasses.dataclass(frozen=True)
class CellOutputs:
    """What one cell printed, by the key of its code.

    `source` is the code that ran. `missing` names the framework without which it could not be
    executed. `standing` says how the code stands to that of the page today, as `matching` finds.
    `kind_stands` says whether the code that decides its outputs of a kind of their own is the same.
    `lent` is there where a recording has lent outputs to a cell of this build: how it stands.
    """

    key: str
    outputs: tuple[NotebookNode, ...] = ()
    missing: str = ""
    source: str = ""
    standing: CellStanding = CellStanding.SAME
    kind_stands: bool = True
    lent: CellStanding | None = None

    @property
    def lacking(self) -> bool:
        """Whether there is nothing of it, for want of a framework."""
        return bool(self.missing) and self.lent is None


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
    facts = {**typed_json.untyped(outputs.facts), "form": FORM, "command": command}
    recording = {key: value for key, value in facts.items() if value != ""}
    metadata = {"kernelspec": KERNEL, "language_info": LANGUAGE, "recording": recording}
    notebook = nbformat.v4.new_notebook(metadata=metadata)
    notebook.nbformat_minor = 5
    for cell in outputs.cells:
        # nbformat.v4.new_code_cell would check each by itself; all are checked when written.
        code_cell = NotebookNode(
            cell_type="code",
            execution_count=None,
            id=cell.key,
            metadata=NotebookNode(),
            outputs=list(cell.outputs),
            source=cell.source,
        )
        if cell.missing:
            code_cell.metadata["missing"] = cell.missing
        notebook.cells.append(code_cell)
    return str(nbformat.writes(notebook)) + "\n"


def load(path: pathlib.Path, page: str, device: str) -> PageOutputs:
    """Return the outputs of a page on a device; raises FileNotFoundError, and Unusable."""
    text = files.read(path)
    try:
        wrong: dict[str, Exception] = {}
        notebook = nbformat.reads(text, as_version=4, capture_validation_error=wrong)
        if wrong:
            raise wrong["ValidationError"]
        recording = dict(notebook.metadata["recording"])
    except Exception as error:
        # A merge may have left anything here, and nbformat raises what it likes.
        first = str(error).strip().splitlines() or [""]
        problem = f"it is no recording ({type(error).__name__}: {first[0][:300]})"
        raise files.Unusable(problem) from None
    if (form := recording.pop("form", 1)) != FORM:
        raise files.Unusable(f"it has the form {form}, and this book reads {FORM}")
    recording.pop("command", "")
    try:
        facts: RunMetadata = typed_json.typed(RunMetadata, recording)
    except typed_json.Mismatch as error:
        raise files.Unusable(f"its facts are wrong: recording{error}") from None
    for name, expected in (("page", page), ("device", device)):
        if recording[name] != expected:
            raise files.Unusable(f"it is a recording of the {name} {recording[name]}")
    cells = []
    for number, cell in enumerate(notebook.cells, 1):
        if cell.cell_type != "code" or "id" not in cell:
            raise files.Unusable(f"its cell {number} is no code that was executed")
        missing = str(cell.metadata.get("missing", ""))
        cells.append(CellOutputs(cell.id, tuple(cell.outputs), missing, cell.source))
    return PageOutputs(facts, tuple(cells))
