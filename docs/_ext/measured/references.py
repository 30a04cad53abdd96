"""Answer what roles ask for: numbers, ratios and verdicts out of measurements."""

import dataclasses
import fnmatch
import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Self

from drawing.numbers import ratio_text, seconds_text
from executed.names import nearest

from .expressions import Expression, Pattern, Reference, ReferenceProblem
from .ranges import Range
from .schema import CLOCKS, Measurement
from .texts import (
    ONE_PROCESS_NOTE,
    calls_ranged,
    calls_text,
    compared,
    field_text,
    in_groups,
    sampling,
    strays,
    times,
)

UNDECIDED = "cannot tell"


class NotRecorded(ReferenceProblem):
    """A reference that is right, to a measurement that this site does not have."""

    def __init__(self, message: str, device: str | None = None, outdated: bool = False) -> None:
        """Take the reason, and the device on which the measurement would have to be made.

        What is `outdated` was measured there, of other code.
        """
        super().__init__(message)
        self.device, self.outdated = device, outdated


@dataclasses.dataclass(frozen=True)
class Measurements:
    """All measurements of a book, and what else its pages may name.

    by_name: {(name, framework): {device: measurement}}, the device of the site first.
    home: the device of the site.
    devices, frameworks: all that there are.
    partial: whether there are cells that were executed nowhere, or failed: they may have the
        measurements that are not known.
    outdated: {(name, framework, device)} of what was measured of other code than that of today.
    """

    by_name: Mapping[tuple[str, str], Mapping[str, Measurement]]
    home: str
    devices: Iterable[str]
    frameworks: Iterable[str]
    partial: bool = False
    outdated: frozenset[tuple[str, str, str]] = frozenset()

    @functools.cached_property
    def accelerated(self) -> frozenset[str]:
        """The devices on which something ran elsewhere than on a CPU."""
        found = (of.items() for of in self.by_name.values())
        return frozenset(device for of in found for device, each in of if each.accelerated)

    def kind(self, devices: Iterable[str]) -> str:
        """Return the kind of devices, "cpu" or "accelerator": NumPy is measured on those, too."""
        return "accelerator" if self.accelerated.intersection(devices) else "cpu"

    def problem(self, patterns: Iterable[str]) -> str | None:
        """Say which of the patterns over names match no measurement of any device."""
        names = {name for name, *_ in (*self.by_name, *self.outdated)}
        unknown = [pattern for pattern in patterns if not fnmatch.filter(names, pattern)]
        if not unknown or self.partial:
            return None
        return f"no measurement matches {' '.join(unknown)}{nearest(unknown[0], sorted(names))}"


# A field of a measurement, which a reference names.
Term = tuple[str, Measurement]


@dataclasses.dataclass(frozen=True)
class Quantity:
    """A number, how it is written, and the measurements that it comes from.

    `range` is there where it comes from processes. `wordy` is a text that is no number. `write`
    writes one number of the range.
    """

    value: float
    text: str
    sources: tuple[Measurement, ...]
    range: Range | None = None
    wordy: bool = False
    write: Callable[[float], str] = ratio_text

    @property
    def brief(self) -> str:
        """The text for a table that says once that all its numbers are of one process."""
        return self.text.removesuffix(ONE_PROCESS_NOTE)

    @property
    def origin(self) -> str:
        """Where it comes from, in words."""
        origins = "; ".join(measurement.origin for measurement in self.sources)
        one = len(self.sources) == 1
        texts = [f"{origins}.", sampling(self.sources[0])]
        if self.range:
            texts += [*in_groups(self.range, self.write), *strays(self.range)]
        if one and (least := self.sources[0].least):
            texts.append(f"By published peaks at least {seconds_text(least)}.")
        return " ".join(texts)

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices that it is of."""
        return tuple(dict.fromkeys(measurement.device for measurement in self.sources))

    @property
    def is_alone(self) -> bool:
        """Whether it is of one process, and says so."""
        return self.range is not None and self.range.is_alone


def resolve(
    asked: Expression, measurements: Measurements, write: Callable[[Range], str] = times
) -> Quantity:
    """Return the Quantity that a reference, or a ratio of two, stands for.

    `write` says how a ratio is written. Raises ReferenceProblem.
    """
    terms = _terms(asked, measurements)
    if len(terms) == 2:
        return _ratio(asked, terms, write)
    ((field, measurement),) = terms
    text, value = field_text(field, measurement), getattr(measurement, field)
    seconds = measurement.range(field) if field in CLOCKS else None
    return Quantity(value, text, (measurement,), seconds, write=seconds_text)


def fastest(asked: Expression, measurements: Measurements) -> Expression:
    """Return what asks for the fastest that each pattern matches: a number, or a ratio of two.

    What was measured of other code may be faster, so then none is the fastest. Raises
    ReferenceProblem.
    """
    terms = tuple(_fastest(pattern, measurements) for pattern in asked.patterns)
    return Expression("compared" if len(terms) == 2 else "measured", terms)


def _fastest(of: Pattern, measurements: Measurements) -> Reference:
    """Return what takes least time on a device of all that matches a pattern."""
    device, pattern = of.device or measurements.home, of.pattern
    matching = [key for key in measurements.by_name if fnmatch.fnmatchcase("@".join(key), pattern)]
    gone = [key for *key, where in measurements.outdated if where == device]
    outdated = any(fnmatch.fnmatchcase("@".join(key), pattern) for key in gone)
    latencies = {
        key: by_device[device].latency
        for key in matching
        if device in (by_device := measurements.by_name[key])
    }
    if latencies and not outdated:
        return Reference(*min(latencies, key=lambda key: latencies[key]), device=of.device)
    if not (matching or outdated or measurements.partial):
        near = nearest(pattern, sorted(map("@".join, measurements.by_name)))
        raise ReferenceProblem(f"no measurement matches '{pattern}'{near}")
    raise NotRecorded(f"'{pattern}' was not measured there", device, outdated)


def paid(asked: Expression, measurements: Measurements) -> Quantity:
    """Return from how many calls on the first of two takes no longer in all than the second.

    Its own first call counts; each call of the second is taken at the median. What is not told to
    be faster never pays, unless its first call takes no longer than one of the other. Raises
    ReferenceProblem.
    """
    ratio = _ratio(asked, _terms(asked, measurements), times)
    if ratio.range is None:
        raise ReferenceProblem(f"'{asked}' was not measured on one device")
    first, second = ratio.sources
    calls = first.calls_until_paid(second)
    if calls is None:
        message = f"the measurement of '{asked.terms[0]}' has no first_call"
        raise NotRecorded(message, first.device)
    faster = (ratio.range.differs or ratio.is_alone) and ratio.range.value < 1
    if calls.high == 1 or (faster and calls.high < math.inf):
        return Quantity(calls.value, calls_ranged(calls), ratio.sources, calls, write=calls_text)
    text = "never" if ratio.range.differs or ratio.range.is_equal else UNDECIDED
    return Quantity(calls.value, text, ratio.sources, wordy=True)


def _terms(asked: Expression, measurements: Measurements) -> list[Term]:
    """Return what each part names; raises ReferenceProblem."""
    terms, gap = [], None
    for reference in asked.terms:
        try:
            terms.append(_term(reference, measurements))
        except NotRecorded as problem:
            # The other part may be wrong, which is more to be told.
            gap = gap or problem
    if gap:
        raise gap
    return terms


def _ratio(asked: Expression, terms: Sequence[Term], write: Callable[[Range], str]) -> Quantity:
    """Return the ratio of two measurements: of the same processes, or of two devices."""
    (field, above), (other, below) = terms
    sources, several = (above, below), above.device != below.device
    clocked = field in CLOCKS and other in CLOCKS
    if clocked and (ratio := above.ratio(below, (field, other))):
        wordy = not (ratio.differs or ratio.is_alone)
        return Quantity(ratio.value, write(ratio), sources, ratio, wordy)
    # Each of two machines has its own processes.
    if not clocked or (several and asked.on_device):
        value = getattr(above, field) / getattr(below, other)
        return Quantity(value, ratio_text(value), sources)
    if several:
        raise NotRecorded(f"'{asked}' was not measured on one device")
    raise ReferenceProblem(
        f"'{asked}' divides what was measured at different moments; let one comparison measure both"
    )


def _term(reference: Reference, measurements: Measurements) -> Term:
    """Return what a reference names; raises ReferenceProblem."""
    device, field = reference.device, reference.field
    if device and device not in measurements.devices:
        near = nearest(device, measurements.devices)
        raise ReferenceProblem(f"'{reference}': there is no device '{device}'{near}")
    by_device = measurements.by_name.get((reference.name, reference.framework), {})
    measurement = by_device.get(device or next(iter(by_device), ""))
    if measurement is None:
        raise _missing(reference, measurements)
    if getattr(measurement, field) is None:
        # Some kinds of numbers are there on some devices alone.
        raise NotRecorded(f"the measurement of '{reference}' has no {field}", measurement.device)
    return field, measurement


def _missing(reference: Reference, measurements: Measurements) -> ReferenceProblem:
    """Return why there is no such measurement: it was not made, or nobody knows of it."""
    name, framework, device = reference.name, reference.framework, reference.device
    outdated = sorted(
        (where for *key, where in measurements.outdated if key == [name, framework]),
        key=lambda where: (where != measurements.home, where),
    )
    if device in outdated or (not device and outdated):
        return NotRecorded(f"{name} with {framework}", device or outdated[0], outdated=True)
    if outdated or measurements.by_name.get((name, framework)):
        return NotRecorded(f"'{reference}' was not measured there", device or None)
    refused = f"no measurement is called '{reference}'"
    if framework not in measurements.frameworks:
        near = nearest(framework, measurements.frameworks)
        return ReferenceProblem(f"{refused}: there is no framework '{framework}'{near}")
    if measurements.partial:
        return NotRecorded(f"{name} with {framework}", device or None)
    references = sorted(f"{name}@{framework}" for name, framework in measurements.by_name)
    return ReferenceProblem(f"{refused}{nearest(f'{name}@{framework}', references)}")


def verdict(asked: Expression, measurements: Measurements) -> tuple[str, Quantity | None]:
    """Return (verdict, Quantity or None) for what a verdict role asks.

    A ratio whose interval lies on both sides of a bound decides nothing, and neither does one
    process. Raises ReferenceProblem.
    """
    condition = asked.condition
    if condition is None:
        return asked.verdict, None
    quantity = resolve(asked, measurements)
    if quantity.is_alone:
        return UNDECIDED, quantity
    least = quantity.range.low if quantity.range else quantity.value
    most = quantity.range.high if quantity.range else quantity.value
    if condition.low <= least and most <= condition.high:
        return condition.inside, quantity
    out = most < condition.low or condition.high < least
    return (condition.outside if out else UNDECIDED), quantity


# How what stands in a role is read, but for verdicts, which have words besides a number.
READ: dict[str, Callable[[Expression, Measurements], Quantity]] = {
    "measured": resolve,
    "compared": functools.partial(resolve, write=compared),
    "paid": paid,
}
ROLES = (*READ, "fastest", "verdict")


@dataclasses.dataclass(frozen=True)
class Answered:
    """What a role asks for, once it is known which is the fastest; and the answer."""

    asked: Expression
    verdict: str
    quantity: Quantity | None

    @classmethod
    def of(cls, asked: Expression, measurements: Measurements) -> Self:
        """Answer a role; raises ReferenceProblem."""
        if asked.patterns:
            asked = fastest(asked, measurements)
        if asked.role == "verdict":
            return cls(asked, *verdict(asked, measurements))
        return cls(asked, "", READ[asked.role](asked, measurements))
