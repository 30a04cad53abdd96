"""What measurements add to the core: their kind of output, and what a page concludes from them."""

import dataclasses
import fnmatch
import pathlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from drawing.numbers import seconds_text
from executed.hooks import Conclusion, Feature, FeatureError, PageResults
from executed.options import Options
from executed.run.page_run import Failure
from executed.source.pages import Cell
from executed.store.output_format import CellOutputs

from .options import MeasuredOptions
from .processes import MeasurementKind
from .rooflines import Costs, by_pattern
from .schema import Earlier, Measurement, Schema, SchemaError, single

NAME = "measured"
# Says in the head of a page how many arrays as large as the first a call reads or writes at least.
HEAD = "arrays"


@dataclasses.dataclass(frozen=True)
class PageMeasurements:
    """What a page measured: records, and name, framework and device of those of other code."""

    records: tuple[dict[str, Any], ...] = ()
    outdated: tuple[tuple[str, str, str], ...] = ()


class Measured(Feature):
    """Measurements among the outputs of pages."""

    name = NAME
    kind: MeasurementKind | None = None
    folded_outputs: Mapping[str, str] = {"raw": "the raw measurements"}
    not_in_markdown = (".measurement-rules", ".chart-figure > details > summary", ".at-home")
    once_in_tabs = (".chart-caption",)

    def __init__(self, options: Options) -> None:
        """Read the schema; raises FeatureError."""
        super().__init__(options)
        file = options.of(MeasuredOptions).measurements
        self.path = options.root / file if file else None
        if self.path:
            try:
                self.kind = MeasurementKind(Schema.load(self.path))
            except SchemaError as error:
                raise FeatureError(f"book_measurements of conf.py: {error}") from None

    def files(self) -> dict[str, pathlib.Path]:
        """Return the schema's file."""
        return {"schema": self.path} if self.path else {}

    def conclude(self, taken: PageResults) -> Conclusion:
        """Gather the measurements of all devices, with where they were made."""
        if self.kind is None:
            return Conclusion()
        records: list[dict[str, Any]] = []
        outdated: list[tuple[str, str, str]] = []
        failures = []
        try:
            moved = by_pattern(str(taken.page.notebook.metadata.get(HEAD, "")))
        except ValueError:
            message = f"'{HEAD}' in the head must say such as a/b=2 a/*=1"
            return Conclusion(failures=(Failure(1, message),))
        for device, cell, outputs, record in _displayed(taken, self.kind):
            if problem := self.kind.problem(record):
                failures.append(Failure(cell.line, f"the cell displays {problem}"))
                continue
            measurements = single(record)
            if not outputs.kind_stands:
                outdated += [(each["name"], each["framework"], device) for each in measurements]
                continue
            origin = {"page": taken.page.docname, "device": device}
            if record["method"] < self.kind.schema.method:
                origin["earlier"] = Earlier.METHOD
            elif outputs.standing:
                origin["earlier"] = Earlier.CODE
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


FEATURE = Measured


def _displayed(
    taken: PageResults, kind: MeasurementKind
) -> Iterator[tuple[str, Cell, CellOutputs, dict[str, Any]]]:
    """Yield the records that cells display on each device; one that is their value too, once."""
    for result in taken.results:
        outputs = result.outputs and kind.undisturbed(result.outputs)
        for cell in taken.page.cells:
            if outputs and (cell_outputs := outputs.cell(cell.key)):
                records = kind.records(cell_outputs.outputs)
                for number, record in enumerate(records):
                    if record not in records[:number]:
                        yield result.device, cell, cell_outputs, record


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
