"""Read the references of pages to measurements, such as `selu/eager@jax / selu/jit@jax`."""

import dataclasses
import fnmatch
import functools
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from drawing.numbers import ratio_text, seconds_text
from executed.names import nearest

from .ranges import Range
from .schema import CLOCKS, Measurement
from .texts import BESIDE, calls_ranged, calls_text, field_text, in_groups, sampling, strays, times

FIELDS = (*CLOCKS, "rate", "error", "least")
REFERENCE = re.compile(
    r"(?P<name>[^\s@*?\[\]]+)@(?P<framework>\w+)(?:\.(?P<field>\w+))?(?: on (?P<device>[\w-]+))?"
)
CONDITION = re.compile(r"(.+) in (\S+) \? ([\w ]+) : ([\w ]+)")
BOUND = re.compile(r"[0-9]{1,15}(\.[0-9]{1,15})?")
VERDICTS = (
    "holds",
    "holds with conditions",
    "out of date",
    "wrong",
    "not here",
    "not checked here",
)
UNDECIDED = "cannot tell"


class ReferenceProblem(Exception):
    """A reference that cannot be read or that names no measurement."""


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
        return self.text.removesuffix(BESIDE)

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
    expression: str, measurements: Measurements, write: Callable[[Range], str] = times
) -> Quantity:
    """Return the Quantity that a reference, or a ratio of two, stands for.

    `write` says how a ratio is written. Raises ReferenceProblem.
    """
    parts = expression.split(" / ")
    if len(parts) > 2:
        raise ReferenceProblem(f"'{expression}' has more than one ' / '")
    terms = _terms(parts, measurements)
    if len(terms) == 2:
        return _ratio(expression, terms, write)
    ((field, measurement),) = terms
    text, value = field_text(field, measurement), getattr(measurement, field)
    seconds = measurement.range(field) if field in CLOCKS else None
    return Quantity(value, text, (measurement,), seconds, write=seconds_text)


def fastest(expression: str, measurements: Measurements) -> str:
    """Return a reference, or a ratio of two, for patterns: the fastest that each matches.

    A pattern is over `name@framework`. What was measured of other code may be faster, so then none
    is the fastest. Raises ReferenceProblem.
    """
    parts = (part.strip().partition(" on ") for part in expression.split(" / "))
    return " / ".join(
        _fastest(pattern, device or measurements.home, measurements) + on + device
        for pattern, on, device in parts
    )


def _fastest(pattern: str, device: str, measurements: Measurements) -> str:
    """Return what takes least time on a device of all that matches a pattern."""
    matching = [key for key in measurements.by_name if fnmatch.fnmatchcase("@".join(key), pattern)]
    gone = [key for *key, where in measurements.outdated if where == device]
    outdated = any(fnmatch.fnmatchcase("@".join(key), pattern) for key in gone)
    latencies = {
        "@".join(key): by_device[device].latency
        for key in matching
        if device in (by_device := measurements.by_name[key])
    }
    if latencies and not outdated:
        return min(latencies, key=lambda reference: latencies[reference])
    if not (matching or outdated or measurements.partial):
        near = nearest(pattern, sorted(map("@".join, measurements.by_name)))
        raise ReferenceProblem(f"no measurement matches '{pattern}'{near}")
    raise NotRecorded(f"'{pattern}' was not measured there", device, outdated)


def paid(expression: str, measurements: Measurements) -> Quantity:
    """Return from how many calls on the first of two takes no longer in all than the second.

    Its own first call counts; each call of the second is taken at the median. What is not told to
    be faster never pays, unless its first call takes no longer than one of the other. Raises
    ReferenceProblem.
    """
    parts = expression.split(" / ")
    if len(parts) != 2:
        raise ReferenceProblem(f"'{expression}' is not of the form REFERENCE / REFERENCE")
    terms = _terms(parts, measurements)
    if {field for field, _ in terms} != {"latency"}:
        raise ReferenceProblem(f"'{expression}' names a field; what pays is told by both clocks")
    ratio = _ratio(expression, terms, times)
    if ratio.range is None:
        raise ReferenceProblem(f"'{expression}' was not measured on one device")
    first, second = ratio.sources
    calls = first.calls_until_paid(second)
    if calls is None:
        message = f"the measurement of '{parts[0].strip()}' has no first_call"
        raise NotRecorded(message, first.device)
    faster = (ratio.range.differs or ratio.is_alone) and ratio.range.value < 1
    if calls.high == 1 or (faster and calls.high < math.inf):
        return Quantity(calls.value, calls_ranged(calls), ratio.sources, calls, write=calls_text)
    text = "never" if ratio.range.differs or ratio.range.is_equal else UNDECIDED
    return Quantity(calls.value, text, ratio.sources, wordy=True)


def _terms(parts: Iterable[str], measurements: Measurements) -> list[Term]:
    """Return what each part names; raises ReferenceProblem."""
    terms, gap = [], None
    for part in parts:
        try:
            terms.append(_term(part.strip(), measurements))
        except NotRecorded as problem:
            # The other part may be wrong, which is more to be told.
            gap = gap or problem
    if gap:
        raise gap
    return terms


def _ratio(expression: str, terms: Sequence[Term], write: Callable[[Range], str]) -> Quantity:
    """Return the ratio of two measurements: of the same processes, or of two devices."""
    (field, above), (other, below) = terms
    sources, several = (above, below), above.device != below.device
    clocked = field in CLOCKS and other in CLOCKS
    if clocked and (ratio := above.ratio(below, (field, other))):
        wordy = not (ratio.differs or ratio.is_alone)
        return Quantity(ratio.value, write(ratio), sources, ratio, wordy)
    # Each of two machines has its own processes.
    if not clocked or (several and " on " in expression):
        value = getattr(above, field) / getattr(below, other)
        return Quantity(value, ratio_text(value), sources)
    if several:
        raise NotRecorded(f"'{expression}' was not measured on one device")
    raise ReferenceProblem(
        f"'{expression}' divides what was measured at different moments; "
        "let one comparison measure both"
    )


def _term(text: str, measurements: Measurements) -> Term:
    """Return what a reference names; raises ReferenceProblem."""
    match = REFERENCE.fullmatch(text)
    if not match:
        raise ReferenceProblem(
            f"'{text}' is not of the form name@framework or name@framework.field, "
            "each with ' on DEVICE' or without"
        )
    name, framework, device = match["name"], match["framework"], match["device"]
    field = match["field"] or "latency"
    if field not in FIELDS:
        raise ReferenceProblem(f"there is no field '{field}'; there are {', '.join(FIELDS)}")
    if device and device not in measurements.devices:
        near = nearest(device, measurements.devices)
        raise ReferenceProblem(f"'{text}': there is no device '{device}'{near}")
    by_device = measurements.by_name.get((name, framework), {})
    measurement = by_device.get(device or next(iter(by_device), ""))
    if measurement is None:
        raise _missing(text, name, framework, device, measurements)
    if getattr(measurement, field) is None:
        # Some kinds of numbers are there on some devices alone.
        raise NotRecorded(f"the measurement of '{text}' has no {field}", measurement.device)
    return field, measurement


def _missing(
    text: str, name: str, framework: str, device: str | None, measurements: Measurements
) -> ReferenceProblem:
    """Return why there is no such measurement: it was not made, or nobody knows of it."""
    outdated = sorted(
        (where for *key, where in measurements.outdated if key == [name, framework]),
        key=lambda where: (where != measurements.home, where),
    )
    if device in outdated or (not device and outdated):
        return NotRecorded(f"{name} with {framework}", device or outdated[0], outdated=True)
    if outdated or measurements.by_name.get((name, framework)):
        return NotRecorded(f"'{text}' was not measured there", device)
    refused = f"no measurement is called '{text}'"
    if framework not in measurements.frameworks:
        near = nearest(framework, measurements.frameworks)
        return ReferenceProblem(f"{refused}: there is no framework '{framework}'{near}")
    if measurements.partial:
        return NotRecorded(f"{name} with {framework}", device)
    references = sorted(f"{name}@{framework}" for name, framework in measurements.by_name)
    return ReferenceProblem(f"{refused}{nearest(f'{name}@{framework}', references)}")


def verdict(text: str, measurements: Measurements) -> tuple[str, Quantity | None]:
    """Return (verdict, Quantity or None) for the text of a verdict role.

    Either a verdict by itself, or `reference in low..high ? verdict : verdict`,
    where one bound may be left out. A ratio whose interval lies on both sides of a bound
    decides nothing, and neither does one process. Raises ReferenceProblem.
    """
    match = CONDITION.fullmatch(text)
    verdicts = [words.strip() for words in (match.groups()[2:] if match else (text,))]
    for words in verdicts:
        if words not in VERDICTS and not match and "@" in text:
            raise ReferenceProblem(
                f"'{text}' is not of the form REFERENCE in LOW..HIGH ? VERDICT : VERDICT"
            )
        if words not in VERDICTS:
            raise ReferenceProblem(f"'{words}' is no verdict; there are: {', '.join(VERDICTS)}")
    if not match:
        return verdicts[0], None
    low, high = _bounds(match[2])
    quantity = resolve(match[1], measurements)
    if quantity.is_alone:
        return UNDECIDED, quantity
    least = quantity.range.low if quantity.range else quantity.value
    most = quantity.range.high if quantity.range else quantity.value
    if low <= least and most <= high:
        return verdicts[0], quantity
    return (verdicts[1] if most < low or high < least else UNDECIDED), quantity


def _bounds(text: str) -> tuple[float, float]:
    low, dots, high = text.partition("..")
    if not dots or not (low or high) or not all(BOUND.fullmatch(b) for b in (low, high) if b):
        raise ReferenceProblem(f"'{text}' is no range; a range is such as 4..16, 4.. or ..0.5")
    if low and high and float(low) > float(high):
        raise ReferenceProblem(f"the range {text} ends before it begins")
    return float(low or "-inf"), float(high or "inf")
