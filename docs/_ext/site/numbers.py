"""The roles and directives that draw on the records: numbers, verdicts, tables, charts."""

import fnmatch
import json
import pathlib

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective, SphinxRole

from ..measurements import charts, references

COLUMNS = {
    "name": "measurement",
    "framework": "framework",
    "device_kind": "device",
    "shape": "shape",
    "dtype": "dtype",
    "precision": "float32 products",
    "threads": "threads",
    "median": "median",
    "spread": "spread",
    "first_call": "first call",
    "rate": "rate",
    "error": "error against float64",
    "stable": "stable",
}
# What a measurement is of: the same on every device. The other columns come once for each.
SHARED_COLUMNS = ("name", "framework", "shape", "dtype")
DEFAULT_COLUMNS = "name framework median spread first_call"
logger = logging.getLogger(__name__)


class measured(nodes.Inline, nodes.Element):
    """A number that is filled in from the records when the page is written."""


class measured_verdict(nodes.Inline, nodes.Element):
    """A verdict that is filled in from the records when the page is written."""


class measurement_table(nodes.General, nodes.Element):
    """A table that is filled in from the records when the page is written."""


class measurement_chart(nodes.General, nodes.Element):
    """A chart that is drawn from the records when the page is written."""


def all_records(env):
    """Return the records of the whole book, in the order of pages and cells."""
    return [
        record for docname in sorted(env.book_pages) for record in env.book_pages[docname].records
    ]


def by_reference(env):
    """Return {(name, framework): {device: record}}, the device of the build first."""
    found = {}
    for record in sorted(all_records(env), key=lambda record: record["device"] != env.book_home):
        key = record["name"], record["framework"]
        found.setdefault(key, {})[record["device"]] = record
    return found


def tell_duplicates(env):
    """Warn of measurements that bear the same name: a reference to them would be ambiguous."""
    pages = {}
    for record in all_records(env):
        reference = f"{record['name']}@{record['framework']}"
        key = reference, record["device"]
        if key in pages:
            message = f"the measurement {reference} is made on {pages[key]} already"
            logger.warning(message, location=record["page"], type="book", subtype="measured")
        pages.setdefault(key, record["page"])


def matching(env, patterns):
    """Return the records whose names match one of the patterns."""
    return [
        record
        for record in all_records(env)
        if any(fnmatch.fnmatchcase(record["name"], pattern) for pattern in patterns)
    ]


def known(env):
    """Return the Records of the whole book."""
    states = env.book_pages.values()
    absent = {framework for state in states for framework in state.missing.values()}
    gaps = any(state.home and state.facts is None for state in states)
    return references.Records(by_reference(env), absent, gaps)


class _PendingRole(SphinxRole):
    """A role whose text is resolved once all records are known."""

    def __init__(self, node_class):
        super().__init__()
        self.node_class = node_class

    def run(self):
        node = self.node_class(self.rawtext, expression=self.text)
        self.set_source_info(node)
        self.env.metadata[self.env.docname]["book_uses_records"] = True
        return [node], []


class QuotedRole(SphinxRole):
    """A figure quoted from a cited source: ``{quoted}`post: 332 ms```."""

    def run(self):
        key, separator, quote = self.text.partition(":")
        source = self.config.book_sources.get(key.strip())
        if not separator or source is None:
            known = ", ".join(self.config.book_sources) or "none"
            message = f"quoted must name a source of book_sources ({known}), then ': ' and the text"
            logger.warning(message, location=self.get_location(), type="book", subtype="quoted")
            return [nodes.Text(self.text)], []
        reference = nodes.reference("", "", refuri=source["url"], classes=["quoted"])
        reference["reftitle"] = f"quoted from {source['title']}, {source['author']}"
        reference += nodes.inline("", f"“{quote.strip()}”")
        return [reference], []


def _columns(directive):
    columns = directive.options.get("columns", DEFAULT_COLUMNS).split()
    for column in columns:
        if column not in COLUMNS:
            raise directive.error(f"there is no column '{column}'; there are {', '.join(COLUMNS)}")
    return columns


class MeasurementsDirective(SphinxDirective):
    """A table of the records whose names match a pattern."""

    required_arguments = 1
    final_argument_whitespace = True
    option_spec = {"columns": directives.unchanged}  # noqa: RUF012

    def run(self):
        node = measurement_table(patterns=self.arguments[0].split(), columns=_columns(self))
        self.set_source_info(node)
        self.env.metadata[self.env.docname]["book_uses_records"] = True
        return [node]


class ChartDirective(SphinxDirective):
    """A chart of the records whose names match a pattern; the content is its caption."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True
    option_spec = {  # noqa: RUF012
        "x": lambda value: directives.choice(value, ("size", "name")),
        "y": lambda value: directives.choice(value, ("median", "first_call", "rate")),
        "series": lambda value: directives.choice(value, ("framework", "name")),
        "columns": directives.unchanged,
    }

    def run(self):
        node = measurement_chart(
            patterns=self.arguments[0].split(),
            x=self.options.get("x", "name"),
            y=self.options.get("y", "median"),
            series=self.options.get("series", "framework"),
            columns=_columns(self),
            caption=" ".join(self.content),
        )
        self.set_source_info(node)
        node += self.parse_content_to_nodes()
        self.env.metadata[self.env.docname]["book_uses_records"] = True
        return [node]


class FillIn(SphinxPostTransform):
    """Replace everything that waits for records."""

    default_priority = 5

    def run(self, **options):
        """Fill in one page."""
        records = known(self.env)
        for node in list(self.document.findall(measured)):
            self._inline(node, lambda text: (None, references.resolve(text, records)))
        for node in list(self.document.findall(measured_verdict)):
            self._inline(node, lambda text: references.verdict(text, records))
        for node in list(self.document.findall(measurement_table)):
            found = self._matching(node)
            node.replace_self(table(node["columns"], found, self._label) if found else [])
        for node in list(self.document.findall(measurement_chart)):
            found = self._matching(node)
            drawn = [record for record in found if self._can_be_drawn(node, record)]
            if found and not drawn:
                message = f"no measurement of {' '.join(node['patterns'])} has x and y of the chart"
                logger.warning(message, location=node, type="book", subtype="measured")
            node.replace_self(self._chart(node, found, drawn) if drawn else [])

    def _inline(self, node, resolve):
        try:
            verdict, quantity = resolve(node["expression"])
        except references.NotRecorded as gap:
            where = f" on {self._label(gap.device)}" if gap.device else f": {gap}"
            node.replace_self(nodes.inline("", f"not recorded{where}", classes=["not-recorded"]))
            return
        except references.ReferenceProblem as problem:
            logger.warning(str(problem), location=node, type="book", subtype="measured")
            node.replace_self(nodes.problematic("", node["expression"]))
            return
        text = verdict or quantity.text
        classes = ["verdict", "verdict-" + verdict.replace(" ", "-")] if verdict else ["measured"]
        if quantity is None:
            node.replace_self(nodes.inline("", text, classes=classes))
        else:
            number = nodes.abbreviation("", text, explanation=quantity.origin, classes=classes)
            where = " and ".join(map(self._label, quantity.devices))
            node.replace_self([number, nodes.inline("", f" {where}", classes=["on-device"])])

    def _label(self, device):
        return self.app.book.options.label(device)

    def _matching(self, node):
        found = matching(self.env, node["patterns"])
        records = known(self.env)
        if not (found or records.absent or records.gaps):
            message = f"no measurement matches {' '.join(node['patterns'])}"
            logger.warning(message, location=node, type="book", subtype="measured")
        return found

    @staticmethod
    def _can_be_drawn(node, record):
        sized = bool(record["shape"] and record["shape"][0])
        return record[node["y"]] is not None and (sized or node["x"] != "size")

    def _chart(self, node, records, drawn):
        svg = self._svg(node, drawn)
        figure = nodes.container(classes=["measurement-figure"])
        figure += nodes.raw("", svg, format="html")
        figure += nodes.container("", *node.children, classes=["measurement-caption"])
        figure += nodes.raw("", "<details><summary>The numbers as a table</summary>", format="html")
        figure += table(node["columns"], records, self._label)
        figure += nodes.raw("", "</details>", format="html")
        return figure

    def _svg(self, node, records):
        y, scale, label = node["y"], 1e3, "milliseconds (median)"
        if y == "rate":
            scale, label = 1e-9, "GFLOP/s"
        elif y == "first_call":
            label = "milliseconds (first call)"
        on_several = len({record["device"] for record in records}) > 1

        def series_of(record):
            where = f" on {self._label(record['device'])}" if on_several else ""
            return f"{record[node['series']]}{where}"

        if node["x"] == "name":
            several = len({record["framework"] for record in records}) > 1
            bars = [
                (
                    f"{r['name']} · {r['framework']}" if several else r["name"],
                    series_of(r),
                    r[y] * scale,
                )
                for r in records
            ]
            return charts.bar_chart(bars, label, node["caption"])
        series = {}
        for record in records:
            point = (record["shape"][0][0], record[y] * scale)
            series.setdefault(series_of(record), []).append(point)
        return charts.line_chart(series, "size", label, node["caption"])


def table(columns, records, name_of):
    """Return a table node with one row for each measurement.

    Where it was made on several devices, each has columns of its own, named
    by `name_of`.
    """
    return table_node(*grid(columns, records, name_of), classes=["measurements"])


def grid(columns, records, name_of):
    """Return the head and the rows of a table of measurements, as texts."""
    on = list(dict.fromkeys(record["device"] for record in records))
    shared = [column for column in columns if column in SHARED_COLUMNS]
    single = [column for column in columns if column not in SHARED_COLUMNS]
    if len(on) == 1:
        rows = [[cell_text(column, record) for column in columns] for record in records]
        return [COLUMNS[column] for column in columns], rows
    by_name = {}
    for record in records:
        by_name.setdefault((record["name"], record["framework"]), {})[record["device"]] = record
    head = [COLUMNS[column] for column in shared]
    head += [f"{COLUMNS[column]}, {name_of(device)}" for column in single for device in on]
    rows = []
    for made in by_name.values():
        row = [cell_text(column, next(iter(made.values()))) for column in shared]
        row += [
            cell_text(column, made[device]) if device in made else "–"
            for column in single
            for device in on
        ]
        rows.append(row)
    return head, rows


def cell_text(column, record):
    """Return what a table says in one column of a record."""
    if column == "shape":
        return ", ".join("×".join(map(str, shape)) or "scalar" for shape in record["shape"]) or "–"
    if column == "stable":
        return "yes" if record["stable"] else "no"
    text = references.field_text(column, record.get(column))
    return text if record["stable"] or column != "median" else f"{text} (unstable)"


def table_node(head, rows, classes=()):
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
            part += row
    group += [heading, body]
    wrapped = nodes.container(classes=["table-scroll"])
    wrapped += nodes.table("", group, classes=list(classes))
    return wrapped


def publish(env, outdir):
    """Write all records of the book to `measurements.json` in the built site."""
    text = json.dumps(all_records(env), indent=1, sort_keys=True, ensure_ascii=False)
    pathlib.Path(outdir, "measurements.json").write_text(text + "\n", "utf8")


def setup(app):
    """Register the roles and directives."""
    app.add_role("measured", _PendingRole(measured))
    app.add_role("verdict", _PendingRole(measured_verdict))
    app.add_role("quoted", QuotedRole())
    app.add_directive("measurements", MeasurementsDirective)
    app.add_directive("measurement-chart", ChartDirective)
    app.add_post_transform(FillIn)
