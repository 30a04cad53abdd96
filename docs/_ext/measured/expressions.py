"""What roles ask for, such as `selu/eager@jax / selu/jit@jax`, read into values.

A page's roles are read with the page, so what cannot be read is told at its line, whether anything
was measured or not.
"""

import dataclasses
import re

from .schema import CLOCKS

FIELDS = (*CLOCKS, "rate", "error", "least")
LATENCY = "latency"
REFERENCE = re.compile(
    r"(?P<name>[^\s@*?\[\]]+)@(?P<framework>\w+)(?:\.(?P<field>\w+))?(?: on (?P<device>[\w-]+))?"
)
CONDITION = re.compile(r"(.+) in (\S+) \? ([\w ]+) : ([\w ]+)")
BOUND = re.compile(r"[0-9]{1,15}(\.[0-9]{1,15})?")
AGAINST = " / "
VERDICTS = (
    "holds",
    "holds with conditions",
    "out of date",
    "wrong",
    "not here",
    "not checked here",
)


class ReferenceProblem(Exception):
    """A reference that cannot be read or that names no measurement."""


@dataclasses.dataclass(frozen=True)
class Reference:
    """A field of a measurement, on the device of the site if it names none."""

    name: str
    framework: str
    field: str = LATENCY
    device: str = ""

    def __str__(self) -> str:
        """Return the text that it was read from."""
        field = "" if self.field == LATENCY else f".{self.field}"
        on = f" on {self.device}" if self.device else ""
        return f"{self.measurement}{field}{on}"

    @property
    def measurement(self) -> str:
        """The measurement, such as `selu/jit@jax`."""
        return f"{self.name}@{self.framework}"


@dataclasses.dataclass(frozen=True)
class Pattern:
    """The fastest of all measurements whose `name@framework` matches."""

    pattern: str
    device: str = ""

    def __str__(self) -> str:
        """Return the text that it was read from."""
        return self.pattern + (f" on {self.device}" if self.device else "")


@dataclasses.dataclass(frozen=True)
class Condition:
    """Between which bounds a number leads to the verdict `inside`, and else to that `outside`."""

    low: float
    high: float
    inside: str
    outside: str


@dataclasses.dataclass(frozen=True)
class Expression:
    """What a role asks for: a number, or the ratio of two, or a verdict.

    A verdict has a `condition` for its number, or is one by itself.
    """

    role: str
    terms: tuple[Reference, ...] = ()
    patterns: tuple[Pattern, ...] = ()
    condition: Condition | None = None
    verdict: str = ""

    def __str__(self) -> str:
        """Return its numbers as they are written."""
        return AGAINST.join(map(str, (*self.terms, *self.patterns)))

    @property
    def on_device(self) -> bool:
        """Whether it names the device of a number."""
        named = [each.device for each in self.terms] + [each.device for each in self.patterns]
        return any(named)

    @property
    def key(self) -> str:
        """What it is called in the file of a reader, which holds the answer of their machine."""
        if self.condition is None:
            return f"{self.role} {self}"
        low, high, inside, outside = dataclasses.astuple(self.condition)
        return f"{self.role} {self} in {low}..{high} ? {inside} : {outside}"


def read(role: str, text: str) -> Expression:
    """Return what the text of a role asks for; raises ReferenceProblem."""
    if role == "fastest":
        parts = (part.strip().partition(" on ") for part in _parts(text))
        return Expression(role, patterns=tuple(Pattern(of, device) for of, _, device in parts))
    if role == "verdict":
        return _verdict(text)
    terms = tuple(_reference(part.strip()) for part in _parts(text))
    if role == "paid" and len(terms) != 2:
        raise ReferenceProblem(f"'{text}' is not of the form REFERENCE / REFERENCE")
    if role == "paid" and {each.field for each in terms} != {LATENCY}:
        raise ReferenceProblem(f"'{text}' names a field; what pays is told by both clocks")
    return Expression(role, terms)


def _parts(text: str) -> list[str]:
    parts = text.split(AGAINST)
    if len(parts) > 2:
        raise ReferenceProblem(f"'{text}' has more than one '{AGAINST}'")
    return parts


def _reference(text: str) -> Reference:
    match = REFERENCE.fullmatch(text)
    if not match:
        raise ReferenceProblem(
            f"'{text}' is not of the form name@framework or name@framework.field, "
            "each with ' on DEVICE' or without"
        )
    field = match["field"] or LATENCY
    if field not in FIELDS:
        raise ReferenceProblem(f"there is no field '{field}'; there are {', '.join(FIELDS)}")
    return Reference(match["name"], match["framework"], field, match["device"] or "")


def _verdict(text: str) -> Expression:
    """Read a verdict by itself, or `REFERENCE in LOW..HIGH ? VERDICT : VERDICT`.

    One bound may be left out.
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
        return Expression("verdict", verdict=verdicts[0])
    terms = tuple(_reference(part.strip()) for part in _parts(match[1]))
    return Expression("verdict", terms, condition=Condition(*_bounds(match[2]), *verdicts))


def _bounds(text: str) -> tuple[float, float]:
    low, dots, high = text.partition("..")
    if not dots or not (low or high) or not all(BOUND.fullmatch(b) for b in (low, high) if b):
        raise ReferenceProblem(f"'{text}' is no range; a range is such as 4..16, 4.. or ..0.5")
    if low and high and float(low) > float(high):
        raise ReferenceProblem(f"the range {text} ends before it begins")
    return float(low or "-inf"), float(high or "inf")
