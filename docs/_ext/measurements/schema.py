"""The schema of a measurement's record, and the measurement as the engine uses it."""

import dataclasses
import functools
import json
import math
import pathlib
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Self

import fastjsonschema
import jsonschema

from .. import files, typed_json
from ..options import Options

LARGEST_FILE = 100_000
# Where the quartiles of the samples are further apart than this part of the median, the
# measurement is unstable.
UNSTABLE = 0.20
# Tukey's fences: what lies further from the quartiles than this many of their distances is an
# outlier. It is counted, and kept.
FENCE = 1.5
# How far, as a logarithm, a ratio may be from what the samples say.
TOLERANCE = 0.01
# What a measurement has beside what its own record must say.
ADDED = set("page device processes repeated disturbed comparison ratios earlier".split())
FORMATS = jsonschema.FormatChecker(formats=())
# Words of JSON schema that fastjsonschema, which stops at draft 7, would pass over.
NEWER = set(
    "$anchor $dynamicAnchor $dynamicRef $id dependentRequired dependentSchemas maxContains "
    "minContains prefixItems unevaluatedItems unevaluatedProperties".split()
)


@FORMATS.checks("date-time", raises=ValueError)
def _is_date(value: object) -> bool:
    """Accept RFC 3339, which jsonschema itself checks only with a further package."""
    return not isinstance(value, str) or typed_json.is_moment(value)


def _is_newer(rules: object) -> bool:
    """Say whether a part of a schema means to draft 7 less than it says."""
    if isinstance(rules, dict):
        words = set(rules)
        if words & NEWER or ("$ref" in words and len(words) > 1):
            return True
        return any(map(_is_newer, rules.values()))
    return isinstance(rules, list) and any(map(_is_newer, rules))


class SchemaError(Exception):
    """The file that `book_measurements` names is no schema of a measurement."""


@dataclasses.dataclass(frozen=True)
class Schema:
    """What a record must hold: the JSON schema that lies beside the timer.

    Besides the rules for a record it names, under keywords of its own, the MIME type of
    a record; the functions whose first argument is the name of a measurement; those that
    compare, whose second argument is a dictionary of alternatives; and the frameworks that
    an alternative may be called by.
    """

    rules: Mapping[str, Any]

    @classmethod
    def load(cls, path: pathlib.Path) -> Self:
        """Read the schema in a file; raises SchemaError."""
        try:
            rules = json.loads(files.read(path, LARGEST_FILE))
            jsonschema.Draft202012Validator.check_schema(rules)
            schema = cls(rules)
            parts = (schema.media_type, schema.functions, schema.versions, schema.framework)
            required = schema._measurement.get("required", ())
            naming = (schema.comparisons, schema.frameworks)
        except FileNotFoundError:
            raise SchemaError(f"{path}: there is no such file") from None
        except (files.Unusable, ValueError) as error:
            raise SchemaError(f"{path}: {error}") from None
        except jsonschema.SchemaError as error:
            raise SchemaError(f"{path}: it is no JSON schema: {error.message}") from None
        except (KeyError, TypeError) as error:
            raise SchemaError(f"{path}: it does not say {error}") from None
        used = {field.name for field in dataclasses.fields(Measurement)} - ADDED
        if missing := sorted(used - set(required)):
            raise SchemaError(f"{path}: it does not require '{missing[0]}', which pages show")
        if [type(part) for part in (*parts, *naming)] != [str, tuple, tuple, str, tuple, tuple]:
            raise SchemaError(f"{path}: mediaType, functions or the version is of the wrong type")
        return schema

    @classmethod
    def of(cls, options: Options) -> Self | None:
        """Read the schema that conf.py names, if it names one; raises SchemaError."""
        return cls.load(options.folder("measurements")) if options.measurements else None

    @property
    def media_type(self) -> str:
        """The MIME type under which an output holds a record."""
        found: str = self.rules["mediaType"]
        return found

    @property
    def functions(self) -> tuple[str, ...]:
        """The functions that measure; the first argument of each is a measurement's name."""
        return tuple(self.rules["functions"])

    @property
    def comparisons(self) -> tuple[str, ...]:
        """The functions that compare; the second argument of each is a dictionary."""
        return tuple(self.rules.get("comparisons", ()))

    @property
    def frameworks(self) -> tuple[str, ...]:
        """The keys of that dictionary that name a framework, and nothing else."""
        return tuple(self.rules.get("frameworks", ()))

    @property
    def versions(self) -> tuple[int, ...]:
        """The versions that records may have, the newest last."""
        return tuple(self.rules["properties"]["version"]["enum"])

    @property
    def method(self) -> int:
        """What a number means: raised by hand when a record of today would mean something else."""
        return int(self.rules.get("method", 1))

    @property
    def framework(self) -> str:
        """What a record names as its framework where none took part."""
        found: str = self._measurement["properties"]["framework"]["default"]
        return found

    @property
    def _measurement(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.rules["$defs"]["measurement"]
        return found

    @functools.cached_property
    def _validator(self) -> jsonschema.Draft202012Validator:
        return jsonschema.Draft202012Validator(self.rules, format_checker=FORMATS)

    @functools.cached_property
    def _fast(self) -> Callable[[object], object] | None:
        """What raises for a record that the rules may not allow, in a twentieth of the time.

        A recording holds hundreds of records. None where only jsonschema knows all the rules.
        """
        if _is_newer(self.rules):
            return None
        formats = {"date-time": lambda value: FORMATS.conforms(value, "date-time")}
        return fastjsonschema.compile(dict(self.rules), formats=formats, use_default=False)

    def _allows(self, record: object) -> bool:
        try:
            return self._fast is not None and self._fast(record) is not None
        except fastjsonschema.JsonSchemaValueException:
            return False

    def problem(self, record: Any) -> str | None:
        """Say what keeps a record from being a measurement; None where nothing does."""
        try:
            # JSON itself knows neither NaN nor infinity, and a schema cannot exclude them.
            text = json.dumps(record, allow_nan=False, ensure_ascii=False)
        except (TypeError, ValueError, RecursionError):
            return "it holds a number that is none, or is no JSON"
        version = record.get("version") if isinstance(record, dict) else None
        if isinstance(version, bool) or version not in self.versions:
            return (
                f"it is of version {str(version)[:20].lower()}, where version {self.versions[-1]} "
                "is needed; measure again"
            )
        if not self._allows(record):
            error = jsonschema.exceptions.best_match(self._validator.iter_errors(record))
            if error is not None:
                place = ".".join(map(str, error.absolute_path)) or "record"
                return f"{place}: {error.message[:200]}"
        if not text.isprintable():
            hidden = next(character for character in text if not character.isprintable())
            return f"it holds the character U+{ord(hidden):04X}, which nobody sees"
        return next(_contradictions(record), None)


def _contradictions(record: Mapping[str, Any]) -> Iterator[str]:
    """Say in what a record that the rules allow disagrees with itself."""
    known: dict[str, list[float]] = {}
    for each in record.get("alternatives", [record]):
        name, samples, median = _reference(each), each["samples"], each["median"]
        if not min(samples) <= median <= max(samples):
            yield f"median: {median:.3g} s of {name} is outside of its samples"
        if name in known:
            yield f"alternatives: there are two {name}"
        known[name] = samples
    if "alternatives" not in record:
        return
    rounds = len(record["control"])
    if uneven := [name for name, samples in known.items() if len(samples) != rounds]:
        yield f"alternatives: {uneven[0]} has {len(known[uneven[0]])} samples in {rounds} rounds"
        return
    floor = abs(math.log(_ratio(next(iter(known.values())), record["control"])))
    if abs(math.log1p(record["floor"]) - floor) > TOLERANCE:
        yield f"floor: it is {record['floor']:.3g}, and by the samples {math.expm1(floor):.3g}"
    seen = set()
    for pair in record["ratios"]:
        above, below, value = pair["above"], pair["below"], pair["ratio"]
        words = f"ratios: {above} / {below}"
        if above not in known or below not in known or above == below:
            yield f"{words} is not of two alternatives of {record['name']}"
            return
        if frozenset((above, below)) in seen:
            yield f"{words} is given twice"
        seen.add(frozenset((above, below)))
        if not pair["low"] <= value <= pair["high"]:
            yield f"{words} is {value:.3g}, outside of {pair['low']:.3g} to {pair['high']:.3g}"
        found = _ratio(known[above], known[below])
        if abs(math.log(value / found)) > TOLERANCE:
            yield f"{words} is {value:.3g}, and by the samples {found:.3g}"


def _ratio(above: Sequence[float], below: Sequence[float]) -> float:
    """Return the median of the ratios of two that took turns."""
    rounds = zip(above, below, strict=True)
    return math.exp(statistics.median(math.log(one / other) for one, other in rounds))


def _reference(record: Mapping[str, Any]) -> str:
    """Return what pages call what was measured, such as `selu/jit@jax`."""
    return f"{record['name']}@{record['framework']}"


def single(record: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the records of single measurements that a record holds: itself, or its alternatives.

    Each alternative of a comparison keeps, under `comparison`, its ratios to all the others.
    """
    if "alternatives" not in record:
        yield dict(record)
        return
    ratios: dict[str, dict[str, Any]] = {}
    for pair in record["ratios"]:
        above, below = pair["above"], pair["below"]
        ratios.setdefault(above, {})[below] = {
            "value": pair["ratio"],
            "low": min([pair["low"], *pair.get("processes", ())]),
            "high": max([pair["high"], *pair.get("processes", ())]),
        }
        ratios.setdefault(below, {})[above] = {
            "value": 1 / pair["ratio"],
            "low": 1 / ratios[above][below]["high"],
            "high": 1 / ratios[above][below]["low"],
        }
    for each in record["alternatives"]:
        own = ratios.get(_reference(each), {})
        of = {"name": record["name"], "floor": record["floor"], "ratios": own}
        yield dict(each) | {"comparison": of}


@dataclasses.dataclass(frozen=True)
class Ratio:
    """What one alternative of a comparison took, as a multiple of what another took.

    `low` and `high` are the ends of a 95 % interval. `floor` is how far apart the comparison
    found two runs of the same function, as a part of the time.
    """

    value: float
    low: float
    high: float
    floor: float

    @property
    def different(self) -> bool:
        """Whether the machine can tell the two apart."""
        beyond = abs(math.log(self.value)) > math.log1p(self.floor)
        return beyond and not self.low <= 1 <= self.high


@dataclasses.dataclass(frozen=True)
class Measurement:
    """A record that the schema allows, with the page that made it and the device it is of.

    Times are in seconds, `rate` is in operations per second. `processes` are the medians of
    all the processes that measured the same, and `ratios` those to the other alternatives of
    its comparison, by what pages call these; both may be empty. `earlier` says, such as
    `earlier code, 2026-08-01`, that the code or the method has changed since.
    """

    name: str
    framework: str
    device_kind: str
    processor: str
    threads: int
    shape: tuple[tuple[int, ...], ...]
    dtype: str
    precision: str
    samples: tuple[float, ...]
    calls_per_sample: int
    first_call: float
    work: float | None
    error: float | None
    versions: Mapping[str, str]
    date: str
    median: float
    rate: float | None
    page: str
    device: str
    processes: tuple[float, ...] = ()
    repeated: int = 0
    disturbed: bool = False
    comparison: str = ""
    ratios: Mapping[str, Ratio] = dataclasses.field(default_factory=dict)
    earlier: str = ""

    @classmethod
    def from_plain(cls, record: Mapping[str, Any]) -> Self:
        """Return the measurement of a record that has a page and a device."""
        known = {field.name for field in dataclasses.fields(cls)} - ADDED
        values = {name: record[name] for name in known | {"page", "device"}}
        values["shape"] = tuple(tuple(map(int, lengths)) for lengths in record["shape"])
        values["samples"] = tuple(record["samples"])
        values["processes"] = tuple(record.get("processes") or ())
        values["earlier"] = str(record.get("earlier", ""))
        machine = record.get("machine") or {}
        values["repeated"] = int(machine.get("repeated", 0))
        values["disturbed"] = bool(machine.get("disturbed"))
        # To JSON, 2.0 is an integer too.
        values["threads"] = int(record["threads"])
        if comparison := record.get("comparison"):
            values["comparison"] = comparison["name"]
            values["ratios"] = {
                other: Ratio(**ratio, floor=comparison["floor"])
                for other, ratio in comparison["ratios"].items()
            }
        return cls(**values)

    @functools.cached_property
    def quartiles(self) -> tuple[float, float]:
        """Between which times the middle half of the samples lies."""
        if len(self.samples) == 1:
            return self.samples[0], self.samples[0]
        low, _, high = statistics.quantiles(self.samples, n=4, method="inclusive")
        return low, high

    @property
    def spread(self) -> float:
        """The distance of the quartiles, as a part of the median."""
        low, high = self.quartiles
        return (high - low) / self.median

    @property
    def outliers(self) -> int:
        """How many samples lie outside of Tukey's fences."""
        low, high = self.quartiles
        fence = FENCE * (high - low)
        return sum(not low - fence <= each <= high + fence for each in self.samples)

    @property
    def variation(self) -> float | None:
        """How far apart the medians of processes are, as a part of the median, if there are."""
        if len(self.processes) < 2:
            return None
        return (max(self.processes) - min(self.processes)) / self.median

    @property
    def stable(self) -> bool:
        """Whether half of its samples lie close enough together to quote the median."""
        return self.spread <= UNSTABLE

    @property
    def unstable(self) -> bool:
        """Whether a page must mark the median: samples or processes lie far apart."""
        return not self.stable or (self.variation or 0) > UNSTABLE

    @property
    def reference(self) -> str:
        """What pages call it, such as `selu/jit@jax`."""
        return f"{self.name}@{self.framework}"

    @property
    def alternative(self) -> str:
        """The last part of its name: what it is called among those that it is compared with."""
        return self.name.rpartition("/")[2].replace("_", " ")

    @property
    def size(self) -> int | None:
        """The first length of its first array; None where it has none that can be drawn."""
        return (self.shape[0][0] or None) if self.shape and self.shape[0] else None

    @property
    def origin(self) -> str:
        """On what and when it was measured, in words."""
        # One framework may come as one of several distributions, such as `name-cpu`.
        names = [self.framework, *(n for n in self.versions if n.startswith(f"{self.framework}-"))]
        version = next((self.versions[name] for name in names if name in self.versions), "")
        return (
            f"{self.name}: {f'{self.framework} {version}'.strip()} on {self.device_kind} "
            f"({self.processor}, {self.threads} threads), {self.date[:10]}"
        )
