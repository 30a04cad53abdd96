"""The status page: on what, when and how long each page was executed, and what was unstable."""

import html

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective

from .measurements import table_node

HEAD = ("page", "device", "executed", "took", "this build", "unstable measurements", "versions")


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
            rows = [self._row(docname) for docname in sorted(self.env.book_pages)]
            node.replace_self(table_node(HEAD, rows, classes=["page-status"]))

    def _row(self, docname):
        state = self.env.book_pages[docname]
        uri = self.app.builder.get_relative_uri(self.env.docname, docname)
        link = nodes.reference("", docname, refuri=uri, internal=True)
        if state.failures:
            outcome = "failed"
        else:
            outcome = "executed" if state.fresh else "from the cache"
        if not state.facts:
            return [link, "–", "–", "–", outcome, "–", "–"]
        unstable = [f"{r['name']}@{r['framework']}" for r in state.records if not r["stable"]]
        return [
            link,
            device(state.facts),
            when(state.facts),
            f"{state.facts['seconds']:.1f} s",
            outcome,
            ", ".join(unstable) or "none",
            versions(state.facts),
        ]


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
    text = f"Executed on {device(state.facts)}, {when(state.facts)}, with {versions(state.facts)}."
    context["body"] += f'<p class="provenance">{html.escape(text)}</p>'


def setup(app):
    """Register the directive."""
    app.add_directive("page-status", PageStatusDirective)
    app.add_post_transform(FillInStatus)
    app.connect("html-page-context", sign)
