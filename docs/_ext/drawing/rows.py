"""Draw rows: a label with its number, and beneath it a bar from its start to its end."""

import dataclasses
import html
from collections.abc import Callable, Mapping, Sequence

from executed.frameworks import Colour

from . import svg

HEIGHT = 38
# The least part of the width that something has, however short it was.
THINNEST = 0.003


@dataclasses.dataclass(frozen=True)
class Row:
    """A bar, all of it in one unit.

    `spread` is the range of its end. `hint` is shown where somebody points at the row.
    """

    label: str
    value: str
    start: float
    end: float
    hint: str
    ink: Colour = svg.INKS[0]
    spread: tuple[float, float] | None = None


def rows(
    groups: Mapping[str, Sequence[Row]],
    title: str,
    heading: str,
    class_: str,
    logarithmic: bool = False,
) -> str:
    """Return a drawing of rows in groups, each beneath its name where it has one.

    On a `logarithmic` scale a row is a dot at its end: a bar would have no place to start from.
    """
    ends = [
        value
        for group in groups.values()
        for row in group
        for value in (row.end, *(row.spread or ()))
    ]
    largest = max(ends) or 1
    ticks = svg.round_numbers(min(ends), largest, (1,)) if logarithmic else []

    def place(value: float) -> float:
        return svg.place(value, ticks[0], ticks[-1]) if ticks else value / largest

    parts, top = [], 24.0
    for name, group in groups.items():
        if name:
            parts.append(svg.text(name, class_="group", y=top + 14))
            top += 24
        for row in group:
            parts.append(_row(row, top, place, logarithmic))
            top += HEIGHT
    if ticks:
        edges = {ticks[0]: " first", ticks[-1]: " last"}
        grid = [_tick(tick, svg.percent(place(tick)), top, edges.get(tick, "")) for tick in ticks]
        parts = grid + parts
        top += 18
    return svg.drawing(parts, top, title, heading, f"rows {class_}")


def _tick(value: float, x: str, bottom: float, edge: str) -> str:
    line = svg.element("line", class_="grid", x1=x, x2=x, y1=24, y2=bottom)
    return line + svg.text(svg.number(value), class_=f"x-tick{edge}", x=x, y=bottom + 14)


def _row(row: Row, top: float, place: Callable[[float], float], dot: bool) -> str:
    start, end = (0 if dot else place(row.start)), place(row.end)
    band = {"height": 10, "y": top + 20}
    parts = [
        svg.element("rect", class_="reach", width="100%", height=HEIGHT - 2, y=top),
        svg.element(
            "text",
            html.escape(row.label),
            svg.element("tspan", html.escape(row.value), class_="value", dx=8),
            y=top + 13,
        ),
        svg.element("rect", class_="track", width="100%", **band),
    ]
    if dot:
        parts.append(svg.element("circle", class_="bar", cx=svg.percent(end), cy=top + 25, r=6))
    else:
        length = max(THINNEST, end - start) if row.end > row.start else 0
        sides = {"x": svg.percent(start), "width": svg.percent(length)}
        parts.append(svg.element("rect", class_="bar", **sides, **band))
    if row.spread:
        low, high = (svg.percent(place(value)) for value in row.spread)
        parts.append(_line(low, high, top + 25, top + 25))
        parts += [_line(x, x, top + 21, top + 29) for x in (low, high)]
    return svg.point(row.hint, *parts, style=row.ink.style)


def _line(x1: str, x2: str, y1: float, y2: float) -> str:
    return svg.element("line", class_="spread", x1=x1, x2=x2, y1=y1, y2=y2)
