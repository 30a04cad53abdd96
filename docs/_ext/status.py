"""The status page: on what, when and how long each page was executed, and what was unstable."""

import html

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective

from .measurements import table_node

HEAD = ("page", "executed", "on", "took", "this build", "unstable")


class page_status(nodes.General, nodes.Element):
    """A table that is filled in when the status page is written."""


class PageStatusDirective(SphinxDirective):
    """The table of all executed pages."""

    def run(self):
        self.env.metadata[self.env.docname]["book_shows_status"] = True
        return [page_status()]


class FillInStatus(SphinxPostTransform):
    """Fill the status table in."""

    default_priority = 5

    def run(self, **options):
        """Fill in one page, if it shows the status."""
        for node in list(self.document.findall(page_status)):
            node.replace_self(self._status())

    def _status(self):
        states = self.env.book_pages
        places = dict.fromkeys(place(state.facts) for state in states.values() if state.facts)
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
        uri = self.app.builder.get_relative_uri(self.env.docname, docname)
        link = nodes.reference("", docname, refuri=uri, internal=True)
        if state.failures:
            outcome = "failed"
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
    return f"{facts['device']} ({facts['processor']}, {facts['threads']} threads)"


def when(facts):
    """Say when a page was executed, to the minute."""
    return f"{facts['executed'][:16].replace('T', ' ')} UTC"


def versions(facts):
    """List the versions of an execution."""
    return ", ".join(f"{name} {version}" for name, version in facts.get("versions", {}).items())


def sign(app, docname, templatename, context, doctree):
    """Say below each executed page on what and when its outputs came about."""
    state = app.env.book_pages.get(docname)
    if state is None or not state.facts or "body" not in context:
        return
    text = f"Executed {when(state.facts)} on {place(state.facts)}."
    context["body"] += f'<p class="provenance">{html.escape(text)}</p>'


def setup(app):
    """Register the directive."""
    app.add_directive("page-status", PageStatusDirective)
    app.add_post_transform(FillInStatus)
    app.connect("html-page-context", sign)
