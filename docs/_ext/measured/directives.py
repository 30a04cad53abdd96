"""The directives that show many measurements at once: tables, charts and rooflines.

A new kind of chart is an entry of `FILL_IN_BY_X` below. Marks and cells say which measurement they
are of, so that a script can put a reader's number there.
"""

import dataclasses
import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from executed.book import book_of
from executed.nodes import fold, for_device, held, raw, table_node, table_note
from executed.tabs import tab_set
from executed.waiting import Fill, FillIn, link, pages_with, place

from . import book_measurements, charts, releases, rooflines, several
from .book_measurements import data_node, known_on
from .feature import NAME
from .schema import Measurement
from .tables import COLUMNS, DEFAULT_COLUMNS, NUMBERS, by_device, grid, notes_below, settings

logger = logging.getLogger(__name__)
# The table of the switches under which each framework was measured; charts lead to its page.
SETTINGS = "measurement-settings"
# Without which options there is no roofline.
ROOFLINE = ("ceiling", "bandwidth", "arrays")
DEFAULTS: dict[str, Any] = {
    **{"x": "name", "y": "latency", "series": "framework", "scale": "linear"},
    **{"counted": "size", "words": {}, "columns": DEFAULT_COLUMNS, "ceiling": [], "bandwidth": []},
    **{"arrays": {}, "operations": {}},
}


def _columns(text: str) -> list[str]:
    for column in text.split():
        if column not in COLUMNS:
            raise ValueError(f"there is no column '{column}'; there are {', '.join(COLUMNS)}")
    return text.split()


def _names(page: FillIn, node: nodes.Element) -> nodes.Node:
    """Return the references of all measurements with their pages: addresses and titles."""
    pages: dict[str, dict[str, None]] = {}
    for measurement in book_measurements.measurements(page.env):
        pages.setdefault(measurement.page, {})[measurement.reference] = None
    uri = book_of(page.env).relative_uri
    by_page = {
        uri(page.env.docname, name): [page.env.titles[name].astext(), list(references)]
        for name, references in pages.items()
    }
    return data_node("measurement-names", {"pages": by_page})


def _settings(page: FillIn, node: nodes.Element) -> list[nodes.Node]:
    options = book_of(page.env).options
    tables = {
        device: table_node(*settings(group, options), classes=["measurements"])
        for device, group in by_device(book_measurements.measurements(page.env)).items()
    }
    return device_tabs(page.env, tables)


def _table(page: FillIn, node: nodes.Element) -> list[nodes.Node]:
    matching = _matching(page, node, "patterns")
    tables = {device: _grid(page, node, group) for device, group in by_device(matching).items()}
    return _with_outdated(page, node, tables) or not_recorded(node)


def _chart(page: FillIn, node: nodes.Element) -> list[nodes.Node]:
    matching = _matching(page, node, "patterns")
    drawn = charts.drawable(matching, node["x"], node["y"])
    if matching and not drawn:
        message = f"no measurement of {' '.join(node['patterns'])} has x and y of the chart"
        logger.warning(message, location=node, type="book", subtype="measured")
    ceilings = charts.drawable(_matching(page, node, "ceiling"), "name", node["y"])
    groups, limits = by_device(matching), by_device(ceilings)
    shown = by_device(drawn)
    figures = {
        device: _figure(page, node, groups[device], shown, limits.get(device, []))
        for device in shown
    }
    tabs = _with_outdated(page, node, figures)
    return [*tabs, *_rules(page)] if tabs else not_recorded(node)


def _roofline(page: FillIn, node: nodes.Element) -> list[nodes.Node]:
    options, costs = book_of(page.env).options, rooflines.Costs(node["arrays"], node["operations"])
    matching = [*map(costs.with_work, _matching(page, node, "patterns"))]
    found = {name: _matching(page, node, name) for name in (*ROOFLINE, "operations")}
    ceilings, streams = found["ceiling"], found["bandwidth"]
    points, fastest = by_device(matching), by_device(streams)
    known = by_device(book_measurements.measurements(page.env))
    figures, devices, names = {}, {}, _words(page, node)
    for device, group in by_device(ceilings).items():
        of_all = [*known[device], *(below := points.get(device, []))]
        if limits := rooflines.roofs(of_all, group, fastest.get(device, []), costs):
            devices[options.label(device)] = limits
            reached = rooflines.reached(below, limits, costs)
            figures[device] = _roofline_figure(page, node, limits, reached, names)
    tabs = device_tabs(page.env, figures) or not_recorded(node)
    return [data_node("roofline-data", {"devices": devices}), *tabs]


def _roofline_figure(
    page: FillIn,
    node: nodes.Element,
    limits: rooflines.Roofs,
    points: Sequence[rooflines.Reached],
    names: Mapping[str, str],
) -> nodes.Element:
    options = book_of(page.env).options
    on = _kind(page, [point.measurement for point in points])
    svg = charts.roofline(points, limits, options, node["caption"], on) if points else ""
    figure = figure_node(svg, node)
    figure += table_node(["roof", "highest measured"], limits.texts, classes=["measurements"])
    head = ["measurement", "framework", "for each byte", "reached", "allowed", "share"]
    rows = [
        [names[of.name], options.framework_label(of.framework), *texts]
        for of, texts in ((point.measurement, point.texts) for point in points)
    ]
    figure += fold("The points as a table", table_node(head, rows, classes=["measurements"]))
    return figure


def _rules(page: FillIn) -> list[nodes.Node]:
    """Return a link to the page that says under which rules and settings all was measured."""
    names = pages_with(page.env, [SETTINGS])
    links = [link(page, name, page.env.titles[name].astext()) for name in names]
    return [nodes.paragraph("", "", each, classes=["measurement-rules"]) for each in links]


def _matching(page: FillIn, node: nodes.Element, option: str) -> list[Measurement]:
    """Return the measurements that the patterns of an option match; warn of those without any."""
    if problem := known_on(page).problem(node[option]):
        logger.warning(problem, location=node, type="book", subtype="measured")
    return book_measurements.matching(page.env, node[option])


def _with_outdated(
    page: FillIn, node: nodes.Element, shown: Mapping[str, nodes.Element]
) -> list[nodes.Node]:
    """Return what is shown of the devices, with notes on what was measured of other code.

    A device of which nothing else could be shown has its note below, and no tab. Readers who chose
    another device need no such note.
    """
    lost, tabs, below = dict[str, list[str]](), {**shown}, list[nodes.Node]()
    for name, framework, device in sorted(known_on(page).outdated):
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in node["patterns"]):
            lost.setdefault(device, []).append(f"{name}@{framework}")
    for device, names in lost.items():
        label = book_of(page.env).options.label
        words = f"Not recorded on {label(device)} with this code"
        if device in tabs:
            note = table_note(f"{words}: {', '.join(names)}.")
            tabs[device] = nodes.container("", tabs[device], note)
        else:
            of = f". What you see is from {', '.join(map(label, shown))}." if shown else "."
            below.append(raw(for_device(device, words + of, "table-note")))
    return [*device_tabs(page.env, tabs), *below]


def _words(page: FillIn, node: nodes.Element) -> dict[str, str]:
    """Return what stands for the names of all measurements of a table or chart."""
    matching = book_measurements.matching(page.env, node["patterns"])
    return {n: ", ".join(words) for n, words in charts.worded(matching, node["words"]).items()}


def _form(node: nodes.Element) -> charts.Form:
    return charts.Form(*(node[name] for name in charts.Form._fields))


def _grid(page: FillIn, node: nodes.Element, matching: Sequence[Measurement]) -> nodes.Element:
    names = _words(page, node)
    named = [dataclasses.replace(each, name=names[each.name]) for each in matching]
    columns, rows, notes = grid(node["columns"], named, book_of(page.env).options)
    on = _kind(page, matching)
    cells = [
        [_cell(each, of, on) for each in zip(columns, row, strict=True)]
        for row, of in zip(rows, matching, strict=True)
    ]
    table = table_node([COLUMNS[each] for each in columns], cells, classes=["measurements"])
    table += [table_note(note) for note in notes]
    return table


def _kind(page: FillIn, of: Iterable[Measurement]) -> str:
    """Return the kind of the device that measurements are of."""
    return known_on(page).kind(each.device for each in of)


def _cell(said: tuple[str, str], of: Measurement, on: str) -> nodes.Node:
    """Return the text of a column, where a script finds the number of a measurement."""
    column, text = said
    data = {**dict(charts.named(of)), "data-field": column, "data-on": on}
    return held("", text, data=data) if column in NUMBERS and text else nodes.Text(text)


def _figure(
    page: FillIn,
    node: nodes.Element,
    matching: Sequence[Measurement],
    drawn: Mapping[str, Sequence[Measurement]],
    ceilings: Sequence[Measurement],
) -> nodes.Element:
    options, here = book_of(page.env).options, matching[0].device
    shown, on = drawn[here], _kind(page, matching)
    other, elsewhere = several.compared_device(book_of(page.env), here, drawn)
    svg = charts.chart(shown, _form(node), options, node["caption"], ceilings, elsewhere, on)
    figure = figure_node(svg, node)
    if {each.reference for each in shown} & {each.reference for each in elsewhere}:
        figure += table_note(charts.hollow_marks(options.label(other), node["x"]))
    figure += [table_note(note) for note in notes_below([], shown, options)]
    figure += fold("The numbers as a table", _grid(page, node, matching))
    return figure


def device_tabs(env: BuildEnvironment, shown: Mapping[str, nodes.Element]) -> list[nodes.Node]:
    """Return the nodes of the devices: tabs, unless the build's device is the only one."""
    home, options = book_of(env).home, book_of(env).options
    if not shown.keys() - {home}:
        return [*shown.values()]
    order = sorted(shown, key=lambda device: device != home)
    return [tab_set("device", [(d, options.label(d), [shown[d]]) for d in order])]


def not_recorded(node: nodes.Element) -> list[nodes.Node]:
    """Return the nodes in place of a table or chart that has no measurement."""
    said = nodes.paragraph("", "not recorded", classes=["not-recorded"])
    return [said, *node.deepcopy().children]


def figure_node(svg: str, node: nodes.Element) -> nodes.Element:
    """Return a drawing, if there is one, above the caption that stands in its place."""
    figure = nodes.container(classes=["chart-figure"])
    if svg:
        figure += raw(svg)
    figure += nodes.container("", *node.deepcopy().children, classes=["chart-caption"])
    return figure


# What fills in the directives without arguments.
PLAIN: dict[str, Fill] = {
    **{"measurement-names": _names, SETTINGS: _settings},
    **several.FILL_IN,
    **releases.FILL_IN,
}
# What fills in a chart: one kind of chart for each lower axis.
FILL_IN_BY_X = {"name": _chart, "size": _chart, "intensity": _roofline}


class PlainDirective(SphinxDirective):
    """What is the same wherever it stands: all names, as data for a script, settings, machines."""

    def run(self) -> list[nodes.Node]:
        """Return the place of what the directive is named for."""
        return [place(self, PLAIN[self.name], NAME, self.name)]


class MeasurementsDirective(SphinxDirective):
    """A table of the measurements whose names match a pattern."""

    required_arguments = 1
    final_argument_whitespace = True
    option_spec = {"columns": _columns, "words": charts.by_part}  # noqa: RUF012

    def run(self) -> list[nodes.Node]:
        """Return the place of the table or chart, with its caption inside."""
        facts = DEFAULTS | self.options | {"patterns": self.arguments[0].split()}
        node = place(self, self.fill_in(facts), NAME, **facts)
        node += self.parse_content_to_nodes()
        node["caption"] = " ".join(node.astext().split())
        return [node]

    def fill_in(self, facts: Mapping[str, Any]) -> Fill:
        """Return what fills in the place: a table."""
        return _table


class ChartDirective(MeasurementsDirective):
    """A chart of the measurements whose names match a pattern; the content is its caption."""

    has_content = True
    option_spec = {  # noqa: RUF012
        "x": lambda text: directives.choice(text, tuple(FILL_IN_BY_X)),
        "y": lambda text: directives.choice(text, tuple(charts.SCALES)),
        "series": lambda text: directives.choice(text, ("framework", "alternative")),
        "scale": lambda text: directives.choice(text, ("linear", "logarithmic")),
        **{"counted": str.strip, **MeasurementsDirective.option_spec},
        "ceiling": str.split,
        "bandwidth": str.split,
        "arrays": rooflines.by_pattern,
        "operations": rooflines.by_pattern,
    }

    def fill_in(self, facts: Mapping[str, Any]) -> Fill:
        """Return what fills in the place: the kind of chart that the axis asks for."""
        lacking = [option for option in ROOFLINE if not facts[option]]
        if facts["x"] == "intensity" and lacking:
            raise self.error(f"a chart over intensities needs {' and '.join(lacking)}")
        return FILL_IN_BY_X[facts["x"]]


def setup(app: Sphinx) -> None:
    """Register the directives."""
    app.add_directive("measurements", MeasurementsDirective)
    app.add_directive("measurement-chart", ChartDirective)
    for name in PLAIN:
        app.add_directive(name, PlainDirective)
