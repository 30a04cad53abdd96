"""Which pages must be read again, besides those that Sphinx finds by when files were written."""

import pathlib

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from . import files
from .book import Book, Inputs, book_of
from .run import key


def outdated(app: Sphinx, env: BuildEnvironment) -> set[str]:
    """Return the pages whose texts, outputs or recordings are others than when they were read.

    To Sphinx a page is of the moment when it was read, and its cells may have run for a minute
    before: what was saved meanwhile would be taken for old. Nor does it know of pages that were
    read, but not written when a build was broken off.
    """
    if unfinished(app).exists():
        return set(env.found_docs)
    unfinished(app).touch()
    book = book_of(env)
    docnames = {
        docname
        for docname, digest in book.texts.items()
        if digest != files.digest(pathlib.Path(env.doc2path(docname)))
    }
    for docname, page in book.pages.items():
        if page.outcome.failures or _has_changed(book, docname, page.inputs):
            docnames.add(docname)
    return docnames


def unfinished(app: Sphinx) -> pathlib.Path:
    """Return the file that is there from the beginning of a build to its good end.

    Sphinx forgets a warning once its page is read. So a strict build that was red is not at an
    end, or the next would be green.
    """
    return pathlib.Path(app.doctreedir, "unfinished")


def _has_changed(book: Book, docname: str, inputs: Inputs) -> bool:
    own = inputs.packages, book.options, inputs.device, inputs.benchmark
    return (
        any(book.library.digest(name) != digest for name, digest in inputs.modules.items())
        or any(files.tree_digest(path) != digest for path, digest in inputs.named_files.items())
        or inputs.files != book.digests(docname)
        or (bool(inputs.environment) and inputs.environment != key.environment_digest(*own))
    )
