"""The range of a number over processes, and of a ratio: order statistics.

The unit is a process. Its own number is the median of its samples, or of the ratios of its rounds;
the number that is shown is the median of the processes' numbers.
"""

import dataclasses
import math
import statistics
from collections.abc import Sequence
from typing import Self

# A range misses the median of what the numbers are drawn from in at most this part of all draws.
MISSES = 0.05
# Up to which distance from 1 two are called equal, and within which they are so although 1 is
# outside of the range.
EQUAL, INDISTINCT = 0.10, 0.02


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
    """A number with its range; `count` is the number of processes, 0 where nothing says it.

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
    def numbers(self) -> tuple[float, float, float]:
        """The number and the ends of its range."""
        return self.value, self.low, self.high

    @property
    def distance(self) -> float:
        """How far from 1 the range of a ratio goes, as a logarithm."""
        return max(abs(math.log(self.low)), abs(math.log(self.high)))

    @property
    def is_equal(self) -> bool:
        """Whether a ratio is close enough to 1 to be called equal."""
        return self.distance <= math.log1p(EQUAL if self.low <= 1 <= self.high else INDISTINCT)

    @property
    def differs(self) -> bool:
        """Whether a ratio lies on one side of 1."""
        return not self.is_equal and not self.low <= 1 <= self.high

    @property
    def inverse(self) -> "Range":
        """The ratio the other way round."""
        return Range(1 / self.value, 1 / self.high, 1 / self.low, self.count)

    @property
    def bare(self) -> "Range":
        """The same where something else says of how many processes it is."""
        return dataclasses.replace(self, count=0)

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
    numbers = ratios[0] if len(ratios) == 1 else [*map(median_ratio, ratios)]
    return Range(median_ratio(numbers), *ends(numbers), len(ratios))


def median_ratio(ratios: Sequence[float]) -> float:
    """Return the median, of an even number the geometric mean of the two in the middle.

    So the ratio the other way round is the inverse.
    """
    return math.sqrt(statistics.median_low(ratios) * statistics.median_high(ratios))
