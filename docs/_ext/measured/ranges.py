"""The range of a number over processes, and of a ratio: order statistics.

The unit is a process. Its own number is the median of its samples, or of the ratios of its rounds;
the number that is shown is the median of the processes' numbers. A single process has no range: its
rounds say nothing of the next process. `middle` of the timer is its twin.
"""

import dataclasses
import functools
import itertools
import math
import statistics
from collections.abc import Sequence
from typing import Self

# A range misses the median of what the numbers are drawn from in at most this part of all draws.
MISSES = 0.05
# Of so many processes it misses no more; of fewer, even the smallest and the largest do.
ENOUGH = 6
# The same for the ratio of two groups of processes, of which a table shows a hundred and more.
MISSES_OF_GROUPS = 0.01
# How far from 1 the range of a ratio may go where two are called equal, and how far its value where
# 1 is outside of the range: code layout alone moves a function by that much.
EQUAL, INDISTINCT = 0.10, 0.03
# Two groups of processes: the factor between them, and the fewest in one.
GAP, FEWEST = 1.3, 2


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

    A single process has no range: its ends are the number itself. `processes` are the numbers of
    each, in order.
    """

    value: float
    low: float
    high: float
    count: int
    processes: tuple[float, ...] = dataclasses.field(default=(), compare=False)

    @classmethod
    def of(cls, numbers: Sequence[float]) -> Self:
        """Return the median of numbers with its range."""
        median = statistics.median(numbers)
        return cls(median, *ends(numbers), len(numbers), tuple(sorted(numbers)))

    @classmethod
    def of_ratios(cls, ratios: Sequence[float]) -> Self:
        """Return the same of ratios, such that the ratio the other way round is the inverse."""
        return dataclasses.replace(cls.of(ratios), value=median_ratio(ratios))

    @property
    def groups(self) -> tuple[tuple[float, ...], ...]:
        """The processes in two groups, where the median falls into one of them; else empty.

        At least two lie on either side of the widest gap, which is a factor of `GAP` and wider than
        both groups: single strays are no group.
        """
        ordered = self.processes
        sides = range(FEWEST, len(ordered) - FEWEST + 1)
        split = max(sides, key=lambda n: ordered[n] / ordered[n - 1], default=0)
        if not split:
            return ()
        widths = ordered[split - 1] / ordered[0], ordered[-1] / ordered[split]
        wide = ordered[split] / ordered[split - 1] > max(GAP, *widths)
        return (ordered[:split], ordered[split:]) if wide else ()

    @property
    def places(self) -> list[int]:
        """Where each process lies between the first and the last, in percent, by logarithms."""
        if len(self.processes) < 2 or self.processes[0] <= 0 or math.isinf(self.processes[-1]):
            return []
        first, last = (math.log(self.processes[n]) for n in (0, -1))
        width = (last - first) or 1
        return [round(100 * (math.log(each) - first) / width) for each in self.processes]

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
        """Whether a ratio of several processes is close enough to 1 to be called equal."""
        near = self.low <= 1 <= self.high or abs(math.log(self.value)) <= math.log1p(INDISTINCT)
        return near and not self.is_alone and self.distance <= math.log1p(EQUAL)

    @property
    def differs(self) -> bool:
        """Whether a ratio of several processes lies on one side of 1."""
        return not self.is_alone and not self.is_equal and not self.low <= 1 <= self.high

    @property
    def is_alone(self) -> bool:
        """Whether it is of one process, which says nothing of others."""
        return self.count == 1

    @property
    def inverse(self) -> "Range":
        """The ratio the other way round."""
        inverses = tuple(1 / each for each in reversed(self.processes))
        return Range(1 / self.value, 1 / self.high, 1 / self.low, self.count, inverses)

    def scaled(self, factor: float) -> "Range":
        """Return the number in another unit."""
        return Range(self.value * factor, self.low * factor, self.high * factor, self.count)


def ratio_of_rounds(rounds: Sequence[tuple[Sequence[float], Sequence[float]]]) -> Range:
    """Return the ratio of two that took turns, from the samples of each process.

    The ratio of a process is the median of the ratios of its rounds.
    """
    ratios = [
        [one / other for one, other in zip(above, below, strict=True)] for above, below in rounds
    ]
    return Range.of_ratios([*map(median_ratio, ratios)])


def ratio_of_groups(above: Sequence[float], below: Sequence[float]) -> Range:
    """Return the ratio of two that took no turns, from a number of each process.

    It is the median of the ratios of all pairs (Hodges and Lehmann), and its range misses the
    factor between the two in at most `MISSES_OF_GROUPS` of all draws: its ends are of equal rank
    among these ratios (the interval of the rank-sum test).
    """
    ratios = sorted(one / other for one in above for other in below)
    ways = _rank_sums(len(above), len(below))
    left = MISSES_OF_GROUPS / 2 * sum(ways)
    rank = max(1, sum(total <= left for total in itertools.accumulate(ways)))
    count = min(len(above), len(below))
    return Range(median_ratio(ratios), ratios[rank - 1], ratios[-rank], count)


@functools.cache
def _rank_sums(one: int, other: int) -> tuple[int, ...]:
    """Return in how many orders of two groups so many pairs are the wrong way round, from none."""
    if not one or not other:
        return (1,)
    counts = [0] * (one * other + 1)
    for pairs, ways in enumerate(_rank_sums(one - 1, other)):
        counts[pairs + other] += ways
    for pairs, ways in enumerate(_rank_sums(one, other - 1)):
        counts[pairs] += ways
    return tuple(counts)


def median_ratio(ratios: Sequence[float]) -> float:
    """Return the median, of an even number the geometric mean of the two in the middle.

    So the ratio the other way round is the inverse.
    """
    return math.sqrt(statistics.median_low(ratios) * statistics.median_high(ratios))
