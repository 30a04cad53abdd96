"""The range of a number over processes, and of a ratio: order statistics, and how both are written.

The unit is a process. Its own number is the median of its samples, or of the ratios of its rounds;
the number that is shown is the median of the processes' numbers.
"""

import dataclasses
import math
import statistics
from collections.abc import Sequence
from typing import Self

from drawing.numbers import unit_of

# A range misses the median of what the numbers are drawn from in at most this part of all draws.
MISSES = 0.05
# Up to which distance from 1 two are called equal, and within which they are so although 1 is
# outside of the range.
EQUAL, INDISTINCT = 0.10, 0.02
DIGITS = (2, 3)
# What is said of a number that has no range between processes.
ALONE = "one process"


def ends(numbers: Sequence[float]) -> tuple[float, float]:
    """Return two of the numbers that have the median of what they are drawn from between them.

    They are of equal rank from below and above, the closest that miss it in at most 5 % of all
    draws: a number lies below it as often as a coin shows tails (the interval of the sign test).
    Of ten that is the second and the ninth; five and fewer say less than that, and are the
    smallest and the largest.
    """
    ordered, rank = sorted(numbers), 0
    draws = 2 ** len(ordered)
    while 2 * sum(math.comb(len(ordered), k) for k in range(rank + 2)) <= MISSES * draws:
        rank += 1
    return ordered[rank], ordered[-1 - rank]


@dataclasses.dataclass(frozen=True)
class Range:
    """A number with its range; `count` is the number of processes.

    The range of a single process is that of its rounds, if they are known.
    """

    value: float
    low: float
    high: float
    count: int

    @classmethod
    def of(cls, numbers: Sequence[float], count: int | None = None) -> Self:
        """Return the median of numbers with its range."""
        return cls(statistics.median(numbers), *ends(numbers), count or len(numbers))

    @property
    def away(self) -> float:
        """How far from 1 the range of a ratio goes, as a logarithm."""
        return max(abs(math.log(self.low)), abs(math.log(self.high)))

    @property
    def equal(self) -> bool:
        """Whether a ratio is close enough to 1 to be called equal."""
        return self.away <= math.log1p(EQUAL if self.low <= 1 <= self.high else INDISTINCT)

    @property
    def told(self) -> bool:
        """Whether a ratio lies on one side of 1."""
        return not self.equal and not self.low <= 1 <= self.high

    @property
    def inverse(self) -> "Range":
        """The ratio the other way round."""
        return Range(1 / self.value, 1 / self.high, 1 / self.low, self.count)

    def scaled(self, factor: float) -> "Range":
        """Return the number in another unit."""
        return Range(self.value * factor, self.low * factor, self.high * factor, self.count)


def ratio_of_rounds(rounds: Sequence[tuple[Sequence[float], Sequence[float]]]) -> Range:
    """Return the ratio of two that took turns, from the samples of each process.

    The ratio of a process is the median of the ratios of its rounds. A single process has the range
    of these.
    """
    ratios = [
        [one / other for one, other in zip(above, below, strict=True)] for above, below in rounds
    ]
    numbers = ratios[0] if len(ratios) == 1 else [median_ratio(each) for each in ratios]
    return Range(median_ratio(numbers), *ends(numbers), len(ratios))


def median_ratio(ratios: Sequence[float]) -> float:
    """Return the median, of an even number the geometric mean of the two in the middle.

    So the ratio the other way round is the inverse.
    """
    return math.sqrt(statistics.median_low(ratios) * statistics.median_high(ratios))


def decimals(found: Range) -> int:
    """Return to which power of ten a number is written: no digit that its range does not bear."""
    largest = math.floor(math.log10(found.value))
    width = found.high - found.low
    borne = largest - math.floor(math.log10(width)) + 1 if width > 0 else DIGITS[1]
    return min(max(borne, DIGITS[0]), DIGITS[1]) - 1 - largest


def rounded(value: float, places: int, is_ratio: bool = False) -> str:
    """Write a number with so many decimals, or none and zeros; two digits at least.

    A ratio has as many as tell it from 1.
    """
    while is_ratio and value != 1 and round(value, places) == 1:
        places += 1
    if value > 0:
        places = max(places, DIGITS[0] - 1 - math.floor(math.log10(value)))
    return f"{round(value, places):.{max(places, 0)}f}"


def ranged(found: Range, unit: str = "") -> str:
    """Write a number with its unit and, where it has one, its range."""
    places, is_ratio = decimals(found), unit.startswith("×")
    numbers = found.value, found.low, found.high
    value, low, high = (rounded(each, places, is_ratio) for each in numbers)
    return f"{value}{unit}" + _around(found, low, high)


def _around(found: Range, low: str, high: str) -> str:
    """Write in brackets what is said beside a number."""
    between = f"{low}–{high}" if found.low < found.high else ""
    around = ", ".join(filter(None, (between, ALONE if found.count == 1 else "")))
    return f" ({around})" if around else ""


def seconds_ranged(found: Range) -> str:
    """Write seconds with a unit and their range."""
    unit, scale = unit_of(round(found.value, decimals(found)))
    return ranged(found.scaled(scale), f" {unit}")


def calls_ranged(found: Range) -> str:
    """Write a number of calls with its range: whole ones, and no digit that the range lacks."""
    places = min(decimals(found), 0)
    value, low, high = (
        f"{round(math.ceil(each), places)}" for each in (found.value, found.low, found.high)
    )
    return f"{value} call{'s' * (value != '1')}" + _around(found, low, high)


def compared(found: Range) -> str:
    """Say in one of three ways how a ratio compares the first with the second."""
    if found.told:
        word = "slower" if found.value > 1 else "faster"
        return ranged(found if found.value > 1 else found.inverse, f"× {word}")
    return _not_told(found)


def times(found: Range) -> str:
    """Write a ratio as a factor, or say that it is none that can be told from 1."""
    return ranged(found, "×") if found.told else _not_told(found)


def _not_told(found: Range) -> str:
    alone = f", {ALONE}" if found.count == 1 else ""
    if found.equal:
        percent = math.ceil(100 * math.expm1(found.away)) or 1
        return f"about equal (within {percent} %{alone})"
    low, high = (rounded(each, 1) for each in (found.low, found.high))
    return f"cannot tell ({low}–{high}×{alone})"
