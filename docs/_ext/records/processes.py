"""A page that measures, executed in several processes: the outputs of one, and how others vary."""

import copy
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nbformat import NotebookNode

from ..measurements.schema import Schema
from .form import PageOutputs
from .outputs import record

# Which comparison or measurement of a page a record is of: its cell, and its name.
Name = tuple[str, str, str]


def disturbed(run: PageOutputs, schema: Schema | None) -> bool:
    """Say whether the machine did something else while one of the measurements was made."""
    return any(each.get("machine", {}).get("disturbed") for each in _single(run, schema))


def are_missing(run: PageOutputs, schema: Schema | None, wanted: int) -> bool:
    """Say whether outputs hold a measurement that was made in fewer processes than wanted."""
    return any(len(each.get("processes", ())) < wanted > 1 for each in _single(run, schema))


def merged(runs: Sequence[PageOutputs], schema: Schema | None, wanted: int) -> PageOutputs:
    """Return the outputs of one run, whose records tell what the others measured too.

    Runs that were disturbed come last; those beyond the number wanted are left out, and each
    record says how many these are.
    """
    kept = sorted(runs, key=lambda run: disturbed(run, schema))[:wanted]
    shown, repeated = kept[0], len(runs) - len(kept)
    made = [dict(_records(run, schema)) for run in kept]

    def completed(key: str, output: NotebookNode) -> NotebookNode:
        found = record(output, schema)
        if found is None or schema is None:
            return output
        same = [each[name] for each in made if (name := _name(key, found)) in each]
        output = copy.deepcopy(output)
        output["data"][schema.media_type] = _with(found, same, repeated)
        return output

    cells = tuple(
        dataclasses.replace(cell, outputs=tuple(completed(cell.key, o) for o in cell.outputs))
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
        for output in cell.outputs:
            found = record(output, schema)
            if found is not None and schema and schema.problem(found) is None:
                yield _name(cell.key, found), found


def _single(run: PageOutputs, schema: Schema | None) -> Iterator[Mapping[str, Any]]:
    """Yield the records of single measurements: of a comparison, those of its alternatives."""
    for _, found in _records(run, schema):
        yield from found.get("alternatives", [found])


def _name(key: str, found: Mapping[str, Any]) -> Name:
    return key, str(found.get("name")), str(found.get("framework", ""))
