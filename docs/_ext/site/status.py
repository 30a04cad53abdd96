"""The status page: on what, when and how long each page was executed, in how many processes."""

import collections
import html
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from ..measurements.schema import Measurement
from ..records.output_format import RunMetadata
from . import measurements
from .app import BookApp, BookTransform
from .states import Book, PageState, book_of, pages_of
from .tables import table_node

HEAD = ("page", "executed (UTC)", "on", "took", "kernel", "this build", "processes")
PREVIEW = "Preview: measured with few samples in one process, for a first look."
# Measurements by page and device.
Made = collections.defaultdict[tuple[str, str], list[Measurement]]


class status_place(nodes.General, nodes.Element):
    """What a directive stands for is filled in here when the page is written."""


class StatusDirective(SphinxDirective):
    """`page-status`, `recording-status` or `recorded-devices`."""

    def run(self) -> list[nodes.Node]:
        """Return the place of what the directive is named for."""
        self.env.metadata[self.env.docname]["book_shows_status"] = True
        return [status_place(shown=self.name)]


class FillInStatus(BookTransform):
    """Fill in the tables of the status page, and the sentence on what was recorded."""

    default_priority = 5

    def run(self, **options: Any) -> None:
        """Fill in one page, if it shows the status."""
        fill_in = {
            "page-status": self._status,
            "recording-status": self._recordings,
            "recorded-devices": self._devices,
        }
        for node in list(self.document.findall(status_place)):
            node.replace_self(fill_in[node["shown"]]())

    def _devices(self) -> list[nodes.Node]:
        text = devices_in_words(book_of(self.app), pages_of(self.env).values())
        return [nodes.paragraph("", text)]

    def _recordings(self) -> list[nodes.Node]:
        states, book = pages_of(self.env), book_of(self.app)
        columns = book.shown
        rows: list[list[nodes.Node | str]] = []
        made = self._made()
        for docname in sorted(states):
            of_page = [
                recorded_on(device, states[docname], made[docname, device]) for device in columns
            ]
            rows.append([self._link(docname), *of_page])
        head = ["page", *(book.options.label(device) for device in columns)]
        return [table_node(head, rows, classes=["page-status", "recordings"])]

    def _made(self) -> Made:
        made: Made = collections.defaultdict(list)
        for each in measurements.measurements(self.env):
            made[each.page, each.device].append(each)
        return made

    def _link(self, docname: str) -> nodes.reference:
        uri = self.app.builder.get_relative_uri(self.env.docname, docname)
        return nodes.reference("", docname, refuri=uri, internal=True)

    def _status(self) -> list[nodes.Node]:
        states = pages_of(self.env)
        places = dict.fromkeys(
            place(state.facts) for state in states.values() if state.facts is not None
        )
        letters = dict(zip(places, map(letter, range(len(places))), strict=True))
        made, book = self._made(), book_of(self.app)
        rows = [self._row(docname, states[docname], letters, made) for docname in sorted(states)]
        parts: list[nodes.Node] = [bullets(f"{sign}: {name}" for name, sign in letters.items())]
        if book.options.preview:
            parts.append(nodes.important("", nodes.paragraph("", PREVIEW)))
        parts.append(table_node(HEAD, rows, classes=["page-status"]))
        return parts

    def _row(
        self, docname: str, state: PageState, letters: dict[str, str], made: Made
    ) -> list[Any]:
        link = self._link(docname)
        if state.failures:
            outcome = "failed"
        elif book_of(self.app).options.recorded:
            outcome = "recorded"
        else:
            outcome = "executed" if state.fresh else "cached"
        if state.facts is None:
            return [link, "–", "–", "–", "–", outcome, "–"]
        return [
            link,
            when(state.facts).removesuffix(" UTC"),
            letters[place(state.facts)],
            f"{state.facts.seconds:.1f} s",
            state.facts.process,
            outcome,
            processes(made[docname, state.facts.device]) or "–",
        ]


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


def bullets(lines: Iterable[str]) -> nodes.bullet_list:
    """Return a list with one entry for each text."""
    entries = [nodes.list_item("", nodes.paragraph("", line)) for line in lines]
    return nodes.bullet_list("", *entries)


def letter(number: int) -> str:
    """Return A, B, C and so on for 0, 1, 2."""
    return chr(ord("A") + number)


def processes(made: Iterable[Measurement]) -> str:
    """Say in how many processes measurements were made; nothing where there are none at all."""
    counts = sorted({len(each.processes) for each in made})
    return "–".join(map(str, dict.fromkeys((*counts[:1], *counts[-1:]))))


def place(facts: RunMetadata, packages: Collection[str] | None = None) -> str:
    """Say on what a page was executed: device, processor and versions, or those of packages."""
    more = [facts.processor, f"{facts.threads} threads"]
    more += [f"driver {facts.driver}"] if facts.driver else []
    more += [facts.memory] if facts.memory else []
    found = facts.versions
    if packages is not None:
        # A part of a package, such as jaxlib, is named where its version is another.
        found = {
            name: version
            for name, version in found.items()
            if (name in packages or name == "python")
            and not any(name != of and name.startswith(of) for of in found if found[of] == version)
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
    state = pages_of(app.env).get(docname)
    if state is None or "body" not in context:
        return
    only_recorded = book_of(app).options.recorded
    lines = []
    if state.facts and not state.failures and not only_recorded:
        tried = f" {PREVIEW}" if state.records and book_of(app).options.preview else ""
        on = place(state.facts, state.packages)
        lines.append(f"Executed {when(state.facts)} on {on}.{tried}")
    for device, facts in state.recorded.items():
        if device != state.home or only_recorded:
            stale = "" if state.states[device].word == "current" else f" ({state.states[device]})"
            where = place(facts, state.packages)
            lines.append(f"Recorded {facts.day} on {where}{stale}.")
    for line in lines:
        context["body"] += f'<p class="provenance">{html.escape(line)}</p>'


def setup(app: BookApp) -> None:
    """Register the directives and the event."""
    for name in ("page-status", "recording-status", "recorded-devices"):
        app.add_directive(name, StatusDirective)
    app.add_post_transform(FillInStatus)
    app.connect("html-page-context", add_provenance)
