"""How often Python looks for garbage during a build."""

import atexit
import contextlib
import gc
from collections.abc import Iterator

from .app import BookApp

SELDOM = (200_000, 20, 20)


@contextlib.contextmanager
def seldom() -> Iterator[None]:
    """Let Python look for garbage seldom, and then as often as before.

    Modules, options and doctrees live until the end of a build; searched again and again, they
    take a tenth of it.
    """
    former = gc.get_threshold()
    gc.set_threshold(*SELDOM)
    try:
        yield
    finally:
        # All that is there counts as old from now on; else Python would search it at once.
        gc.freeze()
        gc.unfreeze()
        gc.set_threshold(*former)


def begin(app: BookApp) -> None:
    """Look seldom from now on."""
    app.book_garbage = contextlib.ExitStack()
    app.book_garbage.enter_context(seldom())


def end(app: BookApp, exception: Exception | None) -> None:
    """Look as often as before."""
    app.book_garbage.close()


def setup(app: BookApp) -> None:
    """Register the events, the first and the last, and what the process does as it ends."""
    # Python would search everything once more, for a process that gives all of it back anyway.
    atexit.unregister(gc.freeze)
    atexit.register(gc.freeze)
    app.connect("builder-inited", begin, priority=0)
    app.connect("build-finished", end, priority=1000)
