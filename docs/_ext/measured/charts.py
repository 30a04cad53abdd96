"""Draw measurements: bars over names, or lines over sizes, with values and their ranges."""

import html
import itertools
import math
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from drawing import svg
from drawing.numbers import rate_text
from drawing.rows import Row, rows
from executed.frameworks import Colour
from executed.options import Options

from .references import field_text
from .schema import Measurement

# What a chart can show: the factor that its numbers are multiplied by, and what its axis says.
QUANTITIES = {
    "latency": (1e3, "milliseconds, of a call that is waited for"),
    "throughput": (1e3, "milliseconds, of one call of many"),
    "first_call": (1e3, "milliseconds, of the first call"),
    "rate": (1e-9, "GFLOP/s"),
}
HEADINGS = {
    "latency": "time of a call that is waited for",
    "throughput": "time of one call of many",
    "first_call": "time of the first call",
    "rate": "rate",
}
TOP, HEIGHT = 40, 250
WIDEST_LABEL = 15
# Of the sizes under an axis that is as narrow as on a phone.
MOST_LETTERS = 26


class Point(NamedTuple):
    """A number over another, with what is said where somebody points at it."""

    x: float
    y: float
    said: str = ""
    spread: tuple[float, float] | None = None


class Look(NamedTuple):
    """What stands for a measurement in a chart: the label of its row or of its line, its colour."""

    label: str
    ink: Colour


def can_be_drawn(measurement: Measurement, x: str, y: str) -> bool:
    """Say whether a measurement has what a chart needs on both of its axes."""
    return bool(getattr(measurement, y)) and (x != "size" or measurement.size is not None)


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
    scale, y_label = QUANTITIES[y]
    shown = looks(measurements, x, series, options)
    if x == "name":
        found = [
            Row(
                shown[each.reference].label,
                field_text(y, each, with_range=False),
                0,
                getattr(each, y) * scale,
                _said(each, y, options.framework_label(each.framework)),
                shown[each.reference].ink,
                _range(each, y, scale),
            )
            for each in measurements
        ]
        heading = f"{y_label}, logarithmic scale" if logarithmic else HEADINGS[y]
        return rows({"": found}, title, heading, "measurement-chart", logarithmic)
    lines: dict[str, list[Point]] = {}
    colours: dict[str, Colour] = {}
    for each in measurements:
        name, ink = shown[each.reference]
        colours[name] = ink
        said = _said(each, y, f"{name}, {svg.number(each.size or 0)}")
        spread = _range(each, y, scale)
        point = Point(each.size or 0, getattr(each, y) * scale, said, spread)
        lines.setdefault(name, []).append(point)
    limit = max((getattr(each, y) for each in ceilings), default=None)
    across = {f"ceiling {rate_text(limit)}": limit * scale} if limit else {}
    return line_chart(lines, "size", y_label, title, inks=colours, across=across)


def looks(
    measurements: Sequence[Measurement], x: str, series: str, options: Options
) -> dict[str, Look]:
    """Return what stands for each measurement of a chart, by its reference."""
    several = len({each.framework for each in measurements}) > 1
    names = short(each.name for each in measurements)
    groups = list(dict.fromkeys(getattr(each, series) for each in measurements))
    found = {}
    for each in measurements:
        made_with, group = options.framework_label(each.framework), getattr(each, series)
        label = made_with if series == "framework" else group
        if x == "name":
            label = f"{names[each.name]}{f' · {made_with}' if several else ''}"
        own = options.colour(each.framework) if series == "framework" else None
        ink = own or svg.INKS[groups.index(group) % len(svg.INKS)]
        found[each.reference] = Look(label, ink)
    return found


def short(names: Iterable[str]) -> dict[str, str]:
    """Return {name: name without the leading parts, up to a `/`, that all of them share}."""
    parts = {name: name.split("/") for name in names}
    shared = 0
    if len(parts) > 1:
        least = min(map(len, parts.values())) - 1
        while shared < least and len({each[shared] for each in parts.values()}) == 1:
            shared += 1
    return {name: "/".join(each[shared:]) for name, each in parts.items()}


def _said(measurement: Measurement, y: str, name: str) -> str:
    """Say what a point shows, in words."""
    return f"{name}: {field_text(y, measurement)}"


def _range(measurement: Measurement, y: str, scale: float) -> tuple[float, float] | None:
    """Return between which numbers the line through a point goes."""
    clock = ("throughput" if measurement.throughput else "latency") if y == "rate" else y
    found = measurement.range(clock)
    if found is None or found.low == found.high:
        return None
    if y == "rate":
        work = measurement.work or 0
        return work / found.high * scale, work / found.low * scale
    return found.low * scale, found.high * scale


def line_chart(
    series: Mapping[str, Sequence[Point]],
    x_label: str,
    y_label: str,
    title: str,
    inks: Mapping[str, Colour] | None = None,
    across: Mapping[str, float] | None = None,
    roofs: Mapping[str, Sequence[tuple[float, float]]] | None = None,
) -> str:
    """Return an SVG of lines: `series` maps a label to its points; both axes logarithmic.

    `across` are lines of one value, {label: value}. Beneath `roofs`, lines of a label without
    marks, points stand alone.
    """
    drawn = {label: sorted(points) for label, points in series.items()}
    across, roofs = across or {}, roofs or {}
    each = [point for points in drawn.values() for point in points]
    values = [value for point in each for value in (point.y, *(point.spread or ()))]
    values += [*across.values(), *(value for line in roofs.values() for _, value in line)]
    axis = svg.round_numbers(min(values), max(values))
    sizes = sorted({point.x for point in each})
    last = sizes[-1]
    if roofs:
        sizes = svg.round_numbers(sizes[0], sizes[-1], (1,))

    along, up = svg.placing(sizes[0], sizes[-1]), svg.placing(axis[0], axis[-1])

    def x(size: float) -> str:
        return svg.percent(along(size))

    def y(value: float) -> float:
        return TOP + HEIGHT * (1 - up(value))

    parts = [_grid(y(value), svg.number(value)) for value in axis]
    crowded = len(sizes) > 6 or sum(len(svg.number(size)) for size in sizes) > MOST_LETTERS
    parts += [_tick(x(size), size, n % 2 == 1 and crowded) for n, size in enumerate(sizes)]
    parts.append(svg.text(x_label, class_="x-label", x="50%", y=TOP + HEIGHT + 38))
    parts += [_across(label, y(value)) for label, value in across.items()]
    parts += [
        _roof(label, [(x(size), y(value)) for size, value in line]) for label, line in roofs.items()
    ]
    named = {label: textwrap.wrap(label, WIDEST_LABEL) for label in drawn}
    outside = {label: named[label] for label, points in drawn.items() if points[-1].x == last}
    wanted = {
        label: (y(drawn[label][-1].y) - svg.LINE * len(lines) / 2, svg.LINE * len(lines))
        for label, lines in outside.items()
    }
    places = svg.apart(wanted, TOP + HEIGHT + 6)
    for order, (label, points) in enumerate(drawn.items()):
        ink = (inks or {}).get(label) or svg.INKS[order % len(svg.INKS)]
        marks = [_mark(point, x(point.x), y) for point in points]
        strokes = [
            svg.element("line", x1=x(a.x), y1=y(a.y), x2=x(b.x), y2=y(b.y))
            for a, b in itertools.pairwise(points)
            if not roofs
        ]
        end, lines = points[-1], named[label]
        # The name of a line that ends early is above its last point.
        top = places.get(label, y(end.y) - 5 - svg.LINE * len(lines))
        name = _label(lines, x(end.x), top, "name" if label in places else "name inside")
        parts.append(svg.element("g", *strokes, *marks, name, class_="series", style=ink.style))
    left = max(len(svg.number(value)) for value in axis) * svg.LETTER + 10
    right = max(len(line) for lines in outside.values() for line in lines) * svg.BOLD + 12
    margins = math.ceil(left), math.ceil(right)
    return svg.drawing(parts, TOP + HEIGHT + 46, title, y_label, "measurement-chart", margins)


def _grid(y: float, label: str) -> str:
    line = svg.element("line", class_="grid", x2="100%", y1=y, y2=y)
    return line + svg.text(label, class_="y-tick", dx=-8, y=y + 4)


def _tick(x: str, size: float, seldom: bool) -> str:
    class_ = "x-tick seldom" if seldom else "x-tick"
    return svg.text(svg.number(size), class_=class_, x=x, y=TOP + HEIGHT + 18)


def _across(label: str, y: float) -> str:
    line = svg.element("line", x2="100%", y1=y, y2=y)
    return svg.element("g", line, svg.text(label, x=4, y=y - 5), class_="ceiling")


def _roof(label: str, points: Sequence[tuple[str, float]]) -> str:
    lines = [
        svg.element("line", x1=x1, y1=y1, x2=x2, y2=y2)
        for (x1, y1), (x2, y2) in itertools.pairwise(points)
    ]
    x, y = points[-1]
    said = svg.text(label, x=x, y=y - 5, text_anchor="end")
    return svg.element("g", *lines, said, class_="ceiling")


def _mark(point: Point, x: str, y: Callable[[float], float]) -> str:
    """Draw a point, and a line over its range."""
    around = [svg.element("circle", class_="reach", cx=x, cy=y(point.y), r=11)]
    if point.spread:
        low, high = map(y, point.spread)
        around.append(svg.element("line", class_="spread", x1=x, x2=x, y1=low, y2=high))
    around.append(svg.element("circle", class_="bar", cx=x, cy=y(point.y), r=4))
    return svg.point(point.said, *around)


def _label(lines: Sequence[str], x: str, top: float, class_: str) -> str:
    spans = [
        svg.element("tspan", html.escape(line), x=x, dx=10, dy=svg.LINE if n else None)
        for n, line in enumerate(lines)
    ]
    return svg.element("text", *spans, class_=class_, y=top + 11)
