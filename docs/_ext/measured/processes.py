"""Measurements as a kind of output, and what several processes measured, one after the other."""

import copy
import dataclasses
import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any

from nbformat import NotebookNode

from executed.store.output_format import CellOutputs, PageOutputs
from executed.store.outputs import content, kind_of

from .schema import Schema, only, parts
from .slices import slices
from .texts import lines

# Beside the processes, what has to be the same in records for one to go on where the other ends.
SAME = frozenset(
    "version method name framework device_kind processor shape dtype precision versions "
    "settings".split()
)


class MeasurementKind:
    """Records of measurements, as an output kind of the core; see `executed.store.output_kinds`."""

    def __init__(self, schema: Schema) -> None:
        """Take what a record must hold."""
        self.schema = schema
        self.media_type = schema.media_type

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

    def records(self, outputs: Iterable[NotebookNode]) -> list[dict[str, Any]]:
        """Return the records among outputs; one that is no dictionary is empty."""
        found = (content(output, self) for output in outputs if kind_of(output, [self]))
        return [dict(data) if isinstance(data, dict) else {} for data in found]

    def _measured(self, run: PageOutputs) -> list[list[dict[str, Any]]]:
        """Return the processes of each measurement among the outputs of a page."""
        records = [record for cell in run.cells for record in self.records(cell.outputs)]
        return [part["processes"] for record in records for part in parts(record)]

    def processes(self, outputs: PageOutputs) -> float:
        """Return in how many processes all was measured that the outputs of a page hold, if any."""
        # What holds no measurement is not to be measured again.
        return min(map(len, self._measured(outputs)), default=math.inf)

    def moments(self, outputs: PageOutputs) -> Sequence[str]:
        """Return when the processes of a page ran: the dates of their first measurements."""
        return [process["date"] for measured in self._measured(outputs)[:1] for process in measured]

    def disturbed(self, outputs: PageOutputs) -> bool:
        """Say whether anything of a page was measured while other programs kept cores busy."""
        return any(process["disturbed"] for process in itertools.chain(*self._measured(outputs)))

    def undisturbed(self, run: PageOutputs) -> PageOutputs:
        """Return the outputs of a page without its processes that were disturbed, if others remain.

        All that a page measures is of the same processes: one that was disturbed goes everywhere.
        """
        lists = [[process["disturbed"] for process in each] for each in self._measured(run)]
        calm = [not any(flags) for flags in zip(*lists, strict=False)]
        if len({*map(len, lists)}) != 1 or all(calm) or not any(calm):
            return run

        return self._merged(run, run, lambda plain, _: only(plain, calm)) or run

    def with_new_processes(self, former: PageOutputs, new: PageOutputs) -> PageOutputs | None:
        """Return the former outputs of a page with what further processes measured.

        All else is what was printed first. None where the two are not of the same: of other cells,
        or measured with other versions or on another machine.
        """
        cells = [[(cell.key, cell.missing) for cell in outputs.cells] for outputs in (former, new)]
        if cells[0] != cells[1]:
            return None
        return self._merged(former, new, _with_processes_of)

    def with_former_processes(self, former: PageOutputs, new: PageOutputs) -> PageOutputs | None:
        """Return the new outputs of a page with what the processes of the former ones measured.

        They may be of another processor, which each record names. None where they did not measure
        all of what the page measures, by the same slices of its code, and with the same versions.
        """
        placed = [former.cell(cell.key) for cell in new.cells]
        cells = [cell if cell and cell.kind_stands else CellOutputs("") for cell in placed]
        before = dataclasses.replace(former, cells=tuple(cells))
        same = SAME - {"processor"}
        return self._merged(new, before, lambda a, b: b if _with_processes_of(a, b, same) else None)

    def _merged(
        self,
        one: PageOutputs,
        other: PageOutputs,
        merge: Callable[[dict[str, Any], dict[str, Any]], dict[str, Any] | None],
    ) -> PageOutputs | None:
        """Return the outputs of one run, with each record merged with that of another."""
        cells = []
        for cell, other_cell in zip(one.cells, other.cells, strict=True):
            more = self.records(other_cell.outputs)
            if len(more) != len(self.records(cell.outputs)):
                return None
            outputs = []
            for output in cell.outputs:
                for measured in self.records([output]):
                    merged = merge(measured, more.pop(0))
                    if merged is None:
                        return None
                    output = NotebookNode(copy.deepcopy(output))
                    output["data"][self.media_type] = merged
                outputs.append(output)
            cells.append(dataclasses.replace(cell, outputs=tuple(outputs)))
        return dataclasses.replace(one, cells=tuple(cells))


def _with_processes_of(
    one: Mapping[str, Any], other: Mapping[str, Any], same: Set[str] = SAME
) -> dict[str, Any] | None:
    """Return a record with the processes of another, or None where not all is the `same`."""
    former, new = parts(one), parts(other)
    if one["name"] != other["name"] or len(former) != len(new):
        return None
    merged = []
    for part, more in zip(former, new, strict=True):
        if any(part.get(name) != more.get(name) for name in same):
            return None
        merged.append({**part, "processes": [*part["processes"], *more["processes"]]})
    return {**one, "alternatives": merged} if "alternatives" in one else merged[0]
