"""A page that measures, executed in several processes: the outputs of one, and how others vary."""

import collections
import copy
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nbformat import NotebookNode

from ..measurements.schema import Schema
from .form import PageOutputs
from .outputs import record

# Which comparison or measurement of a page a record is of: its cell, what was measured, and the
# how manieth of these it is, because a cell may measure the same twice.
Name = tuple[str, tuple[str, ...], int]


def disturbed(run: PageOutputs, schema: Schema | None) -> bool:
    """Say whether the machine did something else while one of the measurements was made."""
    return any(each.get("machine", {}).get("disturbed") for each in _single(run, schema))


def unstable(run: PageOutputs, schema: Schema | None) -> int:
    """Return how many measurements spread widely."""
    return sum(each.get("stable") is False for each in _single(run, schema))


def are_missing(run: PageOutputs, schema: Schema | None, wanted: int) -> bool:
    """Say whether outputs hold a measurement that was made in fewer processes than wanted."""
    return any(len(each.get("processes", ())) < wanted > 1 for each in _single(run, schema))


def merged(runs: Sequence[PageOutputs], schema: Schema | None, wanted: int) -> PageOutputs:
    """Return the outputs of the steadiest run, whose records tell what the others measured too.

    Runs that were disturbed come last; those beyond the number wanted are left out, and each
    record says how many these are.
    """
    by_unrest = sorted(runs, key=lambda run: (disturbed(run, schema), unstable(run, schema)))
    kept = by_unrest[:wanted]
    shown, repeated = kept[0], len(runs) - len(kept)
    made = [dict(_records(run, schema)) for run in kept]
    # In the order of the outputs.
    names = iter(made[0])

    def completed(output: NotebookNode) -> NotebookNode:
        found = record(output, schema)
        if found is None or schema is None or schema.problem(found) is not None:
            return output
        name = next(names)
        output = copy.deepcopy(output)
        same = [each[name] for each in made if name in each]
        output["data"][schema.media_type] = _with(found, same, repeated)
        return output

    cells = tuple(
        dataclasses.replace(cell, outputs=tuple(map(completed, cell.outputs)))
        for cell in shown.cells
    )
    return dataclasses.replace(shown, cells=cells)


def _with(
    found: Mapping[str, Any], same: Sequence[Mapping[str, Any]], repeated: int
) -> dict[str, Any]:
    """Return a record with what records of the same name found, itself among them."""
    whole: dict[str, Any] = copy.deepcopy(dict(found))
    if "alternatives" not in whole:
        whole["processes"] = [each["median"] for each in same]
        if repeated:
            whole["machine"]["repeated"] = repeated
        return whole
    whole["alternatives"] = [
        _with(each, [other["alternatives"][number] for other in same], repeated)
        for number, each in enumerate(whole["alternatives"])
    ]
    for number, pair in enumerate(whole["ratios"]):
        pair["processes"] = [other["ratios"][number]["ratio"] for other in same]
    return whole


def _records(run: PageOutputs, schema: Schema | None) -> Iterator[tuple[Name, Mapping[str, Any]]]:
    """Yield what a page measured. What is no measurement is the site's to refuse."""
    for cell in run.cells:
        seen: collections.Counter[tuple[str, ...]] = collections.Counter()
        for output in cell.outputs:
            found = record(output, schema)
            if found is not None and schema and schema.problem(found) is None:
                measured = _measured(found)
                yield (cell.key, measured, seen[measured]), found
                seen[measured] += 1


def _single(run: PageOutputs, schema: Schema | None) -> Iterator[Mapping[str, Any]]:
    """Yield the records of single measurements: of a comparison, those of its alternatives."""
    for _, found in _records(run, schema):
        yield from found.get("alternatives", [found])


def _measured(found: Mapping[str, Any]) -> tuple[str, ...]:
    """Say what a record is of: a comparison's name, and each measurement's with its framework."""
    whole = (found["name"],) if "alternatives" in found else ()
    each = found.get("alternatives", [found])
    return whole + tuple(f"{one['name']}@{one['framework']}" for one in each)
