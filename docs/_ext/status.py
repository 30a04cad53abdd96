"""The status page: on what, when and how long each page was executed, and what was unstable."""

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
        facts = state.facts
        unstable = [f"{r['name']}@{r['framework']}" for r in state.records if not r["stable"]]
        versions = ", ".join(f"{k} {v}" for k, v in facts.get("versions", {}).items())
        device = facts.get("device", "–")
        if "processor" in facts:
            device += f" ({facts['processor']}, {facts['threads']} threads)"
        return [
            link,
            device,
            facts["executed"].replace("T", " ").replace("+00:00", " UTC"),
            f"{facts['seconds']:.1f} s",
            outcome,
            ", ".join(unstable) or "none",
            versions,
        ]


def setup(app):
    """Register the directive."""
    app.add_directive("page-status", PageStatusDirective)
    app.add_post_transform(FillInStatus)
