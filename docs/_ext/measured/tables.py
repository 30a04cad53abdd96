"""Tables of measurements, as texts."""

import collections
from collections.abc import Iterable, Sequence

from executed.options import Options

from .schema import CLOCKS, Measurement
from .texts import ALONE, field_text

COLUMNS = {
    "name": "measurement",
    "framework": "framework",
    "device_kind": "device",
    "shape": "shape",
    "dtype": "dtype",
    "precision": "float32 matmuls",
    "latency": "latency",
    "throughput": "throughput",
    "first_call": "first call",
    "rate": "rate",
    "error": "error against float64",
    "processes": "processes",
}
DEFAULT_COLUMNS = ["name", "framework", "latency", "first_call"]
# Behind what was measured before something changed, and what that is.
DAGGER = "†"
SINCE = {
    "code": "other code of its page has changed since",
    "method": "the method has changed since",
}
# A column of what a table's device may not have.
SOMETIMES = ("throughput",)


def grid(
    columns: Sequence[str], measurements: Sequence[Measurement], options: Options
) -> tuple[list[str], list[list[str]], list[str]]:
    """Return the head, the rows and the notes of a table with one row for each measurement.

    Where a column is of one process in all rows, a note says so in place of each number. A dagger
    leads to the note on what has changed since something was measured.
    """
    columns = [
        each
        for each in columns
        if each not in SOMETIMES or any(getattr(of, each) is not None for of in measurements)
    ]
    alone = {each for each in columns if all(_is_alone(of, each) for of in measurements)}
    rows = [
        [cell_text(column, each, options, with_range=column not in alone) for column in columns]
        for each in measurements
    ]
    for row, each in zip(rows, measurements, strict=True):
        row[0] += DAGGER if each.earlier else ""
    notes = notes_below([COLUMNS[each] for each in columns if each in alone], measurements, options)
    return [COLUMNS[each] for each in columns], rows, notes


def notes_below(
    alone: Sequence[str], measurements: Iterable[Measurement], options: Options
) -> list[str]:
    """Return the notes below a table: what is `alone` of one process, and what has changed since.

    The latter is what daggers lead to, for what was measured before a change.
    """
    notes = [f"{ALONE.capitalize()}: {', '.join(alone)}."] if alone else []
    places: dict[str, dict[str, None]] = {}
    for each in measurements:
        if each.earlier:
            where = f"{options.label(each.device)}, {each.date}"
            places.setdefault(SINCE[each.earlier], {})[where] = None
    return [*notes, *(f"{DAGGER} {'; '.join(where)}: {since}." for since, where in places.items())]


def _is_alone(of: Measurement, column: str) -> bool:
    """Say whether a number of a measurement is of one process, or of none."""
    return column in CLOCKS and len(of.of_processes(column)) < 2


def by_device(found: Iterable[Measurement]) -> dict[str, list[Measurement]]:
    """Return measurements by the device that they are of."""
    groups: dict[str, list[Measurement]] = {}
    for each in found:
        groups.setdefault(each.device, []).append(each)
    return groups


def settings(
    measurements: Iterable[Measurement], options: Options
) -> tuple[list[str], list[list[str]]]:
    """Return the head and the rows of a table of all switches, a row for each framework and switch.

    Where measurements of a framework were made under several, the row names each, and how many
    measurements it is of.
    """
    seen: dict[tuple[str, str], collections.Counter[str]] = {}
    for each in measurements:
        own = {"version": each.version, "float32 matmuls": each.precision, **each.settings}
        for name, value in {**own, "machine": each.processor}.items():
            if value:
                seen.setdefault((each.framework, name), collections.Counter())[value] += 1
    rows = []
    for (framework, name), values in sorted(seen.items()):
        several = len(values) > 1
        said = [f"{value} ({count})" if several else value for value, count in values.most_common()]
        rows.append([options.framework_label(framework), name, ", ".join(said)])
    return ["framework", "switch", "measured with"], rows


def cell_text(
    column: str, measurement: Measurement, options: Options, with_range: bool = True
) -> str:
    """Return what a table says in one column of a measurement."""
    if column == "shape":
        lengths = ("×".join(map(str, shape)) or "scalar" for shape in measurement.shape)
        return ", ".join(lengths) or "–"
    if column == "framework":
        return options.framework_label(measurement.framework)
    if column == "processes":
        return str(len(measurement.processes))
    return field_text(column, measurement, with_range)
