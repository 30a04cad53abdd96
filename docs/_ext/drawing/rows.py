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

    `spread` is the range of its end. `said` is shown where somebody points at the row.
    """

    label: str
    value: str
    start: float
    end: float
    said: str
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
    drawn = [row for group in groups.values() for row in group]
    ends = [value for row in drawn for value in (row.end, *(row.spread or ()))]
    most = max(ends) or 1
    ticks = svg.round_numbers(min(ends), most, (1,)) if logarithmic else []
    place = svg.placing(ticks[0], ticks[-1]) if ticks else lambda value: value / most
    parts, top = [], 24.0
    for name, group in groups.items():
        if name:
            parts.append(svg.text(name, class_="group", y=top + 14))
            top += 24
        for row in group:
            parts.append(_row(row, top, place, logarithmic))
            top += HEIGHT
    if ticks:
        edges = {ticks[0]: "first", ticks[-1]: "last"}
        at = {tick: svg.percent(place(tick)) for tick in ticks}
        parts = [_tick(tick, at[tick], top, edges.get(tick, "")) for tick in ticks] + parts
        top += 18
    return svg.drawing(parts, top, title, heading, f"rows {class_}")


def _tick(tick: float, at: str, bottom: float, edge: str) -> str:
    line = svg.element("line", class_="grid", x1=at, x2=at, y1=24, y2=bottom)
    return line + svg.text(svg.number(tick), class_=f"x-tick {edge}".strip(), x=at, y=bottom + 14)


def _row(row: Row, top: float, place: Callable[[float], float], dots: bool) -> str:
    end = place(row.end)
    drawn = [
        svg.element("rect", class_="reach", width="100%", height=HEIGHT - 2, y=top),
        svg.element(
            "text",
            html.escape(row.label),
            svg.element("tspan", html.escape(row.value), class_="value", dx=8),
            y=top + 13,
        ),
        svg.element("rect", class_="track", width="100%", height=10, y=top + 20),
    ]
    if dots:
        drawn.append(svg.element("circle", class_="bar", cx=svg.percent(end), cy=top + 25, r=6))
    else:
        start = place(row.start)
        length = max(THINNEST, end - start) if row.end > row.start else 0
        bar = {"x": svg.percent(start), "width": svg.percent(length)}
        drawn.append(svg.element("rect", class_="bar", **bar, height=10, y=top + 20))
    if row.spread:
        low, high = (svg.percent(place(value)) for value in row.spread)
        drawn.append(_line(low, high, top + 25, top + 25))
        drawn += [_line(at, at, top + 21, top + 29) for at in (low, high)]
    return svg.point(row.said, *drawn, style=row.ink.style)


def _line(x1: str, x2: str, y1: float, y2: float) -> str:
    return svg.element("line", class_="spread", x1=x1, x2=x2, y1=y1, y2=y2)
