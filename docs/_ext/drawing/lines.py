"""Draw lines through points on two logarithmic axes, with the limits above them."""

import html
import itertools
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from executed.frameworks import Colour

from . import svg

TOP, HEIGHT = 40, 250
BOTTOM = TOP + HEIGHT
WIDEST_NAME = 15
# How wide a chart may be, in pixels: a phone's, and a desk's.
WIDTHS = 230, 560
# The marks of points that stand alone, by their classes and as a legend writes them.
MARKS = {"": "●", "square": "■", "diamond": "◆", "flat": "▬"}
# Up to which factor the names of points would lie on one another.
CLOSE = 1.5


class Point(NamedTuple):
    """A point: a number over another, with its range and the text shown on hover.

    Where points stand alone, the highest of a `name` has it beside it. `data` are attributes for
    scripts.
    """

    x: float
    y: float
    hint: str = ""
    spread: tuple[float, float] | None = None
    name: str = ""
    data: tuple[tuple[str, str], ...] = ()


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
    """The name of a line, broken into words, and where it starts.

    Inside of a chart it is `left` or right of the end of its line; at the edge it is neither.
    """

    words: Sequence[str]
    top: float
    inside: str = ""


def line_chart(
    series: Mapping[str, Sequence[Point]],
    x_label: str,
    y_label: str,
    title: str,
    inks: Mapping[str, Colour] | None = None,
    levels: Mapping[str, float] | None = None,
    roofs: Mapping[str, Sequence[tuple[float, float]]] | None = None,
    others: Mapping[str, Sequence[Point]] | None = None,
    write: Callable[[float], str] = svg.number,
    data: Mapping[str, object] | None = None,
) -> str:
    """Return an SVG of lines: `series` maps a name to its points, and `others` to hollow ones.

    `levels` are limits of one value, {label: value}. Beneath `roofs`, limits of several, points
    stand alone, and a legend says whose they are. `write` writes the numbers of the axis upwards.
    `data` are attributes for scripts, which also learn the ends of that axis and where it lies.
    """
    lines = {name: sorted(points) for name, points in series.items()}
    levels, roofs, inks, others = levels or {}, roofs or {}, inks or {}, others or {}
    limits = [point for roof in roofs.values() for point in roof]
    points = [point for each in (*lines.values(), *others.values()) for point in each]
    axes = _axes(points, limits, levels.values())
    names = {} if roofs else _names(lines, axes)
    parts = [
        *(_grid(value, axes, write) for value in axes.up),
        *_ticks(axes),
        svg.text(x_label, class_="x-label", x="50%", y=BOTTOM + 38),
        *(_level(label, axes.y(value)) for label, value in levels.items()),
        *(_strokes(roof, axes, "ceiling") for roof in roofs.values()),
    ]
    legend = []
    for number, (name, line) in enumerate(lines.items()):
        ink = inks.get(name) or svg.INKS[number % len(svg.INKS)]
        kind, sign = list(MARKS.items())[number % len(MARKS)] if roofs else ("", "●")
        other = sorted(others.get(name, ()))
        drawn = [_strokes(other, axes, "other"), *(_mark(point, axes, "other") for point in other)]
        drawn += [] if roofs else [_strokes(line, axes)]
        drawn += [_mark(point, axes, f"bar {kind}".rstrip()) for point in line]
        drawn += [_text(names[name], axes.x(line[-1].x))] if names else []
        parts.append(svg.element("g", *drawn, class_="series", style=ink.style))
        legend.append(svg.element("tspan", f"{sign} {html.escape(name)} ", style=ink.style))
    if roofs:
        parts += [*_roof_names(roofs, axes), *_point_names(points, axes)]
        parts.append(svg.element("text", *legend, class_="legend", y=BOTTOM + 60))
    left = max(len(write(value)) for value in axes.up) * svg.LETTER + 10
    ends = [len(word) for name in names.values() if not name.inside for word in name.words]
    margins = left, max(ends, default=0) * svg.BOLD + 24
    height = BOTTOM + (68 if roofs else 46)
    if data:
        data = {**data, "data-axis": f"{axes.up[0]} {axes.up[-1]} {TOP} {HEIGHT}"}
    return svg.drawing(parts, f"height:{height}px", title, y_label, "chart", margins, data)


def _axes(
    points: Sequence[Point], limits: Sequence[tuple[float, float]], levels: Iterable[float]
) -> Axes:
    """Return axes that hold all; the lower one shows the places of points, or rounded numbers."""
    values = [value for point in points for value in (point.y, *(point.spread or ()))]
    values += [*levels, *(y for _, y in limits)]
    places = sorted({*(point.x for point in points), *(x for x, _ in limits)})
    across = svg.round_numbers(places[0], places[-1], (1,)) if limits else places
    return Axes(across, svg.round_numbers(min(values), max(values)))


def _names(lines: Mapping[str, Sequence[Point]], axes: Axes) -> dict[str, Name]:
    """Return the name of each line: behind its last point, or beside where a line ends early."""
    words = {name: textwrap.wrap(name, WIDEST_NAME) for name in lines}
    heights = {name: svg.LINE * len(words[name]) for name in lines}
    last = max(points[-1].x for points in lines.values())
    middles = {name: axes.y(points[-1].y) for name, points in lines.items()}
    centred = {
        name: (middles[name] - heights[name] / 2, heights[name])
        for name, points in lines.items()
        if points[-1].x == last
    }
    names = {name: Name(words[name], top) for name, top in svg.apart(centred, BOTTOM + 6).items()}
    marks = [place for points in lines.values() for place in _along(points, axes)]
    for name in lines.keys() - names.keys():
        x = svg.place(lines[name][-1].x, axes.across[0], axes.across[-1])
        tops = middles[name] - 5 - heights[name], middles[name] + 5
        choices = [Name(words[name], top, side) for side in ("right", "left") for top in tops]
        hidden = [_covered(choice, x, marks) for choice in choices]
        names[name] = choices[hidden.index(min(hidden))]
    return names


def _along(points: Sequence[Point], axes: Axes) -> Iterable[tuple[float, float, int]]:
    """Return places on a line, across and from the top, and how much each counts: most a point."""
    ends = [(svg.place(x, axes.across[0], axes.across[-1]), axes.y(y)) for x, y, *_ in points]
    yield from ((*end, 9) for end in ends)
    for (x1, y1), (x2, y2) in itertools.pairwise(ends):
        yield from ((x1 + (x2 - x1) * n / 9, y1 + (y2 - y1) * n / 9, 1) for n in range(1, 9))


def _covered(name: Name, x: float, marks: Sequence[tuple[float, float, int]]) -> int:
    """Return how much a name would cover of what is drawn, narrow and wide."""
    bottom = name.top + svg.LINE * len(name.words)
    wide = 10 + max(map(len, name.words)) * svg.BOLD
    found = 0
    for width in WIDTHS:
        start = x * width - (wide if name.inside == "left" else -10)
        inside = (
            count
            for across, top, count in marks
            if start - 4 < across * width < start + wide and name.top - 4 < top < bottom + 4
        )
        # What reaches over the edge covers the numbers of an axis, or leaves the page.
        found += sum(inside) + 20 * (start < 0 or start + wide > width + 60)
    return found


def _text(name: Name, x: str) -> str:
    dx = -10 if name.inside == "left" else 10
    spans = [
        svg.element("tspan", html.escape(word), x=x, dx=dx, dy=svg.LINE if number else None)
        for number, word in enumerate(name.words)
    ]
    kind = f"name inside {name.inside}" if name.inside else "name"
    return svg.element("text", *spans, class_=kind, y=name.top + 11)


def _grid(value: float, axes: Axes, write: Callable[[float], str]) -> str:
    y = axes.y(value)
    line = svg.element("line", class_="grid", x2="100%", y1=y, y2=y)
    return line + svg.text(write(value), class_="y-tick", dx=-8, y=y + 4)


def _ticks(axes: Axes) -> list[str]:
    """Draw the numbers below; on a phone every second gives way where they are many or long."""
    labels = [svg.number(value) for value in axes.across]
    crowded = len(labels) > 6 or sum(map(len, labels)) > svg.MOST_LETTERS
    classes = ["x-tick", "x-tick seldom" if crowded else "x-tick"]
    return [
        svg.text(label, class_=classes[number % 2], x=axes.x(value), y=BOTTOM + 18)
        for number, (label, value) in enumerate(zip(labels, axes.across, strict=True))
    ]


def _level(label: str, y: float) -> str:
    line = svg.element("line", x2="100%", y1=y, y2=y)
    return svg.element("g", line, svg.text(label, x=4, y=y - 5), class_="ceiling")


def _roof_names(roofs: Mapping[str, Sequence[tuple[float, float]]], axes: Axes) -> Iterable[str]:
    """Write the name of each roof left of its flat part, where nothing can be reached."""
    wanted = {
        label: (axes.y(points[-1][1]) - svg.LINE, svg.LINE) for label, points in roofs.items()
    }
    for label, top in svg.apart(wanted, BOTTOM).items():
        yield svg.text(label, class_="roof", x=axes.x(roofs[label][-2][0]), dx=-6, y=top + 12)


def _strokes(points: Sequence[Sequence[Any]], axes: Axes, class_: str = "") -> str:
    lines = (
        svg.element("line", x1=axes.x(x1), y1=axes.y(y1), x2=axes.x(x2), y2=axes.y(y2))
        for (x1, y1, *_), (x2, y2, *_) in itertools.pairwise(points)
    )
    return svg.element("g", *lines, class_=class_) if len(points) > 1 else ""


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


def _mark(point: Point, axes: Axes, class_: str) -> str:
    """Draw a point, and a line over its range."""
    x, y = axes.x(point.x), axes.y(point.y)
    around = [svg.element("circle", class_="reach", cx=x, cy=y, r=11)]
    if point.spread:
        low, high = map(axes.y, point.spread)
        around.append(svg.element("line", class_="spread", x1=x, x2=x, y1=low, y2=high))
    if class_ in ("bar", "other"):
        around.append(svg.element("circle", class_=class_, cx=x, cy=y, r=4))
    else:
        around.append(svg.element("rect", class_=class_, x=x, y=y))
    return svg.point(point.hint, *around, **dict(point.data))
