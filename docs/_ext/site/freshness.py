"""Which pages must be read again: what their files hold decides, not when these were written."""

import pathlib

from .. import files
from ..execution import key
from .app import BookApp, BookEnvironment
from .states import PageState, pages_of


def prepare(env: BookEnvironment) -> None:
    """Give the environment its places for the digests of what was read."""
    for name in ("book_texts", "book_dependencies", "book_doctrees"):
        if not hasattr(env, name):
            setattr(env, name, {})


def note_text(env: BookEnvironment, docname: str, path: pathlib.Path) -> None:
    """Note what a page's file holds.

    To be called before the page is read: one that is saved meanwhile is read by the next build.
    """
    env.book_texts[docname] = files.digest(path)


def note_rest(app: BookApp, env: BookEnvironment) -> None:
    """Note what the pages that this build has read depend on besides, and their doctrees.

    Those of others stay as they were read: a file may have changed since this build looked at it.
    """
    for docname in app.book_read & env.found_docs:
        env.book_dependencies[docname] = {
            str(path): files.digest(pathlib.Path(app.srcdir, path))
            for path in env.dependencies.get(docname, ())
        }
        env.book_doctrees[docname] = _size(env, docname)


def note_templates(app: BookApp, env: BookEnvironment) -> bool:
    """Note what the book's own templates hold; say whether it is new, for pages to be written."""
    known = getattr(env, "book_templates", None)
    env.book_templates = {
        str(path): files.digest(path)
        for folder in app.config.templates_path
        for path in sorted(pathlib.Path(app.confdir, folder).rglob("*"))
        if path.is_file()
    }
    return bool(known != env.book_templates)


def forget(env: BookEnvironment, docname: str) -> None:
    """Forget a page that is gone."""
    for known in (env.book_texts, env.book_dependencies, env.book_doctrees):
        known.pop(docname, None)


def _size(env: BookEnvironment, docname: str) -> int:
    try:
        return pathlib.Path(env.doctreedir, f"{docname}.doctree").stat().st_size
    except OSError:
        return -1


def outdated(app: BookApp, env: BookEnvironment) -> set[str]:
    """Return the pages whose sources, outputs or recordings are others than when they were read."""
    found = {
        docname
        for docname, digest in env.book_texts.items()
        if digest != files.digest(pathlib.Path(env.doc2path(docname)))
        or env.book_doctrees.get(docname) != _size(env, docname)
        or any(
            known != files.digest(pathlib.Path(app.srcdir, path))
            for path, known in env.book_dependencies.get(docname, {}).items()
        )
    }
    for docname, state in pages_of(env).items():
        if state.failures or _has_changed(app, docname, state):
            found.add(docname)
    return found


def _has_changed(app: BookApp, docname: str, state: PageState) -> bool:
    options = app.book.options
    return (
        any(app.book_library.digest(name) != known for name, known in state.modules.items())
        or state.files != app.book.recording_digests(docname)
        or (
            bool(state.environment)
            and state.environment
            != key.environment_digest(
                state.packages,
                options,
                state.home,
                state.benchmark,
                known=app.book.digests,
            )
        )
    )
