"""The directives that show many measurements at once: tables and charts."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from ..drawing.svg import Ink
from ..measurements import charts
from ..measurements.references import Measurements
from ..measurements.schema import Measurement
from ..measurements.tables import COLUMNS, DEFAULT_COLUMNS, by_device, grid, settings
from ..options import Options
from . import measurements
from .app import BookApp, BookEnvironment, BookTransform
from .tabs import note_node, tab_set

logger = logging.getLogger(__name__)
DEFAULTS = {"x": "name", "y": "latency", "series": "framework", "scale": "linear"}


class measurement_table(nodes.General, nodes.Element):
    """A table that is filled in from the measurements when the page is written."""


class measurement_chart(nodes.General, nodes.Element):
    """A chart that is drawn from the measurements when the page is written."""


class measurement_settings(nodes.General, nodes.Element):
    """A table of switches that is filled in from the measurements when the page is written."""


class measurement_names(nodes.General, nodes.Element):
    """A list of all measurements, for a script, that is filled in when the page is written."""


class NamesDirective(SphinxDirective):
    """The names of all measurements of the book by page, as data for a script of the page."""

    def run(self) -> list[nodes.Node]:
        """Return the place of the data."""
        self.env.metadata[self.env.docname]["book_uses_records"] = True
        return [measurement_names()]


class SettingsDirective(SphinxDirective):
    """The switches under which each framework was measured, on each device."""

    def run(self) -> list[nodes.Node]:
        """Return the place of the table."""
        self.env.metadata[self.env.docname]["book_uses_records"] = True
        return [measurement_settings()]


class MeasurementsDirective(SphinxDirective):
    """A table of the measurements whose names match a pattern."""

    required_arguments = 1
    final_argument_whitespace = True
    option_spec = {"columns": directives.unchanged}  # noqa: RUF012

    def run(self) -> list[nodes.Node]:
        """Return the place of the table."""
        return [self.waiting(measurement_table())]

    def waiting(self, node: nodes.Element) -> nodes.Element:
        """Give a node what tables and charts have in common."""
        node["patterns"] = self.arguments[0].split()
        node["columns"] = self.options.get("columns", DEFAULT_COLUMNS).split()
        for column in node["columns"]:
            if column not in COLUMNS:
                raise self.error(f"there is no column '{column}'; there are {', '.join(COLUMNS)}")
        self.set_source_info(node)
        self.env.metadata[self.env.docname]["book_uses_records"] = True
        return node


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
        node = self.waiting(measurement_chart(caption=" ".join(self.content)))
        for option, default in DEFAULTS.items():
            node[option] = self.options.get(option, default)
        node["ceiling"] = self.options.get("ceiling", "").split()
        node += self.parse_content_to_nodes()
        return [node]


class FillInTables(BookTransform):
    """Replace the tables and charts that wait for measurements."""

    default_priority = 5

    def run(self, **options: Any) -> None:
        """Fill in one page."""
        tables = list(self.document.findall(measurement_table))
        figures = list(self.document.findall(measurement_chart))
        switches = list(self.document.findall(measurement_settings))
        names = list(self.document.findall(measurement_names))
        if not tables and not figures and not switches and not names:
            return
        for waiting in names:
            waiting.replace_self(self._names())
        known = measurements.known(self.env)
        for place in switches:
            everywhere = by_device(measurements.measurements(self.env))
            by = {device: self._settings(of) for device, of in everywhere.items()}
            labels = measurements.labels(self.env.book_options)
            data = data_node(self.env, "measurement-data", {"frameworks": dict(labels.frameworks)})
            place.replace_self(device_tabs(self.env, by, data))
        for table in tables:
            found = self._matching(table, table["patterns"], known)
            made = {device: self._table(table, of) for device, of in by_device(found).items()}
            data = self._data(table, found)
            table.replace_self(
                device_tabs(self.env, made, data) or self._not_recorded(table, known)
            )
        for node in figures:
            found = self._matching(node, node["patterns"], known)
            drawn = [each for each in found if charts.can_be_drawn(each, node["x"], node["y"])]
            if found and not drawn:
                message = f"no measurement of {' '.join(node['patterns'])} has x and y of the chart"
                logger.warning(message, location=node, type="book", subtype="measured")
            ceilings = self._matching(node, node["ceiling"], known) if node["ceiling"] else []
            ceilings = [each for each in ceilings if charts.can_be_drawn(each, "name", node["y"])]
            of, limits = by_device(found), by_device(ceilings)
            made = {
                device: self._figure(node, of[device], each, limits.get(device, []))
                for device, each in by_device(drawn).items()
            }
            data = self._data(node, found, drawn, ceilings)
            node.replace_self(device_tabs(self.env, made, data) or self._not_recorded(node, known))

    def _names(self) -> nodes.Node:
        """Return the references of all measurements with their pages: addresses and titles."""
        pages: dict[str, list[str]] = {}
        for each in measurements.measurements(self.env):
            pages.setdefault(each.page, []).append(each.reference)
        uri = self.app.builder.get_relative_uri
        by_page = {
            uri(self.env.docname, page): [
                self.env.titles[page].astext(),
                list(dict.fromkeys(names)),
            ]
            for page, names in pages.items()
        }
        return data_node(self.env, "measurement-names", {"pages": by_page})

    def _data(
        self,
        node: nodes.Element,
        found: Sequence[Measurement],
        drawn: Sequence[Measurement] = (),
        ceilings: Sequence[Measurement] = (),
    ) -> nodes.Node:
        """Return what a table or chart shows, for a script that shows other measurements so."""
        labels = measurements.labels(self.env.book_options)
        data: dict[str, Any] = {
            "columns": [[each, COLUMNS[each]] for each in node["columns"]],
            "frameworks": {each.framework: labels.framework(each.framework) for each in found},
            "of": list(dict.fromkeys(each.reference for each in found)),
        }
        if drawn:
            looks = charts.looks(
                drawn, node["x"], node["series"], labels, inks(self.env.book_options)
            )
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
        return data_node(self.env, "measurement-data", data)

    def _matching(
        self, node: nodes.Element, patterns: Sequence[str], known: Measurements
    ) -> list[Measurement]:
        found = measurements.matching(self.env, patterns)
        problem = known.problem(patterns)
        expected = found or known.partial or known.devices_without(patterns)
        if problem is None and not expected:
            problem = f"no measurement matches {' '.join(patterns)}"
        if problem:
            logger.warning(problem, location=node, type="book", subtype="measured")
        return found

    def _not_recorded(self, node: nodes.Element, known: Measurements) -> list[nodes.Node]:
        """Return what stands in place of a table or chart of which nothing was measured."""
        lacking, labels = (
            known.devices_without(node["patterns"]),
            measurements.labels(self.env.book_options),
        )
        where = ", ".join(labels.device(each) for each in self.env.book_shown if each in lacking)
        text = f"not recorded on {where}" if where else "not recorded"
        caption = [child.deepcopy() for child in node.children]
        return [nodes.paragraph("", text, classes=["not-recorded"]), *caption]

    def _table(self, node: nodes.Element, found: Sequence[Measurement]) -> nodes.Element:
        labels = measurements.labels(self.env.book_options)
        return table_node(*grid(node["columns"], found, labels), classes=["measurements"])

    def _settings(self, found: Sequence[Measurement]) -> nodes.Element:
        labels = measurements.labels(self.env.book_options)
        return table_node(*settings(found, labels), classes=["measurements"])

    def _figure(
        self,
        node: nodes.Element,
        found: Sequence[Measurement],
        drawn: Sequence[Measurement],
        ceilings: Sequence[Measurement],
    ) -> nodes.Element:
        axes = node["x"], node["y"], node["series"]
        logarithmic = node["scale"] == "logarithmic"
        labels = measurements.labels(self.env.book_options)
        svg = charts.chart(
            drawn,
            *axes,
            labels,
            node["caption"],
            inks(self.env.book_options),
            ceilings,
            logarithmic,
        )
        figure = figure_node(svg, [child.deepcopy() for child in node.children])
        for earlier in dict.fromkeys(each.earlier for each in drawn if each.earlier):
            names = [each.reference for each in drawn if each.earlier == earlier]
            all_of_it = "all of it" if len(names) == len(drawn) else ", ".join(names)
            figure += note_node(f"{earlier.capitalize()}: {all_of_it}.")
        figure += folded("The numbers as a table", self._table(node, found))
        return figure


def device_tabs(
    env: BookEnvironment, made: Mapping[str, nodes.Element], *data: nodes.Node
) -> list[nodes.Node]:
    """Return what was made for the devices: as tabs, unless it is that of the build alone.

    Before it stand the `data` of it.
    """
    home = env.book_home
    if not made.keys() - {home}:
        return [*data, *made.values()] if made else []
    labels = measurements.labels(env.book_options)
    order = sorted(made, key=lambda device: device != home)
    return [*data, tab_set("device", [(d, labels.device(d), [made[d]]) for d in order])]


def figure_node(svg: str, caption: Sequence[nodes.Node]) -> nodes.Element:
    """Return a drawing, if there is one, above its caption."""
    figure = nodes.container(classes=["measurement-figure"])
    if svg:
        figure += nodes.raw("", svg, format="html")
    figure += nodes.container("", *caption, classes=["measurement-caption"])
    return figure


def folded(summary: str, table: nodes.Node) -> list[nodes.Node]:
    """Return a table in a fold."""
    start = nodes.raw("", f"<details><summary>{summary}</summary>", format="html")
    return [start, table, nodes.raw("", "</details>", format="html")]


def inks(options: Options) -> dict[str, Ink]:
    """Return the colours of frameworks that have one."""
    return {
        each.name: Ink(each.colour.light, each.colour.dark)
        for each in options.registry
        if each.colour
    }


def data_node(env: BookEnvironment, class_: str, data: dict[str, Any]) -> nodes.Node:
    """Return data as a script of the page finds them.

    With them it finds by which method the book's numbers were measured, and on which device first.
    """
    schema, labels = measurements.schema(env.config), measurements.labels(env.book_options)
    shared = {
        "method": schema.method if schema else None,
        "home": [env.book_home, labels.device(env.book_home)],
    }
    text = json.dumps(shared | data, ensure_ascii=False, separators=(",", ":")).replace(
        "<", "\\u003c"
    )
    script = f'<script type="application/json" class="{class_}">{text}</script>'
    return nodes.raw("", script, format="html")


def table_node(
    head: Sequence[nodes.Node | str],
    rows: Iterable[Sequence[nodes.Node | str]],
    classes: Iterable[str] = (),
) -> nodes.container:
    """Return a docutils table; a cell is a text or a node."""
    group = nodes.tgroup(cols=len(head))
    group += [nodes.colspec(colwidth=1) for _ in head]
    heading, body = nodes.thead(), nodes.tbody()
    for part, lines in ((heading, [head]), (body, rows)):
        for line in lines:
            row = nodes.row()
            for content in line:
                inline = content if isinstance(content, nodes.Node) else nodes.Text(str(content))
                row += nodes.entry("", nodes.paragraph("", "", inline))
            part.append(row)
    group += [heading, body]
    wrapped = nodes.container(classes=["table-scroll"])
    wrapped += nodes.table("", group, classes=list(classes))
    return wrapped


def setup(app: BookApp) -> None:
    """Register the directives."""
    app.add_directive("measurements", MeasurementsDirective)
    app.add_directive("measurement-chart", ChartDirective)
    app.add_directive("measurement-settings", SettingsDirective)
    app.add_directive("measurement-names", NamesDirective)
    app.add_post_transform(FillInTables)
