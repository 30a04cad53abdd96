"""The directive that draws a roofline of each device from measurements that the page names."""

from collections.abc import Mapping, Sequence
from typing import Any

from docutils import nodes
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from drawing.numbers import rate_text
from drawing.svg import INKS
from executed.app import BookApp
from executed.nodes import table_node
from executed.options import Options
from executed.tabs import fold
from executed.waiting import FillIn, place

from . import directives as tables
from . import published as measurements
from .rooflines import Plan, PlanProblem, Reached, Roofs, drawing, reached, texts
from .schema import Measurement
from .tables import by_device

logger = logging.getLogger(__name__)


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
        return [place(self, _fill_in, plan=plan, caption=self.arguments[0])]


def _fill_in(page: FillIn, node: nodes.Element) -> list[nodes.Node]:
    plan, options = node["plan"], page.env.book_options
    if problem := page.known.problem(plan.names):
        logger.warning(problem, location=node, type="book", subtype="measured")
    found = by_device(measurements.matching(page.env, plan.names))
    roofs = {device: Roofs.of(of, plan) for device, of in found.items()}
    known = {device: of for device, of in roofs.items() if of}
    made = {
        device: _figure(options, node["caption"], of, reached(found[device], plan, of))
        for device, of in known.items()
    }
    data = {
        "moved": plan.moved,
        "computed": plan.computed,
        "points": _points(options, plan, found),
        "devices": {options.label(device): [of.moved, of.computed] for device, of in known.items()},
    }
    data_node = tables.data_node(page.env, "roofline-data", data)
    return tables.device_tabs(page.env, made, data_node) or tables.not_recorded(node)


def _points(
    options: Options, plan: Plan, found: Mapping[str, Sequence[Measurement]]
) -> dict[str, list[Any]]:
    """Return what a script needs of each point: its cost, label and colour."""
    points = {}
    for each in (each for of in found.values() for each in of):
        if cost := plan.declared(each.name):
            ink = (options.colour(each.framework) or INKS[0]).style
            points[each.reference] = [*cost, options.framework_label(each.framework), ink]
    return points


def _figure(
    options: Options, caption: str, roofs: Roofs, points: Sequence[Reached]
) -> nodes.Element:
    svg = drawing(points, roofs, options, caption) if points else ""
    figure = tables.figure_node(svg, [nodes.paragraph("", caption)])
    head = ["roof", "highest measured"]
    rows = [["memory", f"{roofs.moved / 1e9:.3g} GB/s"]]
    rows += [[f"arithmetic, {dtype}", rate_text(of)] for dtype, of in roofs.computed.items()]
    figure += table_node(head, rows, classes=["measurements"])
    head = ["measurement", "framework", "for each byte", "reached", "allowed", "share"]
    rows = [
        [each.measurement.name, options.framework_label(each.measurement.framework), *texts(each)]
        for each in points
    ]
    table = table_node(head, rows, classes=["measurements"])
    figure += fold("The points as a table", table)
    return figure


def setup(app: BookApp) -> None:
    """Register the directive."""
    app.add_directive("roofline", RooflineDirective)
