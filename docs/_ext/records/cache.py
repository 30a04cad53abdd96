"""The local cache of executed pages: jupyter-cache, made safe against damage and neighbours."""

import contextlib
import pathlib
import shutil

import nbformat
from filelock import FileLock
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from jupyter_cache.cache.db import NbCacheRecord
from sphinx.util import logging
from sqlalchemy.exc import DatabaseError

# What reading a file may raise that was cut off, emptied, or is not a notebook at all.
DAMAGE = (
    AttributeError,
    LookupError,
    OSError,
    TypeError,
    ValueError,
    nbformat.ValidationError,
)
logger = logging.getLogger(__name__)


def _tell(message):
    # Not logger.warning: what is repaired must not fail a build under -W.
    logger.info(f"warning: {message}", color="darkred")


class Store:
    """The executed pages of one device, below one folder.

    Every access holds a file lock, because jupyter-cache writes its database
    row and its file one after the other. What cannot be read is dropped with a
    warning, so that the page is executed again.
    """

    def __init__(self, folder):
        """Open the store in `folder`, which is made if it is absent."""
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = FileLock(self.folder / "lock")
        with self._lock:
            try:
                self._open()
            except (DatabaseError, RuntimeError) as error:
                self._rebuild(error)

    def _open(self):
        self._cache = get_cache(self.folder)
        NbCacheRecord.records_all(self._cache.db)

    def _rebuild(self, error):
        _tell(
            f"the index of the cache {self.folder} cannot be read ({type(error).__name__}); "
            "it is made anew from the cached pages"
        )
        (self.folder / "global.db").unlink()
        self._open()
        for path in sorted((self.folder / "executed").glob("*/base.ipynb")):
            with contextlib.suppress(*DAMAGE):
                uri = nbformat.read(path, 4).metadata["kernelspec"]["page"]
                NbCacheRecord.create_record(uri=uri, hashkey=path.parent.name, db=self._cache.db)

    @staticmethod
    def _bare(page, key):
        """Return a notebook of the page's code alone, which jupyter-cache hashes with the key."""
        notebook = nbformat.v4.new_notebook(
            metadata={
                "kernelspec": {
                    "name": "python3",
                    "display_name": "Python 3",
                    "page": page.docname,
                    "key": key,
                }
            }
        )
        notebook.cells = [
            nbformat.v4.new_code_cell(
                cell.source, outputs=cell.outputs, execution_count=cell.execution_count
            )
            for cell in page.code_cells
        ]
        return notebook

    def load(self, page, key):
        """Put cached outputs into the page; return the facts of its execution, or None."""
        with self._lock:
            bare = self._bare(page, key)
            _, hashkey = self._cache.create_hashed_notebook(bare)
            try:
                record = NbCacheRecord.record_from_hashkey(hashkey, self._cache.db)
            except KeyError:
                return None
            try:
                cached = self._cache.get_cache_bundle(record.pk).nb
                nbformat.validate(cached)
                facts = dict(cached.metadata["book"])
                pairs = list(zip(page.code_cells, cached.cells, strict=True))
            except DAMAGE as error:
                _tell(
                    f"the cached outputs of {page.docname} cannot be read "
                    f"({type(error).__name__}); the page is executed again"
                )
                self._drop(record)
                return None
        for cell, executed in pairs:
            cell["outputs"] = executed.outputs
            cell["execution_count"] = executed.execution_count
        return facts

    def _drop(self, record):
        shutil.rmtree(self.folder / "executed" / record.hashkey, ignore_errors=True)
        NbCacheRecord.remove_records([record.pk], self._cache.db)

    def save(self, page, key, facts):
        """Keep the outputs of a page that was executed without a failure."""
        with self._lock:
            bare = self._bare(page, key)
            bare.metadata["book"] = facts
            bundle = CacheBundleIn(bare, page.docname)
            self._cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)
