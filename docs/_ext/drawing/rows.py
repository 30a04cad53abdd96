"""Draw rows: a label, a bar from its start to its end or a dot, and its number.

A row is placed by its number, `--n`, and the style sheet says how high rows are: on a phone a label
stands above what is drawn, elsewhere in a column beside it. Lanes are rows of many bars.
"""

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from executed.frameworks import Colour

from . import svg
from .numbers import ratio_text, seconds_text

# The least part of the width that something has, however short it was.
THINNEST = 0.003
# From which factor on between two bars the shorter could not be seen.
FAR = 30
# How wide a drawing is at least, in pixels, on a desk and on a phone.
DESK, PHONE = 520, 280


@dataclasses.dataclass(frozen=True)
class Row:
    """A bar, all of it in one unit.

    `spread` is the range of its end. `hint` is shown where somebody points at the row. `other` is
    where the same ends elsewhere: a hollow mark, with the ratio behind the value. `data` are
    attributes for scripts.
    """

    label: str
    value: str
    start: float
    end: float
    hint: str
    ink: Colour = svg.INKS[0]
    spread: tuple[float, float] | None = None
    other: float | None = None
    data: Sequence[tuple[str, str]] = ()


def rows(
    groups: Mapping[str, Sequence[Row]],
    title: str,
    heading: str,
    class_: str,
    bars_within: float = math.inf,
    write: Callable[[float], str] = svg.number,
    within: Sequence[float] = (),
    data: Mapping[str, object] | None = None,
) -> str:
    """Return a drawing of rows in groups, each beneath its name where it has one.

    Where one is more than the factor `bars_within` shorter than another, a row is a dot at its end
    on a logarithmic scale: a bar would have no place to start from. `write` writes the numbers of
    that axis, which reaches over what is `within` it, too. `data` are attributes for scripts, which
    also learn where the axis starts, at 0 for bars, and where it ends.
    """
    shown = [row for group in groups.values() for row in group]
    ends = [
        *within,
        *(end for row in shown for end in (row.end, row.other, *(row.spread or ())) if end),
    ]
    largest = max(ends, default=1)
    dots = largest > bars_within * min(ends, default=1)
    ticks = svg.round_numbers(min(ends), largest) if dots else []

    def place(value: float) -> float:
        return svg.place(value, ticks[0], ticks[-1]) if dots else value / largest

    lines: list[str] = []
    for name, group in groups.items():
        if name:
            lines.append(svg.text(name, class_="group", y=15, style=f"--n:{len(lines)}"))
        for row in group:
            lines.append(_row(row, len(lines), place, dots))
    left = max(len(row.label) for row in shown) * svg.LETTER + 12
    right = max(len(_value(row)) for row in shown) * svg.BOLD + 12
    parts = [*_ticks({place(tick): write(tick) for tick in ticks}), *lines]
    size = f"--rows:{len(lines)}"
    axis = " axis" if ticks else ""
    if data:
        data = {**data, "data-axis": f"{ticks[0]} {ticks[-1]}" if dots else f"0 {largest}"}
    return svg.drawing(parts, size, title, heading, f"rows{axis} {class_}", (left, right), data)


def lanes(groups: Mapping[str, Sequence[Row]], title: str, heading: str, last: float) -> str:
    """Return a drawing of lanes: the rows of a group end to end over seconds, up to the last."""
    step = next(n for n in svg.round_numbers(last / 6, last) if 6 * n >= last)
    ticks = {n * step / last: seconds_text(n * step) for n in range(1, int(last / step + 1e-9) + 1)}
    lines = []
    for number, (name, group) in enumerate(groups.items()):
        label = svg.text(name, class_="label", y=14)
        blocks = (_block(row, last) for row in group)
        lines.append(svg.element("g", label, *blocks, class_="row", style=f"--n:{number}"))
    left = max(map(len, groups)) * svg.LETTER + 12
    parts = [*_ticks({0.0: "0", **ticks}), *lines]
    return svg.drawing(parts, f"--rows:{len(lines)}", title, heading, "rows axis lanes", (left, 12))


def _ticks(texts: Mapping[float, str]) -> Iterable[str]:
    """Draw the lines of an axis with their texts, by their places."""
    crowded = sum(map(len, texts.values())) > svg.MOST_LETTERS
    for number, (place, text) in enumerate(texts.items()):
        x = svg.percent(place)
        kind = "x-tick seldom" if crowded and number % 2 else "x-tick"
        edge = {0: " first", len(texts) - 1: " last"}.get(number, "")
        yield svg.element("rect", class_="grid", x=x, y=24)
        yield svg.text(text, class_=kind + edge, x=x, y=40)


def _value(row: Row) -> str:
    return f"{row.value} ○ {ratio_text(row.other / row.end)}" if row.other else row.value


def _row(row: Row, number: int, place: Callable[[float], float], dot: bool) -> str:
    start, end = (0 if dot else place(row.start)), place(row.end)
    marks = [svg.element("rect", class_="track", width="100%", height=1, y=9.5)]
    if not dot:
        length = max(THINNEST, end - start) if row.end > row.start else 0
        sides = {"x": svg.percent(start), "width": svg.percent(length)}
        marks.append(svg.element("rect", class_="bar", **sides, height=12, y=4))
    if row.spread:
        low, high = (svg.percent(place(value)) for value in row.spread)
        marks += [_line(low, high, 10, 10), _line(low, low, 6, 14), _line(high, high, 6, 14)]
    if row.other:
        marks.append(
            svg.element("circle", class_="other", cx=svg.percent(place(row.other)), cy=10, r=5)
        )
    if dot:
        marks.append(svg.element("circle", class_="bar", cx=svg.percent(end), cy=10, r=5))
    return svg.point(
        row.hint,
        svg.element("rect", class_="reach", width="100%", height=20),
        svg.text(row.label, class_="label", y=14),
        svg.text(_value(row), class_="value", x="100%", y=14),
        svg.element("g", *marks, class_="marks"),
        style=f"--n:{number};{row.ink.style}",
        class_="row",
        **dict(row.data),
    )


def _block(row: Row, last: float) -> str:
    """Draw a part of a lane, with its label inside where that fits."""
    start, length = row.start / last, max(THINNEST, (row.end - row.start) / last)
    needed = len(row.label) * svg.LETTER + 4
    sides = {"x": svg.percent(start), "width": svg.percent(length), "y": 1, "height": 18}
    block = svg.element("rect", class_="bar reach", **sides)
    words = svg.text(
        row.label,
        class_="inside" if length * PHONE > needed else "inside seldom",
        x=svg.percent(start + length / 2),
        y=14,
    )
    inside = [words] if length * DESK > needed else []
    marks = svg.element("g", block, *inside, class_="marks")
    return svg.point(row.hint, marks, style=row.ink.style)


def _line(x1: str, x2: str, y1: float, y2: float) -> str:
    return svg.element("line", class_="spread", x1=x1, x2=x2, y1=y1, y2=y2)
