"""The status page: when and how long each page was executed, and how its recordings stand."""

import dataclasses
import html
from collections.abc import Collection
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective

from .book import Book, BuiltPage, Outcome, book_of
from .nodes import for_device, raw, table_node
from .options import Options
from .store.output_format import RunMetadata
from .store.states import Standing
from .waiting import Fill, FillIn, link, place

HEAD = ("page", "executed (UTC)", "took", "kernel", "this build")
# What pages show that say how pages stand.
STATUS = "status"
# Of what a build has executed, and shows as it was recorded.
LENT = "Its measurements, and what cannot run here, are shown as recorded"


class StatusDirective(SphinxDirective):
    """`page-status` or `recorded-devices`."""

    def run(self) -> list[nodes.Node]:
        """Return the place of what the directive is named for."""
        return [place(self, SHOWN[self.name], STATUS)]


def _devices(page: FillIn, node: nodes.Element) -> nodes.Node:
    return nodes.paragraph("", devices_in_words(book_of(page.env)))


def _status(page: FillIn, node: nodes.Element) -> nodes.Node:
    book = book_of(page.env)
    rows: list[list[nodes.Node | str]] = []
    for docname in sorted(book.pages):
        built = book.pages[docname]
        row = _row(built.outcome, docname in book.fresh, book.options.recorded)
        recorded = (recorded_on(device, built) for device in book.shown)
        rows.append([link(page, docname, docname), *row, *recorded])
    head = [*HEAD, *map(book.options.label, book.shown)]
    return table_node(head, rows, classes=["page-status"])


def _row(outcome: Outcome, fresh: bool, only_recorded: bool) -> list[str]:
    if outcome.failures:
        came = "failed"
    elif only_recorded:
        came = "recorded"
    else:
        came = "executed" if fresh else "cached"
    if (facts := outcome.facts) is None:
        return ["", "", "", came]
    return [when(facts).removesuffix(" UTC"), f"{facts.seconds:.1f} s", facts.process, came]


SHOWN: dict[str, Fill] = {"page-status": _status, "recorded-devices": _devices}


def recorded_on(device: str, page: BuiltPage) -> str:
    """Say how the recording of a page on a device stands, and of what day it is."""
    outcome = page.outcome
    if outcome.only and device != page.inputs.device:
        return ""
    state = outcome.states.get(device)
    if state is None or state.missing:
        return "not yet"
    day = outcome.recorded[device].day if device in outcome.recorded else ""
    remarks = [c.remarks[device] for c in outcome.conclusions.values() if device in c.remarks]
    return ", ".join([f"{state.standing} {day}".strip(), *remarks])


def devices_in_words(book: Book) -> str:
    """Say how many pages were recorded on which device, and on which none was."""
    outcomes = [page.outcome for page in book.pages.values()]
    counts = {
        device: sum(device in outcome.recorded for outcome in outcomes)
        for device in dict.fromkeys([*book.options.devices, *book.devices])
    }
    label = book.options.label
    some = [f"{label(of)} ({n} page{'s' * (n > 1)})" for of, n in counts.items() if n]
    none = [label(of) for of, n in counts.items() if not n]
    parts = [f"Recorded so far: {', '.join(some)}."] if some else []
    return " ".join([*parts, *([f"Not recorded yet: {', '.join(none)}."] if none else [])])


def machine(facts: RunMetadata, packages: Collection[str]) -> str:
    """Say on what a page was executed: device, processor and the versions of packages."""
    more = [facts.processor, f"{facts.threads} threads"]
    more += [f"driver {facts.driver}"] if facts.driver else []
    more += [facts.memory] if facts.memory else []
    # A part of a package, such as jaxlib, is named where its version is another.
    shown = {
        name: version
        for name, version in facts.versions.items()
        if (name in packages or name == "python")
        and not any(
            name != other and name.startswith(other) and version == its_version
            for other, its_version in facts.versions.items()
        )
    }
    versions = ", ".join(f"{name} {version}" for name, version in sorted(shown.items()))
    return f"{facts.device} ({', '.join(more)}), with {versions}"


def when(facts: RunMetadata) -> str:
    """Say when a page was executed, to the minute."""
    return f"{facts.executed[:16].replace('T', ' ')} UTC"


class SayHowPageStands(SphinxPostTransform):
    """Say below a page on what its outputs came about, and above it what a device lacks."""

    default_priority = 900
    formats = ("html",)

    def run(self, **options: Any) -> None:
        """Change one page."""
        book = book_of(self.env)
        page = book.pages.get(self.env.docname)
        if page is None or not page.inputs.device:
            return
        for line in provenance(page, book.options):
            self.document += raw(f'<p class="provenance">{html.escape(line)}</p>')
        notices = [
            for_device(device, text, "device-notice")
            for device in book.shown
            if (text := notice(book.options, device, page))
        ]
        add_notice(self.document, "".join(notices))


def add_notice(document: nodes.document, text: str) -> None:
    """Put HTML below the heading of a page."""
    if text and (title := document.next_node(nodes.title)):
        title.parent.insert(title.parent.index(title) + 1, raw(text))


def provenance(page: BuiltPage, options: Options) -> list[str]:
    """Return the lines that say on what and when a page was executed and recorded."""
    outcome, only_recorded = page.outcome, options.recorded
    processors = {
        device: name
        for conclusion in outcome.conclusions.values()
        for device, name in conclusion.processors.items()
    }

    def machine_of(facts: RunMetadata) -> str:
        named = dataclasses.replace(facts, processor=processors.get(facts.device, facts.processor))
        return machine(named, page.inputs.packages)

    lines = []
    if outcome.facts and not outcome.failures and not only_recorded:
        # Numbers that a recording lends name its processor.
        own = machine(outcome.facts, page.inputs.packages)
        on = own if outcome.lent else machine_of(outcome.facts)
        lines.append(f"Executed {when(outcome.facts)} on {on}.")
    for device, facts in outcome.recorded.items():
        home = device == page.inputs.device and not only_recorded
        if not home or outcome.lent:
            stale = "" if outcome.states[device].current else ", before code of this page changed"
            where = f"{facts.day} on {machine_of(facts)}{stale}."
            lines.append(f"{LENT if home else 'Recorded'} {where}")
    return lines


def notice(options: Options, device: str, page: BuiltPage) -> str:
    """Say what a reader who chose a device sees instead of its outputs; empty where nothing."""
    home = page.inputs.device
    if device == home:
        return ""
    label, shown = options.label(device), options.label(home)
    if page.outcome.only:
        return f"This page is executed on {shown} only."
    state = page.outcome.states.get(device)
    if state is None or state.missing:
        return f"Not recorded on {label} yet: what you see is from {shown}."
    if state.current:
        return ""
    if state.standing is Standing.EARLIER:
        return f"Parts of this page aren't recorded on {label} with today's code, and say so."
    return f"The recording on {label} is {state}."


def add_switch(
    app: Sphinx, docname: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """Give the page its switch of devices."""
    book = book_of(app.env)
    names = [(device, book.options.label(device)) for device in book.shown]
    context["book_devices"] = names if len(names) > 1 else []


def setup(app: Sphinx) -> None:
    """Register the directives, the transform and the event."""
    for name in SHOWN:
        app.add_directive(name, StatusDirective)
    app.add_post_transform(SayHowPageStands)
    app.connect("html-page-context", add_switch)
