"""What pages come to with other versions of a package: a file for each version.

Kept are the errors that cells declare, and what those cells print that show how versions differ.
A text belongs to its cell as long as the code of the cell and of all cells before it is the same;
without that nothing is shown of it until it is recorded again.
"""

import dataclasses
import fnmatch
import pathlib
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Annotated

from executed import files, typed_json
from executed.options import Options
from executed.source.pages import Cell, Page
from executed.store import matching, outputs
from executed.store.output_format import CellOutputs
from executed.typed_json import Rule

from .options import ErrorOptions

FORM = 1
# Asks that a cell shows what other versions print.
OPTION = "by-version"


@dataclasses.dataclass(frozen=True)
class Text:
    """What a cell came to: the type and message of an error, and all that it printed.

    `code` is the lineage of the cell. `missing` says without what it could not be executed.
    """

    code: str
    type: str = ""
    message: str = ""
    printed: str = ""
    missing: str = ""


@dataclasses.dataclass(frozen=True)
class _File:
    form: Annotated[int, Rule(lambda value: value == FORM, str(FORM))]
    command: str
    versions: dict[str, str]
    pages: dict[str, list[Text]]


def recorded_cells(page: Page) -> dict[str, Cell]:
    """Return the cells of a page whose texts are kept, by their lineages."""
    codes = matching.lineages([cell.source for cell in page.cells])
    return {
        code: cell
        for code, cell in zip(codes, page.cells, strict=True)
        if cell.expected is not None or cell.node.metadata.get(OPTION)
    }


def recorded_pages(pages: Iterable[Page], options: Options) -> list[Page]:
    """Return the pages with kept texts, each up to the last cell that has one."""
    without = options.of(ErrorOptions).versions.without
    shortened = []
    for page in pages:
        keys = {cell.key for cell in recorded_cells(page).values()}
        last = max((n for n, cell in enumerate(page.cells) if cell.key in keys), default=None)
        named = any(fnmatch.fnmatchcase(page.docname, pattern) for pattern in without)
        if (
            last is not None
            and page.device in (None, "cpu")
            and not page.record_command
            and not named
        ):
            shortened.append(dataclasses.replace(page, cells=page.cells[: last + 1]))
    return shortened


def text_of(code: str, cell: Cell, cell_outputs: CellOutputs) -> Text:
    """Return what is kept of a cell that was executed with a version."""
    if cell_outputs.missing:
        return Text(code, missing=cell_outputs.missing)
    error = outputs.error(cell_outputs.outputs)
    return Text(
        code,
        error.ename if error else "",
        error.evalue if error else "",
        printed=outputs.printed(cell_outputs.outputs) if cell.node.metadata.get(OPTION) else "",
    )


class Versions:
    """The texts of all versions of a book."""

    def __init__(self, options: Options) -> None:
        """Take the book's options."""
        spec = options.of(ErrorOptions).versions
        self.names = [f"{spec.package}-{version}" for version in spec.recorded]
        self.root = options.root / spec.recordings
        self.command = spec.command
        self._read: dict[str, _File] = {}

    def path(self, name: str) -> pathlib.Path:
        """Return the file of a version, such as `jax-0.9.2`."""
        return self.root / f"{name}.json"

    def _file(self, name: str) -> _File:
        """Return what a file holds; raises files.Unusable."""
        if name not in self._read:
            try:
                self._read[name] = typed_json.parse(_File, files.read(self.path(name)))
            except FileNotFoundError:
                self._read[name] = _File(FORM, "", {}, {})
        return self._read[name]

    def texts(self, page: Page) -> dict[str, dict[str, Text]]:
        """Return {version: {key of a cell: text}} of a page, as far as its code is the same."""
        cells = recorded_cells(page)
        by_version = {}
        for name in self.names if cells else ():
            try:
                texts = self._file(name).pages.get(page.docname, [])
            except files.Unusable:
                continue
            if by_cell := {cells[text.code].key: text for text in texts if text.code in cells}:
                by_version[name] = by_cell
        return by_version

    def count_missing(self, name: str, page: Page) -> int:
        """Return how many texts of a page a version does not have; raises files.Unusable."""
        codes = {text.code for text in self._file(name).pages.get(page.docname, [])}
        return len(recorded_cells(page).keys() - codes)

    def pages(self, name: str) -> set[str]:
        """Return the pages for which a version has texts; raises files.Unusable."""
        return set(self._file(name).pages)

    def write(
        self, name: str, page: str, texts: Sequence[Text], facts: Mapping[str, str], gone: Set[str]
    ) -> None:
        """Keep the texts of a page made with some versions, and those of pages not `gone`.

        Raises OSError; and files.Unusable for a file that cannot be read, which stays.
        """
        pages = {**self._file(name).pages, page: list(texts)}
        remaining = {page: pages[page] for page in sorted(pages.keys() - gone)}
        content = typed_json.untyped(_File(FORM, self.command, dict(facts), remaining))
        for entries in content["pages"].values():
            entries[:] = [{key: text for key, text in entry.items() if text} for entry in entries]
        files.write(self.path(name), typed_json.written(content))
        self._read.pop(name, None)
