"""Tables of measurements, as texts."""

import collections
import itertools
import urllib.parse
from collections.abc import Iterable, Sequence

from executed.options import Options

from .options import MeasuredOptions
from .schema import CLOCKS, Earlier, Measurement
from .texts import ONE_PROCESS, field_text, shape_text

COLUMNS = {
    "name": "measurement",
    "framework": "framework",
    "device_kind": "device",
    "shape": "shape",
    "dtype": "dtype",
    "precision": "float32 matmuls",
    "latency": "latency",
    "least": "at least",
    "throughput": "throughput",
    "first_call": "first call",
    "rate": "rate",
    "error": "error against float64",
    "processes": "processes",
}
DEFAULT_COLUMNS = ["name", "framework", "latency", "first_call"]
# Of which columns a reader's own number may stand below the book's.
NUMBERS = (*CLOCKS, "rate")
# Behind what was measured before something changed, and what that is.
DAGGER = "†"
SINCE = {
    Earlier.CODE: "other code of its page has changed since",
    Earlier.METHOD: "the method has changed since",
    Earlier.LOOK: "one call, for a first look, because no recording is of this code",
}
# A column of what a table's device may not have.
SOMETIMES = ("throughput", "least")


def grid(
    columns: Sequence[str], measurements: Sequence[Measurement], options: Options
) -> tuple[list[str], list[list[str]], list[str]]:
    """Return the columns, the rows and the notes of a table with one row for each measurement.

    Where a column is of one process in all rows, a note says so in place of each number. A dagger
    leads to the note on what has changed since something was measured.
    """
    beside = [[column, "least"] if column == "latency" else [column] for column in columns]
    shown = [
        column
        for column in itertools.chain(*beside)
        if column not in SOMETIMES or any(getattr(row, column) is not None for row in measurements)
    ]
    alone = [
        column
        for column in shown
        if column in CLOCKS and all(len(row.of_processes(column)) < 2 for row in measurements)
    ]
    rows = [
        [cell_text(column, measurement, options, column not in alone) for column in shown]
        for measurement in measurements
    ]
    for row, measurement in zip(rows, measurements, strict=True):
        row[0] += DAGGER if measurement.earlier else ""
    notes = notes_below([COLUMNS[column] for column in alone], measurements, options)
    peaks = options.of(MeasuredOptions).peaks
    kinds = dict.fromkeys(row.device_kind or "" for row in measurements if row.least)
    sources = (urllib.parse.urlsplit(peaks[kind].source).hostname for kind in kinds)
    notes += [f"At least: by the peaks that {source} publishes." for source in sources]
    return shown, rows, notes


def notes_below(
    alone: Sequence[str], measurements: Iterable[Measurement], options: Options
) -> list[str]:
    """Return the notes below a table: what is `alone` of one process, and what has changed since.

    The latter is what daggers lead to, for what was measured before a change.
    """
    notes = [f"{ONE_PROCESS.capitalize()}: {', '.join(alone)}."] if alone else []
    places: dict[str, dict[str, None]] = {}
    for measurement in measurements:
        if measurement.earlier:
            place = f"{options.label(measurement.device)}, {measurement.date}"
            places.setdefault(SINCE[measurement.earlier], {})[place] = None
    return [*notes, *(f"{DAGGER} {'; '.join(where)}: {since}." for since, where in places.items())]


def by_device(measurements: Iterable[Measurement]) -> dict[str, list[Measurement]]:
    """Return measurements by the device that they are of."""
    groups: dict[str, list[Measurement]] = {}
    for measurement in measurements:
        groups.setdefault(measurement.device, []).append(measurement)
    return groups


def settings(
    measurements: Iterable[Measurement], options: Options
) -> tuple[list[str], list[list[str]]]:
    """Return the head and the rows of a table of all switches, a row for each framework and switch.

    Where measurements of a framework were made under several, the row names each, and how many
    measurements it is of.
    """
    counts: dict[tuple[str, str], collections.Counter[str]] = {}
    for measurement in measurements:
        switches = {
            **{"version": measurement.version, "float32 matmuls": measurement.precision},
            **measurement.settings,
            "machine": measurement.processor,
        }
        for switch, value in switches.items():
            if value:
                key = measurement.framework, switch
                counts.setdefault(key, collections.Counter())[value] += 1
    rows = []
    for (framework, switch), values in sorted(counts.items()):
        texts = [f"{v} ({n})" if len(values) > 1 else v for v, n in values.most_common()]
        rows.append([options.framework_label(framework), switch, ", ".join(texts)])
    return ["framework", "switch", "measured with"], rows


def cell_text(
    column: str, measurement: Measurement, options: Options, with_range: bool = True
) -> str:
    """Return what a table says in one column of a measurement."""
    if column == "shape":
        return shape_text(measurement)
    if column == "framework":
        return options.framework_label(measurement.framework)
    if column == "processes":
        return str(len(measurement.processes))
    return field_text(column, measurement, with_range)
