"""What measurements add to the core: a kind of output, and what a page concludes from them."""

import dataclasses
import fnmatch
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from drawing.numbers import seconds_text
from executed.hooks import Conclusion, Feature, FeatureError, PageResults
from executed.options import Options
from executed.run.page_run import Failure
from executed.store.output_format import PageOutputs
from executed.store.outputs import content, kind_of

from . import processes
from .options import MeasuredOptions
from .rooflines import Costs, by_pattern
from .schema import Measurement, Schema, SchemaError, single
from .slices import slices
from .texts import lines

NAME = "measured"
# Says in the head of a page how many arrays as large as the first a call reads or writes at least.
HEAD = "arrays"


class MeasurementKind:
    """Records of measurements, as an output kind of the core; see `executed.hooks.OutputKind`."""

    def __init__(self, schema: Schema) -> None:
        """Take what a record must hold."""
        self.schema = schema

    @property
    def media_type(self) -> str:
        """The MIME type of a record."""
        return self.schema.media_type

    def problem(self, data: Any) -> str | None:
        """Say what keeps a record from being a measurement."""
        problem = self.schema.problem(data)
        return f"a measurement that is none: {problem}" if problem else None

    def text(self, data: Mapping[str, Any]) -> str:
        """Return the lines of a record: those of all its processes."""
        return lines(data)

    def deciding(self, sources: tuple[str, ...]) -> Sequence[str]:
        """Return the slices of what cells measure."""
        return slices(sources)

    def processes(self, outputs: PageOutputs) -> float:
        """Return in how many processes all of it was measured."""
        return processes.count(outputs, self.schema)

    def moments(self, outputs: PageOutputs) -> Sequence[str]:
        """Return when its processes ran."""
        return processes.moments(outputs, self.schema)

    def disturbed(self, outputs: PageOutputs) -> bool:
        """Say whether other programs kept cores busy while something of it was measured."""
        return processes.disturbed(outputs, self.schema)

    def joined(self, former: PageOutputs, new: PageOutputs) -> PageOutputs | None:
        """Return former outputs with what another process measured."""
        return processes.accumulated(former, new, self.schema)

    def kept(self, former: PageOutputs, new: PageOutputs) -> PageOutputs | None:
        """Return new outputs with what former processes measured."""
        return processes.kept(former, new, self.schema)


@dataclasses.dataclass(frozen=True)
class PageMeasurements:
    """What a page measured: records, and name, framework and device of those of other code."""

    records: tuple[dict[str, Any], ...] = ()
    outdated: tuple[tuple[str, str, str], ...] = ()


class Measured(Feature):
    """Measurements among the outputs of pages."""

    name = NAME
    folded_outputs: Mapping[str, str] = {"raw": "the raw measurements"}
    not_in_markdown = (".measurement-rules", ".chart-figure > details > summary", ".at-home")
    once_in_tabs = (".chart-caption",)

    def __init__(self, options: Options) -> None:
        """Read the schema; raises FeatureError."""
        super().__init__(options)
        file = options.of(MeasuredOptions).measurements
        self.path = options.root / file if file else None
        self.schema: Schema | None = None
        if self.path:
            try:
                self.schema = Schema.load(self.path)
            except SchemaError as error:
                raise FeatureError(f"book_measurements of conf.py: {error}") from None
            self.kind = MeasurementKind(self.schema)

    def files(self) -> dict[str, pathlib.Path]:
        """Return the schema's file."""
        return {"schema": self.path} if self.path else {}

    def conclude(self, taken: PageResults) -> Conclusion:
        """Gather the measurements of all devices, with where they were made."""
        if self.schema is None or self.kind is None:
            return Conclusion()
        records: list[dict[str, Any]] = []
        outdated: list[tuple[str, str, str]] = []
        failures = []
        try:
            moved = by_pattern(str(taken.page.notebook.metadata.get(HEAD, "")))
        except ValueError:
            message = f"'{HEAD}' in the head must say such as a/b=2 a/*=1"
            return Conclusion(failures=(Failure(1, message),))
        for result in taken.results:
            outputs = result.outputs and processes.undisturbed(result.outputs, self.schema)
            for cell in taken.page.cells:
                cell_outputs = outputs.cell(cell.key) if outputs else None
                for record in self._records(cell_outputs.outputs) if cell_outputs else ():
                    if problem := self.kind.problem(record):
                        failures.append(Failure(cell.line, f"the cell displays {problem}"))
                        continue
                    measurements = single(record)
                    if cell_outputs and not cell_outputs.kind_stands:
                        outdated += [
                            (m["name"], m["framework"], result.device) for m in measurements
                        ]
                        continue
                    origin = {"page": taken.page.docname, "device": result.device}
                    if record["method"] < self.schema.method:
                        origin["earlier"] = "method"
                    elif cell_outputs and cell_outputs.standing:
                        origin["earlier"] = "code"
                    for plain in measurements:
                        bounded, problem = self._bounded(plain | origin, Costs(moved, {}))
                        records.append(bounded)
                        failures += [Failure(cell.line, problem)] if problem else []
        failures += [] if taken.failed or outdated else _unused(moved, records)
        if not records and not outdated and not failures:
            return Conclusion()
        return Conclusion(
            PageMeasurements(tuple(records), tuple(outdated)),
            tuple(failures),
            {each["device"]: _counted(records, each["device"]) for each in records},
            {record["device"]: record["processor"] for record in reversed(records)},
        )

    def _bounded(self, plain: dict[str, Any], costs: Costs) -> tuple[dict[str, Any], str]:
        """Return a measurement with the least possible time, and that it took less, if it did."""
        measurement = Measurement.from_plain(plain)
        peaks = self.options.of(MeasuredOptions).peaks.get(measurement.device_kind or "")
        least = costs.least(measurement, peaks) if peaks else None
        if least is None:
            return plain, ""
        took, limit = seconds_text(measurement.seconds), seconds_text(least)
        problem = f"{measurement.reference} took {took}, less than the {limit} of published peaks"
        return plain | {"least": least}, problem if measurement.seconds < least else ""

    def _records(self, outputs: Iterable[Any]) -> list[dict[str, Any]]:
        """Return the records among the outputs of a cell, each once."""
        records: list[dict[str, Any]] = []
        for output in outputs:
            if self.kind and kind_of(output, [self.kind]):
                record = content(output, self.kind)
                if record not in records:
                    records.append(record)
        return records


FEATURE = Measured


def _unused(patterns: Iterable[str], records: Sequence[Mapping[str, Any]]) -> list[Failure]:
    """Return a failure for each pattern of the head that matches no measurement of its page."""
    names = [record["name"] for record in records]
    unused = [pattern for pattern in patterns if names and not fnmatch.filter(names, pattern)]
    return [Failure(1, f"no measurement of the page matches '{HEAD}: {each}'") for each in unused]


def _counted(records: Iterable[Mapping[str, Any]], device: str) -> str:
    """Say in how many processes measurements were made on a device."""
    counts = sorted({len(each["processes"]) for each in records if each["device"] == device})
    count = "–".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
    return f"{count} process{'es' * (count != '1')}"
