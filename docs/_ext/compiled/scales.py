"""One step compiled for more and more devices: a table, or a chart over their number."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from docutils import nodes

from drawing.lines import Point, line_chart
from executed.app import BookApp
from executed.nodes import table_node

from .declared import Program
from .programs import Run, ScaleRecord
from .view import ProgramDirective, amount_text, box, counted, known, provenance, source


class ScaleDirective(ProgramDirective):
    """A step compiled for many devices: its source, a table, or a chart over the devices."""

    kind = "SCALED"
    has_content = True
    option_spec: ClassVar[dict[str, Callable[[str], Any]]] = {
        "show": str.strip,
        "case": str.strip,
    }

    def show(self, program: Program, record: ScaleRecord | None) -> list[nodes.Node]:
        """Return the table or the chart."""
        shown = known("way", self.options.get("show", "table"), ("source", "table", *AXES))
        cases = list(program.arguments)
        if "case" in self.options:
            cases = [known("case", self.options["case"], cases)]
        if shown == "source":
            return [source(program)]
        runs = [run for run in record.runs if run.case in cases] if record else []
        if record is None or not runs:
            return []
        if shown == "table":
            return [scale_table(runs, self.labels), provenance(record)]
        svg = scale_chart(runs, shown, self.labels, " ".join(self.content))
        caption = box("measurement-caption", *self.parse_content_to_nodes())
        return [box("measurement-figure", nodes.raw("", svg, format="html"), caption)]


def scale_table(runs: Iterable[Run], labels: Mapping[str, str]) -> nodes.Node:
    """Return a table of runs on more and more devices."""
    head = ["device", "number", "batch", "for each", "collectives", "combined", "sent by each"]
    head += ["FLOP of each", "memory of each"]
    rows = []
    for run in runs:
        kinds = ", ".join(f"{entry.count} {entry.kind}" for entry in run.collectives)
        row = [labels[run.target], *map(str, (run.chips, run.batch, run.batch // run.chips))]
        row.append(kinds or "none")
        row += [amount_text(bytes, "B") if kinds else "–" for bytes in (run.moved, run.sent)]
        row += [amount_text(run.cost.flops, "FLOP") if run.cost else "–"]
        rows.append([*row, amount_text(run.memory.total, "B")])
    return table_node(head, rows, classes=["measurements", "compile-scale"])


AXES = {"flops": "GFLOP of each device", "bytes": "megabytes of each device"}


def scale_chart(runs: Sequence[Run], shown: str, labels: Mapping[str, str], title: str) -> str:
    """Return a chart over the number of devices: of FLOP, or of the bytes of each device."""
    several = len({run.case for run in runs}) > 1
    series: dict[str, list[Point]] = {}
    unit, size = ("B", 1e6) if shown == "bytes" else ("FLOP", 1e9)
    for run in runs:
        name = labels[run.target] + (f", {run.case}" if several else "")
        values = {name: run.cost.flops if run.cost else 0}
        if shown == "bytes":
            values = {f"{name}: memory": run.memory.total, f"{name}: sent": run.sent}
        for label, value in values.items():
            said = f"{label}, {counted(run.chips, 'device')}: {amount_text(value, unit)}"
            # One device alone sends nothing, which has no place on a logarithmic axis.
            if value:
                series.setdefault(label, []).append(Point(run.chips, value / size, said))
    return line_chart(series, "devices", AXES[shown], title)


def setup(app: BookApp) -> None:
    """Register the directive."""
    app.add_directive("compiled-scale", ScaleDirective)
