"""Tables of measurements, as texts."""

from collections.abc import Sequence

from .labels import Labels
from .references import field_text, seconds_text
from .schema import Measurement

COLUMNS = {
    "name": "measurement",
    "framework": "framework",
    "device_kind": "device",
    "shape": "shape",
    "dtype": "dtype",
    "precision": "float32 products",
    "threads": "threads",
    "median": "median",
    "quartiles": "quartiles",
    "spread": "spread",
    "outliers": "far off",
    "first_call": "first call",
    "rate": "rate",
    "error": "error against float64",
    "stable": "stable",
}
# What a measurement is of: the same on every device. The other columns come once for each.
SHARED_COLUMNS = ("name", "framework", "shape", "dtype")
DEFAULT_COLUMNS = "name framework median spread first_call"


def grid(
    columns: Sequence[str], measurements: Sequence[Measurement], labels: Labels
) -> tuple[list[str], list[list[str]]]:
    """Return the head and the rows of a table with one row for each measurement.

    Where there are several devices, each has columns of its own.
    """
    devices = list(dict.fromkeys(each.device for each in measurements))
    if len(devices) == 1:
        rows = [[cell_text(column, each, labels) for column in columns] for each in measurements]
        return [COLUMNS[column] for column in columns], rows
    shared = [column for column in columns if column in SHARED_COLUMNS]
    single = [(c, device) for c in columns if c not in SHARED_COLUMNS for device in devices]
    by_name: dict[str, dict[str, Measurement]] = {}
    for each in measurements:
        by_name.setdefault(each.reference, {})[each.device] = each
    head = [COLUMNS[column] for column in shared]
    head += [f"{COLUMNS[column]}, {labels.device(device)}" for column, device in single]
    rows = []
    for made in by_name.values():
        row = [cell_text(column, next(iter(made.values())), labels) for column in shared]
        row += [
            cell_text(c, made[device], labels) if device in made else "–" for c, device in single
        ]
        rows.append(row)
    return head, rows


def cell_text(column: str, measurement: Measurement, labels: Labels) -> str:
    """Return what a table says in one column of a measurement."""
    if column == "shape":
        lengths = ("×".join(map(str, shape)) or "scalar" for shape in measurement.shape)
        return ", ".join(lengths) or "–"
    if column == "framework":
        return labels.framework(measurement.framework)
    if column == "stable":
        return "no" if measurement.unstable else "yes"
    if column == "quartiles":
        return " to ".join(map(seconds_text, measurement.quartiles))
    if column == "outliers":
        return f"{measurement.outliers} of {len(measurement.samples)}"
    text = field_text(column, measurement)
    return f"{text} (unstable)" if measurement.unstable and column == "median" else text
