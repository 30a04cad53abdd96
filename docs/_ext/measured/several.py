"""What a book shows of several machines: a list, how many ratios are alike, and hollow marks."""

import collections
from collections.abc import Mapping, Sequence

from docutils import nodes
from sphinx.environment import BuildEnvironment

from executed.book import Book, book_of
from executed.nodes import table_node
from executed.waiting import Fill, FillIn

from . import book_measurements
from .across import ALIKE, Across, answers, elsewhere, machines
from .schema import Measurement
from .tables import by_device


def listed(page: FillIn, node: nodes.Element) -> nodes.Node:
    """Return a table of all machines: those of the book, and those that readers added."""
    book = book_of(page.env)
    rows = [
        _row(book, book.options.label(device), group, str(len(group)))
        for device, group in by_device(book_measurements.measurements(page.env)).items()
    ]
    for machine in machines(book):
        there = book.once(elsewhere)[machine.name]
        count = f"{len(there.by_name)} of {len(machine.measurements)}"
        rows.append(_row(book, machine.name, machine.measurements, count))
    return table_node(["machine", "processor", "versions", "days", "measurements"], rows)


def _row(
    book: Book, label: str, group: Sequence[Measurement], count: str
) -> list[nodes.Node | str]:
    """Return what a table of machines says of one; the most frequent processor and versions."""
    processors = collections.Counter(
        each.device_kind if each.accelerated else each.processor for each in group
    )
    versions = collections.Counter((each.framework, each.version) for each in group if each.version)
    newest = {framework: version for (framework, version), _ in reversed(versions.most_common())}
    days = sorted({each.date for each in group})
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    texts = [f"{book.options.framework_label(name)} {newest[name]}" for name in sorted(newest)]
    return [label, str(processors.most_common(1)[0][0]), ", ".join(texts), when, count]


def agreement(page: FillIn, node: nodes.Element) -> nodes.Node:
    """Return in a paragraph how many ratios of the book come out alike on all machines."""
    return nodes.paragraph("", agreement_text(page.env))


def compared_device(
    book: Book, here: str, drawn: Mapping[str, Sequence[Measurement]]
) -> tuple[str, Sequence[Measurement]]:
    """Return what has hollow marks in the chart of a device, and where that was measured.

    Of the device of the site that is another machine which measured at least half of all, else of
    any the first other device.
    """
    found = dict[str, list[Measurement]]()
    for name, there in book.once(elsewhere).items() if here == book.home else ():
        of = (there.by_name.get((each.name, each.framework), {}) for each in drawn[here])
        found[name] = [by_device[name] for by_device in of if by_device]
    most = max(found, key=lambda name: len(found[name]), default="")
    if most and 2 * len(found[most]) >= len(drawn[here]):
        return most, found[most]
    other = next((device for device in drawn if device != here), "")
    return other, drawn.get(other, [])


def ratios(env: BuildEnvironment) -> list[Across]:
    """Return all ratios that roles of the book ask for, once each."""
    found = {
        own.asked: across
        for docname in sorted(env.found_docs)
        for own, across in answers(env, docname)
        if across and across.is_ratio
    }
    return list(found.values())


def agreement_text(env: BuildEnvironment) -> str:
    """Say how many ratios of a book come out alike on all machines that measured them."""
    found = ratios(env)
    several = [each for each in found if each.others]
    if not several:
        return "No ratio of this book was measured on a second machine."
    same = [each for each in several if not each.different]
    near = sum(each.spread <= ALIKE for each in same)
    return (
        f"{len(several)} of the {len(found)} ratios in this book's sentences and tables were "
        f"measured on more than one machine. {len(same)} of these come out the same way on all of "
        f"them, {near} with factors that differ by less than {ALIKE}×."
    )


# What fills in the directives for it.
FILL_IN: dict[str, Fill] = {"machines": listed, "machine-agreement": agreement}
