"""Draw rows: a label with its number, and beneath it a bar from its start to its end."""

import dataclasses
import html
import math
from collections.abc import Mapping, Sequence
from typing import Self

from ..frameworks import Colour
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


@dataclasses.dataclass(frozen=True)
class Scale:
    """Where numbers are on the width: from zero to the largest, or between the ticks of decades."""

    most: float
    ticks: Sequence[float] = ()

    @classmethod
    def of(cls, each: Sequence[Row], logarithmic: bool) -> Self:
        """Return the scale on which all rows can be drawn."""
        spreads = [value for row in each for value in row.spread or ()]
        ends = [row.end for row in each] + spreads
        if logarithmic:
            return cls(1, svg.round_numbers(min(ends), max(ends), (1,)))
        return cls(max(ends) or 1)

    def place(self, value: float) -> float:
        """Return where a number is, as a part of the width."""
        if not self.ticks:
            return value / self.most
        low, high = math.log(self.ticks[0]), math.log(self.ticks[-1])
        return (math.log(value) - low) / (high - low)


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
    scale = Scale.of([row for group in groups.values() for row in group], logarithmic)
    parts, top = [], 24.0
    for name, group in groups.items():
        if name:
            parts.append(svg.text(name, class_="group", y=top + 14))
            top += 24
        for row in group:
            parts.append(_row(row, top, scale))
            top += HEIGHT
    if scale.ticks:
        parts = [_tick(scale, tick, top) for tick in scale.ticks] + parts
        top += 18
    return svg.drawing(parts, top, title, heading, f"rows {class_}")


def _tick(scale: Scale, tick: float, bottom: float) -> str:
    at = svg.percent(scale.place(tick))
    edge = {scale.ticks[0]: "first", scale.ticks[-1]: "last"}.get(tick, "")
    line = svg.element("line", class_="grid", x1=at, x2=at, y1=24, y2=bottom)
    return line + svg.text(svg.number(tick), class_=f"x-tick {edge}".strip(), x=at, y=bottom + 14)


def _row(row: Row, top: float, scale: Scale) -> str:
    end = scale.place(row.end)
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
    if scale.ticks:
        drawn.append(svg.element("circle", class_="bar", cx=svg.percent(end), cy=top + 25, r=6))
    else:
        start = scale.place(row.start)
        length = max(THINNEST, end - start) if row.end > row.start else 0
        place = {"x": svg.percent(start), "width": svg.percent(length)}
        drawn.append(svg.element("rect", class_="bar", **place, height=10, y=top + 20))
    if row.spread:
        low, high = (svg.percent(scale.place(value)) for value in row.spread)
        drawn.append(_line(low, high, top + 25, top + 25))
        drawn += [_line(at, at, top + 21, top + 29) for at in (low, high)]
    return svg.point(row.said, *drawn, style=row.ink.style)


def _line(x1: str, x2: str, y1: float, y2: float) -> str:
    return svg.element("line", class_="spread", x1=x1, x2=x2, y1=y1, y2=y2)
