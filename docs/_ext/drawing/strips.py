"""Draw strips: the dots of one row of a table on an axis that all its rows share.

A strip has no words. The cell that it stands in says what the dots are, and the head of the column
has the numbers of the axis.
"""

from collections.abc import Iterable, Sequence

from executed.frameworks import Colour

from . import svg

# How many numbers a column has room for on a phone.
MOST = 4


def strip(dots: Iterable[tuple[float, tuple[float, float], Colour]], ticks: Sequence[float]) -> str:
    """Return dots, each with the range around it, on a logarithmic axis from the first tick on."""
    lines = [_line(tick, ticks) for tick in ticks]
    marks = [mark for dot in dots for mark in _dot(*dot, ticks)]
    return _drawing("strip", *lines, *marks)


def axis(ticks: Sequence[float]) -> str:
    """Return the numbers of the axis, as factors: every second one where there are many."""
    ends = {ticks[0]: "start", ticks[-1]: "end"}
    shown = (
        svg.text(f"{svg.number(t)}×", x=_x(t, ticks), y=12, text_anchor=ends.get(t, "middle"))
        for t in ticks[:: 2 if len(ticks) > MOST else 1]
    )
    return _drawing("strip-axis", *shown)


def _drawing(class_: str, *parts: str) -> str:
    return svg.element("svg", *parts, class_=class_, aria_hidden="true")


def _dot(
    value: float, spread: tuple[float, float], ink: Colour, ticks: Sequence[float]
) -> tuple[str, str]:
    low, high = (_x(end, ticks) for end in spread)
    return (
        svg.element("line", class_="spread", x1=low, x2=high, y1=9, y2=9, style=ink.style),
        svg.element("circle", class_="dot", cx=_x(value, ticks), cy=9, r=5, style=ink.style),
    )


def _line(tick: float, ticks: Sequence[float]) -> str:
    return svg.element("line", class_="grid", x1=(x := _x(tick, ticks)), x2=x, y1=0, y2=18)


def _x(value: float, ticks: Sequence[float]) -> str:
    return svg.percent(min(1, max(0, svg.place(value, ticks[0], ticks[-1]))))
