"""Draw measurements as SVG that follows the colours of the page, light or dark."""

import hashlib
import html
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .schema import Measurement

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.ticker import Locator

INK = "#010203"
GRID = "#040506"
# Okabe and Ito's colours that keep a contrast of 3 to 1 on white and on the dark page.
SERIES = ("#0072B2", "#D55E00", "#009E73", "#B8679A", "#8C6D1F", "#6A6A9E")
MARKERS = ("o", "s", "^", "D", "v", "P")
STYLE = {
    "svg.fonttype": "none",
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": GRID,
    "font.family": "sans-serif",
    "font.size": 11,
    # A name may hold a dollar sign.
    "text.parse_math": False,
}
# What a chart can show: the factor that its numbers are multiplied by, and what its axis says.
QUANTITIES = {
    "median": (1e3, "milliseconds (median)"),
    "first_call": (1e3, "milliseconds (first call)"),
    "rate": (1e-9, "GFLOP/s"),
}

Bar = tuple[str, str, float]
Points = Sequence[tuple[float, float]]


def can_be_drawn(measurement: Measurement, x: str, y: str) -> bool:
    """Say whether a measurement has what a chart needs on both of its axes."""
    return bool(getattr(measurement, y)) and (x != "size" or measurement.size is not None)


def chart(
    measurements: Sequence[Measurement],
    x: str,
    y: str,
    series: str,
    label: Callable[[str], str],
    title: str,
    key: str = "",
) -> str:
    """Return an SVG of measurements that can be drawn: bars over names, or lines over sizes.

    `series` is the field by which they are grouped; where there are several devices, each
    has series of its own, named by `label`. Charts of one page need different keys.
    """
    scale, y_label = QUANTITIES[y]
    on_several = len({each.device for each in measurements}) > 1
    several = len({each.framework for each in measurements}) > 1

    def series_of(each: Measurement) -> str:
        where = f" on {label(each.device)}" if on_several else ""
        return f"{getattr(each, series)}{where}"

    if x == "name":
        bars = [
            (
                f"{each.name} · {each.framework}" if several else each.name,
                series_of(each),
                getattr(each, y) * scale,
            )
            for each in measurements
        ]
        return bar_chart(bars, y_label, title, key)
    lines: dict[str, list[tuple[float, float]]] = {}
    for each in measurements:
        point = (each.size or 0, getattr(each, y) * scale)
        lines.setdefault(series_of(each), []).append(point)
    return line_chart(lines, "size", y_label, title, key=key)


def line_chart(
    series: Mapping[str, Points],
    x_label: str,
    y_label: str,
    title: str,
    from_zero: bool = False,
    key: str = "",
) -> str:
    """Return an SVG of lines: `series` maps a label to a list of (x, y); both axes logarithmic.

    With `from_zero` the values are on a linear axis that begins at zero. Charts that stand
    on one page and are otherwise equal need different keys.
    """
    with _drawing(4.2, title, key, series) as (axes, made):
        from matplotlib.ticker import FuncFormatter

        for number, (label, points) in enumerate(series.items()):
            xs, ys = zip(*sorted(points), strict=True)
            axes.loglog(
                xs,
                ys,
                label=label,
                color=SERIES[number % len(SERIES)],
                marker=MARKERS[number % len(MARKERS)],
                base=10,
            )
        ticks = sorted({x for points in series.values() for x, _ in points})
        axes.set_xticks(ticks, [_plain(tick) for tick in ticks], rotation=45)
        if from_zero:
            axes.set_yscale("linear")
            axes.set_ylim(bottom=0)
        else:
            axes.yaxis.set_major_locator(_ticks(*axes.get_ylim()))
            axes.yaxis.set_major_formatter(FuncFormatter(_plain))
        axes.minorticks_off()
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)
        axes.legend(frameon=False)
    return made[0]


def bar_chart(bars: Sequence[Bar], x_label: str, title: str, key: str = "") -> str:
    """Return an SVG of horizontal bars: `bars` is a list of (label, series, value).

    Charts that stand on one page and are otherwise equal need different keys.
    """
    with _drawing(0.9 + 0.34 * len(bars), title, key, bars) as (axes, made):
        names = list(dict.fromkeys(series for _, series, _ in bars))
        for position, (_, series, value) in enumerate(bars):
            number = names.index(series)
            axes.barh(
                position,
                value,
                height=0.7,
                color=SERIES[number % len(SERIES)],
                label=series if series not in [b[1] for b in bars[:position]] else None,
            )
        axes.set_yticks(range(len(bars)), [label for label, _, _ in bars])
        axes.invert_yaxis()
        axes.set_xlabel(x_label)
        if len(names) > 1:
            axes.legend(frameon=False)
    return made[0]


def _ticks(low: float, high: float) -> "Locator":
    """Return where a logarithmic axis has numbers: at least two, however short it is."""
    from matplotlib.ticker import AutoLocator, LogLocator

    locator = LogLocator(subs=(1, 2, 5) if high < 100 * low else (1,))
    inside = [tick for tick in locator.tick_values(low, high) if low <= tick <= high]
    return locator if len(inside) > 1 else AutoLocator()


def _plain(value: float, position: int | None = None) -> str:
    """Write a number as people do, where matplotlib would write a formula."""
    return f"{value:.12g}"


@contextmanager
def _drawing(
    height: float, title: str, key: str, content: object
) -> Iterator[tuple["Axes", list[str]]]:
    """Give axes to draw on, and a list that holds the SVG afterwards."""
    import matplotlib.style

    # The object interface alone: no window system, no state shared with other charts.
    from matplotlib.figure import Figure

    # matplotlib makes the ids of what it defines out of this.
    salt = hashlib.sha256(repr((title, key, content)).encode()).hexdigest()
    made: list[str] = []
    with matplotlib.style.context(STYLE | {"svg.hashsalt": salt}, after_reset=True):
        figure = Figure(figsize=(7.2, height), layout="constrained")
        figure.patch.set_alpha(0)
        axes = figure.add_subplot()
        axes.patch.set_alpha(0)
        axes.grid(True, alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
        yield axes, made
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    made.append(_for_page(buffer.getvalue(), title))


def _for_page(svg: str, title: str) -> str:
    """Return what matplotlib drew as it can stand in a page."""
    svg = svg[svg.index("<svg") :].replace(INK, "currentColor").replace(GRID, "currentColor")
    # Without its size in points the drawing scales with the column, down to a phone's.
    opening, rest = svg.split(">", 1)
    attributes = [
        word
        for word in opening.replace("\n", " ").split(" ")
        if not word.startswith(("width=", "height="))
    ]
    # matplotlib numbers its groups in every figure alike; two charts may share a page.
    rest = re.sub(r' id="[A-Za-z]+[\w.]*_\d+"', "", rest)
    opening = " ".join([*attributes, 'role="img"', 'class="measurement-chart"'])
    return f"{opening}><title>{html.escape(title)}</title>{rest}"
