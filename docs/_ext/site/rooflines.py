"""The directive that draws a roofline of each device from measurements that the page names."""

from collections.abc import Mapping, Sequence
from typing import Any

from docutils import nodes
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from ..drawing.svg import INKS
from ..measurements.numbers import rate_text
from ..measurements.rooflines import Plan, PlanProblem, Reached, Roofs, drawing, reached, texts
from ..measurements.schema import Measurement
from ..measurements.tables import by_device
from . import measurements, tables
from .app import BookApp, BookTransform

logger = logging.getLogger(__name__)


class roofline(nodes.General, nodes.Element):
    """A roofline that is drawn from the measurements when the page is written."""


class RooflineDirective(SphinxDirective):
    """A roofline of each device; the content declares what it is drawn from, in TOML."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the place of the drawing; the argument is its caption."""
        try:
            plan = Plan.read("\n".join(self.content))
        except PlanProblem as problem:
            raise self.error(str(problem)) from None
        node = roofline(plan=plan, caption=self.arguments[0])
        self.set_source_info(node)
        self.env.metadata[self.env.docname]["book_uses_records"] = True
        return [node]


class FillInRooflines(BookTransform):
    """Replace the rooflines that wait for measurements."""

    default_priority = 5

    def run(self, **options: Any) -> None:
        """Fill in one page."""
        for node in list(self.document.findall(roofline)):
            plan = node["plan"]
            if problem := measurements.known(self.env).problem(plan.names):
                logger.warning(problem, location=node, type="book", subtype="measured")
            found = by_device(measurements.matching(self.env, plan.names))
            roofs = {device: Roofs.of(of, plan) for device, of in found.items()}
            known = {device: of for device, of in roofs.items() if of}
            made = {
                device: self._figure(node, of, reached(found[device], plan, of))
                for device, of in known.items()
            }
            labels = measurements.labels(self.env.book_options)
            data = {
                "moved": plan.moved,
                "computed": plan.computed,
                "points": self._points(plan, found),
                "devices": {
                    labels.device(device): [of.moved, of.computed] for device, of in known.items()
                },
            }
            data_node = tables.data_node(self.env, "roofline-data", data)
            places = tables.device_tabs(self.env, made, data_node)
            missing = nodes.paragraph("", "not recorded", classes=["not-recorded"])
            node.replace_self(places or [missing])

    def _points(
        self, plan: Plan, found: Mapping[str, Sequence[Measurement]]
    ) -> dict[str, list[Any]]:
        """Return what a script needs of each point: its cost, label and colour."""
        labels = measurements.labels(self.env.book_options)
        inks = tables.inks(self.env.book_options)
        points = {}
        for each in (each for of in found.values() for each in of):
            if cost := plan.declared(each.name):
                ink = inks.get(each.framework, INKS[0]).style
                points[each.reference] = [*cost, labels.framework(each.framework), ink]
        return points

    def _figure(
        self, node: nodes.Element, roofs: Roofs, points: Sequence[Reached]
    ) -> nodes.Element:
        labels = measurements.labels(self.env.book_options)
        inks = tables.inks(self.env.book_options)
        svg = drawing(points, roofs, labels, node["caption"], inks) if points else ""
        figure = tables.figure_node(svg, [nodes.paragraph("", node["caption"])])
        head = ["roof", "highest measured"]
        rows = [["memory", f"{roofs.moved / 1e9:.3g} GB/s"]]
        rows += [[f"arithmetic, {dtype}", rate_text(of)] for dtype, of in roofs.computed.items()]
        figure += tables.table_node(head, rows, classes=["measurements"])
        head = ["measurement", "framework", "for each byte", "reached", "allowed", "share"]
        table = tables.table_node(head, map(self._row, points), classes=["measurements"])
        figure += tables.folded("The points as a table", table)
        return figure

    def _row(self, point: Reached) -> list[str]:
        labels = measurements.labels(self.env.book_options)
        of: Measurement = point.measurement
        return [of.name, labels.framework(of.framework), *texts(point)]


def setup(app: BookApp) -> None:
    """Register the directive."""
    app.add_directive("roofline", RooflineDirective)
    app.add_post_transform(FillInRooflines)
