"""The application and the environment of Sphinx, with what the engine keeps in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms.post_transforms import SphinxPostTransform

if TYPE_CHECKING:
    from sphinx.builders.html import StandaloneHTMLBuilder

    from errors.outcomes import DeclaredError

    from .book import Book, PageState
    from .options import Options
    from .source.snippets import Library


class BookEnvironment(BuildEnvironment):
    """What one build leaves for the next: the states of pages, and what they were made from."""

    book_pages: dict[str, PageState]
    book_shown: list[str]
    book_home: str
    book_options: Options
    book_texts: dict[str, str]


class BookApp(Sphinx):
    """One build: the book, and what changes in it."""

    builder: StandaloneHTMLBuilder
    env: BookEnvironment
    book: Book
    book_library: Library
    book_changed: set[str]
    book_records: list[dict[str, Any]]
    book_errors: list[DeclaredError]
    book_partial: bool

    if TYPE_CHECKING:

        def connect(self, event: str, callback: Callable[..., Any], priority: int = 500) -> int:
            """Take callbacks that expect this class."""
            ...


class BookTransform(SphinxPostTransform):
    """A change of a page when all pages have been read."""

    if TYPE_CHECKING:
        app: BookApp
        env: BookEnvironment
