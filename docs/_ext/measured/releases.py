"""What a release made faster or slower: files of one machine, measured with two of its versions.

The folder `book_releases` holds files of the command, as that of machines does, each measured with
the versions of one environment. A version may have several files, so that two versions can take
turns: their processes are put together. Only processes of equal code and arrays are compared.
"""

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence

from docutils import nodes

from drawing.numbers import seconds_text
from executed.book import book_of
from executed.nodes import fold, table_node, table_note
from executed.waiting import Fill, FillIn, link

from .across import direction_of, measured, same_work
from .book_measurements import known_on
from .machines import FEWEST, Machine
from .ranges import Range, ratio_of_groups
from .schema import Measurement
from .texts import compared

CLOCKS = {"latency": "Calls", "first_call": "First calls"}
WORDS = {"<": "faster", ">": "slower", "=": "about equal", "?": "cannot be told apart"}


@dataclasses.dataclass(frozen=True)
class Change:
    """A function with an earlier version and with a later one."""

    before: Measurement
    after: Measurement

    @property
    def of_versions(self) -> tuple[Measurement, Measurement]:
        """Both, the earlier version first."""
        return self.before, self.after

    @property
    def processes(self) -> int:
        """In how many processes it was measured with each version, at least."""
        return min(len(each.processes) for each in self.of_versions)

    def ratio(self, clock: str) -> Range | None:
        """Return how many times as long the later one takes; None where one has no such clock."""
        after, before = self.after.of_processes(clock), self.before.of_processes(clock)
        return ratio_of_groups(after, before) if after and before else None


@dataclasses.dataclass(frozen=True)
class Release:
    """The two latest versions of a framework that were measured, and what both measured."""

    versions: tuple[str, str]
    processor: str
    changes: Sequence[Change]


def release(machines: Sequence[Machine], framework: str) -> Release | None:
    """Return what the latest version of a framework changed; None where only one was measured."""
    found = dict[str, dict[tuple[str, str], Measurement]]()
    for machine in machines:
        for each in machine.measurements:
            if each.framework == framework:
                of = found.setdefault(each.version, {})
                key = each.name, machine.code[each.comparison or each.name]
                of[key] = _pooled(of[key], each) if key in of else each
    versions = sorted(found, key=_order)[-2:]
    if len(versions) < 2:
        return None
    before, after = (found[version] for version in versions)
    both = [Change(before[key], after[key]) for key in before if key in after]
    changes = [
        each
        for each in both
        if same_work(each.before, each.after)
        and each.before.processor == each.after.processor
        and each.processes >= FEWEST
    ]
    processor = changes[0].after.processor if changes else ""
    return Release((versions[0], versions[1]), processor, changes)


def _order(version: str) -> list[int]:
    return [int(part) for part in version.split(".") if part.isdigit()]


def _pooled(one: Measurement, other: Measurement) -> Measurement:
    return dataclasses.replace(one, processes=(*one.processes, *other.processes))


def shown(page: FillIn, node: nodes.Element) -> list[nodes.Node]:
    """Return what the latest version of each framework changed, and how much is as before."""
    machines = measured(book_of(page.env)).releases
    frameworks = {each.framework for machine in machines for each in machine.measurements}
    found = [release(machines, framework) for framework in sorted(frameworks)]
    return list(itertools.chain(*(_shown(page, each) for each in found if each and each.changes)))


def _shown(page: FillIn, found: Release) -> list[nodes.Node]:
    """Return how much changed by each clock, and folded tables of what did."""
    words, tables = list[nodes.Node](), list[nodes.Node]()
    for clock, called in CLOCKS.items():
        told = [(each, ratio) for each in found.changes if (ratio := each.ratio(clock))]
        signs = [direction_of(ratio) for _, ratio in told]
        words.append(nodes.paragraph("", _counts(found, called, signs)))
        changed = [pair for pair, sign in zip(told, signs, strict=True) if sign in "<>"]
        changed.sort(key=lambda pair: abs(math.log(pair[1].value)), reverse=True)
        rows: list[list[nodes.Node | str]] = [
            [_named(page, each), compared(ratio), *(_seconds(of, clock) for of in each.of_versions)]
            for each, ratio in changed
        ]
        table = table_node(["function", "compared", *found.versions], rows, ["measurements"])
        tables += fold(f"What changed: {called.lower()}", table) if rows else []
    count = min(each.processes for each in found.changes)
    note = f"{count} processes of each version at least, on {found.processor}."
    return [*words, *tables, table_note(note)]


def _counts(found: Release, called: str, signs: Sequence[str]) -> str:
    before, after = found.versions
    counts = [f"{signs.count(sign)} {word}" for sign, word in WORDS.items() if sign in signs]
    return (
        f"{called} of {len(signs)} functions in {after}, compared with {before}: "
        f"{', '.join(counts)}."
    )


def _seconds(measurement: Measurement, clock: str) -> str:
    seconds = measurement.range(clock)
    return seconds_text(seconds.value) if seconds else ""


def _named(page: FillIn, change: Change) -> nodes.Node:
    """Return the name of a function, as a link to the page that measures it."""
    of = known_on(page).by_name.get((change.after.name, change.after.framework), {})
    docname = next((each.page for each in of.values() if each.page), "")
    return link(page, docname, change.after.name) if docname else nodes.Text(change.after.name)


FILL_IN: Mapping[str, Fill] = {"release-changes": shown}
