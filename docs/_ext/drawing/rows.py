"""Draw rows: a label with its number, and beneath it a bar from its start to its end."""

import dataclasses
import html
from collections.abc import Mapping, Sequence

from . import svg

HEIGHT = 38
# The least part of the width that something has, however short it was.
THINNEST = 0.003


@dataclasses.dataclass(frozen=True)
class Row:
    """A bar, all of it in one unit.

    `spread` is the interval that half of the samples lie in. `hollow` bars are of numbers that
    are not to be relied on. `said` is shown where somebody points at the row.
    """

    label: str
    value: str
    start: float
    end: float
    said: str
    ink: svg.Ink = svg.INKS[0]
    spread: tuple[float, float] | None = None
    hollow: bool = False


def rows(groups: Mapping[str, Sequence[Row]], title: str, heading: str, class_: str) -> str:
    """Return a drawing of rows in groups, each beneath its name where it has one."""
    each = [row for group in groups.values() for row in group]
    most = max([row.end for row in each] + [row.spread[1] for row in each if row.spread]) or 1
    parts, top = [], 24.0
    for name, group in groups.items():
        if name:
            parts.append(svg.text(name, class_="group", y=top + 14))
            top += 24
        for row in group:
            parts.append(_row(row, top, most))
            top += HEIGHT
    return svg.drawing(parts, top, title, heading, f"rows {class_}")


def _row(row: Row, top: float, most: float) -> str:
    length = (row.end - row.start) / most
    drawn = [
        svg.element("rect", class_="reach", width="100%", height=HEIGHT - 2, y=top),
        svg.element(
            "text",
            html.escape(row.label),
            svg.element("tspan", html.escape(row.value), class_="value", dx=8),
            y=top + 13,
        ),
        svg.element("rect", class_="track", width="100%", height=10, y=top + 20),
        svg.element(
            "rect",
            class_="bar",
            x=svg.percent(row.start / most),
            width=svg.percent(max(THINNEST, length) if length else 0),
            height=10,
            y=top + 20,
        ),
    ]
    if row.spread:
        low, high = (svg.percent(value / most) for value in row.spread)
        drawn.append(_line(low, high, top + 25, top + 25))
        drawn += [_line(end, end, top + 21, top + 29) for end in (low, high)]
    return svg.point(row.said, *drawn, class_="hollow" if row.hollow else "", style=row.ink.style)


def _line(x1: str, x2: str, y1: float, y2: float) -> str:
    return svg.element("line", class_="spread", x1=x1, x2=x2, y1=y1, y2=y2)
