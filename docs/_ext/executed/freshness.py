"""Which pages must be read again, besides those that Sphinx finds by when files were written."""

import pathlib

from . import files
from .app import BookApp, BookEnvironment
from .book import PageState
from .run import key


def outdated(app: BookApp, env: BookEnvironment) -> set[str]:
    """Return the pages whose texts, outputs or recordings are others than when they were read.

    To Sphinx a page is of the moment when it was read, and its cells may have run for a minute
    before: what was saved meanwhile would be taken for old. Nor does it know of pages that were
    read, but not written when a build was broken off.
    """
    if unfinished(app).exists():
        return set(env.found_docs)
    unfinished(app).touch()
    found = {
        docname
        for docname, digest in env.book_texts.items()
        if digest != files.digest(pathlib.Path(env.doc2path(docname)))
    }
    for docname, state in env.book_pages.items():
        if state.failures or _has_changed(app, docname, state):
            found.add(docname)
    return found


def unfinished(app: BookApp) -> pathlib.Path:
    """Return the file that is there from the beginning of a build to its good end.

    Sphinx forgets a warning once its page is read. So a strict build that was red is not at an
    end, or the next would be green.
    """
    return pathlib.Path(app.doctreedir, "unfinished")


def _has_changed(app: BookApp, docname: str, state: PageState) -> bool:
    options = app.book.options
    return (
        any(app.book_library.digest(name) != known for name, known in state.modules.items())
        or state.files != app.book.recording_digests(docname)
        or (
            bool(state.environment)
            and state.environment
            != key.environment_digest(state.packages, options, state.home, state.benchmark)
        )
    )
