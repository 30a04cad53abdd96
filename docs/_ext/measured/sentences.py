"""The roles for numbers in sentences: measured, compared, paid, verdicts, and quoted.

In a table, what is the same of all numbers of a column, or else of a row, is said once: by its
head, or by a note below. Of a device on which other code was recorded, sentences are left out.
Each number holds what was asked for, so that a script can put a reader's own beside it.
"""

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

from docutils import nodes
from sphinx.transforms import SphinxTransform
from sphinx.util import logging
from sphinx.util.docutils import SphinxRole

from executed.app import BookApp, BookTransform
from executed.names import nearest
from executed.nodes import noted, table_note
from executed.options import Options
from executed.waiting import FillIn, place

from . import references
from .directives import data_node
from .ranges import ALONE, compared
from .schema import Measurement
from .tables import DAGGER, notes_below

logger = logging.getLogger(__name__)
# What is longer may be broken at the end of a line, for a phone is narrow.
UNBROKEN = 20
# A role that names the device of its number.
ON_DEVICE = re.compile(r" on [\w-]+")
# What an author writes around sentences on one device, and what is said where they are left out.
ONE_DEVICE, LEFT_OUT = "of-one-device", "Left out: what follows from numbers that were {}."
OUTDATED = " with this code"


# How what stands in a role is read, but for verdicts, which have words besides a number.
READ: dict[str, Callable[[str, references.Measurements], references.Quantity]] = {
    "measured": references.resolve,
    "compared": functools.partial(references.resolve, write=compared),
    "paid": references.paid,
}


class NumberRole(SphinxRole):
    """A number or a verdict that is resolved once all measurements are known."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return the place of the number."""
        # Headings are gathered for tables of contents before any measurement is known.
        if isinstance(self.inliner.parent, nodes.title):
            message = f"'{self.text}' stands in a heading; move the role into the text"
            logger.warning(message, location=self.get_location(), type="book", subtype="measured")
            return [nodes.Text(self.text)], []
        return [place(self, _fill_in, role=self.name, expression=self.text)], []


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


def _fill_in(page: FillIn, node: nodes.Element) -> list[nodes.Node]:
    expression, options = node["expression"], page.env.book_options
    verdict, quantity = None, None
    try:
        if node["role"] == "verdict":
            verdict, quantity = references.verdict(expression, page.known)
        else:
            quantity = READ[node["role"]](expression, page.known)
    except references.NotRecorded as gap:
        where = f" on {options.label(gap.device)}" if gap.device else f": {gap}"
        where += OUTDATED if gap.outdated else ""
        return [nodes.inline("", f"not recorded{where}", classes=["not-recorded"])]
    except references.ReferenceProblem as problem:
        logger.warning(str(problem), location=node, type="book", subtype="measured")
        return [nodes.problematic("", expression)]
    classes = ["verdict", "verdict-" + verdict.replace(" ", "-")] if verdict else ["measured"]
    if quantity is None:
        return [nodes.inline("", verdict or "", classes=classes)]
    note = " ".join(
        [
            *([f"{quantity.text}."] if verdict else []),
            quantity.origin,
            *notes_below([], quantity.earlier, options),
        ]
    )
    if quantity.wordy:
        classes.append("in-words")
    if len(quantity.text) > UNBROKEN:
        classes.append("long")
    number = noted("", verdict or quantity.text, note=note, classes=classes)
    if len(quantity.devices) == 1:
        number["data"] = {f"data-{node['role']}": ON_DEVICE.sub("", expression)}
        if page.known.accelerated.intersection(quantity.devices):
            number["data"]["data-on"] = "accelerator"
    shown: list[nodes.Node] = [number]
    if quantity.earlier:
        number["earlier"] = quantity.earlier
        shown.append(nodes.superscript("", DAGGER, classes=["earlier"]))
    # Of a verdict, what stands before its conditions.
    reference = expression.partition(" ? ")[0]
    if len(page.env.book_shown) > 1 or ON_DEVICE.search(reference):
        where = " and ".join(map(options.label, quantity.devices))
        home = ["at-home"] if set(quantity.devices) == {page.env.book_home} else []
        shown.append(nodes.inline("", f" {where}", classes=["on-device", *home]))
    return shown


class Finish(BookTransform):
    """Go over the numbers of a page once all are filled in."""

    default_priority = FillIn.default_priority + 1

    def run(self, **options: Any) -> None:
        """Leave to the heads of tables what is the same of all their numbers."""
        for table in list(self.document.findall(nodes.table)):
            leave_gaps(table)
            say_once(table, self.env.book_options)
        for container in list(self.document.findall(nodes.container)):
            if ONE_DEVICE in container["classes"]:
                leave_out(container)
        if any("data" in number for number in self.document.findall(noted)):
            self.document += data_node(self.env, "measurement-numbers", {})


def _outdated(within: nodes.Element) -> list[nodes.inline]:
    found = _of_class(within, "not-recorded")
    return [each for each in found if each.astext().endswith(OUTDATED)]


def leave_gaps(table: nodes.table) -> None:
    """Leave a dash for each number of which other code was recorded, and say so below the table."""
    gaps = {each: each.astext() for each in _outdated(table)}
    for each in gaps:
        each.children = [nodes.Text("–")]
    notes = [table_note(f"–: {text}.") for text in dict.fromkeys(gaps.values())]
    place = table.parent.index(table) + 1
    table.parent[place:place] = notes


def leave_out(container: nodes.container) -> None:
    """Leave out paragraphs on one device that lack numbers; a section without others says so."""
    lacking = [each for each in container.findall(nodes.paragraph) if _outdated(each)]
    alone = len(container.parent.children) == 2 and isinstance(container.parent, nodes.section)
    for earlier, paragraph in enumerate(lacking):
        said = LEFT_OUT.format(_outdated(paragraph)[0].astext())
        left = [nodes.paragraph("", said, classes=["table-note"])] if alone and not earlier else []
        paragraph.replace_self(left)


def say_once(table: nodes.table, options: Options) -> None:
    """Say once what many numbers of a table share.

    A device that the head of a column or row names is not repeated. That all numbers of one are of
    one process moves to a note below the table, where the one is that daggers lead to.
    """
    lines = [[*row.findall(nodes.entry)] for row in table.findall(nodes.row)]
    if len({len(line) for line in lines}) != 1:
        return
    alone = [
        head.astext()
        for head, *cells in [*zip(*lines, strict=True), *lines[1:]]
        if _are_alone(head, cells)
    ]
    earlier: list[Measurement] = []
    for number in table.findall(noted):
        earlier += number.get("earlier", ())
    place = table.parent.index(table) + 1
    notes = notes_below(list(dict.fromkeys(alone)), earlier, options)
    table.parent[place:place] = [table_note(note) for note in notes]


def _are_alone(head: nodes.entry, cells: Sequence[nodes.entry]) -> bool:
    """Take out of the numbers in the cells of a column or row what need not be said of each.

    Say whether all of them are of one process.
    """
    named = set(re.findall(r"\w+", head.astext()))
    for label in [label for cell in cells for label in _of_class(cell, "on-device")]:
        if all(device.split()[-1] in named for device in label.astext().split(" and ")):
            label.parent.remove(label)
    found = [[*cell.findall(noted)] for cell in cells]
    numbers = [number for of_cell in found for number in of_cell]
    # Of several numbers in a cell, or of a verdict, a note says too little.
    plain = all("measured" in number["classes"] for number in numbers)
    if len(numbers) < 2 or not plain or max(map(len, found)) > 1 or not head.astext():
        return False
    if not all(ALONE in number.astext() for number in numbers):
        return False
    for number in numbers:
        text = number.astext().replace(f" ({ALONE})", "").replace(f", {ALONE})", ")")
        number.children = []
        number += nodes.Text(text)
    return True


def _of_class(cell: nodes.Element, name: str) -> Sequence[nodes.inline]:
    return [each for each in cell.findall(nodes.inline) if name in each["classes"]]


def setup(app: BookApp) -> None:
    """Register the roles."""
    for name in (*READ, "verdict"):
        app.add_role(name, NumberRole())
    app.add_role("quoted", QuotedRole())
    app.add_transform(LinkQuotesOnce)
    app.add_post_transform(Finish)
