"""Read the references of pages to measurements, such as `selu/eager@jax / selu/jit@jax`."""

import dataclasses
import fnmatch
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from decimal import Decimal

from ..names import nearest
from .schema import Measurement, Ratio

FIELDS = ("median", "first_call", "spread", "rate", "error", "threads", "samples")
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
    "not so on this device",
    "cannot be checked on this device yet",
)
NO_DIFFERENCE = "no difference measured"
UNDECIDED = "cannot tell on this machine"
# Fields whose ratio means something only where both sides took turns.
IN_TURNS = ("median", "rate")
# What is larger, or smaller than its inverse, is written with a power of ten.
LONGEST = 1e7


class ReferenceProblem(Exception):
    """A reference that cannot be read or that names no measurement."""


class NotRecorded(ReferenceProblem):
    """A reference that is right, to a measurement that this site does not have."""

    def __init__(self, message: str, device: str | None = None) -> None:
        """Take the reason, and the device on which the measurement would have to be made."""
        super().__init__(message)
        self.device = device


@dataclasses.dataclass(frozen=True)
class Measurements:
    """All measurements of a book, and what else its pages may name.

    made: {(name, framework): {device: measurement}}, the device of the site first.
    home: the device of the site.
    devices, frameworks: all that there are.
    lacking: {(name, framework): devices} of its page on which a measurement was not made.
    doubled: the (name, framework) that two pages measure.
    partial: whether there are cells that were executed nowhere, or failed: they may have the
        measurements that are not known.
    """

    made: Mapping[tuple[str, str], Mapping[str, Measurement]]
    home: str
    devices: Iterable[str]
    frameworks: Iterable[str]
    lacking: Mapping[tuple[str, str], Set[str]] = dataclasses.field(default_factory=dict)
    doubled: frozenset[tuple[str, str]] = frozenset()
    partial: bool = False

    def problem(self, patterns: Iterable[str]) -> str | None:
        """Say which of the patterns over names match no measurement of any device."""
        known = {name for name, _ in self.made}
        unknown = [each for each in patterns if not fnmatch.filter(known, each)]
        if not unknown or self.partial:
            return None
        return f"no measurement matches {' '.join(unknown)}{nearest(unknown[0], sorted(known))}"

    def devices_without(self, patterns: Iterable[str]) -> set[str]:
        """Return the devices on which a measurement that one of the patterns matches is missing."""
        patterns = list(patterns)
        return {
            device
            for (name, _), devices in self.lacking.items()
            if any(fnmatch.fnmatchcase(name, each) for each in patterns)
            for device in devices
        }


@dataclasses.dataclass(frozen=True)
class Quantity:
    """A number out of the measurements: its value, how it is written, and where it comes from.

    `ratio` is there for the ratio of two alternatives of one comparison, with its interval.
    `unstable` says why the number must be marked, and is empty where it need not be; `earlier`
    what has changed since it was measured.
    """

    value: float
    text: str
    origin: str
    devices: tuple[str, ...] = ()
    ratio: Ratio | None = None
    unstable: str = ""
    earlier: str = ""


def seconds_text(seconds: float) -> str:
    """Write seconds with three digits and a unit."""
    for unit, scale in (("s", 1), ("ms", 1e3), ("µs", 1e6)):
        # What three digits round up to 1 is 1 of this unit, not 1000 of the next.
        if seconds * scale >= 0.9995:
            return f"{_digits(seconds * scale, 3)} {unit}"
    return f"{_digits(seconds * 1e9, 3)} ns"


def rate_text(rate: float) -> str:
    """Write floating-point operations per second as GFLOP/s."""
    return f"{_digits(rate / 1e9, 3)} GFLOP/s"


def ratio_text(ratio: float) -> str:
    """Write a ratio with two digits, three from 100 up, or up to four where fewer would say 1."""
    if ratio >= 100:
        return f"{_digits(ratio, 3)}×"
    texts = [_digits(ratio, count) for count in (2, 3, 4)]
    return f"{next((text for text in texts if float(text) != 1), '1')}×"


def _digits(value: float, count: int) -> str:
    text = f"{value:.{count}g}"
    return f"{Decimal(text):f}" if 1 / LONGEST < value < LONGEST else text


def field_text(field: str, measurement: Measurement) -> str:
    """Write the value of one field of a measurement."""
    value = getattr(measurement, field)
    if value is None:
        return "–"
    if field in ("median", "first_call"):
        return seconds_text(value)
    if field == "rate":
        return rate_text(value)
    if field == "error":
        return f"{value:.1e}"
    if field == "spread":
        return f"{value:.0%}"
    if field == "samples":
        return str(len(value))
    return str(value)


def resolve(expression: str, measurements: Measurements) -> Quantity:
    """Return the Quantity that a reference, or a ratio of two, stands for.

    Raises ReferenceProblem.
    """
    parts = [part.strip() for part in expression.split(" / ")]
    if len(parts) > 2:
        raise ReferenceProblem(f"'{expression}' has more than one ' / '")
    found, gap = [], None
    for part in parts:
        try:
            found.append(_single(part, measurements))
        except NotRecorded as problem:
            # The other part may be wrong, which is more to be told.
            gap = gap or problem
    if gap:
        raise gap
    earlier = "; ".join(dict.fromkeys(of.earlier for _, of in found if of.earlier))
    return dataclasses.replace(_quantity(expression, found), earlier=earlier)


def _quantity(expression: str, found: Sequence[tuple[str, Measurement]]) -> Quantity:
    """Return a field of a measurement, or the ratio of two."""
    if len(found) == 1:
        field, of = found[0]
        origin = f"{of.origin}. {_sampling(field, of)}".rstrip()
        text, unstable = field_text(field, of), _unstable(of) if field in IN_TURNS else ""
        return Quantity(_number(of, field), text, origin, (of.device,), unstable=unstable)
    (field, above), (other, below) = found
    if not _number(below, other):
        raise ReferenceProblem(f"'{expression}' divides by zero")
    value = _number(above, field) / _number(below, other)
    devices = tuple(dict.fromkeys((above.device, below.device)))
    ratio = _in_turns(field, above, below) if field == other else None
    if ratio:
        text = ratio_text(ratio.value) if ratio.different else NO_DIFFERENCE
        origin = f"{_interval(ratio)} {above.origin}; {below.origin}."
        return Quantity(ratio.value, text, origin, devices, ratio)
    if field in IN_TURNS and other in IN_TURNS:
        if len(devices) > 1 and " on " not in expression:
            raise NotRecorded(f"'{expression}' was not measured on one device")
        raise ReferenceProblem(
            f"'{expression}' divides what was measured at different moments; "
            "let one comparison measure both"
        )
    unstable = " ".join(filter(None, dict.fromkeys(map(_unstable, (above, below)))))
    origin = f"{above.origin}; {below.origin}."
    return Quantity(value, ratio_text(value), origin, devices, unstable=unstable)


def _in_turns(field: str, above: Measurement, below: Measurement) -> Ratio | None:
    """Return the ratio of two alternatives with its interval; None where they took no turns."""
    if field not in IN_TURNS or (above.page, above.device) != (below.page, below.device):
        return None
    # Rates are the other way round, and the work of both may differ.
    first, second = (below, above) if field == "rate" else (above, below)
    measured = first.ratios.get(second.reference)
    if measured is None or first.comparison != second.comparison:
        return None
    scale = (above.work or 1) / (below.work or 1) if field == "rate" else 1
    ends = measured.low * scale, measured.high * scale
    return Ratio(measured.value * scale, *ends, measured.floor)


def _interval(ratio: Ratio) -> str:
    """Say in sentences how sure a ratio is."""
    low, high = ratio_text(ratio.low), ratio_text(ratio.high)
    floor = f"{ratio.floor:.1%}" if ratio.floor < 0.1 else f"{ratio.floor:.0%}"
    value = "" if ratio.different else f"The ratio came out as {ratio_text(ratio.value)}. "
    return (
        f"{value}95 % interval from {low} to {high}, measured in turns. The same code twice "
        f"differed by {floor}."
    )


def _sampling(field: str, of: Measurement) -> str:
    """Say in sentences what a median was taken of."""
    if field not in IN_TURNS:
        return ""
    low, high = map(seconds_text, of.quartiles)
    said = f"{len(of.samples)} samples, half of them from {low} to {high}"
    said += f"; {of.outliers} far off." if of.outliers else "."
    if of.variation is not None:
        ends = seconds_text(min(of.processes)), seconds_text(max(of.processes))
        said += f" In {len(of.processes)} processes the median was {ends[0]} to {ends[1]}."
    if of.disturbed:
        again = f", although it was measured again {of.repeated}×"
        said += f" The machine did other work meanwhile{again if of.repeated else ''}."
    elif of.repeated:
        said += f" Measured again {of.repeated}×, as the machine did other work at first."
    return said


def _unstable(of: Measurement) -> str:
    if not of.unstable:
        return ""
    if of.stable:
        what, ends = "its medians lie", (min(of.processes), max(of.processes))
    else:
        what, ends = "half of its samples lie", of.quartiles
    low, high = map(seconds_text, ends)
    return f"{of.reference} is unstable: {what} between {low} and {high}."


def _number(measurement: Measurement, field: str) -> float:
    value = getattr(measurement, field)
    return len(value) if isinstance(value, tuple) else value


def _single(text: str, measurements: Measurements) -> tuple[str, Measurement]:
    match = REFERENCE.fullmatch(text)
    if not match:
        raise ReferenceProblem(
            f"'{text}' is not of the form name@framework or name@framework.field, "
            "each with ' on DEVICE' or without"
        )
    name, framework, device = match["name"], match["framework"], match["device"]
    field = match["field"] or "median"
    if field not in FIELDS:
        raise ReferenceProblem(f"there is no field '{field}'; there are {', '.join(FIELDS)}")
    if device and device not in measurements.devices:
        raise ReferenceProblem(
            f"'{text}': there is no device '{device}'{nearest(device, measurements.devices)}"
        )
    if (name, framework) in measurements.doubled:
        raise NotRecorded(f"{name}@{framework} is measured on two pages")
    made = measurements.made.get((name, framework), {})
    # What earlier code measured may bear a name that no code has any more.
    current = [each for each, of in made.items() if each == measurements.home or not of.earlier]
    of = made.get(device or next(iter(current), ""))
    if of is None:
        raise _missing(text, name, framework, device, measurements)
    if getattr(of, field) is None:
        raise ReferenceProblem(f"the measurement of '{text}' has no {field}")
    return field, of


def _missing(
    text: str, name: str, framework: str, device: str | None, measurements: Measurements
) -> ReferenceProblem:
    """Return why there is no such measurement: it was not made, or nobody knows of it."""
    made = measurements.made.get((name, framework), {})
    if (device and made) or any(not of.earlier for of in made.values()):
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
    least = quantity.ratio.low if quantity.ratio else quantity.value
    most = quantity.ratio.high if quantity.ratio else quantity.value
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
