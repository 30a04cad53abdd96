"""What a page leaves open until all pages are read: a place, and who fills it in."""

from collections.abc import Callable, Sequence
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective, SphinxRole


class waiting(nodes.Inline, nodes.General, nodes.Element):
    """The place of what is known when the page is written; `fill_in` returns it."""


class FillIn(SphinxPostTransform):
    """Fill in the places of one page."""

    default_priority = 5

    def run(self, **options: Any) -> None:
        """Replace each place."""
        for node in list(self.document.findall(waiting)):
            node.replace_self(node["fill_in"](self, node))


def place(
    at: SphinxDirective | SphinxRole,
    fill_in: Callable[[Any, nodes.Element], nodes.Node | Sequence[nodes.Node]],
    uses: str,
    **facts: Any,
) -> waiting:
    """Return a place that a directive or a role leaves, which the function `fill_in` fills in.

    It is given what transforms the page, and the place. `uses` is noted of the page: whoever knows
    that what it names has changed has such pages written again, in Sphinx's event `env-updated`.
    """
    node = waiting(fill_in=fill_in, **facts)
    at.set_source_info(node)
    at.env.metadata[at.env.docname][uses] = True
    return node


def users(env: BuildEnvironment, uses: str) -> list[str]:
    """Return the pages of which it is noted that they use something."""
    return sorted(docname for docname in env.found_docs if uses in env.metadata[docname])


def setup(app: Sphinx) -> None:
    """Register what fills in the places."""
    app.add_post_transform(FillIn)
