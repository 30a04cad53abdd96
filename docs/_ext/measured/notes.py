"""A number with a note: where it comes from, shown on hover, on focus and on touch."""

import html
from typing import Any

from docutils import nodes

from executed.app import BookApp


class noted(nodes.Inline, nodes.TextElement):
    """A text that can be focused; its attribute `note` is shown beside it when it is.

    `data` are attributes for scripts of the page.
    """


def _visit(self: Any, node: noted) -> None:
    """Open the text; the number of the note is that within the page."""
    self.book_notes = getattr(self, "book_notes", 0) + 1
    attributes = {"aria-describedby": f"note-{self.book_notes}", **node.get("data", {})}
    self.body.append('<span class="noted">')
    self.body.append(self.starttag(node, "span", "", tabindex="0", **attributes))


def _depart(self: Any, node: noted) -> None:
    """Close the text, and write the note after it, which the style sheet hides."""
    note = f'<span class="note" role="tooltip" id="note-{self.book_notes}">'
    self.body.append(f"</span>{note}{html.escape(node['note'])}</span></span>")


def setup(app: BookApp) -> None:
    """Register the node."""
    app.add_node(noted, html=(_visit, _depart))
