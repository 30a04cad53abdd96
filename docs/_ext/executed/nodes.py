"""Nodes of a page that features share: tables, folds, notes below them, and texts with a note."""

import html
import re
from collections.abc import Iterable, Sequence
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

# Behind the dash of a range, such as 1.2–1.4, no line ends.
JOINER, BEHIND_DASH = "\u2060", re.compile(r"(?<=\d–)(?=\d)")


class noted(nodes.Inline, nodes.TextElement):
    """A text that can be focused; its attribute `note` is shown beside it when it is.

    `data` are attributes for scripts of the page. `places` are those of dots on a line below the
    note, in percent.
    """


def _visit(self: Any, node: noted) -> None:
    """Open the text; the number of the note is that within the page."""
    self.book_notes = getattr(self, "book_notes", 0) + 1
    attributes = {"aria-describedby": f"note-{self.book_notes}", **node.get("data", {})}
    self.body.append('<span class="noted">')
    self.body.append(self.starttag(node, "span", "", tabindex="0", **attributes))


class held(nodes.Inline, nodes.TextElement):
    """A text with attributes for scripts of the page, `data`."""


def _visit_held(self: Any, node: held) -> None:
    """Open the text."""
    self.body.append(self.starttag(node, "span", "", **node["data"]))


def _depart_held(self: Any, node: held) -> None:
    """Close the text."""
    self.body.append("</span>")


def _visit_text(self: Any, node: nodes.Text) -> None:
    """Write a text as ever, and join its ranges."""
    type(self).visit_Text(self, node)
    self.body[-1] = BEHIND_DASH.sub(JOINER, self.body[-1])


def _depart(self: Any, node: noted) -> None:
    """Close the text, and write the note after it, which the style sheet hides."""
    note = f'<span class="note" role="tooltip" id="note-{self.book_notes}">'
    places: list[int] = node.get("places", [])
    dots = "".join(f"M{place} 3h0" for place in places)
    line = f'<svg class="dots" viewBox="-3 0 106 6" aria-hidden="true"><path d="{dots}"/></svg>'
    text = BEHIND_DASH.sub(JOINER, html.escape(node["note"])) + line * bool(dots)
    self.body.append(f"</span>{note}{text}</span></span>")


def table_node(
    head: Sequence[nodes.Node | str],
    rows: Iterable[Sequence[nodes.Node | str]],
    classes: Iterable[str] = (),
) -> nodes.container:
    """Return a docutils table; a cell is a text or a node."""
    group = nodes.tgroup(cols=len(head))
    group += [nodes.colspec(colwidth=1) for _ in head]
    heading, body = nodes.thead(), nodes.tbody()
    for part, lines in ((heading, [head]), (body, rows)):
        for line in lines:
            row = nodes.row()
            for content in line:
                inline = content if isinstance(content, nodes.Node) else nodes.Text(str(content))
                row += nodes.entry("", nodes.paragraph("", "", inline))
            part.append(row)
    group += [heading, body]
    wrapped = nodes.container(classes=["table-scroll"])
    wrapped += nodes.table("", group, classes=list(classes))
    return wrapped


def table_note(text: str) -> nodes.paragraph:
    """Return a note below a table."""
    return nodes.paragraph("", text, classes=["table-note"])


# What stays folded in Markdown and notebooks, too.
STAYS_FOLDED = "stays-folded"


def fold(
    summary: str, *inside: nodes.Node, class_: str = "", by: str | None = None
) -> list[nodes.Node]:
    """Return nodes that a reader sees who opens a summary; `by` is all that Markdown has of it."""
    marks = f' class="{class_}"' if class_ else ""
    marks += "" if by is None else f' data-by="{html.escape(by)}"'
    start = f"<details{marks}><summary>{html.escape(summary)}</summary>"
    return [raw(start), *inside, raw("</details>")]


def raw(text: str) -> nodes.raw:
    """Return HTML that stands as it is."""
    return nodes.raw("", text, format="html")


def for_device(device: str, text: str, class_: str) -> str:
    """Return a paragraph that is shown to readers who chose a device, as HTML."""
    name, said = html.escape(device), html.escape(text)
    return f'<p class="{class_}" data-device="{name}" hidden>{said}</p>'


def setup(app: Sphinx) -> None:
    """Register the nodes, and how texts are written."""
    app.add_node(noted, html=(_visit, _depart))
    app.add_node(held, html=(_visit_held, _depart_held))
    app.add_node(nodes.Text, override=True, html=(_visit_text, None))  # type: ignore[arg-type]
