"""Rooflines: what memory and arithmetic allow of an operation, and what was reached."""

import fnmatch
import math
import tomllib
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Self

from drawing.numbers import digits, rate_text
from executed.options import Options

from .charts import Point, line_chart
from .schema import Measurement

BYTES = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2}


class PlanProblem(Exception):
    """A declaration of a roofline that cannot be read."""


class Cost(NamedTuple):
    """What an operation must do for each number of its first array.

    `arrays` are those of that size that have to be read or written. `operations` are None where
    the record says the work of a call.
    """

    arrays: float
    operations: float | None = None


class Plan(NamedTuple):
    """From which measurements a roofline is drawn.

    moved: {name: arrays that are read or written}, whose fastest is the bandwidth.
    computed: {dtype: names}, whose fastest is the roof of that dtype, unless a point is faster.
    points: {pattern over names: cost}.
    """

    moved: Mapping[str, float]
    computed: Mapping[str, Sequence[str]]
    points: Mapping[str, Cost]

    @classmethod
    def read(cls, text: str) -> Self:
        """Read a declaration in TOML; raises PlanProblem."""
        try:
            found = tomllib.loads(text)
            points = {name: Cost(**cost) for name, cost in found["points"].items()}
            computed = {dtype: list(names) for dtype, names in found["computed"].items()}
            return cls(found["moved"], computed, points)
        except (tomllib.TOMLDecodeError, KeyError, TypeError, AttributeError) as error:
            raise PlanProblem(f"no roofline is declared by this: {error}") from None

    @property
    def names(self) -> list[str]:
        """The patterns over names of all measurements that it is drawn from."""
        return [*self.moved, *(name for of in self.computed.values() for name in of), *self.points]

    def declared(self, name: str) -> Cost | None:
        """Return the cost that is declared for measurements of a name."""
        found = (cost for each, cost in self.points.items() if fnmatch.fnmatchcase(name, each))
        return next(found, None)

    def cost(self, of: Measurement) -> tuple[float, float] | None:
        """Return the operations of a call and the bytes that it has to move; None if unknown."""
        declared = self.declared(of.name)
        if declared is None or of.dtype not in BYTES or not of.shape:
            return None
        arrays, operations = declared
        numbers = math.prod(of.shape[0])
        work = of.work if operations is None else operations * numbers
        return (work, arrays * BYTES[of.dtype] * numbers) if work else None


class Roofs(NamedTuple):
    """The bandwidth of a device in bytes a second, and operations a second by dtype."""

    moved: float
    computed: Mapping[str, float]

    @classmethod
    def of(cls, found: Sequence[Measurement], plan: Plan) -> Self | None:
        """Return the roofs of the device that all measurements are of, if they were measured.

        No point that computes lies above its roof, or it would be none.

        On a machine with an accelerator some were measured beside it, and do not count.
        """
        computed = {
            dtype: [each for each in found if each.rate and each.name in names]
            for dtype, names in plan.computed.items()
        }
        for dtype, of in computed.items():
            points = (each for each in found if each.rate and plan.declared(each.name))
            of += [each for each in points if of and each.dtype == dtype]
        fastest = {
            dtype: max(of, key=lambda each: each.rate or 0) for dtype, of in computed.items() if of
        }
        kinds = {each.device_kind for each in fastest.values()}
        moved = [
            plan.moved[each.name]
            * BYTES.get(each.dtype, 0)
            * math.prod(each.shape[0])
            / each.seconds
            for each in found
            if each.name in plan.moved and each.device_kind in kinds and each.shape
        ]
        if not moved or not fastest:
            return None
        return cls(max(moved), {dtype: each.rate or 0 for dtype, each in fastest.items()})

    def at(self, intensity: float, dtype: str) -> float | None:
        """Return the most operations a second at so many operations for each byte."""
        peak = self.computed.get(dtype)
        return min(peak, self.moved * intensity) if peak else None


class Reached(NamedTuple):
    """What a measurement reached: operations for each byte, and operations a second."""

    measurement: Measurement
    intensity: float
    rate: float
    roof: float


def reached(found: Sequence[Measurement], plan: Plan, roofs: Roofs) -> list[Reached]:
    """Return the points of a roofline."""
    points = []
    for each in found:
        if cost := plan.cost(each):
            operations, moved = cost
            if roof := roofs.at(operations / moved, each.dtype):
                rate = operations / each.seconds
                points.append(Reached(each, operations / moved, rate, roof))
    return points


def drawing(
    points: Sequence[Reached],
    roofs: Roofs,
    options: Options,
    title: str,
) -> str:
    """Return an SVG of points beneath the roofs of their device."""
    series: dict[str, list[Point]] = {}
    colours = {}
    for each in points:
        made_with = options.framework_label(each.measurement.framework)
        said = f"{each.measurement.name}, {made_with}: {', '.join(texts(each))}"
        series.setdefault(made_with, []).append(Point(each.intensity, each.rate / 1e9, said))
        if own := options.colour(each.measurement.framework):
            colours[made_with] = own
    least = min(each.intensity for each in points)
    most = max(each.intensity for each in points)
    over = {}
    for dtype, peak in roofs.computed.items():
        ridge = peak / roofs.moved
        ends = sorted({least, min(max(ridge, least), most), most})
        over[f"{dtype}: {rate_text(peak)}"] = [(x, min(peak, x * roofs.moved) / 1e9) for x in ends]
    return line_chart(
        series,
        "operations for each byte that has to be moved",
        "GFLOP/s",
        title,
        inks=colours,
        roofs=over,
    )


def texts(point: Reached) -> list[str]:
    """Write what a table says of a point: intensity, rate, roof, share."""
    return [
        f"{digits(point.intensity, 3)} FLOP/byte",
        rate_text(point.rate),
        f"roof {rate_text(point.roof)}",
        f"{point.rate / point.roof:.0%}",
    ]
