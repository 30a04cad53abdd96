"""The table of which framework is fastest at some works, on all devices and machines."""

import itertools
from collections.abc import Iterable, Mapping, Sequence

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from drawing import strips, svg
from drawing.numbers import seconds_text
from executed.book import Book, book_of
from executed.frameworks import Colour
from executed.names import nearest
from executed.nodes import noted, raw, table_node, table_note
from executed.options import Options
from executed.waiting import FillIn, link, place

from . import across, book_measurements
from .book_measurements import data_node, known_on
from .feature import NAME
from .schema import Measurement
from .tables import DAGGER, by_device, notes_below
from .texts import sampling
from .works import Answer, Work, against, answer, best, factors, leaders, size_of, with_parent

logger = logging.getLogger(__name__)
# What stands where other code was measured, and what is said of it below.
GONE, OUTDATED = "–", "–: not recorded on {} with this code."
# What is said below a table with rows that other machines answer otherwise.
OTHERWISE = "A row that names {} comes out otherwise there."


def _ink(framework: str, options: Options) -> Colour:
    return options.colour(framework) or svg.INKS[0]


def _strip(bests: Sequence[Measurement], ticks: Sequence[float], options: Options) -> nodes.Node:
    """Return the dots of the frameworks, the fastest on top."""
    inks = [_ink(each.framework, options) for each in bests]
    dots = [
        (at, (low, high), ink) for (at, low, high), ink in zip(factors(bests), inks, strict=True)
    ]
    return raw(strips.strip(reversed(dots), ticks))


def _legend(shown: Iterable[Measurement], options: Options) -> nodes.Node:
    """Return which colour is which framework's."""
    names = dict.fromkeys(each.framework for each in shown)
    order = [name for name in options.frameworks if name in names]
    texts = (
        f'<span style="{_ink(name, options).style}">{options.framework_label(name)}</span>'
        for name in order
    )
    return raw(f'<span class="strip-legend">{" ".join(texts)}</span>')


def otherwise(book: Book, of_work: Sequence[Measurement]) -> dict[str, Answer]:
    """Return the machines on which a work has another answer than at home, with that answer.

    That is another fastest framework or another second one, or a factor that differs by more than
    ratios of one kind do. Asked is for what both have measured, and only where that includes the
    two fastest at home: without them, a machine says nothing about the answer there.
    """
    found, label = {}, book.options.framework_label
    first = {each.reference for each in leaders(of_work, book.home)}
    for name, known in book.once(across.elsewhere).items():
        both = {
            each.reference: by_device[name]
            for each in of_work
            if (by_device := known.by_name.get((each.name, each.framework)))
        }
        own = best(each for each in of_work if each.reference in both and each.device == book.home)
        there = best(both.values())
        if (
            not first <= both.keys()
            or len(own) < 2
            or any(len(each.processes) < 2 for each in (*own, *there))
        ):
            continue
        here, said = answer(own, label), answer(there, label)
        leads = (against(*each[:2]).value for each in (own, there))
        same = {*here.leading} == {*said.leading} and _two(own) == _two(there)
        if not same or across.spread(leads) > across.ALIKE:
            found[name] = said
    return found


def _two(bests: Sequence[Measurement]) -> set[str]:
    return {each.framework for each in bests[:2]}


def _cell(
    bests: Sequence[Measurement],
    outdated: bool,
    ticks: Sequence[float],
    options: Options,
    others: Mapping[str, Answer],
) -> nodes.Node:
    """Return the text for one device, with a note on the best entry of each framework.

    `others` are machines that say something else.
    """
    if outdated or not bests:
        return nodes.Text(GONE if outdated else "")
    entries = (
        f"{options.framework_label(each.framework)} {seconds_text(each.seconds)} ({each.name})"
        for each in bests
    )
    sentence = answer(bests, options.framework_label)
    remarks = notes_below([], bests, options)
    note = " ".join([f"{'; '.join(entries)}.", sampling(bests[0]), *remarks])
    words = nodes.strong("", sentence.names), nodes.Text(sentence.rest)
    number = noted("", "", *words, note=note)
    number["classes"] = ["measured", "long"]
    number["data"] = {"data-leading": " ".join(sentence.leading)}
    earlier = any(each.earlier for each in bests)
    mark = nodes.superscript("", DAGGER, classes=["earlier"]) if earlier else nodes.Text("")
    said = (
        nodes.inline("", f"{name}: {of.text}", classes=["otherwise"]) for name, of in others.items()
    )
    return nodes.inline("", "", number, mark, _strip(bests, ticks, options), *said)


def _table(page: FillIn, node: nodes.Element) -> list[nodes.Node]:
    """Return the table of a place, and before it what a script needs to know of it."""
    _report_unknown(page, node)
    book, every = book_of(page.env), book_measurements.measurements(page.env)
    options, outdated = book.options, known_on(page).outdated
    by_work = [[each for each in every if work.counts(each.name)] for work in node["works"]]
    groups = [by_device(of_work) for of_work in by_work]
    devices = dict.fromkeys([book.home, *itertools.chain.from_iterable(groups)])
    rows, shown, gaps, differing = [], list[Measurement](), set[str](), set[str]()
    all_bests = [{device: best(group.get(device, ())) for device in devices} for group in groups]
    lines = [bests for of_device in all_bests for bests in of_device.values() if bests]
    most = max((end for bests in lines for _, _, end in factors(bests)), default=1)
    ticks = svg.round_numbers(1, max(most, 1.5))
    for work, of_work, bests in zip(node["works"], by_work, all_bests, strict=True):
        words: nodes.Node = nodes.Text(work.words)
        if of_work:
            # To the page that measured the fastest at home.
            words = link(page, [*bests[book.home], *of_work][0].page, work.words)
        gone = {device for name, _, device in outdated if work.counts(name)}
        gaps |= gone
        others = otherwise(book, of_work)
        differing |= others.keys()
        cells = (
            _cell(bests[each], each in gone, ticks, options, others if each == book.home else {})
            for each in devices
        )
        rows.append([words, *cells])
        shown += itertools.chain.from_iterable(bests.values())
    head: list[nodes.Node] = [nodes.inline("", "work", _legend(shown, options))]
    axis = raw(strips.axis(ticks))
    names = (nodes.inline("", options.label(each), classes=["device-name"]) for each in devices)
    head += [nodes.inline("", "", name, axis.deepcopy()) for name in names]
    table = table_node(head, rows, classes=["measurements", "fastest"])
    alone = by_device(each for each in shown if len(each.processes) < 2)
    notes = notes_below([*map(options.label, alone)], shown, options)
    notes += [OUTDATED.format(options.label(device)) for device in sorted(gaps & {*devices})]
    notes += [OTHERWISE.format(" and ".join(sorted(differing)))] if differing else []
    table += map(table_note, notes)
    data = {
        "sizes": [*map(size_of, by_work)],
        "works": [work.line for work in node["works"]],
        "first": [[each.reference for each in leaders(of, book.home)] for of in by_work],
        "frameworks": {framework.name: framework.label for framework in options.registry},
    }
    return [data_node("fastest-data", data), table]


def _report_unknown(page: FillIn, node: nodes.Element) -> None:
    """Warn of what no measurement of any device is called."""
    known = known_on(page)
    names = set().union(*(with_parent(name) for name, *_ in (*known.by_name, *known.outdated)))
    for name in itertools.chain.from_iterable((*w.entries, *w.besides) for w in node["works"]):
        if name not in names and not known.partial:
            message = f"no measurement is called '{name}'{nearest(name, sorted(names))}"
            logger.warning(message, location=node, type="book", subtype="measured")


class FastestDirective(SphinxDirective):
    """A table of which framework is fastest at works, each a line of the content."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the place of the table."""
        try:
            works = [Work.from_line(line) for line in self.content if line.strip()]
        except ValueError as problem:
            raise self.error(str(problem)) from None
        return [place(self, _table, NAME, works=works)]


def setup(app: Sphinx) -> None:
    """Register the directive."""
    app.add_directive("measurement-fastest", FastestDirective)
