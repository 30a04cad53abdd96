"""What a page leaves open until all pages are read: a place, and who fills it in."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective, SphinxRole

from measured import published as measurements
from measured.references import Measurements

from .app import BookApp, BookTransform

RECORDS = "book_uses_records"


class waiting(nodes.Inline, nodes.General, nodes.Element):
    """The place of what is known when the page is written; `fill_in` returns it."""


class FillIn(BookTransform):
    """Fill in the places of one page."""

    default_priority = 5

    def run(self, **options: Any) -> None:
        """Replace each place."""
        for node in list(self.document.findall(waiting)):
            node.replace_self(node["fill_in"](self, node))

    @functools.cached_property
    def known(self) -> Measurements:
        """What pages may name."""
        return measurements.known(self.env)


def place(
    at: SphinxDirective | SphinxRole,
    fill_in: Callable[[FillIn, nodes.Element], nodes.Node | Sequence[nodes.Node]],
    uses: str = RECORDS,
    **facts: Any,
) -> waiting:
    """Return a place that a directive or a role leaves, which the function `fill_in` fills in.

    `uses` is what changes when the page has to be written again, see `build.dependents`.
    """
    node = waiting(fill_in=fill_in, **facts)
    at.set_source_info(node)
    at.env.metadata[at.env.docname][uses] = True
    return node


def setup(app: BookApp) -> None:
    """Register what fills in the places."""
    app.add_post_transform(FillIn)
