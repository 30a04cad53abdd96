"""A page that measures, executed in several processes: what each measured most steadily."""

import collections
import copy
import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from nbformat import NotebookNode

from ..measurements.schema import Schema
from .output_format import PageOutputs
from .outputs import record

# Which comparison or measurement of a page a record is of: its cell, what was measured, and the
# how manieth of these it is, because a cell may measure the same twice.
Name = tuple[str, tuple[str, ...], int]


def disturbed(run: PageOutputs, schema: Schema | None) -> bool:
    """Say whether the machine did something else while one of the measurements was made."""
    return _unrest(_single(run, schema))[0]


def are_missing(run: PageOutputs, schema: Schema | None, wanted: int) -> bool:
    """Say whether outputs hold a measurement that was made in fewer processes than wanted."""
    return any(len(each.get("processes", ())) < wanted > 1 for each in _single(run, schema))


def merged(runs: Sequence[PageOutputs], schema: Schema | None, wanted: int) -> PageOutputs:
    """Return the outputs of the steadiest run, with what others measured more steadily.

    A comparison, or a measurement outside of one, is that of the run in which the fewest of its
    times spread widely; its record tells the medians and ratios of all runs. Runs that were
    disturbed come last; those beyond the number wanted are left out, and each record says how
    many these are.
    """
    kept = sorted(runs, key=lambda run: _unrest(_single(run, schema)))[:wanted]
    shown, repeated = kept[0], len(runs) - len(kept)
    made = [{name: rest for name, *rest in _measured(run, schema)} for run in kept]
    # In the order of the outputs.
    names = iter(made[0])

    def completed(output: NotebookNode) -> NotebookNode:
        if schema is None or _valid(output, schema) is None:
            return output
        name = next(names)
        same = [each[name] for each in made if name in each]
        steadiest, found = min(same, key=lambda each: _unrest(_parts(each[1])))
        output = NotebookNode(copy.deepcopy(steadiest))
        output["data"][schema.media_type] = _with(found, [each for _, each in same], repeated)
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


def _valid(output: NotebookNode, schema: Schema | None) -> Mapping[str, Any] | None:
    """Return the record of an output. What is no measurement is the site's to refuse."""
    found = record(output, schema)
    return found if found is not None and schema and schema.problem(found) is None else None


def _measured(
    run: PageOutputs, schema: Schema | None
) -> Iterator[tuple[Name, NotebookNode, Mapping[str, Any]]]:
    """Yield the outputs of a page that hold what it measured, with their names and records."""
    for cell in run.cells:
        seen: collections.Counter[tuple[str, ...]] = collections.Counter()
        for output in cell.outputs:
            if found := _valid(output, schema):
                name = _name(found)
                yield (cell.key, name, seen[name]), output, found
                seen[name] += 1


def _single(run: PageOutputs, schema: Schema | None) -> Iterator[Mapping[str, Any]]:
    """Yield the records of single measurements: of a comparison, those of its alternatives."""
    for _, _, found in _measured(run, schema):
        yield from _parts(found)


def _parts(found: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    parts: Sequence[Mapping[str, Any]] = found.get("alternatives", [found])
    return parts


def _unrest(records: Iterable[Mapping[str, Any]]) -> tuple[bool, int]:
    """Say whether the machine did something else meanwhile, and how many times spread widely."""
    known = list(records)
    elsewhere = any(each.get("machine", {}).get("disturbed") for each in known)
    return elsewhere, sum(each.get("stable") is False for each in known)


def _name(found: Mapping[str, Any]) -> tuple[str, ...]:
    """Say what a record is of: a comparison's name, and each measurement's with its framework."""
    whole = (found["name"],) if "alternatives" in found else ()
    return whole + tuple(f"{one['name']}@{one['framework']}" for one in _parts(found))
