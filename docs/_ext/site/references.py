"""The roles for numbers in sentences: measured, compared, paid, verdicts, and quoted.

In a table, what is the same of all numbers of a column, or else of a row, its head says once.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

from docutils import nodes
from sphinx.transforms import SphinxTransform
from sphinx.util import logging
from sphinx.util.docutils import SphinxRole

from ..measurements import references
from ..measurements.ranges import compared
from ..names import nearest
from . import measurements
from .app import BookApp, BookTransform
from .notes import noted

logger = logging.getLogger(__name__)
# What is longer may be broken at the end of a line, for a phone is narrow.
UNBROKEN = 20
# A role that names the device of its number.
ON_DEVICE = re.compile(r" on [\w-]+")
ALONE = "one process"


class measured(nodes.Inline, nodes.Element):
    """A number that is filled in from the measurements when the page is written."""


class measured_comparison(nodes.Inline, nodes.Element):
    """A ratio in words that is filled in from the measurements when the page is written."""


class measured_calls(nodes.Inline, nodes.Element):
    """From how many calls on something pays, filled in when the page is written."""


class measured_verdict(nodes.Inline, nodes.Element):
    """A verdict that is filled in from the measurements when the page is written."""


PENDING = (measured, measured_comparison, measured_calls, measured_verdict)


class _PendingRole(SphinxRole):
    """A role whose text is resolved once all measurements are known."""

    def __init__(self, node_class: type[nodes.Element]) -> None:
        super().__init__()
        self.node_class = node_class

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        node = self.node_class(self.rawtext, expression=self.text)
        self.set_source_info(node)
        self.env.metadata[self.env.docname]["book_uses_records"] = True
        return [node], []


class QuotedRole(SphinxRole):
    """A figure quoted from a cited source: ``{quoted}`post: 332 ms```."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return a link to the source around the quote."""
        key, separator, quote = self.text.partition(":")
        sources = self.config.book_sources
        source = sources.get(key.strip())
        if not separator or source is None:
            known = ", ".join(sources) or "none"
            message = (
                f"quoted must name a source of book_sources ({known}), then ': ' and the text"
                + (nearest(key.strip(), sources) if separator else "")
            )
            logger.warning(message, location=self.get_location(), type="book", subtype="quoted")
            return [nodes.Text(self.text)], []
        reference = nodes.reference("", "", refuri=source["url"], classes=["quoted"])
        reference["reftitle"] = f"quoted from {source['title']}, {source['author']}"
        reference += nodes.inline("", f"“{quote.strip()}”")
        return [reference], []


class LinkQuotesOnce(SphinxTransform):
    """Leave one link to a source in each paragraph and in each row of a table."""

    default_priority = 500

    def apply(self, **kwargs: Any) -> None:
        """Turn the further links into plain quotes."""
        linked = set()
        for quote in list(self.document.findall(nodes.reference)):
            if "quoted" not in quote["classes"]:
                continue
            place: nodes.Node = quote
            while not isinstance(place, nodes.row | nodes.document):
                place = place.parent
            if not isinstance(place, nodes.row):
                place = quote.parent
            if (id(place), quote["refuri"]) in linked:
                quote.replace_self(nodes.inline("", "", *quote.children, classes=["quoted"]))
            linked.add((id(place), quote["refuri"]))


class NumbersOutOfHeadings(SphinxTransform):
    """Leave the text of a role in place of a number or verdict that stands in a heading.

    Headings are gathered for tables of contents before any measurement is known.
    """

    default_priority = 500

    def apply(self, **kwargs: Any) -> None:
        """Warn of each."""
        for section in self.document.findall(nodes.section):
            for kind in PENDING:
                for node in list(section[0].findall(kind)):
                    logger.warning(
                        f"'{node['expression']}' stands in a heading, where no measurement is "
                        "known; move the role into the text",
                        location=node,
                        type="book",
                        subtype="measured",
                    )
                    node.replace_self(nodes.Text(node["expression"]))


class FillInReferences(BookTransform):
    """Replace the numbers and verdicts that wait for measurements."""

    default_priority = 5

    def run(self, **options: Any) -> None:
        """Fill in one page."""
        found = [list(self.document.findall(kind)) for kind in PENDING]
        if not any(found):
            return
        numbers, comparisons, calls, verdicts = found
        known = measurements.known(self.env)
        for number in numbers:
            self._fill_in(number, lambda text: (None, references.resolve(text, known)))
        for comparison in comparisons:
            self._fill_in(
                comparison, lambda text: (None, references.resolve(text, known, compared))
            )
        for each in calls:
            self._fill_in(each, lambda text: (None, references.paid(text, known)))
        for verdict in verdicts:
            self._fill_in(verdict, lambda text: references.verdict(text, known))
        for table in self.document.findall(nodes.table):
            say_once(table)

    def _fill_in(
        self,
        node: nodes.Element,
        resolve: Callable[[str], tuple[str | None, references.Quantity | None]],
    ) -> None:
        try:
            verdict, quantity = resolve(node["expression"])
        except references.NotRecorded as gap:
            where = f" on {self._label(gap.device)}" if gap.device else f": {gap}"
            node.replace_self(nodes.inline("", f"not recorded{where}", classes=["not-recorded"]))
            return
        except references.ReferenceProblem as problem:
            logger.warning(str(problem), location=node, type="book", subtype="measured")
            node.replace_self(nodes.problematic("", node["expression"]))
            return
        classes = ["verdict", "verdict-" + verdict.replace(" ", "-")] if verdict else ["measured"]
        if quantity is None:
            node.replace_self(nodes.inline("", verdict or "", classes=classes))
            return
        note = f"{quantity.text}. {quantity.origin}" if verdict else quantity.origin
        if quantity.wordy:
            classes.append("in-words")
        if len(quantity.text) > UNBROKEN:
            classes.append("long")
        shown: list[nodes.Node] = [noted("", verdict or quantity.text, note=note, classes=classes)]
        if quantity.earlier:
            shown.append(nodes.inline("", f" ({quantity.earlier})", classes=["earlier"]))
        # Of a verdict, what stands before its conditions.
        reference = node["expression"].partition(" ? ")[0]
        if len(self.env.book_shown) > 1 or ON_DEVICE.search(reference):
            where = " and ".join(map(self._label, quantity.devices))
            home = ["at-home"] if set(quantity.devices) == {self.env.book_home} else []
            shown.append(nodes.inline("", f" {where}", classes=["on-device", *home]))
        node.replace_self(shown)

    def _label(self, device: str) -> str:
        return measurements.labels(self.env.book_options).device(device)


def say_once(table: nodes.table) -> None:
    """Take out of the numbers of a table what the heads of their columns or rows can say.

    A device that a head names is not repeated. That all are of one process, or all of the same
    earlier code, moves to the head.
    """
    lines = [[*row.findall(nodes.entry)] for row in table.findall(nodes.row)]
    if len({len(line) for line in lines}) != 1:
        return
    for head, *cells in [*zip(*lines, strict=True), *lines[1:]]:
        _say_in_head(head, cells)


def _say_in_head(head: nodes.entry, cells: Sequence[nodes.entry]) -> None:
    named = set(re.findall(r"\w+", head.astext()))
    labels = [label for cell in cells for label in _of_class(cell, "on-device")]
    for label in labels:
        if all(device.split()[-1] in named for device in label.astext().split(" and ")):
            label.parent.remove(label)
    found = [[*cell.findall(noted)] for cell in cells]
    numbers = [number for of_cell in found for number in of_cell]
    # Of several numbers in a cell, or of a verdict, a head says too little.
    plain = all("measured" in number["classes"] for number in numbers)
    if len(numbers) < 2 or not plain or max(map(len, found)) > 1 or not len(head):
        return
    said = []
    if all(ALONE in number.astext() for number in numbers):
        for number in numbers:
            text = number.astext().replace(f" ({ALONE})", "").replace(f", {ALONE})", ")")
            number.children = []
            number += nodes.Text(text)
        said.append(ALONE)
    marks = [mark for cell in cells for mark in _of_class(cell, "earlier")]
    texts = {mark.astext().strip(" ()") for mark in marks}
    if len(marks) == len(numbers) and len(texts) == 1:
        for mark in marks:
            mark.parent.remove(mark)
        said += texts
    last = head[-1]
    if said and isinstance(last, nodes.Element):
        last += nodes.inline("", f" ({', '.join(said)})", classes=["earlier"])


def _of_class(cell: nodes.Element, name: str) -> Sequence[nodes.inline]:
    return [each for each in cell.findall(nodes.inline) if name in each["classes"]]


def setup(app: BookApp) -> None:
    """Register the roles."""
    app.add_role("measured", _PendingRole(measured))
    app.add_role("compared", _PendingRole(measured_comparison))
    app.add_role("paid", _PendingRole(measured_calls))
    app.add_role("verdict", _PendingRole(measured_verdict))
    app.add_role("quoted", QuotedRole())
    app.add_transform(LinkQuotesOnce)
    app.add_transform(NumbersOutOfHeadings)
    app.add_post_transform(FillInReferences)
