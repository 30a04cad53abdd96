"""Draw lines through points on two logarithmic axes, with the limits above them."""

import html
import itertools
import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from executed.frameworks import Colour

from . import svg

TOP, HEIGHT = 40, 250
BOTTOM = TOP + HEIGHT
WIDEST_NAME = 15
# Of the numbers under an axis that is as narrow as on a phone.
MOST_LETTERS = 26
# Up to which factor the names of points would lie on one another.
CLOSE = 1.5


class Point(NamedTuple):
    """A number over another, with what is said where somebody points at it, and its range.

    Where points stand alone, the highest of a `name` has it beside it.
    """

    x: float
    y: float
    hint: str = ""
    spread: tuple[float, float] | None = None
    name: str = ""


class Axes(NamedTuple):
    """Two logarithmic axes: the numbers that each shows, in ascending order."""

    across: Sequence[float]
    up: Sequence[float]

    def x(self, value: float) -> str:
        """Return how far from the left a number is."""
        return svg.percent(svg.place(value, self.across[0], self.across[-1]))

    def y(self, value: float) -> float:
        """Return how far from the top a number is."""
        return TOP + HEIGHT * (1 - svg.place(value, self.up[0], self.up[-1]))


class Name(NamedTuple):
    """The name of a line, broken into words, and where it starts; `inside` is not at the edge."""

    words: Sequence[str]
    top: float
    inside: bool


def line_chart(
    series: Mapping[str, Sequence[Point]],
    x_label: str,
    y_label: str,
    title: str,
    inks: Mapping[str, Colour] | None = None,
    levels: Mapping[str, float] | None = None,
    roofs: Mapping[str, Sequence[tuple[float, float]]] | None = None,
) -> str:
    """Return an SVG of lines: `series` maps a name to its points.

    `levels` are limits of one value, {label: value}. Beneath `roofs`, limits of several, points
    stand alone.
    """
    lines = {name: sorted(points) for name, points in series.items()}
    levels, roofs, inks = levels or {}, roofs or {}, inks or {}
    limits = [*levels.values(), *(y for roof in roofs.values() for _, y in roof)]
    axes = _axes([point for points in lines.values() for point in points], limits, bool(roofs))
    names = _names(lines, axes)
    parts = [
        *(_grid(value, axes) for value in axes.up),
        *_ticks(axes),
        svg.text(x_label, class_="x-label", x="50%", y=BOTTOM + 38),
        *(_level(label, axes.y(value)) for label, value in levels.items()),
        *(_roof(label, roof, axes) for label, roof in roofs.items()),
    ]
    for number, (name, points) in enumerate(lines.items()):
        ink = inks.get(name) or svg.INKS[number % len(svg.INKS)]
        strokes = [] if roofs else _strokes([point[:2] for point in points], axes)
        marks = [_mark(point, axes) for point in points]
        text = _text(names[name], axes.x(points[-1].x))
        parts.append(svg.element("g", *strokes, *marks, text, class_="series", style=ink.style))
    if roofs:
        parts += _point_names([point for points in lines.values() for point in points], axes)
    left = max(len(svg.number(value)) for value in axes.up) * svg.LETTER + 10
    widths = [len(word) for name in names.values() if not name.inside for word in name.words]
    margins = math.ceil(left), math.ceil(max(widths) * svg.BOLD + 12)
    return svg.drawing(parts, BOTTOM + 46, title, y_label, "chart", margins)


def _axes(points: Sequence[Point], limits: Sequence[float], rounded: bool) -> Axes:
    """Return axes that hold all; the lower one shows the places of points, or rounded numbers."""
    values = [value for point in points for value in (point.y, *(point.spread or ()))]
    places = sorted({point.x for point in points})
    across = svg.round_numbers(places[0], places[-1], (1,)) if rounded else places
    return Axes(across, svg.round_numbers(min((*values, *limits)), max((*values, *limits))))


def _names(lines: Mapping[str, Sequence[Point]], axes: Axes) -> dict[str, Name]:
    """Return the name of each line: behind its last point, or above where a line ends early."""
    words = {name: textwrap.wrap(name, WIDEST_NAME) for name in lines}
    heights = {name: svg.LINE * len(words[name]) for name in lines}
    ends = {name: points[-1] for name, points in lines.items()}
    last = max(end.x for end in ends.values())
    centred = {
        name: (axes.y(end.y) - heights[name] / 2, heights[name])
        for name, end in ends.items()
        if end.x == last
    }
    tops = {name: axes.y(end.y) - 5 - heights[name] for name, end in ends.items()}
    tops |= svg.apart(centred, BOTTOM + 6)
    return {name: Name(words[name], tops[name], name not in centred) for name in lines}


def _text(name: Name, x: str) -> str:
    spans = [
        svg.element("tspan", html.escape(word), x=x, dx=10, dy=svg.LINE if number else None)
        for number, word in enumerate(name.words)
    ]
    return svg.element(
        "text", *spans, class_="name inside" if name.inside else "name", y=name.top + 11
    )


def _grid(value: float, axes: Axes) -> str:
    y = axes.y(value)
    line = svg.element("line", class_="grid", x2="100%", y1=y, y2=y)
    return line + svg.text(svg.number(value), class_="y-tick", dx=-8, y=y + 4)


def _ticks(axes: Axes) -> list[str]:
    """Draw the numbers below; on a phone every second gives way where they are many or long."""
    labels = [svg.number(value) for value in axes.across]
    crowded = len(labels) > 6 or sum(map(len, labels)) > MOST_LETTERS
    classes = ["x-tick", "x-tick seldom" if crowded else "x-tick"]
    return [
        svg.text(label, class_=classes[number % 2], x=axes.x(value), y=BOTTOM + 18)
        for number, (label, value) in enumerate(zip(labels, axes.across, strict=True))
    ]


def _level(label: str, y: float) -> str:
    line = svg.element("line", x2="100%", y1=y, y2=y)
    return svg.element("g", line, svg.text(label, x=4, y=y - 5), class_="ceiling")


def _roof(label: str, points: Sequence[tuple[float, float]], axes: Axes) -> str:
    x, y = points[-1]
    text = svg.text(label, x=axes.x(x), y=axes.y(y) - 5, text_anchor="end")
    return svg.element("g", *_strokes(points, axes), text, class_="ceiling")


def _strokes(points: Sequence[tuple[float, float]], axes: Axes) -> list[str]:
    return [
        svg.element("line", x1=axes.x(x1), y1=axes.y(y1), x2=axes.x(x2), y2=axes.y(y2))
        for (x1, y1), (x2, y2) in itertools.pairwise(points)
    ]


def _point_names(points: Sequence[Point], axes: Axes) -> list[str]:
    """Write each name of points once: above the highest, or beside several that lie close."""
    highest: dict[str, Point] = {}
    for point in sorted(points, key=lambda point: point.y):
        if point.name:
            highest[point.name] = point
    columns: list[list[Point]] = []
    for point in sorted(highest.values()):
        if columns and point.x <= CLOSE * columns[-1][-1].x:
            columns[-1].append(point)
        else:
            columns.append([point])
    parts = []
    for column in columns:
        x, wanted = axes.x(column[-1].x), {}
        for point in column:
            wanted[point.name] = axes.y(point.y) - svg.LINE / 2, svg.LINE
        tops = svg.apart(wanted, BOTTOM)
        if len(column) == 1:
            tops = {name: top - svg.LINE for name, top in tops.items()}
        beside = {"dx": 8} if len(column) > 1 else {"text-anchor": "middle"}
        parts += [
            svg.text(name, class_="point-name", x=x, y=top + svg.LINE * 0.75, **beside)
            for name, top in tops.items()
        ]
    return parts


def _mark(point: Point, axes: Axes) -> str:
    """Draw a point, and a line over its range."""
    x, y = axes.x(point.x), axes.y(point.y)
    around = [svg.element("circle", class_="reach", cx=x, cy=y, r=11)]
    if point.spread:
        low, high = map(axes.y, point.spread)
        around.append(svg.element("line", class_="spread", x1=x, x2=x, y1=low, y2=high))
    around.append(svg.element("circle", class_="bar", cx=x, cy=y, r=4))
    return svg.point(point.hint, *around)
