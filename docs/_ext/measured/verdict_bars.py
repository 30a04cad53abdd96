"""Bars of verdicts: how many statements of pages hold, and how many don't."""

import collections

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from drawing import svg
from executed.nodes import raw
from executed.waiting import FillIn, link, place

from .across import DEPENDS, answers
from .expressions import VERDICTS
from .feature import NAME
from .references import UNDECIDED

# From what holds to what is wrong, and what nobody can tell.
GROUPS = ("holds", "holds with conditions", DEPENDS, "not here", "out of date", "wrong")
ORDER = (*GROUPS, UNDECIDED, *(each for each in VERDICTS if each not in GROUPS))


def verdicts(page: FillIn, docname: str) -> collections.Counter[str]:
    """Return how often a page comes to each verdict."""
    found = (pair for pair in answers(page.env, docname) if pair[0].asked.role == "verdict")
    return collections.Counter(across.verdict if across else own.verdict for own, across in found)


def _bars(page: FillIn, node: nodes.Element) -> nodes.Node:
    """Return a list: each page with its bar, and the counts in words."""
    shown = nodes.bullet_list(classes=["verdict-bars"])
    for docname in node["pages"]:
        counts = verdicts(page, docname)
        item = nodes.list_item()
        title = page.env.titles[docname].astext()
        head = [] if docname == page.env.docname else [link(page, docname, title)]
        parts = [(name, counts[name]) for name in ORDER if counts[name]]
        words = ", ".join(f"{count} {name}" for name, count in parts)
        item += nodes.paragraph("", "", *head, nodes.inline("", words, classes=["verdict-counts"]))
        item += raw(_bar(parts))
        shown += item
    return shown


def _bar(parts: list[tuple[str, int]]) -> str:
    """Draw the verdicts of a page side by side; the words beside it say the same."""
    total, at, drawn = sum(count for _, count in parts), 0, []
    for name, count in parts:
        drawn.append(
            svg.element(
                "rect",
                svg.element("title", f"{count} {name}"),
                x=svg.percent(at / total),
                width=svg.percent(count / total),
                height=16,
                class_=f"verdict-{name.replace(' ', '-')}",
            )
        )
        at += count
    return svg.element("svg", *drawn, class_="verdict-bar", aria_hidden="true", height=16)


class VerdictBarsDirective(SphinxDirective):
    """The verdicts of pages, named from the root of the book."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """Return the place of the bars."""
        pages = self.arguments[0].split()
        if unknown := [name for name in pages if name not in self.env.found_docs]:
            raise self.error(f"there is no page '{unknown[0]}'")
        return [place(self, _bars, NAME, pages=pages)]


def setup(app: Sphinx) -> None:
    """Register the directive."""
    app.add_directive("verdict-bars", VerdictBarsDirective)
