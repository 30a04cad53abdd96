"""A table of the errors whose type or message changed from one version to the next."""

import html
import itertools
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from executed.book import Book, book_of
from executed.nodes import raw, table_node
from executed.waiting import link, place

from .by_version import label
from .feature import NAME
from .listing import all_errors, error_text, meaning
from .options import ErrorOptions
from .outcomes import DeclaredError


class Change(NamedTuple):
    """What an error said up to one version, and what from the next one on."""

    page: str
    last: str
    first: str
    before: str
    after: str


def changes(errors: Iterable[DeclaredError]) -> Iterator[Change]:
    """Return how errors changed between versions in which the cell ran, every pair once."""
    known = set()
    for error in errors:
        for (last, before), (first, after) in itertools.pairwise(error.versions.items()):
            if meaning(before) != meaning(after):
                # The first paragraph, in which they differ.
                texts = [error_text(each).partition("\n\n")[0] for each in (before, after)]
                change = Change(error.page, last, first, *(" ".join(t.split()) for t in texts))
                if change[1:] not in known:
                    known.add(change[1:])
                    yield change


def _table(page: Any, node: nodes.Element) -> nodes.Node:
    book: Book = book_of(page.env)
    package = book.options.of(ErrorOptions).versions.package
    rows: list[list[nodes.Node | str]] = []
    for change in changes(all_errors(page.env)):
        last, first = (name.removeprefix(f"{package}-") for name in (change.last, change.first))
        # A literal of docutils has an element for each word.
        codes = (f"<code>{html.escape(text)}</code>" if text else "no error" for text in change[3:])
        rows.append([link(page, change.page, change.page), f"{last} → {first}", *map(raw, codes)])
    heads = ["raised on", label(book.options), "before", "since"]
    return table_node(heads, rows, classes=["changed-errors"])


class ErrorsChangedDirective(SphinxDirective):
    """The place of the table."""

    def run(self) -> list[nodes.Node]:
        """Return the place, filled in when the page is written."""
        return [place(self, _table, NAME)]
