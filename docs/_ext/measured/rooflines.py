"""Rooflines: what memory and arithmetic allow of an operation, and what was reached.

Of a device whose vendor publishes its peaks, what they allow, too.
"""

import dataclasses
import fnmatch
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from drawing.numbers import digits, rate_text
from drawing.peaks import Peaks

from .schema import Measurement

# What records call the precision of float32 that nothing rounds.
FULL = ("highest", "float32")
ROUNDING = 1e-9
BYTES = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2}


class Costs(NamedTuple):
    """What operations do for each number of their first array, by patterns over names.

    `arrays` are those of that size that they read or write. `operations` are those of which no
    record says the work of a call. The first pattern that matches holds.
    """

    arrays: Mapping[str, float]
    operations: Mapping[str, float]

    def declared(self, name: str) -> tuple[float | None, float | None]:
        """Return the arrays and the operations of measurements of a name."""
        return _first(self.arrays, name), _first(self.operations, name)

    def moved(self, measurement: Measurement) -> float:
        """Return the bytes that a call has to move; 0 where they are not known."""
        arrays, _ = self.declared(measurement.name)
        return (arrays or 0) * BYTES.get(measurement.dtype, 0) * _numbers(measurement)

    def with_work(self, measurement: Measurement) -> Measurement:
        """Return a measurement with the operations of a call, where they are declared."""
        _, operations = self.declared(measurement.name)
        if operations is None:
            return measurement
        return dataclasses.replace(measurement, work=operations * _numbers(measurement))

    def least(self, measurement: Measurement, peaks: Peaks) -> float | None:
        """Return the seconds that a call takes at least; None where nothing is known of it."""
        rounded = measurement.dtype == "float32" and measurement.precision not in FULL
        dtype = "" if rounded else measurement.dtype
        return peaks.seconds(self.moved(measurement), measurement.work or 0, dtype) or None


def by_pattern(text: str) -> dict[str, float]:
    """Read patterns with a number each, such as `a/b=2 a/*=1.5`; raises ValueError."""
    pairs = (pair.rpartition("=") for pair in text.split())
    return {pattern: float(number) for pattern, _, number in pairs}


def _first(numbers: Mapping[str, float], name: str) -> float | None:
    return next((n for pattern, n in numbers.items() if fnmatch.fnmatchcase(name, pattern)), None)


def _numbers(measurement: Measurement) -> int:
    return math.prod(measurement.shape[0]) if measurement.shape else 0


class Roofs(NamedTuple):
    """The bandwidth of a device in bytes a second, and operations a second by dtype."""

    bandwidth: float
    rates: Mapping[str, float]

    @property
    def texts(self) -> list[list[str]]:
        """What a table says of it: a row for each roof."""
        arithmetic = [[f"arithmetic, {dtype}", rate_text(of)] for dtype, of in self.rates.items()]
        return [["memory", f"{self.bandwidth / 1e9:.3g} GB/s"], *arithmetic]

    def at(self, intensity: float, dtype: str) -> float:
        """Return the most operations a second at so many operations for each byte."""
        return min(self.rates[dtype], self.bandwidth * intensity)


def roofs(
    known: Iterable[Measurement],
    ceilings: Sequence[Measurement],
    streams: Iterable[Measurement],
    costs: Costs,
) -> Roofs | None:
    """Return the roofs of the device that all measurements are of, if they were measured.

    Of a dtype of `ceilings` the fastest of all that is `known` of their processors is the roof,
    whatever page measured it. The fastest of `streams` is the bandwidth. On a machine with an
    accelerator some were measured beside it, and do not count.
    """
    processors = {ceiling.processor for ceiling in ceilings}
    computing: dict[str, list[Measurement]] = {}
    for ceiling in ceilings:
        if ceiling.rate:
            computing.setdefault(ceiling.dtype, []).append(ceiling)
    for each in known:
        if each.rate and each.dtype in computing and each.processor in processors:
            computing[each.dtype].append(each)
    fastest = {
        dtype: max(measurements, key=lambda measurement: measurement.rate or 0)
        for dtype, measurements in computing.items()
    }
    kinds = {measurement.device_kind for measurement in fastest.values()}
    bandwidths = [
        costs.moved(stream) / stream.seconds for stream in streams if stream.device_kind in kinds
    ]
    if not any(bandwidths):
        return None
    rates = {dtype: measurement.rate or 0 for dtype, measurement in fastest.items()}
    return Roofs(max(bandwidths), rates)


class Reached(NamedTuple):
    """What a measurement reached: operations for each byte, and operations a second."""

    measurement: Measurement
    intensity: float
    rate: float
    roof: float

    def is_above(self, slack: float = 1) -> bool:
        """Say whether it lies above the roof with all of its range, so that the roof is none."""
        seconds = self.measurement.range()
        slowest = seconds.high if seconds else self.measurement.seconds
        # The point that the roof is drawn through lies on it, but for rounding.
        return (self.measurement.work or 0) / slowest > self.roof * (slack + ROUNDING)

    @property
    def problem(self) -> str:
        """What is wrong with a point above its roof."""
        return (
            f"{self.measurement.reference} lies above its roof ({', '.join(self.texts)}): record "
            "anew what the roof is drawn from, add what is faster to ':bandwidth:', or leave the "
            "point out"
        )

    @property
    def texts(self) -> list[str]:
        """What a table says of it: intensity, rate, roof, share."""
        return [
            f"{digits(self.intensity, 3)} FLOP/byte",
            rate_text(self.rate),
            f"roof {rate_text(self.roof)}",
            f"{self.rate / self.roof:.0%}",
        ]


def reached(points: Iterable[Measurement], roofs: Roofs, costs: Costs) -> list[Reached]:
    """Return the reached rates, for the points whose costs and times are known."""
    points_reached = []
    for point in points:
        moved = costs.moved(point)
        if point.work and moved and point.dtype in roofs.rates:
            intensity = point.work / moved
            roof = roofs.at(intensity, point.dtype)
            points_reached.append(Reached(point, intensity, point.work / point.seconds, roof))
    return points_reached
