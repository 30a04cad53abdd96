"""The outputs that pages gave on this machine, kept until what decided them changes."""

import contextlib
import os
import pathlib

from .. import files
from ..source.pages import Page
from . import output_format

# Former outputs of a page are kept for whoever goes back and forth between two versions.
KEPT = 8


class Cache:
    """The cached pages of one device: a file for each page and key, and no index.

    A file is written whole or not at all, so that any number of processes may use one cache.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        """Take the folder; it is made by the first page that is saved."""
        self.folder = pathlib.Path(folder)

    def path(self, page: Page, key: str) -> pathlib.Path:
        """Return the file in which the outputs of a page are kept under a key."""
        return self.folder / page.docname / f"{key}.ipynb"

    def load(self, page: Page, key: str, device: str) -> output_format.PageOutputs | None:
        """Return the outputs of a page, or None where there are none.

        Raises files.Unusable where there are some that cannot be read.
        """
        try:
            outputs = output_format.load(self.path(page, key), page.docname, device)
        except FileNotFoundError:
            return None
        if [cell.key for cell in outputs.cells] != [cell.key for cell in page.cells]:
            raise files.Unusable("it has the outputs of other cells")
        return outputs

    def save(self, page: Page, key: str, outputs: output_format.PageOutputs) -> None:
        """Keep the outputs of a page that was executed without a failure; raises OSError."""
        path = self.path(page, key)
        files.write(path, output_format.write(outputs))
        self._forget(path)

    def _forget(self, newest: pathlib.Path) -> None:
        """Drop the oldest outputs of a page."""
        with contextlib.suppress(OSError):
            # The clock may have been set back since the others were written.
            former = [path for path in newest.parent.glob("*.ipynb") if path != newest]
            former.sort(key=lambda path: -path.stat().st_mtime)
            for path in former[KEPT - 1 :]:
                path.unlink()
