"""Read the references of pages to measurements, such as `selu/eager@jax / selu/jit@jax`."""

import dataclasses
import fnmatch
import functools
import math
import re
import statistics
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from drawing.numbers import rate_text, ratio_text, seconds_text
from executed.names import nearest

from .ranges import Range, calls_ranged, compared, seconds_ranged, times
from .schema import CLOCKS, Measurement, single

FIELDS = (*CLOCKS, "rate", "error")
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

    made: {(name, framework): {device: measurement}}, the device of the site first.
    home: the device of the site.
    devices, frameworks: all that there are.
    partial: whether there are cells that were executed nowhere, or failed: they may have the
        measurements that are not known.
    outdated: {(name, framework, device)} of what was measured of other code than that of today.
    """

    made: Mapping[tuple[str, str], Mapping[str, Measurement]]
    home: str
    devices: Iterable[str]
    frameworks: Iterable[str]
    partial: bool = False
    outdated: frozenset[tuple[str, str, str]] = frozenset()

    @functools.cached_property
    def accelerated(self) -> frozenset[str]:
        """The devices on which something ran elsewhere than on a CPU."""
        every = [of for made in self.made.values() for of in made.values()]
        return frozenset(of.device for of in every if of.device_kind not in (None, "cpu"))

    def problem(self, patterns: Iterable[str]) -> str | None:
        """Say which of the patterns over names match no measurement of any device."""
        known = {name for name, *_ in (*self.made, *self.outdated)}
        unknown = [each for each in patterns if not fnmatch.filter(known, each)]
        if not unknown or self.partial:
            return None
        return f"no measurement matches {' '.join(unknown)}{nearest(unknown[0], sorted(known))}"


@dataclasses.dataclass(frozen=True)
class Quantity:
    """A number out of the measurements: its value, how it is written, and where it comes from.

    `range` is there where it comes from processes. `earlier` are those measurements that it comes
    from since which something has changed. `wordy` is a text that is no number.
    """

    value: float
    text: str
    origin: str
    devices: tuple[str, ...] = ()
    range: Range | None = None
    earlier: tuple[Measurement, ...] = ()
    wordy: bool = False


def field_text(field: str, measurement: Measurement, with_range: bool = True) -> str:
    """Write the value of one field of a measurement."""
    value = getattr(measurement, field)
    if value is None:
        return "–"
    if field in CLOCKS:
        found = measurement.range(field)
        assert found is not None
        return seconds_ranged(found) if with_range else seconds_text(value)
    if field == "rate":
        return rate_text(value)
    if field == "error":
        return f"{value:.1e}"
    return str(value)


def resolve(
    expression: str, measurements: Measurements, write: Callable[[Range], str] = times
) -> Quantity:
    """Return the Quantity that a reference, or a ratio of two, stands for.

    `write` says how a ratio is written. Raises ReferenceProblem.
    """
    parts = [part.strip() for part in expression.split(" / ")]
    if len(parts) > 2:
        raise ReferenceProblem(f"'{expression}' has more than one ' / '")
    found = _all(parts, measurements)
    earlier = _earlier(found)
    if len(found) == 1:
        ((field, of),) = found
        origin = f"{of.origin}. {_sampling(of)}"
        between = of.range(field) if field in CLOCKS else None
        value = getattr(of, field)
        return Quantity(value, field_text(field, of), origin, (of.device,), between, earlier)
    first, second = found
    return dataclasses.replace(_ratio(expression, first, second, write), earlier=earlier)


def paid(expression: str, measurements: Measurements) -> Quantity:
    """Return from how many calls on the first of two takes no longer in all than the second.

    Its own first call counts; each call of the second is taken at the median. What is not told to
    be faster never pays, unless its first call takes no longer than one of the other. Raises
    ReferenceProblem.
    """
    parts = [part.strip() for part in expression.split(" / ")]
    if len(parts) != 2:
        raise ReferenceProblem(f"'{expression}' is not of the form REFERENCE / REFERENCE")
    first, second = _all(parts, measurements)
    (field, ours), (other_field, other) = first, second
    if {field, other_field} != {"latency"}:
        raise ReferenceProblem(f"'{expression}' names a field; what pays is told by both clocks")
    ratio = _ratio(expression, first, second, times)
    if ratio.range is None:
        raise ReferenceProblem(f"'{expression}' was not measured on one device")
    calls = ours.calls_until_paid(other)
    if calls is None:
        raise NotRecorded(f"the measurement of '{parts[0]}' has no first_call", ours.device)
    faster = ratio.range.told and ratio.range.value < 1
    if calls.high == 1 or (faster and calls.high < math.inf):
        text = calls_ranged(calls)
    else:
        text = "never" if ratio.range.told or ratio.range.equal else UNDECIDED
    wordy, earlier = text in ("never", UNDECIDED), _earlier([first, second])
    return Quantity(calls.value, text, ratio.origin, ratio.devices, calls, earlier, wordy)


def _all(parts: Iterable[str], measurements: Measurements) -> list[tuple[str, Measurement]]:
    """Return the field and the measurement of each part."""
    found, gap = [], None
    for part in parts:
        try:
            found.append(_single(part, measurements))
        except NotRecorded as problem:
            # The other part may be wrong, which is more to be told.
            gap = gap or problem
    if gap:
        raise gap
    return found


def _earlier(found: Iterable[tuple[str, Measurement]]) -> tuple[Measurement, ...]:
    return tuple(of for _, of in found if of.earlier)


def _ratio(
    expression: str,
    first: tuple[str, Measurement],
    second: tuple[str, Measurement],
    write: Callable[[Range], str],
) -> Quantity:
    """Return the ratio of two measurements: of the same processes, or of two devices."""
    (field, above), (other, below) = first, second
    devices = tuple(dict.fromkeys((above.device, below.device)))
    origin = f"{above.origin}; {below.origin}. {_sampling(above)}"
    if field not in CLOCKS or other not in CLOCKS:
        value = getattr(above, field) / getattr(below, other)
        return Quantity(value, ratio_text(value), origin, devices)
    found = above.ratio(below, (field, other))
    if found is None and len(devices) > 1 and " on " in expression:
        # Of two machines; each has its own processes.
        value = getattr(above, field) / getattr(below, other)
        return Quantity(value, ratio_text(value), origin, devices)
    if found is None and len(devices) > 1:
        raise NotRecorded(f"'{expression}' was not measured on one device")
    if found is None:
        raise ReferenceProblem(
            f"'{expression}' divides what was measured at different moments; "
            "let one comparison measure both"
        )
    return Quantity(found.value, write(found), origin, devices, found, wordy=not found.told)


def _sampling(of: Measurement) -> str:
    """Say in sentences what a number was taken of."""
    count = len(of.processes)
    rounds = sorted({len(each.latency) for each in of.processes})
    few, most = rounds[0], rounds[-1]
    each_of = f"{few} rounds" if few == most else f"{few} to {most} rounds"
    said = f"{count} process{'es' * (count > 1)} of {each_of}"
    cores = [each.cores for each in of.processes if each.cores is not None]
    said += f", {statistics.median(cores):.1f} cores busy." if cores else "."
    if disturbed := sum(each.disturbed for each in of.processes):
        said += f" The machine did other work during {disturbed} of them."
    return said


def lines(record: Mapping[str, Any]) -> str:
    """Write what a record says, a line for each measurement, and how the first compares."""
    known = [Measurement.from_plain(each) for each in single(record)]
    found = []
    for each in known:
        first = f", first call {field_text('first_call', each)}" if each.first_call else ""
        many = f", of many {field_text('throughput', each)}" if each.throughput else ""
        found.append(f"{each.name} [{each.framework}] {field_text('latency', each)}{many}{first}")
    for other in known[1:]:
        if ratio := known[0].ratio(other):
            names = (f"{each.alternative} [{each.framework}]" for each in (known[0], other))
            found.append(f"{' against '.join(names)}: {compared(ratio)}")
    return "\n".join(found)


def _single(text: str, measurements: Measurements) -> tuple[str, Measurement]:
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
        raise ReferenceProblem(
            f"'{text}': there is no device '{device}'{nearest(device, measurements.devices)}"
        )
    made = measurements.made.get((name, framework), {})
    of = made.get(device or next(iter(made), ""))
    if of is None:
        raise _missing(text, name, framework, device, measurements)
    if getattr(of, field) is None:
        # Some kinds of numbers are there on some devices alone.
        raise NotRecorded(f"the measurement of '{text}' has no {field}", of.device)
    return field, of


def _missing(
    text: str, name: str, framework: str, device: str | None, measurements: Measurements
) -> ReferenceProblem:
    """Return why there is no such measurement: it was not made, or nobody knows of it."""
    of_other_code = sorted(
        (each for *of, each in measurements.outdated if of == [name, framework]),
        key=lambda each: (each != measurements.home, each),
    )
    if device in of_other_code or (not device and of_other_code):
        return NotRecorded(f"{name} with {framework}", device or of_other_code[0], outdated=True)
    if of_other_code or measurements.made.get((name, framework)):
        return NotRecorded(f"'{text}' was not measured there", device)
    refused = f"no measurement is called '{text}'"
    if framework not in measurements.frameworks:
        near = nearest(framework, measurements.frameworks)
        return ReferenceProblem(f"{refused}: there is no framework '{framework}'{near}")
    if measurements.partial:
        return NotRecorded(f"{name} with {framework}", device)
    known = sorted(f"{name}@{framework}" for name, framework in measurements.made)
    near = nearest(f"{name}@{framework}", known)
    return ReferenceProblem(f"{refused}{near}")


def verdict(text: str, measurements: Measurements) -> tuple[str, Quantity | None]:
    """Return (verdict, Quantity or None) for the text of a verdict role.

    Either a verdict by itself, or `reference in low..high ? verdict : verdict`,
    where one bound may be left out. A ratio whose interval lies on both sides of a bound
    decides nothing. Raises ReferenceProblem.
    """
    match = CONDITION.fullmatch(text)
    possible = [each.strip() for each in (match.groups()[2:] if match else (text,))]
    for each in possible:
        if each in VERDICTS:
            continue
        if not match and "@" in text:
            raise ReferenceProblem(
                f"'{text}' is not of the form REFERENCE in LOW..HIGH ? VERDICT : VERDICT"
            )
        raise ReferenceProblem(f"'{each}' is no verdict; there are: {', '.join(VERDICTS)}")
    if not match:
        return possible[0], None
    low, high = _range(match[2])
    quantity = resolve(match[1], measurements)
    least = quantity.range.low if quantity.range else quantity.value
    most = quantity.range.high if quantity.range else quantity.value
    if low <= least and most <= high:
        return possible[0], quantity
    return (possible[1] if most < low or high < least else UNDECIDED), quantity


def _range(text: str) -> tuple[float, float]:
    low, dots, high = text.partition("..")
    if not dots or not (low or high) or not all(BOUND.fullmatch(b) for b in (low, high) if b):
        raise ReferenceProblem(f"'{text}' is no range; a range is such as 4..16, 4.. or ..0.5")
    if low and high and float(low) > float(high):
        raise ReferenceProblem(f"the range {text} ends before it begins")
    return float(low or "-inf"), float(high or "inf")
