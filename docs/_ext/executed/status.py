"""The status page: when and how long each page was executed, and how its recordings stand."""

import collections
import dataclasses
import html
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from measured import published as measurements
from measured.schema import Measurement

from .app import BookApp
from .book import Book, PageState
from .nodes import table_node
from .store.output_format import RunMetadata
from .waiting import FillIn, place

HEAD = ("page", "executed (UTC)", "took", "kernel", "this build")


class StatusDirective(SphinxDirective):
    """`page-status` or `recorded-devices`."""

    def run(self) -> list[nodes.Node]:
        """Return the place of what the directive is named for."""
        return [place(self, SHOWN[self.name], uses="book_shows_status")]


def _devices(page: FillIn, node: nodes.Element) -> nodes.Node:
    return nodes.paragraph("", devices_in_words(page.app.book, page.env.book_pages.values()))


def _link(page: FillIn, docname: str) -> nodes.reference:
    uri = page.app.builder.get_relative_uri(page.env.docname, docname)
    return nodes.reference("", docname, refuri=uri, internal=True)


def _status(page: FillIn, node: nodes.Element) -> nodes.Node:
    states, book = page.env.book_pages, page.app.book
    # Measurements by page and device.
    made: dict[tuple[str, str], list[Measurement]] = collections.defaultdict(list)
    for each in measurements.measurements(page.env):
        made[each.page, each.device].append(each)
    rows: list[list[nodes.Node | str]] = []
    for docname in sorted(states):
        state = states[docname]
        row = _row(state, book.options.recorded)
        recorded = (recorded_on(each, state, made[docname, each]) for each in book.shown)
        rows.append([_link(page, docname), *row, *recorded])
    head = [*HEAD, *map(book.options.label, book.shown)]
    return table_node(head, rows, classes=["page-status"])


def _row(state: PageState, only_recorded: bool) -> list[str]:
    if state.failures:
        outcome = "failed"
    elif only_recorded:
        outcome = "recorded"
    else:
        outcome = "executed" if state.fresh else "cached"
    if state.facts is None:
        return ["–", "–", "–", outcome]
    return [
        when(state.facts).removesuffix(" UTC"),
        f"{state.facts.seconds:.1f} s",
        state.facts.process,
        outcome,
    ]


SHOWN: dict[str, Callable[[FillIn, nodes.Element], nodes.Node]] = {
    "page-status": _status,
    "recorded-devices": _devices,
}


def recorded_on(device: str, state: PageState, made: Sequence[Measurement]) -> str:
    """Say how the recording of a page on a device stands, and of what day it is."""
    if state.only and device != state.home:
        return "–"
    found = state.states.get(device)
    if found is None or found.word == "missing":
        return "not yet"
    day = state.recorded[device].executed[:10] if device in state.recorded else ""
    count = processes(made)
    said = f", {count} process{'es' * (count != '1')}" if count else ""
    return f"{found.word} {day}".strip() + said


def devices_in_words(book: Book, states: Iterable[PageState]) -> str:
    """Say how many pages were recorded on which device, and on which none was."""
    states = list(states)
    counts = {
        device: sum(device in state.recorded for state in states)
        for device in dict.fromkeys([*book.options.devices, *book.devices])
    }
    label = book.options.label
    some = [
        f"{label(device)} ({count} page{'s' * (count > 1)})"
        for device, count in counts.items()
        if count
    ]
    none = [label(device) for device, count in counts.items() if not count]
    parts = [f"Recorded so far: {', '.join(some)}."] if some else []
    return " ".join([*parts, *([f"Not recorded yet: {', '.join(none)}."] if none else [])])


def processes(made: Iterable[Measurement]) -> str:
    """Say in how many processes measurements were made; nothing where there are none at all."""
    counts = sorted({len(each.processes) for each in made})
    return "–".join(map(str, dict.fromkeys((*counts[:1], *counts[-1:]))))


def machine(facts: RunMetadata, packages: Collection[str]) -> str:
    """Say on what a page was executed: device, processor and the versions of packages."""
    more = [facts.processor, f"{facts.threads} threads"]
    more += [f"driver {facts.driver}"] if facts.driver else []
    more += [facts.memory] if facts.memory else []
    # A part of a package, such as jaxlib, is named where its version is another.
    found = {
        name: version
        for name, version in facts.versions.items()
        if (name in packages or name == "python")
        and not any(
            name != of and name.startswith(of) and version == its
            for of, its in facts.versions.items()
        )
    }
    versions = ", ".join(f"{name} {version}" for name, version in sorted(found.items()))
    return f"{facts.device} ({', '.join(more)}), with {versions}"


def when(facts: RunMetadata) -> str:
    """Say when a page was executed, to the minute."""
    return f"{facts.executed[:16].replace('T', ' ')} UTC"


def add_provenance(
    app: BookApp, docname: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """Say below each executed page on what and when its outputs came about."""
    state = app.env.book_pages.get(docname)
    if state is None or "body" not in context:
        return
    only_recorded = app.book.options.recorded
    # As the numbers of the page have it.
    called = {record["device"]: record["processor"] for record in reversed(state.records)}

    def machine_of(facts: RunMetadata) -> str:
        named = dataclasses.replace(facts, processor=called.get(facts.device, facts.processor))
        return machine(named, state.packages)

    lines = []
    if state.facts and not state.failures and not only_recorded:
        on = machine_of(state.facts)
        lines.append(f"Executed {when(state.facts)} on {on}.")
    for device, facts in state.recorded.items():
        if device != state.home or only_recorded:
            stale = "" if state.states[device].word == "current" else f" ({state.states[device]})"
            where = machine_of(facts)
            lines.append(f"Recorded {facts.day} on {where}{stale}.")
    for line in lines:
        context["body"] += f'<p class="provenance">{html.escape(line)}</p>'


def setup(app: BookApp) -> None:
    """Register the directives and the event."""
    for name in SHOWN:
        app.add_directive(name, StatusDirective)
    app.connect("html-page-context", add_provenance)
