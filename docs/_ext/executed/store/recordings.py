"""Recordings: what pages printed on one device, kept for those who do not have it."""

import contextlib
import dataclasses
import json
import math
import os
import pathlib

from .. import files
from ..source.code import fingerprint
from ..source.pages import Page
from . import matching, output_format, sanitising
from .output_format import PageOutputs
from .output_kinds import OutputKind
from .sanitising import Refused
from .states import Standing, State

# Facts of a run that differ each time, and mean nothing to who reads what it printed.
OF_ONE_RUN = ("executed", "seconds", "cores", "started", "process")


@dataclasses.dataclass(frozen=True)
class Effort:
    """What a page took: a hint for the order of pages, nothing more.

    `work` is in seconds of one core. On a busy machine a page takes longer, but does no more.
    `started` is the part of it that was done by processes that the page started. `cores` is how
    many cores it kept busy; below one it waited for the rest of its time.
    """

    work: float = math.inf
    started: float = 0.0
    cores: float = 1.0


class Recordings:
    """The recordings of a book: a folder for each device, with a file for each page."""

    def __init__(self, root: str | os.PathLike[str], kinds: tuple[OutputKind, ...] = ()) -> None:
        """Take their folder, and the kinds of outputs that there are besides the usual ones."""
        self.root = pathlib.Path(root)
        self.kinds = kinds

    def path(self, device: str, docname: str) -> pathlib.Path:
        """Return the file in which a page's recording on a device is kept."""
        return self.root / device / f"{docname}.ipynb"

    def write(self, outputs: PageOutputs, command: str) -> pathlib.Path | None:
        """Record the outputs of a page. The former recording is replaced at once, or not at all.

        Return the file, or None where it stays as it is, for it holds the same. Raises Refused
        for outputs that would not be accepted elsewhere, and OSError.
        """
        facts = dataclasses.replace(outputs.facts, seconds=round(outputs.facts.seconds, 2))
        cells = tuple(
            dataclasses.replace(
                cell, outputs=tuple(sanitising.recordable(cell.outputs, self.kinds))
            )
            for cell in outputs.cells
        )
        recorded = dataclasses.replace(outputs, facts=facts, cells=cells)
        text = output_format.write(recorded, f"{command} {facts.page}")
        path = self.path(facts.device, facts.page)
        try:
            former = self.read(facts.device, facts.page)
        except files.Unusable:
            former = None
        if former is not None and _content(former) == _content(recorded):
            return None
        files.write(path, text)
        return path

    def read(self, device: str, docname: str) -> PageOutputs | None:
        """Return a page's recording, or None where there is none; raises files.Unusable."""
        try:
            outputs = output_format.load(self.path(device, docname), docname, device)
        except FileNotFoundError:
            return None
        cells = []
        for number, cell in enumerate(outputs.cells, 1):
            try:
                accepted = [sanitising.accepted(output, self.kinds) for output in cell.outputs]
            except Refused as error:
                raise files.Unusable(f"its cell {number} {error}") from None
            cells.append(dataclasses.replace(cell, outputs=tuple(accepted)))
        return dataclasses.replace(outputs, cells=tuple(cells))

    def effort(self, device: str, docname: str) -> Effort:
        """Return what a page took when it was recorded, as far as that is known."""
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            facts = json.loads(self.path(device, docname).read_text("utf8"))["metadata"][
                "recording"
            ]
            cores = float(facts["cores"])
            return Effort(float(facts["seconds"] * cores), float(facts["started"]), cores)
        return Effort()

    def has_code_of(self, device: str, page: Page) -> bool:
        """Say whether what was recorded of a page is of its code today; of its facts nothing."""
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            cells = json.loads(self.path(device, page.docname).read_text("utf8"))["cells"]
            then = [fingerprint("".join(cell["source"])) for cell in cells]
            return then == [fingerprint(cell.source) for cell in page.cells]
        return False

    def devices(self) -> list[str]:
        """Return the names of the devices that have recordings."""
        if not self.root.is_dir():
            return []
        folders = (path for path in self.root.iterdir() if path.is_dir())
        return sorted(path.name for path in folders if any(path.rglob("*.ipynb")))

    def pages(self, device: str) -> list[str]:
        """Return the names of the pages that have a recording on a device."""
        folder = self.root / device
        return sorted(
            path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.ipynb")
        )

    def state(
        self, device: str, docname: str, page: Page | None
    ) -> tuple[State, PageOutputs | None]:
        """Return how a page's recording on a device stands, and its content where it can be read.

        The content is that of today's cells. `page` is None where the page has no code, or is
        gone.
        """
        try:
            outputs = self.read(device, docname)
        except files.Unusable as error:
            return State(Standing.UNREADABLE, (str(error),)), None
        if outputs is None:
            return State(Standing.MISSING), None
        if page is None:
            return State(Standing.LEFT_OVER, ("the page is gone, or has no code any more",)), None
        if page.device not in (None, device):
            return State(Standing.LEFT_OVER, (f"the page is executed on {page.device} only",)), None
        outputs = matching.align(outputs, page, self.kinds)
        reasons = matching.changes(outputs, page)
        return State(Standing.EARLIER if reasons else Standing.CURRENT, reasons), outputs


def _content(outputs: PageOutputs) -> object:
    """Return what two recordings have in common that need not replace each other."""
    facts = {name: value for name, value in vars(outputs.facts).items() if name not in OF_ONE_RUN}
    cells = [(cell.missing, cell.outputs, fingerprint(cell.source)) for cell in outputs.cells]
    return facts, cells
