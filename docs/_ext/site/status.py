"""The status page: on what, when and how long each page was executed, and what was unstable."""

import html

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective

from . import tabs as devices
from .tables import table_node

HEAD = ("page", "executed", "on", "took", "this build", "unstable")


class page_status(nodes.General, nodes.Element):
    """A table that is filled in when the status page is written."""


class PageStatusDirective(SphinxDirective):
    """The table of all executed pages."""

    def run(self):
        self.env.metadata[self.env.docname]["book_shows_status"] = True
        return [page_status()]


class recording_status(nodes.General, nodes.Element):
    """A table of recordings that is filled in when the status page is written."""


class RecordingStatusDirective(SphinxDirective):
    """The table of the recordings of all pages on all devices."""

    def run(self):
        self.env.metadata[self.env.docname]["book_shows_status"] = True
        return [recording_status()]


class FillInStatus(SphinxPostTransform):
    """Fill the tables of the status page in."""

    default_priority = 5

    def run(self, **options):
        """Fill in one page, if it shows the status."""
        for node in list(self.document.findall(page_status)):
            node.replace_self(self._status())
        for node in list(self.document.findall(recording_status)):
            node.replace_self(self._recordings())

    def _recordings(self):
        states = self.env.book_pages
        columns = list(dict.fromkeys([*self.config.book_devices, *self.app.book_devices]))
        rows = []
        for docname in sorted(states):
            of_page = [recorded_on(device, states[docname]) for device in columns]
            rows.append([self._link(docname), *of_page])
        head = ["page", *(devices.label(self.config, device) for device in columns)]
        return table_node(head, rows, classes=["page-status"])

    def _link(self, docname):
        uri = self.app.builder.get_relative_uri(self.env.docname, docname)
        return nodes.reference("", docname, refuri=uri, internal=True)

    def _status(self):
        states = self.env.book_pages
        places = dict.fromkeys(
            place(state.facts) for state in states.values() if "device" in state.facts
        )
        letters = dict(zip(places, map(letter, range(len(places))), strict=True))
        rows = [
            self._row(docname, states[docname], letters.get(place(states[docname].facts), "–"))
            for docname in sorted(states)
        ]
        unstable = [
            f"{docname}: {', '.join(names)}"
            for docname in sorted(states)
            if (names := unstable_measurements(states[docname].records))
        ]
        parts = [bullets(f"{sign}: {name}" for name, sign in letters.items())]
        parts.append(table_node(HEAD, rows, classes=["page-status"]))
        if unstable:
            parts += [nodes.rubric("", "Unstable measurements"), bullets(unstable)]
        return parts

    def _row(self, docname, state, sign):
        link = self._link(docname)
        if state.failures:
            outcome = "failed"
        elif self.config.book_recorded:
            outcome = "recorded"
        else:
            outcome = "executed" if state.fresh else "cached"
        if not state.facts:
            return [link, "–", sign, "–", outcome, "–"]
        unstable = len(unstable_measurements(state.records))
        return [
            link,
            when(state.facts),
            sign,
            f"{state.facts['seconds']:.1f} s",
            outcome,
            f"{unstable} of {len(state.records)}" if state.records else "–",
        ]


def recorded_on(device, state):
    """Say how the recording of a page on a device stands, and of what day it is."""
    if state.only and device != state.home:
        return "–"
    found = state.states.get(device)
    if found is None or found.word == "missing":
        return "not yet"
    day = state.recorded[device]["executed"][:10] if device in state.recorded else ""
    return f"{found.word} {day}".strip()


def bullets(lines):
    """Return a list with one entry for each text."""
    entries = [nodes.list_item("", nodes.paragraph("", line)) for line in lines]
    return nodes.bullet_list("", *entries)


def letter(number):
    """Return A, B, C and so on for 0, 1, 2."""
    return chr(ord("A") + number)


def unstable_measurements(records):
    """Name the records whose samples scatter too much."""
    return [f"{r['name']}@{r['framework']}" for r in records if not r["stable"]]


def place(facts):
    """Say on what a page was executed: device, processor and versions."""
    return f"{device(facts)}, with {versions(facts)}"


def device(facts):
    """Name the device of an execution, and the processor of its machine."""
    if "device" not in facts:
        return "–"
    more = [facts["processor"], f"{facts['threads']} threads"]
    more += [f"driver {facts['driver']}"] if "driver" in facts else []
    more += [facts["memory"]] if "memory" in facts else []
    return f"{facts['device']} ({', '.join(more)})"


def when(facts):
    """Say when a page was executed, to the minute."""
    return f"{facts['executed'][:16].replace('T', ' ')} UTC"


def versions(facts):
    """List the versions of an execution."""
    found = sorted(facts.get("versions", {}).items())
    return ", ".join(f"{name} {version}" for name, version in found)


def sign(app, docname, templatename, context, doctree):
    """Say below each executed page on what and when its outputs came about."""
    state = app.env.book_pages.get(docname)
    if state is None or "body" not in context:
        return
    lines = []
    if "device" in state.facts and not app.config.book_recorded:
        lines.append(f"Executed {when(state.facts)} on {place(state.facts)}.")
    for device, facts in state.recorded.items():
        if device != state.home or app.config.book_recorded:
            stale = "" if state.states[device].word == "current" else f" ({state.states[device]})"
            lines.append(f"Recorded {when(facts)} on {place(facts)}{stale}.")
    for line in lines:
        context["body"] += f'<p class="provenance">{html.escape(line)}</p>'


def setup(app):
    """Register the directive."""
    app.add_directive("page-status", PageStatusDirective)
    app.add_directive("recording-status", RecordingStatusDirective)
    app.add_post_transform(FillInStatus)
    app.connect("html-page-context", sign)
