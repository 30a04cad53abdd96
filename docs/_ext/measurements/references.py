"""Read the references of pages to measurements, such as `selu/eager@jax / selu/jit@jax`."""

import dataclasses
import difflib
import re

FIELDS = ("median", "first_call", "spread", "rate", "error", "threads", "samples")
REFERENCE = re.compile(
    r"(?P<name>[^\s@]+)@(?P<framework>\w+)(?:\.(?P<field>\w+))?(?: on (?P<device>[\w-]+))?"
)
VERDICT = re.compile(r"(.+) in ([\d.]*)\.\.([\d.]*) \? ([\w ]+) : ([\w ]+)")
VERDICTS = (
    "holds",
    "holds with conditions",
    "out of date",
    "wrong",
    "cannot be checked on this device yet",
)


class ReferenceProblem(Exception):
    """A reference that cannot be read or that names no record."""


class NotRecorded(ReferenceProblem):
    """A reference that is right, to a measurement that this site does not have."""

    def __init__(self, message, device=None):
        """Take the reason, and the device on which the measurement would have to be made."""
        super().__init__(message)
        self.device = device


@dataclasses.dataclass(frozen=True)
class Records:
    """All measurements as {(name, framework): {device: record}}, and the absent frameworks.

    There are `gaps` where a page is shown although it was neither executed nor recorded.
    """

    made: dict
    absent: set = frozenset()
    gaps: bool = False


@dataclasses.dataclass(frozen=True)
class Quantity:
    """A number out of the records: what it is, how it is written, and where it comes from."""

    value: float
    text: str
    origin: str
    devices: tuple = ()


def seconds_text(seconds):
    """Write seconds with three digits and a unit."""
    for unit, scale in (("s", 1), ("ms", 1e3), ("µs", 1e6)):
        # What three digits round up to 1 is 1 of this unit, not 1000 of the next.
        if seconds * scale >= 0.9995:
            return f"{_digits(seconds * scale, 3)} {unit}"
    return f"{_digits(seconds * 1e9, 3)} ns"


def rate_text(rate):
    """Write floating-point operations per second as GFLOP/s."""
    return f"{_digits(rate / 1e9, 3)} GFLOP/s"


def ratio_text(ratio):
    """Write a ratio with two digits, three from 100 up."""
    return f"{_digits(ratio, 3 if ratio >= 100 else 2)}×"


def _digits(value, count):
    text = f"{value:.{count}g}"
    return f"{float(text):.0f}" if "e" in text and value >= 1 else text


def field_text(field, value):
    """Write the value of one field of a record."""
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


def origin(record):
    """Say on what and when a record was measured."""
    version = record["versions"].get(record["framework"])
    if version is None and record["framework"] == "tensorflow":
        version = record["versions"].get("tensorflow-cpu")
    framework = f"{record['framework']} {version or ''}".strip()
    return (
        f"{record['name']}: {framework} on {record['device_kind']} ({record['processor']}, "
        f"{record['threads']} threads), {record['date'][:10]}"
    )


def resolve(expression, records):
    """Return the Quantity that a reference, or a ratio of two, stands for.

    `records` are the Records of the book. Raises ReferenceProblem.
    """
    parts = [part.strip() for part in expression.split(" / ")]
    if len(parts) > 2:
        raise ReferenceProblem(f"'{expression}' has more than one ' / '")
    found = [_single(part, records) for part in parts]
    if len(found) == 1:
        value, field, record = found[0]
        return Quantity(
            _number(value), field_text(field, value), origin(record), (record["device"],)
        )
    (above, _, first), (below, _, second) = found
    if not _number(below):
        raise ReferenceProblem(f"'{expression}' divides by zero")
    ratio = _number(above) / _number(below)
    both = tuple(dict.fromkeys((first["device"], second["device"])))
    return Quantity(ratio, ratio_text(ratio), f"{origin(first)}; {origin(second)}", both)


def _number(value):
    return len(value) if isinstance(value, list) else value


def _single(text, records):
    match = REFERENCE.fullmatch(text)
    if not match:
        raise ReferenceProblem(
            f"'{text}' is not of the form name@framework or name@framework.field, "
            "each with ' on DEVICE' or without"
        )
    field = match["field"] or "median"
    if field not in FIELDS:
        raise ReferenceProblem(f"there is no field '{field}'; there are {', '.join(FIELDS)}")
    made = records.made.get((match["name"], match["framework"]), {})
    device = match["device"] or next(iter(made), None)
    if made and device not in made:
        raise NotRecorded(f"'{text}' was not measured there", device)
    if not made and match["framework"] in records.absent:
        raise NotRecorded(f"{match['framework']} is not installed")
    if not made and records.gaps:
        raise NotRecorded(f"{match['name']} with {match['framework']}")
    record = made.get(device)
    if record is None:
        known = [f"{name}@{framework}" for name, framework in sorted(records.made)]
        near = difflib.get_close_matches(text, known, n=3, cutoff=0.4)
        hint = f"; the nearest are {', '.join(near)}" if near else ""
        raise ReferenceProblem(f"no measurement is called '{text}'{hint}")
    if record.get(field) is None:
        raise ReferenceProblem(f"the measurement of '{text}' has no {field}")
    return record[field], field, record


def verdict(text, records):
    """Return (verdict, Quantity or None) for the text of a verdict role.

    Either a verdict by itself, or `reference in low..high ? verdict : verdict`,
    where either bound may be left out. Raises ReferenceProblem.
    """
    match = VERDICT.fullmatch(text)
    if match:
        quantity = resolve(match[1], records)
        low, high = float(match[2] or "-inf"), float(match[3] or "inf")
        chosen, possible = match[4 if low <= quantity.value <= high else 5], (match[4], match[5])
    else:
        quantity, chosen, possible = None, text, (text,)
    for name in possible:
        if name.strip() not in VERDICTS:
            raise ReferenceProblem(f"'{name}' is no verdict; there are: {', '.join(VERDICTS)}")
    return chosen.strip(), quantity
