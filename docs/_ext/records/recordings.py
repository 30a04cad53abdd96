"""Recordings: what pages printed on one device, kept for those who do not have it.

They may come from anybody's machine. So what is written is cleaned, what is read is
checked, and a file that cannot be read says why without harming anything else.
"""

import dataclasses
import fnmatch
import os
import pathlib
from collections.abc import Sequence

from .. import files
from ..measurements.schema import Schema
from ..options import Options
from ..source.pages import Page
from . import form, sanitising
from .form import PageOutputs
from .markup import Refused
from .states import State

LARGEST = 4_000_000


class Recordings:
    """The recordings of a book: a folder for each device, with a file for each page."""

    def __init__(
        self,
        root: str | os.PathLike[str],
        schema: Schema | None = None,
        made_on: str = "",
        without: Sequence[str] = (),
    ) -> None:
        """Take their folder, and for those of versions the device that all are `made_on`.

        `without` are patterns of the pages that need more than a version.
        """
        self.root = pathlib.Path(root)
        self.schema, self.made_on, self.without = schema, made_on, without

    @classmethod
    def of_versions(cls, options: Options, schema: Schema | None = None) -> "Recordings | None":
        """Return the recordings of versions, all of them made on a CPU; None without any."""
        known = dict(options.versions)
        if not known:
            return None
        folder = options.root / known["recordings"]
        return cls(folder, schema, made_on="cpu", without=known.get("without", ()))

    def path(self, device: str, docname: str) -> pathlib.Path:
        """Return the file in which a page's recording on a device is kept."""
        return self.root / device / f"{docname}.ipynb"

    def write(self, outputs: PageOutputs, command: str) -> pathlib.Path:
        """Record the outputs of a page. The former recording is replaced at once, or not at all.

        Raises Refused for outputs that would not be accepted elsewhere, and OSError.
        """
        facts = dataclasses.replace(outputs.facts, seconds=round(outputs.facts.seconds, 2))
        cells = tuple(
            dataclasses.replace(
                cell, outputs=tuple(sanitising.recordable(cell.outputs, self.schema)), whole=""
            )
            for cell in outputs.cells
        )
        recorded = dataclasses.replace(outputs, facts=facts, cells=cells)
        text = form.write(recorded, f"{command} {facts.page}")
        if len(text.encode()) > LARGEST:
            raise Refused(f"the recording would be larger than {LARGEST} bytes")
        self._accepted(text, facts.device, facts.page)
        path = self.path(facts.device, facts.page)
        files.write(path, text)
        return path

    def read(self, device: str, docname: str) -> PageOutputs | None:
        """Return a page's recording, or None where there is none; raises files.Unusable."""
        path = self.path(device, docname)
        try:
            if any(part.is_symlink() for part in path.parents if self.root in part.parents):
                raise files.Unusable("it lies behind a link to another folder")
            text = files.read(path, LARGEST)
        except FileNotFoundError:
            return None
        return self._accepted(text, device, docname)

    def _accepted(self, text: str, device: str, docname: str) -> PageOutputs:
        outputs = form.read(text, docname, device)
        cells = []
        for number, cell in enumerate(outputs.cells, 1):
            try:
                accepted = tuple(
                    sanitising.accepted(output, self.schema) for output in cell.outputs
                )
            except Refused as error:
                raise files.Unusable(f"its cell {number} {error}") from None
            cells.append(dataclasses.replace(cell, outputs=accepted, whole=""))
        return dataclasses.replace(outputs, cells=tuple(cells))

    def devices(self) -> list[str]:
        """Return the names of the devices of which there are recordings."""
        if not self.root.is_dir():
            return []
        folders = (path for path in self.root.iterdir() if path.is_dir())
        return sorted(path.name for path in folders if any(path.rglob("*.ipynb")))

    def pages(self, device: str) -> list[str]:
        """Return the names of the pages of which a device has a file."""
        folder = self.root / device
        return sorted(
            path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.ipynb")
        )

    def refusal(self, page: Page, device: str, unasked: bool = False) -> str:
        """Say why a page has no recording on a device or version; nothing where it has one.

        A page with a command of its own has none on versions, and on a device none `unasked`.
        """
        if page.device not in (None, self.made_on or device):
            return f"is executed on {page.device} only"
        if page.recorded and (self.made_on or unasked):
            return f"is recorded by '{page.recorded} {page.docname}'"
        if any(fnmatch.fnmatchcase(page.docname, pattern) for pattern in self.without):
            return f"needs more than {device}"
        return ""

    def state(
        self, device: str, docname: str, page: Page | None
    ) -> tuple[State, PageOutputs | None]:
        """Return how a page's recording on a device stands, and its content where it can be read.

        `page` is None where the page has no code, or is gone.
        """
        try:
            outputs = self.read(device, docname)
        except files.Unusable as error:
            return State("unreadable", (str(error),)), None
        if outputs is None:
            return State("missing"), None
        if page is None:
            return State("stale", ("the page is gone, or has no code any more",)), None
        if refusal := self.refusal(page, device):
            return State("stale", (f"the page {refusal}",)), None
        reasons = changes(outputs, page)
        return State("stale" if reasons else "current", reasons), outputs


def changes(outputs: PageOutputs, page: Page) -> tuple[str, ...]:
    """Say what has changed in a page since it was executed, as texts; none where nothing has."""
    keys, recorded = [cell.key for cell in page.cells], [cell.key for cell in outputs.cells]
    if recorded == keys:
        return ()
    new = [n for n, key in enumerate(keys, 1) if key not in recorded]
    gone = [key for key in recorded if key not in keys]
    found = []
    if new:
        found.append(f"new or edited: cell {', '.join(map(str, new))}")
    if gone:
        found.append(f"{len(gone)} recorded cell{'s are' if len(gone) > 1 else ' is'} gone")
    known = page.modules
    changed = [name for name, key in outputs.modules.items() if known.get(name) not in (key, None)]
    if changed and found:
        found.append("changed since: " + ", ".join(f"snippets {name}" for name in changed))
    return tuple(found) or ("the cells have changed places",)
