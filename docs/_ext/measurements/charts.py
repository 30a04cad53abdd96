"""Draw records as SVG that follows the colours of the page, light or dark."""

import html
import io
import re

INK = "#010203"
GRID = "#040506"
# Okabe and Ito's colours that keep a contrast of 3 to 1 on white and on the dark page.
SERIES = ("#0072B2", "#D55E00", "#009E73", "#B8679A", "#8C6D1F", "#6A6A9E")
MARKERS = ("o", "s", "^", "D", "v", "P")


def line_chart(series, x_label, y_label, title, from_zero=False):
    """Return an SVG of lines: `series` maps a label to a list of (x, y); both axes logarithmic.

    With `from_zero` the values are on a linear axis that begins at zero.
    """
    figure, axes = _axes()
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
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks], rotation=45)
    if from_zero:
        axes.set_yscale("linear")
        axes.set_ylim(bottom=0)
    axes.minorticks_off()
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    axes.legend(frameon=False)
    return _svg(figure, title)


def bar_chart(bars, x_label, title):
    """Return an SVG of horizontal bars: `bars` is a list of (label, series, value)."""
    figure, axes = _axes(height=0.9 + 0.34 * len(bars))
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
    return _svg(figure, title)


def _axes(height=4.2):
    import matplotlib

    # The object interface alone: no window system, no state shared with other charts.
    from matplotlib.figure import Figure

    matplotlib.rcParams.update(
        {
            "svg.fonttype": "none",
            "svg.hashsalt": "book",
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
    )
    figure = Figure(figsize=(7.2, height), layout="constrained")
    figure.patch.set_alpha(0)
    axes = figure.add_subplot()
    axes.patch.set_alpha(0)
    axes.grid(True, alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _svg(figure, title):
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    svg = buffer.getvalue()
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
