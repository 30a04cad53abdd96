"""Draw measurements: bars over names, or lines over sizes, with values and their ranges."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from drawing import svg
from drawing.lines import Point, line_chart
from drawing.numbers import rate_text, seconds_text
from drawing.rows import FAR, Row, rows
from executed.frameworks import Colour
from executed.options import Options

from .rooflines import Reached, Roofs
from .schema import Measurement
from .texts import field_text, shape_text


class Scale(NamedTuple):
    """How numbers are drawn: times a factor, what they are in words, and how an axis has them."""

    factor: float
    heading: str
    write: Callable[[float], str] = seconds_text


SCALES = {
    "latency": Scale(1, "time of a call that is waited for"),
    "throughput": Scale(1, "time of one call of many"),
    "first_call": Scale(1, "time of the first call"),
    "rate": Scale(1e-9, "GFLOP/s", svg.number),
}


class Look(NamedTuple):
    """What stands for a measurement in a chart: the label of its row or its line, and its colour.

    Rows are in groups; a group without a name has no heading.
    """

    label: str
    ink: Colour
    group: str = ""


def drawable(measurements: Iterable[Measurement], x: str, y: str) -> list[Measurement]:
    """Return the measurements that have what a chart needs on both of its axes."""
    sized = [each for each in measurements if x != "size" or each.size is not None]
    return [each for each in sized if getattr(each, y)]


class Form(NamedTuple):
    """What a chart is of: `x` and `y`, the field `series` by which measurements are grouped.

    `counted` says what sizes are, and `words` what stands for parts of names.
    """

    x: str = "size"
    y: str = "latency"
    series: str = "framework"
    scale: str = "linear"
    counted: str = "size"
    words: Mapping[str, str] = {}


def chart(
    measurements: Sequence[Measurement],
    form: Form,
    options: Options,
    title: str,
    ceilings: Sequence[Measurement] = (),
    elsewhere: Sequence[Measurement] = (),
    on: str = "cpu",
) -> str:
    """Return an SVG of measurements that can be drawn: bars over names, or lines over sizes.

    All are of one device, which is of the kind `on`, and those `elsewhere` of another, which have
    hollow marks on the same axis. `options` name and colour frameworks. The largest of `ceilings`
    is a line across a chart over sizes.
    """
    y, (factor, heading, write) = form.y, SCALES[form.y]
    styles = looks(measurements, form, options)
    others, data = {each.reference: each for each in elsewhere}, of_axis(y, on)
    bars, lines, hollow = dict[str, list[Row]](), dict[str, list[Point]](), dict[str, list[Point]]()
    for measurement in measurements:
        label, ink, group = styles[measurement.reference]
        value, spread = getattr(measurement, y) * factor, _spread(measurement, y)
        other = others.get(measurement.reference)
        if form.x == "name":
            text = field_text(y, measurement)
            hint = f"{options.framework_label(measurement.framework)}: {text}"
            brief = field_text(y, measurement, with_range=False)
            compared = getattr(other, y) * factor if other else None
            row = Row(label, brief, 0, value, hint, ink, spread, compared, named(measurement))
            bars.setdefault(group, []).append(row)
            continue
        for each, into in ((measurement, lines), (other, hollow)):
            if each:
                where = f"{options.label(each.device)}, " if each is other else ""
                hint = f"{where}{label}, {svg.number(each.size or 0)}: {field_text(y, each)}"
                of = named(each) if each is measurement else ()
                point = Point(
                    each.size or 0, getattr(each, y) * factor, hint, _spread(each, y), data=of
                )
                into.setdefault(label, []).append(point)
    if form.x == "name":
        within = [getattr(each, y) * factor for each in elsewhere]
        ordered = {group: best_first(each, y) for group, each in bars.items()}
        bars_within = 0 if form.scale == "logarithmic" else FAR
        return rows(ordered, title, heading, "chart", bars_within, write, within, data)
    limit = max((getattr(ceiling, y) for ceiling in ceilings), default=None)
    levels = {f"ceiling {rate_text(limit)}": limit * factor} if limit else {}
    inks = {look.label: look.ink for look in styles.values()}
    axes = form.counted, heading
    return line_chart(lines, *axes, title, inks, levels, others=hollow, write=write, data=data)


def roofline(
    points: Sequence[Reached], roofs: Roofs, options: Options, title: str, on: str = "cpu"
) -> str:
    """Return an SVG of points beneath the roofs of their device."""
    styles = looks([point.measurement for point in points], Form("intensity"), options)
    series: dict[str, list[Point]] = {}
    for point in points:
        label = styles[point.measurement.reference].label
        hint = f"{point.measurement.name}, {label}: {', '.join(point.texts)}"
        words, of = point.measurement.alternative, named(point.measurement)
        mark = Point(point.intensity, point.rate / 1e9, hint, None, words, of)
        series.setdefault(label, []).append(mark)
    bends = {dtype: rate / roofs.bandwidth for dtype, rate in roofs.rates.items()}
    reached = [point.intensity for point in points]
    start, most = min(*reached, min(bends.values()) / 2), max(*reached, 2 * max(bends.values()))
    # Memory's line, which all roofs share, is drawn once; each roof has a flat part.
    highest = max(bends, key=bends.__getitem__)
    lines = {}
    for dtype, bend in bends.items():
        places = [*([start] if dtype == highest else []), bend, most]
        line = [(place, roofs.at(place, dtype) / 1e9) for place in places]
        lines[f"{dtype}: {rate_text(roofs.rates[dtype])}"] = line
    label = "operations for each byte that has to be moved"
    inks = {look.label: look.ink for look in styles.values()}
    return line_chart(series, label, "GFLOP/s", title, inks, roofs=lines, data=of_axis("rate", on))


def named(measurement: Measurement) -> tuple[tuple[str, str], ...]:
    """Return the attributes by which a script finds a mark, to put the reader's mark beside it."""
    return ("data-of", measurement.reference), ("data-shape", shape_text(measurement))


def of_axis(y: str, on: str) -> dict[str, object]:
    """Return what a script needs to know of a drawing.

    That is the field, the factor of its numbers, and the kind of the device.
    """
    return {"data-field": y, "data-factor": str(SCALES[y].factor), "data-on": on}


def hollow_marks(device: str, x: str) -> str:
    """Say below a chart what its hollow marks are."""
    ratio = "; behind ○, its number divided by this one" if x == "name" else ""
    return f"○ {device}{ratio}."


def by_part(text: str) -> dict[str, str]:
    """Read what stands for parts of names, such as `mlp=MLP; cnn=CNN`; raises ValueError."""
    return {part.strip(): words.strip() for part, words in (p.split("=") for p in text.split(";"))}


def best_first(of_group: Iterable[Row], y: str) -> list[Row]:
    """Return rows with the best first; names that are numbers, as of versions, keep their order."""
    of_group, sign = list(of_group), -1 if y == "rate" else 1
    numbers = all(row.label[:1].isdigit() for row in of_group)
    return of_group if numbers else sorted(of_group, key=lambda row: sign * row.end)


def looks(measurements: Sequence[Measurement], form: Form, options: Options) -> dict[str, Look]:
    """Return what stands for each measurement of a chart, by its reference."""
    several = len({measurement.framework for measurement in measurements}) > 1
    names = worded(measurements, form.words)
    firsts = [words[0] for words in set(names.values()) if len(words) > 1]
    grouped = len(set(firsts)) < len(firsts) == len(set(names.values()))
    groups = list(dict.fromkeys(getattr(each, form.series) for each in measurements))
    styles = {}
    for measurement in measurements:
        framework, of = measurement.framework, getattr(measurement, form.series)
        label = options.framework_label(framework) if form.series == "framework" else of
        group = ""
        if form.x == "name":
            suffix = f" · {options.framework_label(framework)}" if several else ""
            words = names[measurement.name]
            group = words[0] if grouped else ""
            label = ", ".join(words[grouped:]) + suffix
        colour = options.colour(framework) if form.series == "framework" else None
        ink = colour or svg.INKS[groups.index(of) % len(svg.INKS)]
        styles[measurement.reference] = Look(label, ink, group)
    return styles


def worded(of: Iterable[Measurement], words: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return {name: what stands for its parts}, without the first ones that all share."""
    return {
        name: tuple(filter(None, (words.get(p, p.replace("_", " ")) for p in parts.split("/"))))
        for name, parts in short(each.name for each in of).items()
    }


def short(names: Iterable[str]) -> dict[str, str]:
    """Return {name: name without the leading parts, up to a `/`, that all of them share}."""
    parts = {name: name.split("/") for name in names}
    shared = 0
    if len(parts) > 1:
        least = min(map(len, parts.values())) - 1
        while shared < least and len({part[shared] for part in parts.values()}) == 1:
            shared += 1
    return {name: "/".join(part[shared:]) for name, part in parts.items()}


def _spread(measurement: Measurement, y: str) -> tuple[float, float] | None:
    """Return between which numbers the line through a point goes."""
    clock = ("throughput" if measurement.throughput else "latency") if y == "rate" else y
    seconds, factor = measurement.range(clock), SCALES[y].factor
    if seconds is None or seconds.low == seconds.high:
        return None
    if y == "rate":
        work = measurement.work or 0
        return work / seconds.high * factor, work / seconds.low * factor
    return seconds.low * factor, seconds.high * factor
