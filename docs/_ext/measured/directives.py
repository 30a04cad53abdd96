"""The directives that show many measurements at once: tables and charts."""

import fnmatch
import json
from collections.abc import Mapping, Sequence
from typing import Any

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from executed.app import BookApp, BookEnvironment
from executed.nodes import table_node, table_note
from executed.tabs import fold, tab_set
from executed.waiting import FillIn, place

from . import charts
from . import published as measurements
from .schema import Measurement
from .tables import COLUMNS, DEFAULT_COLUMNS, by_device, grid, notes_below, settings

logger = logging.getLogger(__name__)
# What marks the page with the settings, to which charts lead.
RULES = "book_has_settings"
DEFAULTS = {"x": "name", "y": "latency", "series": "framework", "scale": "linear"}


class NamesDirective(SphinxDirective):
    """The names of all measurements of the book by page, as data for a script of the page."""

    def run(self) -> list[nodes.Node]:
        """Return the place of the data."""
        return [place(self, _names)]


class SettingsDirective(SphinxDirective):
    """The switches under which each framework was measured, on each device."""

    def run(self) -> list[nodes.Node]:
        """Return the place of the table."""
        self.env.metadata[self.env.docname][RULES] = True
        return [place(self, _settings)]


class MeasurementsDirective(SphinxDirective):
    """A table of the measurements whose names match a pattern."""

    required_arguments = 1
    final_argument_whitespace = True
    option_spec = {"columns": directives.unchanged}  # noqa: RUF012

    def run(self) -> list[nodes.Node]:
        """Return the place of the table."""
        return [place(self, _table, **self.shown())]

    def shown(self) -> dict[str, Any]:
        """Return what tables and charts have in common."""
        columns = self.options.get("columns", DEFAULT_COLUMNS).split()
        for column in columns:
            if column not in COLUMNS:
                raise self.error(f"there is no column '{column}'; there are {', '.join(COLUMNS)}")
        return {"patterns": self.arguments[0].split(), "columns": columns}


class ChartDirective(MeasurementsDirective):
    """A chart of the measurements whose names match a pattern; the content is its caption."""

    has_content = True
    option_spec = {  # noqa: RUF012
        "x": lambda value: directives.choice(value, ("size", "name")),
        "y": lambda value: directives.choice(value, tuple(charts.QUANTITIES)),
        "series": lambda value: directives.choice(value, ("framework", "alternative")),
        "scale": lambda value: directives.choice(value, ("linear", "logarithmic")),
        "ceiling": directives.unchanged,
        "columns": directives.unchanged,
    }

    def run(self) -> list[nodes.Node]:
        """Return the place of the chart, with its caption inside."""
        facts: dict[str, Any] = DEFAULTS | self.options | self.shown()
        facts["ceiling"] = self.options.get("ceiling", "").split()
        node = place(self, _chart, **facts, caption=" ".join(self.content))
        node += self.parse_content_to_nodes()
        return [node]


def _names(page: FillIn, node: nodes.Element) -> nodes.Node:
    """Return the references of all measurements with their pages: addresses and titles."""
    pages: dict[str, list[str]] = {}
    for each in measurements.measurements(page.env):
        pages.setdefault(each.page, []).append(each.reference)
    uri = page.app.builder.get_relative_uri
    by_page = {
        uri(page.env.docname, name): [
            page.env.titles[name].astext(),
            list(dict.fromkeys(names)),
        ]
        for name, names in pages.items()
    }
    return data_node(page.env, "measurement-names", {"pages": by_page})


def _settings(page: FillIn, node: nodes.Element) -> list[nodes.Node]:
    everywhere = by_device(measurements.measurements(page.env))
    made = {
        device: table_node(*settings(found, page.env.book_options), classes=["measurements"])
        for device, found in everywhere.items()
    }
    labels = {each.name: each.label for each in page.env.book_options.registry}
    return device_tabs(
        page.env, made, data_node(page.env, "measurement-data", {"frameworks": labels})
    )


def _table(page: FillIn, node: nodes.Element) -> list[nodes.Node]:
    found = _matching(page, node, node["patterns"])
    made = {device: _grid(page.env, node, of) for device, of in by_device(found).items()}
    made = _with_outdated(page, node, made)
    return device_tabs(page.env, made, _data(page.env, node, found)) or not_recorded(node)


def _chart(page: FillIn, node: nodes.Element) -> list[nodes.Node]:
    found = _matching(page, node, node["patterns"])
    drawn = [each for each in found if charts.can_be_drawn(each, node["x"], node["y"])]
    if found and not drawn:
        message = f"no measurement of {' '.join(node['patterns'])} has x and y of the chart"
        logger.warning(message, location=node, type="book", subtype="measured")
    ceilings = _matching(page, node, node["ceiling"])
    ceilings = [each for each in ceilings if charts.can_be_drawn(each, "name", node["y"])]
    of, limits = by_device(found), by_device(ceilings)
    made = {
        device: _figure(page.env, node, of[device], each, limits.get(device, []))
        for device, each in by_device(drawn).items()
    }
    made = _with_outdated(page, node, made)
    if not made:
        return not_recorded(node)
    data = _data(page.env, node, found, drawn, ceilings)
    return [*device_tabs(page.env, made, data), *_rules(page)]


def _rules(page: FillIn) -> list[nodes.Node]:
    """Return a link to the page that says under which rules and settings all was measured."""
    named = [name for name, facts in page.env.metadata.items() if RULES in facts]
    return [
        nodes.paragraph(
            "",
            "",
            nodes.reference(
                "",
                page.env.titles[name].astext(),
                refuri=page.app.builder.get_relative_uri(page.env.docname, name),
                internal=True,
            ),
            classes=["measurement-rules"],
        )
        for name in named
    ]


def _matching(page: FillIn, node: nodes.Element, patterns: Sequence[str]) -> list[Measurement]:
    if problem := page.known.problem(patterns):
        logger.warning(problem, location=node, type="book", subtype="measured")
    return measurements.matching(page.env, patterns)


def _with_outdated(
    page: FillIn, node: nodes.Element, made: Mapping[str, nodes.Element]
) -> dict[str, nodes.Element]:
    """Return what was made for the devices, with notes on what was measured of other code."""
    lost: dict[str, list[str]] = {}
    for name, framework, device in sorted(page.known.outdated):
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in node["patterns"]):
            lost.setdefault(device, []).append(f"{name}@{framework}")
    found = dict(made)
    for device, names in lost.items():
        which = f": {', '.join(names)}" if device in made else ""
        label = page.env.book_options.label(device)
        note = table_note(f"Not recorded on {label} with this code{which}.")
        found[device] = nodes.container("", *([made[device]] if device in made else []), note)
    return found


def _data(
    env: BookEnvironment,
    node: nodes.Element,
    found: Sequence[Measurement],
    drawn: Sequence[Measurement] = (),
    ceilings: Sequence[Measurement] = (),
) -> nodes.Node:
    """Return what a table or chart shows, for a script that shows other measurements so."""
    options = env.book_options
    data: dict[str, Any] = {
        "columns": [[each, COLUMNS[each]] for each in node["columns"]],
        "frameworks": {each.framework: options.framework_label(each.framework) for each in found},
        "of": list(dict.fromkeys(each.reference for each in found)),
    }
    if drawn:
        looks = charts.looks(drawn, node["x"], node["series"], options)
        used = list(dict.fromkeys(look.ink for look in looks.values()))
        data["chart"] = {
            "x": node["x"],
            "y": node["y"],
            "scale": charts.QUANTITIES[node["y"]][0],
            "logarithmic": node["scale"] == "logarithmic",
            "inks": [ink.style for ink in used],
            "looks": {name: [look.label, used.index(look.ink)] for name, look in looks.items()},
            "ceilings": list(dict.fromkeys(each.reference for each in ceilings)),
        }
    return data_node(env, "measurement-data", data)


def _grid(env: BookEnvironment, node: nodes.Element, found: Sequence[Measurement]) -> nodes.Element:
    head, rows, notes = grid(node["columns"], found, env.book_options)
    table = table_node(head, rows, classes=["measurements"])
    table += [table_note(note) for note in notes]
    return table


def _figure(
    env: BookEnvironment,
    node: nodes.Element,
    found: Sequence[Measurement],
    drawn: Sequence[Measurement],
    ceilings: Sequence[Measurement],
) -> nodes.Element:
    axes = node["x"], node["y"], node["series"]
    logarithmic = node["scale"] == "logarithmic"
    svg = charts.chart(drawn, *axes, env.book_options, node["caption"], ceilings, logarithmic)
    figure = figure_node(svg, [child.deepcopy() for child in node.children])
    figure += [table_note(note) for note in notes_below([], drawn, env.book_options)]
    figure += fold("The numbers as a table", _grid(env, node, found))
    return figure


def device_tabs(
    env: BookEnvironment, made: Mapping[str, nodes.Element], *data: nodes.Node
) -> list[nodes.Node]:
    """Return what was made for the devices: as tabs, unless it is that of the build alone.

    Before it stand the `data` of it.
    """
    home, options = env.book_home, env.book_options
    if not made.keys() - {home}:
        return [*data, *made.values()] if made else []
    order = sorted(made, key=lambda device: device != home)
    return [*data, tab_set("device", [(d, options.label(d), [made[d]]) for d in order])]


def not_recorded(node: nodes.Element) -> list[nodes.Node]:
    """Return what stands in place of a table or chart of which nothing was measured."""
    caption = [child.deepcopy() for child in node.children]
    return [nodes.paragraph("", "not recorded", classes=["not-recorded"]), *caption]


def figure_node(svg: str, caption: Sequence[nodes.Node]) -> nodes.Element:
    """Return a drawing, if there is one, above its caption."""
    figure = nodes.container(classes=["measurement-figure"])
    if svg:
        figure += nodes.raw("", svg, format="html")
    figure += nodes.container("", *caption, classes=["measurement-caption"])
    return figure


def data_node(env: BookEnvironment, class_: str, data: dict[str, Any]) -> nodes.Node:
    """Return data as a script of the page finds them.

    With them it finds by which method the book's numbers were measured, and on which device first.
    """
    schema = measurements.schema(env.config)
    shared = {
        "method": schema.method if schema else None,
        "home": [env.book_home, env.book_options.label(env.book_home)],
    }
    text = json.dumps(shared | data, ensure_ascii=False, separators=(",", ":")).replace(
        "<", "\\u003c"
    )
    script = f'<script type="application/json" class="{class_}">{text}</script>'
    return nodes.raw("", script, format="html")


def setup(app: BookApp) -> None:
    """Register the directives."""
    app.add_directive("measurements", MeasurementsDirective)
    app.add_directive("measurement-chart", ChartDirective)
    app.add_directive("measurement-settings", SettingsDirective)
    app.add_directive("measurement-names", NamesDirective)
