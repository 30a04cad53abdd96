"""A page that measures, executed in several processes: what each measured, one after the other."""

import copy
import dataclasses
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Set
from typing import Any

from nbformat import NotebookNode

from executed.store.output_format import CellOutputs, PageOutputs

from .schema import Schema, parts, record

# Beside the processes, what has to be the same in records for one to go on where the other ends.
SAME = frozenset(
    "version method name framework device_kind processor shape dtype precision versions "
    "settings".split()
)


def count(run: PageOutputs, schema: Schema) -> float:
    """Return in how many processes all was measured that the outputs of a page hold, if any."""
    counts = map(len, _all(run, schema))
    # What holds no measurement is not to be measured again.
    return min(counts, default=math.inf)


def moments(run: PageOutputs, schema: Schema) -> list[str]:
    """Return when the processes of a page ran, by what each measured first."""
    return [process["date"] for process in next(_all(run, schema), [])]


def disturbed(run: PageOutputs, schema: Schema) -> bool:
    """Say whether anything of a page was measured while other programs kept cores busy."""
    return any(process["disturbed"] for process in itertools.chain(*_all(run, schema)))


def undisturbed(run: PageOutputs, schema: Schema) -> PageOutputs:
    """Return the outputs of a page without its processes that were disturbed, if others are left.

    All that a page measures is of the same processes, so one that was disturbed goes everywhere.
    """
    lists = [[process["disturbed"] for process in processes] for processes in _all(run, schema)]
    calm = [not any(flags) for flags in zip(*lists, strict=False)]
    if len({*map(len, lists)}) != 1 or all(calm) or not any(calm):
        return run

    def without(plain: dict[str, Any], _: dict[str, Any]) -> dict[str, Any]:
        left = [
            {**part, "processes": [*itertools.compress(part["processes"], calm)]}
            for part in parts(plain)
        ]
        return {**plain, "alternatives": left} if "alternatives" in plain else left[0]

    return _merged(run, run, schema, without) or run


def _all(run: PageOutputs, schema: Schema) -> Iterator[list[dict[str, Any]]]:
    """Yield the processes of each measurement among the outputs of a page."""
    for cell in run.cells:
        for plain in _records(cell.outputs, schema):
            yield from (part["processes"] for part in parts(plain))


def accumulated(former: PageOutputs, new: PageOutputs, schema: Schema) -> PageOutputs | None:
    """Return the former outputs of a page with what further processes measured.

    All else is what was printed first. None where the two are not of the same: of other cells, or
    measured with other versions or on another machine.
    """
    cells = [[(cell.key, cell.missing) for cell in outputs.cells] for outputs in (former, new)]
    if cells[0] != cells[1]:
        return None
    return _merged(former, new, schema, _joined)


def kept(former: PageOutputs, new: PageOutputs, schema: Schema) -> PageOutputs | None:
    """Return the new outputs of a page with what the processes of the former ones measured.

    They may be of another processor, which each record names. None where they did not measure all
    of what the page measures, by the same slices of its code, and with the same versions.
    """
    placed = [former.cell(cell.key) for cell in new.cells]
    cells = [cell if cell and cell.kind_stands else CellOutputs("") for cell in placed]
    before = dataclasses.replace(former, cells=tuple(cells))
    same = SAME - {"processor"}
    return _merged(new, before, schema, lambda a, b: b if _joined(a, b, same) else None)


def _merged(
    one: PageOutputs,
    other: PageOutputs,
    schema: Schema,
    merge: Callable[[dict[str, Any], dict[str, Any]], dict[str, Any] | None],
) -> PageOutputs | None:
    """Return the outputs of one run, with each record merged with that of another."""
    cells = []
    for cell, other_cell in zip(one.cells, other.cells, strict=True):
        more = list(_records(other_cell.outputs, schema))
        if len(more) != len(list(_records(cell.outputs, schema))):
            return None
        outputs = []
        for output in cell.outputs:
            if (measured := record(output, schema)) is not None:
                merged = merge(measured, more.pop(0))
                if merged is None:
                    return None
                output = NotebookNode(copy.deepcopy(output))
                output["data"][schema.media_type] = merged
            outputs.append(output)
        cells.append(dataclasses.replace(cell, outputs=tuple(outputs)))
    return dataclasses.replace(one, cells=tuple(cells))


def _records(outputs: tuple[NotebookNode, ...], schema: Schema) -> Iterator[dict[str, Any]]:
    """Yield the records among outputs, those of the value of a cell too."""
    for output in outputs:
        if (measured := record(output, schema)) is not None:
            yield measured


def _joined(
    one: Mapping[str, Any], other: Mapping[str, Any], same: Set[str] = SAME
) -> dict[str, Any] | None:
    """Return a record with the processes of another, or None where not all is the `same`."""
    former, new = parts(one), parts(other)
    if one["name"] != other["name"] or len(former) != len(new):
        return None
    joined = []
    for part, more in zip(former, new, strict=True):
        if any(part.get(name) != more.get(name) for name in same):
            return None
        joined.append({**part, "processes": [*part["processes"], *more["processes"]]})
    return {**one, "alternatives": joined} if "alternatives" in one else joined[0]
