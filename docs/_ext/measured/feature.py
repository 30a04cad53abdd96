"""What measurements add to the core: their kind of output, and what a page concludes from them."""

import argparse
import dataclasses
import fnmatch
import pathlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from executed import files
from executed.hooks import Conclusion, Feature, FeatureError, PageResults
from executed.options import Options
from executed.run.outcome import Failure
from executed.run.recorder import Recorder
from executed.source.pages import Cell, Page
from executed.store.device_outputs import DeviceResult
from executed.store.output_format import CellOutputs

from . import recording
from .judging import HEAD, Judge, moved
from .machines import FEWEST, FEWEST_IN_A_TURN, Machine, MachineError
from .options import MeasuredOptions
from .processes import MeasurementKind
from .recording import Processes
from .rooflines import Costs
from .schema import Earlier, Measurement, Schema, SchemaError, single

NAME = "measured"


@dataclasses.dataclass(frozen=True)
class PageMeasurements:
    """What a page measured, and name, framework and device of what was measured of other code.

    `code` says of each measurement of the device of the build, by its reference, which slice of the
    page it measured, and `machine_files` are the digests of the files of machines.
    """

    measurements: tuple[Measurement, ...] = ()
    outdated: tuple[tuple[str, str, str], ...] = ()
    code: Mapping[str, str] = dataclasses.field(default_factory=dict)
    machine_files: tuple[str, ...] = ()


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
        self.judge: Judge | None = None
        self.machines: tuple[Machine, ...] = ()
        self.releases: tuple[Machine, ...] = ()
        self.machine_files: tuple[str, ...] = ()
        if self.path:
            try:
                self.kind = MeasurementKind(schema := Schema.load(self.path))
                self.judge = Judge(options, self.kind)
                own = options.of(MeasuredOptions)
                self.machines = self._loaded(own.machines, schema, FEWEST)
                self.releases = self._loaded(own.releases, schema, FEWEST_IN_A_TURN)
                self.machine_files = tuple(map(files.digest, self._files_of_machines()))
            except SchemaError as error:
                raise FeatureError(f"book_measurements of conf.py: {error}") from None
            except MachineError as error:
                raise FeatureError(f"a machine of book_machines: {error}") from None

    def _loaded(self, folder: str, schema: Schema, fewest: int) -> tuple[Machine, ...]:
        """Return the machines of a folder's files; raises MachineError."""
        return tuple(Machine.load(file, schema, fewest) for file in self._files_in(folder))

    def _files_in(self, folder: str) -> list[pathlib.Path]:
        """Return the files of a folder, in the order of their names."""
        return sorted((self.options.root / folder).glob("*.json")) if folder else []

    def _files_of_machines(self) -> list[pathlib.Path]:
        """Return the files of machines and releases."""
        own = self.options.of(MeasuredOptions)
        return [*self._files_in(own.machines), *self._files_in(own.releases)]

    def files(self) -> dict[str, pathlib.Path]:
        """Return the schema's file, and those of machines and releases."""
        found = {f"machine {path.stem}": path for path in self._files_of_machines()}
        return found | ({"schema": self.path} if self.path else {})

    def conclude(self, taken: PageResults) -> Conclusion:
        """Gather the measurements of all devices, with where they were made."""
        if self.kind is None:
            return Conclusion()
        found: list[Measurement] = []
        outdated: list[tuple[str, str, str]] = []
        keys: dict[str, str] = {}
        failures = []
        try:
            arrays = moved(taken.page)
        except ValueError as error:
            return Conclusion(failures=(Failure(1, str(error)),))
        for result, cell, outputs, record in _displayed(taken, self.kind):
            device = result.device
            if problem := self.kind.problem(record):
                failures.append(Failure(cell.line, f"the cell displays {problem}"))
                continue
            origin = {"page": taken.page.docname, "device": device}
            measurements = [Measurement.from_plain(each | origin) for each in single(record)]
            if not outputs.kind_stands:
                outdated += [(each.name, each.framework, device) for each in measurements]
                continue
            if result is taken.results[0]:
                keys |= {each.reference: cell.key for each in measurements}
            earlier = self._earlier(record, outputs, result.is_own(outputs))
            for each in measurements:
                least = self._least(each, Costs(arrays, {}))
                found.append(dataclasses.replace(each, earlier=earlier, least=least))
        failures += [] if taken.failed or outdated else _unused(arrays, found)
        if not found and not outdated and not failures:
            return Conclusion()
        cells = taken.page.cells
        deciding = self.kind.deciding(tuple(cell.source for cell in cells))
        slices = dict(zip((cell.key for cell in cells), deciding, strict=True))
        code = {name: slices[key] for name, key in keys.items()}
        return Conclusion(
            PageMeasurements(tuple(found), tuple(outdated), code, self.machine_files),
            tuple(failures),
            {each.device: _counted(found, each.device) for each in found},
            {each.device: each.processor for each in reversed(found)},
        )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add in how many processes pages measure, and over how long."""
        if self.kind:
            recording.add_arguments(parser)

    def records(self, page: Page) -> bool:
        """Say whether a page measures."""
        return page.benchmark and self.kind is not None

    def record(
        self, pages: Sequence[Page], recorder: Recorder, arguments: argparse.Namespace
    ) -> None:
        """Record pages in several processes each."""
        if self.kind and self.judge:
            measuring = Processes(recorder, self.kind, self.judge)
            measuring.measure(pages, arguments.processes, arguments.again, arguments.minutes)

    def _earlier(
        self, record: Mapping[str, Any], outputs: CellOutputs, own: bool
    ) -> Earlier | None:
        """Say what has changed since a record of today's code was measured, or how little it is."""
        assert self.kind is not None
        if own and self.options.preview:
            return Earlier.LOOK
        if record["method"] < self.kind.schema.method:
            return Earlier.METHOD
        return Earlier.CODE if outputs.standing or outputs.lent else None

    def _least(self, measurement: Measurement, costs: Costs) -> float | None:
        """Return the least seconds that a call can take, where that is known."""
        peaks = self.options.of(MeasuredOptions).peaks.get(measurement.device_kind or "")
        return costs.least(measurement, peaks) if peaks else None


FEATURE = Measured


def _displayed(
    taken: PageResults, kind: MeasurementKind
) -> Iterator[tuple[DeviceResult, Cell, CellOutputs, dict[str, Any]]]:
    """Yield the records that cells display on each device; one that is their value too, once."""
    for result in taken.results:
        outputs = result.outputs and kind.undisturbed(result.outputs)
        for cell in taken.page.cells:
            if outputs and (cell_outputs := outputs.cell(cell.key)):
                records = kind.records(cell_outputs.outputs)
                for number, record in enumerate(records):
                    if record not in records[:number]:
                        yield result, cell, cell_outputs, record


def _unused(patterns: Iterable[str], measurements: Sequence[Measurement]) -> list[Failure]:
    """Return a failure for each pattern of the head that matches no measurement of its page."""
    names = [measurement.name for measurement in measurements]
    unused = [pattern for pattern in patterns if names and not fnmatch.filter(names, pattern)]
    return [Failure(1, f"no measurement of the page matches '{HEAD}: {each}'") for each in unused]


def _counted(measurements: Iterable[Measurement], device: str) -> str:
    """Say in how many processes measurements were made on a device."""
    counts = sorted({len(each.processes) for each in measurements if each.device == device})
    count = "–".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
    return f"{count} process{'es' * (count != '1')}"
