"""What a page leaves open until all pages are read: a place, and who fills it in."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective, SphinxRole

from .book import book_of

# Under which the metadata of a page hold what it shows.
SHOWS = "book_shows"
# What fills in a place, given what transforms the page, and the place.
Fill = Callable[[Any, nodes.Element], nodes.Node | Sequence[nodes.Node]]


class waiting(nodes.Inline, nodes.General, nodes.Element):
    """The place of what is known when the page is written; `fill_in` returns it."""


class FillIn(SphinxPostTransform):
    """Fill in the places of one page."""

    default_priority = 5

    def run(self, **options: Any) -> None:
        """Replace each place."""
        for node in list(self.document.findall(waiting)):
            node.replace_self(node["fill_in"](self, node))


def place(at: SphinxDirective | SphinxRole, fill_in: Fill, *shown: str, **facts: Any) -> waiting:
    """Return a place that a directive or a role leaves; `shown` names what it `shows`."""
    node = waiting(fill_in=fill_in, **facts)
    at.set_source_info(node)
    shows(at.env, *shown)
    return node


def link(page: FillIn, docname: str, text: str) -> nodes.reference:
    """Return a link to another page, for a place of this one."""
    uri = book_of(page.env).relative_uri(page.env.docname, docname)
    return nodes.reference("", text, refuri=uri, internal=True)


def shows(env: BuildEnvironment, *names: str) -> None:
    """Note which data of the whole book the page that is being read shows.

    What a feature concludes has the name of the feature. Where that has changed, the core has such
    pages written again.
    """
    env.metadata[env.docname].setdefault(SHOWS, set()).update(names)


def pages_with(env: BuildEnvironment, names: Collection[str]) -> list[str]:
    """Return the pages that show anything of these names."""
    noted = {docname: env.metadata[docname].get(SHOWS, ()) for docname in env.found_docs}
    return sorted(docname for docname in noted if not set(names).isdisjoint(noted[docname]))


def setup(app: Sphinx) -> None:
    """Register what fills in the places."""
    app.add_post_transform(FillIn)
