"""The roles for numbers in sentences: measured, compared, fastest, paid, verdicts, and quoted.

In a table, what is the same of all numbers of a column, or else of a row, is said once: by its
head, or by a note below. Of a device on which other code was recorded, sentences are left out.
A ratio says on how many machines it comes out so, where others than the book's measured it.
Each number holds what was asked for, so that a script can put a reader's own beside it.
"""

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.util.docutils import SphinxRole

from executed.book import book_of
from executed.names import nearest
from executed.nodes import noted, table_note
from executed.options import Options
from executed.waiting import FillIn, place

from . import across, references
from .book_measurements import known_on
from .expressions import Expression, ReferenceProblem, read
from .feature import NAME
from .options import MeasuredOptions
from .tables import DAGGER, notes_below

logger = logging.getLogger(__name__)
# What is longer may be broken at the end of a line, for a phone is narrow.
UNBROKEN = 20
# What an author writes around sentences on one device, and what is said where they are left out.
ONE_DEVICE, LEFT_OUT = "of-one-device", "Left out: what follows from numbers that were {}."
OUTDATED = " with this code"


class NumberRole(SphinxRole):
    """A number or a verdict that is resolved once all measurements are known."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return the place of the number."""
        # Headings are gathered for tables of contents before any measurement is known.
        if isinstance(self.inliner.parent, nodes.title):
            message = f"'{self.text}' stands in a heading; move the role into the text"
            logger.warning(message, location=self.get_location(), type="book", subtype="measured")
            return [nodes.Text(self.text)], []
        try:
            asked = read(self.name, self.text)
        except ReferenceProblem as problem:
            message, where = str(problem), self.get_location()
            logger.warning(message, location=where, type="book", subtype="measured")
            return [nodes.problematic("", self.text)], []
        across.ask(self.env, asked)
        return [place(self, _fill_in, NAME, asked=asked)], []


class QuotedRole(SphinxRole):
    """A figure quoted from a cited source: ``{quoted}`post: 332 ms```."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return a link to the source around the quote."""
        key, separator, quote = self.text.partition(":")
        sources = book_of(self.env).options.of(MeasuredOptions).sources
        source = sources.get(key.strip())
        if not separator or source is None:
            names = ", ".join(sources) or "none"
            message = (
                f"quoted must name a source of book_sources ({names}), then ': ' and the text"
                + (nearest(key.strip(), sources) if separator else "")
            )
            logger.warning(message, location=self.get_location(), type="book", subtype="quoted")
            return [nodes.Text(self.text)], []
        reference = nodes.reference("", "", refuri=source.url, classes=["quoted"])
        reference["reftitle"] = f"quoted from {source.title}, {source.author}"
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
    options = book_of(page.env).options
    try:
        own = references.Answered.of(node["asked"], known_on(page))
    except references.NotRecorded as gap:
        where = f" on {options.label(gap.device)}" if gap.device else ""
        brief = f"not recorded{where}{OUTDATED if gap.outdated else ''}"
        text = brief if gap.device else f"{brief}: {gap}"
        facts = {"outdated": gap.outdated, "brief": brief}
        return [nodes.inline("", text, classes=["not-recorded"], **facts)]
    except ReferenceProblem as problem:
        logger.warning(str(problem), location=node, type="book", subtype="measured")
        return [nodes.problematic("", str(node["asked"]))]
    if own.quantity is None:
        return [nodes.inline("", own.verdict, classes=_classes(own.verdict))]
    found = across.everywhere(book_of(page.env), node["asked"], own)
    return [_number(page, found, own), *_marks(page, found, own.asked)]


def _number(page: FillIn, found: across.Across, own: references.Answered) -> noted:
    """Return a number with its note, and still without its text."""
    quantity = found.own
    spoken = [f"{quantity.text}."] if own.verdict else []
    remarks = [*found.remarks, *notes_below([], quantity.sources, book_of(page.env).options)]
    places = quantity.range.places if quantity.range else []
    number = noted("", note=" ".join([*spoken, quantity.origin, *remarks]), places=places)
    number["classes"] += _classes(found.verdict)
    number["classes"] += ["in-words"] * quantity.wordy
    number["classes"] += ["long"] * (len(found.text) > UNBROKEN)
    number["across"] = found
    if len(quantity.devices) == 1:
        on = known_on(page).kind(quantity.devices)
        number["data"] = {"data-yours": own.asked.key, "data-on": on}
    return number


def _classes(verdict: str) -> list[str]:
    return ["verdict", f"verdict-{verdict.replace(' ', '-')}"] if verdict else ["measured"]


def _marks(page: FillIn, found: across.Across, asked: Expression) -> Iterator[nodes.Element]:
    """Yield what stands behind a number: a dagger, and its device where that is not clear.

    Behind a verdict that several machines came to stands how many they are.
    """
    quantity = found.own
    if any(source.earlier for source in quantity.sources):
        yield nodes.superscript("", DAGGER, classes=["earlier"])
    if found.verdict and found.others:
        yield nodes.inline("", f" {found.machines}", classes=["on-device"])
    if len(book_of(page.env).shown) > 1 or asked.on_device:
        labels = [book_of(page.env).options.label(device) for device in quantity.devices]
        home = ["at-home"] if set(quantity.devices) == {book_of(page.env).home} else []
        text = f" {' and '.join(labels)}"
        yield nodes.inline("", text, classes=["on-device", *home], labels=labels)


class Finish(SphinxPostTransform):
    """Write the numbers of a page once all are known."""

    default_priority = FillIn.default_priority + 1

    def run(self, **options: Any) -> None:
        """Leave to the heads of tables what is the same of all their numbers, and write these."""
        for table in list(self.document.findall(nodes.table)):
            leave_gaps(table)
            say_once(table, book_of(self.env).options)
            if not table.children:
                table.parent.remove(table)
        for container in list(self.document.findall(nodes.container)):
            if ONE_DEVICE in container["classes"]:
                leave_out(container)
        numbers = _numbers(self.document)
        for number in numbers:
            found = number["across"]
            number += nodes.Text(
                found.verdict or (found.brief if "brief" in number else found.text)
            )


def _numbers(within: nodes.Element) -> list[noted]:
    return [number for number in within.findall(noted) if "across" in number]


def leave_gaps(table: nodes.table) -> None:
    """Leave a dash for each number that was not recorded, and say so below the table.

    Rows and columns that hold nothing else are left out, and named there.
    """
    gaps = {gap: gap["brief"] for gap in table.findall(nodes.inline) if "outdated" in gap}
    if not gaps:
        return
    for gap in gaps:
        gap.children, gap["outdated"] = [nodes.Text("–")], False
        # Of "– against –" one dash says all.
        if gap.parent[0] is not gap and gap.parent[0] in gaps and not _numbers(gap.parent):
            gap.parent.children = gap.parent.children[:1]
    texts = [text for text in dict.fromkeys(gaps.values()) if text + OUTDATED not in gaps.values()]
    names = _take_out_gaps(table)
    dashes = {gaps[each] for each in table.findall(nodes.inline) if each in gaps}
    notes = [f"–: {text}." for text in texts if text in dashes]
    notes += [f"Left out, {' and '.join(texts)}: {'; '.join(names)}."] if names else []
    _add_below(table, notes)


def _take_out_gaps(table: nodes.table) -> list[str]:
    """Take out the rows and columns that hold dashes alone, or all; return what their heads say."""
    lines = _lines(table)
    rows = [line for line in lines[1:] if _is_gap(line)]
    columns = [column for column in [*zip(*lines, strict=True)][1:] if _is_gap(column)]
    if rows and (len(rows) == len(lines) - 1 or len(columns) == len(lines[0]) - 1):
        table.children, rows, columns = [], lines[1:], []
    for cell in {*itertools.chain(*rows, *columns)}:
        cell.parent.remove(cell)
    for row in [row for row in table.findall(nodes.row) if not row.children]:
        row.parent.remove(row)
    return [head.astext() for head, *_ in (*rows, *columns)]


def _is_gap(line: Iterable[nodes.entry]) -> bool:
    _, *texts = (cell.astext() for cell in line)
    return "–" in texts and {*texts} <= {"–", ""}


def _lines(table: nodes.table) -> list[list[nodes.entry]]:
    """Return the cells of a table row by row, or nothing where they form no grid."""
    lines = [[*row.findall(nodes.entry)] for row in table.findall(nodes.row)]
    return lines if len({len(line) for line in lines}) == 1 else []


def leave_out(container: nodes.container) -> None:
    """Leave out paragraphs on one device that lack numbers; a section of these is one line."""
    gaps = [gap for gap in container.findall(nodes.inline) if gap.get("outdated")]
    for part in list(container.findall(nodes.paragraph)):
        if not {*gaps}.isdisjoint(part.findall()):
            part.parent.remove(part)
    section = container.parent
    if gaps and not container.children and isinstance(section, nodes.section) and len(section) == 2:
        note = table_note(f". {LEFT_OUT.format(gaps[0].astext())}")
        note.insert(0, nodes.strong("", section[0].astext()))
        section.children = [note]


def say_once(table: nodes.table, options: Options) -> None:
    """Say once what many numbers of a table share.

    A device that the head of a column or row names is not repeated. That all numbers of one are of
    one process moves to a note below the table, where the one is that daggers lead to.
    """
    lines, alone = _lines(table), []
    for head, *cells in [*zip(*lines, strict=True), *lines[1:]]:
        leave_devices(head, cells)
        numbers = [_numbers(cell) for cell in cells]
        if head.astext() and _are_alone(numbers):
            alone.append(head.astext())
            for number in itertools.chain(*numbers):
                number["brief"] = True
    sources = [source for number in _numbers(table) for source in number["across"].own.sources]
    notes = notes_below(list(dict.fromkeys(alone)), sources, options)
    _add_below(table, [*notes, *_of_machines(table)])


def _of_machines(table: nodes.table) -> Iterator[str]:
    """Yield how the ratios of a table come out elsewhere; those that do alike need no remark."""
    ratios = [number for number in _numbers(table) if number["across"].is_ratio]
    if several := [number for number in ratios if number["across"].others]:
        for number in several:
            if number["across"].alike:
                number["brief"] = True
        yield across.summary([number["across"] for number in ratios])


def leave_devices(head: nodes.entry, cells: Iterable[nodes.entry]) -> None:
    """Leave out the devices that the head of a column or row names, by the last word at least."""
    words = set(re.findall(r"\w+", head.astext()))
    for label in [label for cell in cells for label in cell.findall(nodes.inline)]:
        if "labels" in label and all(device.split()[-1] in words for device in label["labels"]):
            label.parent.remove(label)


def _are_alone(cells: Iterable[Sequence[noted]]) -> bool:
    """Say whether the numbers of a column or row, one in a cell, are each of one process."""
    # Of several numbers in a cell, or of a verdict, a note says too little.
    numbers = list(itertools.chain(*cells))
    return (
        len(numbers) > 1
        and all(len(cell) <= 1 for cell in cells)
        and all(number["across"].own.is_alone for number in numbers)
        and not any(number["across"].verdict or number.get("brief") for number in numbers)
    )


def _add_below(table: nodes.table, notes: Iterable[str]) -> None:
    place = table.parent.index(table) + 1
    table.parent[place:place] = [table_note(note) for note in notes]


def setup(app: Sphinx) -> None:
    """Register the roles."""
    for name in references.ROLES:
        app.add_role(name, NumberRole())
    app.add_role("quoted", QuotedRole())
    app.add_transform(LinkQuotesOnce)
    app.add_post_transform(Finish)
