"""Tabs that switch together: of frameworks, and of devices."""

from collections.abc import Iterable, Mapping

from docutils import nodes
from sphinx.transforms import SphinxTransform
from sphinx_design.shared import create_component

from .book import book_of


class FrameworkTabs(SphinxTransform):
    """Make tabs of neighbouring cells that are each of a framework; open is conf.py's first."""

    default_priority = 20

    def apply(self, **options: object) -> None:
        """Change one page."""
        cells = [cell for cell in self.document.findall(nodes.container) if _framework(cell)]
        for first in cells:
            if "framework-tab" not in first.parent["classes"]:
                self._join(first)

    def _join(self, first: nodes.Element) -> None:
        parent, place = first.parent, first.parent.index(first)
        cells: dict[str, list[nodes.Node]] = {}
        while place < len(parent) and (name := _framework(parent[place])):
            cells.setdefault(name, []).append(parent.pop(place))
        options = book_of(self.env).options
        chosen = min(cells, key=[entry.name for entry in options.registry].index)
        items = [(name, options.framework_label(name), cells[name]) for name in cells]
        parent.insert(place, tab_set("framework", items, chosen))


def _framework(node: nodes.Node) -> str:
    """Return the framework of a cell, empty for all that is none."""
    if isinstance(node, nodes.container) and node.get("nb_element") == "cell_code":
        metadata: Mapping[str, str] = node.get("cell_metadata", {})
        return metadata.get("framework", "")
    return ""


def tab_set(
    group: str, items: Iterable[tuple[str, str, list[nodes.Node]]], chosen: str = ""
) -> nodes.Element:
    """Return tabs, each (key, label, nodes), that switch together; `chosen` or the first opens."""
    tabs = create_component("tab-set", classes=["sd-tab-set", f"{group}-tabs"])
    for key, label, children in items:
        head = nodes.rubric("", label, classes=["sd-tab-label"])
        head["sync_id"], head["sync_group"] = key, group
        classes = ["sd-tab-content", f"{group}-tab"]
        content = create_component("tab-content", classes=classes, children=children)
        both, is_open = [head, content], key == chosen
        tabs += create_component("tab-item", ["sd-tab-item"], children=both, selected=is_open)
    return tabs
