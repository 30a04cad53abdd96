"""Draw measurements: bars over names, or lines over sizes, with values and their ranges."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from drawing import svg
from drawing.lines import Point, line_chart
from drawing.numbers import rate_text
from drawing.rows import Row, rows
from executed.frameworks import Colour
from executed.options import Options

from .schema import Measurement
from .texts import field_text


class Scale(NamedTuple):
    """How numbers are drawn: times a factor, with the words of an axis and of bars without one."""

    factor: float
    axis: str
    heading: str


SCALES = {
    "latency": Scale(
        1e3, "milliseconds, of a call that is waited for", "time of a call that is waited for"
    ),
    "throughput": Scale(1e3, "milliseconds, of one call of many", "time of one call of many"),
    "first_call": Scale(1e3, "milliseconds, of the first call", "time of the first call"),
    "rate": Scale(1e-9, "GFLOP/s", "rate"),
}


class Look(NamedTuple):
    """What stands for a measurement in a chart: the label of its row or of its line, its colour."""

    label: str
    ink: Colour


def drawable(measurements: Iterable[Measurement], x: str, y: str) -> list[Measurement]:
    """Return the measurements that have what a chart needs on both of its axes."""
    return [
        measurement
        for measurement in measurements
        if getattr(measurement, y) and (x != "size" or measurement.size is not None)
    ]


def chart(
    measurements: Sequence[Measurement],
    x: str,
    y: str,
    series: str,
    options: Options,
    title: str,
    ceilings: Sequence[Measurement] = (),
    logarithmic: bool = False,
) -> str:
    """Return an SVG of measurements that can be drawn: bars over names, or lines over sizes.

    All are of one device. `series` is the field by which they are grouped. `options` name
    and colour frameworks, and names of bars lack the parts that all of them begin with. The
    largest of `ceilings` is a line across a chart over sizes. With `logarithmic` there are dots in
    place of bars; lines are always on logarithmic axes.
    """
    factor, axis, heading = SCALES[y]
    styles = looks(measurements, x, series, options)
    bars, lines = [], dict[str, list[Point]]()
    for measurement in measurements:
        label, ink = styles[measurement.reference]
        value, spread = getattr(measurement, y) * factor, _spread(measurement, y)
        text = field_text(y, measurement)
        if x == "name":
            hint = f"{options.framework_label(measurement.framework)}: {text}"
            brief = field_text(y, measurement, with_range=False)
            bars.append(Row(label, brief, 0, value, hint, ink, spread))
        else:
            size = measurement.size or 0
            hint = f"{label}, {svg.number(size)}: {text}"
            lines.setdefault(label, []).append(Point(size, value, hint, spread))
    if x == "name":
        heading = f"{axis}, logarithmic scale" if logarithmic else heading
        return rows({"": bars}, title, heading, "chart", logarithmic)
    limit = max((getattr(ceiling, y) for ceiling in ceilings), default=None)
    levels = {f"ceiling {rate_text(limit)}": limit * factor} if limit else {}
    return line_chart(lines, "size", axis, title, inks=dict(styles.values()), levels=levels)


def looks(
    measurements: Sequence[Measurement], x: str, series: str, options: Options
) -> dict[str, Look]:
    """Return what stands for each measurement of a chart, by its reference."""
    several = len({measurement.framework for measurement in measurements}) > 1
    names = short(measurement.name for measurement in measurements)
    groups = list(dict.fromkeys(getattr(measurement, series) for measurement in measurements))
    styles = {}
    for measurement in measurements:
        framework, group = measurement.framework, getattr(measurement, series)
        label = options.framework_label(framework) if series == "framework" else group
        if x == "name":
            suffix = f" · {options.framework_label(framework)}" if several else ""
            label = names[measurement.name] + suffix
        colour = options.colour(framework) if series == "framework" else None
        ink = colour or svg.INKS[groups.index(group) % len(svg.INKS)]
        styles[measurement.reference] = Look(label, ink)
    return styles


def short(names: Iterable[str]) -> dict[str, str]:
    """Return {name: name without the leading parts, up to a `/`, that all of them share}."""
    parts = {name: name.split("/") for name in names}
    shared = 0
    if len(parts) > 1:
        least = min(map(len, parts.values())) - 1
        while shared < least and len({part[shared] for part in parts.values()}) == 1:
            shared += 1
    return {name: "/".join(part[shared:]) for name, part in parts.items()}


def _spread(measurement: Measurement, y: str) -> tuple[float, float] | None:
    """Return between which numbers the line through a point goes."""
    clock = ("throughput" if measurement.throughput else "latency") if y == "rate" else y
    seconds, factor = measurement.range(clock), SCALES[y].factor
    if seconds is None or seconds.low == seconds.high:
        return None
    if y == "rate":
        work = measurement.work or 0
        return work / seconds.high * factor, work / seconds.low * factor
    return seconds.low * factor, seconds.high * factor
