"""Some work in words, and which framework is fastest at it: its best against the next one's."""

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Self

from drawing.numbers import seconds_text

from .ranges import Range
from .schema import Measurement
from .texts import compared

# What the largest array of a work is called up to so many elements.
SIZES = {10_000: "small", 1_000_000: "medium", math.inf: "large"}


@dataclasses.dataclass(frozen=True)
class Work:
    """Some work in words, and what does it: names of measurements, or what these begin with.

    Those `besides` have such a name, too, and do other work. `line` is what it was read from.
    """

    line: str
    words: str
    entries: tuple[str, ...]
    besides: frozenset[str]

    @classmethod
    def from_line(cls, line: str) -> Self:
        """Read a line such as `CNN: training_step/cnn tuned/cnn -tuned/cnn/other`."""
        words, _, names = line.rpartition(": ")
        entries = tuple(name for name in names.split() if not name.startswith("-"))
        if not words or not entries:
            raise ValueError(f"'{line}' is not of the form WORDS: NAMES")
        besides = (name[1:] for name in names.split() if name.startswith("-"))
        return cls(line.strip(), words.strip(), entries, frozenset(besides))

    def counts(self, name: str) -> bool:
        """Say whether a measurement of this name is of this work."""
        return name not in self.besides and not with_parent(name).isdisjoint(self.entries)


def with_parent(name: str) -> set[str]:
    """Return a name, and what it says before the alternative."""
    return {name, name.rpartition("/")[0]}


def best(measurements: Iterable[Measurement]) -> list[Measurement]:
    """Return the fastest measurement of each framework, the fastest first."""
    fastest: dict[str, Measurement] = {}
    for each in sorted(measurements, key=lambda each: each.seconds):
        fastest.setdefault(each.framework, each)
    return list(fastest.values())


def against(one: Measurement, other: Measurement) -> Range:
    """Return how many times as long one takes as another, of one device.

    Unless they took turns, the range is the widest that both of theirs allow.
    """
    if ratio := one.ratio(other):
        return ratio
    above, below = one.range(), other.range()
    assert above is not None and below is not None
    ends = above.low / below.high, above.high / below.low
    return Range(above.value / below.value, *ends, min(above.count, below.count))


@dataclasses.dataclass(frozen=True)
class Answer:
    """Which framework is fastest, in words; `leading` are those that may be, if that is told.

    The words are two parts: the names of those, and what is said of them.
    """

    names: str
    rest: str
    leading: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The whole sentence."""
        return self.names + self.rest


def answer(bests: Sequence[Measurement], label: Callable[[str], str]) -> Answer:
    """Say which of the best is fastest, and how far the next is; of one process, all times.

    `label` says what a framework is called.
    """
    names = [label(each.framework) for each in bests]
    if len(bests) < 2 or any(len(each.processes) < 2 for each in bests):
        times = (seconds_text(each.seconds) for each in bests)
        return Answer("", ", ".join(map(" ".join, zip(names, times, strict=True))))
    leading = tuple(each.framework for each in bests[:2])
    ratio = against(*bests[:2])
    if ratio.differs:
        return Answer(names[0], f", {compared(ratio)} than {names[1]}", leading[:1])
    conjunction = " and " if ratio.is_equal else " or "
    return Answer(conjunction.join(names[:2]), f": {compared(ratio)}", leading)


def leaders(of_work: Iterable[Measurement], device: str) -> list[Measurement]:
    """Return the best of the two fastest frameworks on a device."""
    return best(each for each in of_work if each.device == device)[:2]


def size_of(measurements: Iterable[Measurement]) -> str:
    """Say how large the largest array of a work is; nothing where no record has one."""
    shapes = itertools.chain.from_iterable(each.shape for each in measurements)
    largest = max(map(math.prod, shapes), default=0)
    return next(words for limit, words in SIZES.items() if largest <= limit) if largest else ""


def factors(bests: Sequence[Measurement]) -> list[tuple[float, float, float]]:
    """Return how many times as long as the fastest each best takes, with the ends of its range."""
    least = bests[0].seconds
    ranges = [(each.seconds, each.range()) for each in bests]
    ends = [(time, of.low, of.high) if of else (time, time, time) for time, of in ranges]
    return [(time / least, low / least, high / least) for time, low, high in ends]
