"""The schema of a measurement's record, and the measurement as the engine uses it."""

import dataclasses
import enum
import functools
import itertools
import json
import math
import pathlib
import statistics
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Self

import fastjsonschema

from executed import typed_json

from .ranges import Range, ratio_of_rounds

# What can be asked of a measurement, each a number in every process.
CLOCKS = ("latency", "throughput", "first_call")


class SchemaError(Exception):
    """The file that `book_measurements` names cannot be read."""


@dataclasses.dataclass(frozen=True)
class Schema:
    """What a record must hold: the JSON schema that lies beside the timer.

    Besides the rules for a record, in the words of draft 7, it names under keywords of its own the
    MIME type of a record, and the number of the method.
    """

    rules: Mapping[str, Any]

    @classmethod
    def load(cls, path: pathlib.Path) -> Self:
        """Read the schema in a file; raises SchemaError."""
        try:
            return cls(json.loads(path.read_text("utf8")))
        except OSError as error:
            raise SchemaError(f"{path}: {error.strerror}") from None
        except ValueError as error:
            raise SchemaError(f"{path}: {error}") from None

    @property
    def media_type(self) -> str:
        """The MIME type under which an output holds a record."""
        return str(self.rules["mediaType"])

    @property
    def method(self) -> int:
        """What a number means: raised by hand when a record of today would mean something else."""
        return int(self.rules["method"])

    @functools.cached_property
    def check_record(self) -> Callable[[object], object]:
        """What raises JsonSchemaValueException for a record that the rules do not allow."""
        return _validator(self.rules)

    @functools.cached_property
    def check_file(self) -> Callable[[object], object]:
        """What raises the same for a file of the command, but for its records."""
        return _validator({"$ref": "#/$defs/file", "$defs": self.rules["$defs"]})

    def problem(self, record: Any) -> str | None:
        """Say what keeps a record from being a measurement; None where nothing does."""
        return self._problem(record, self.check_record, "the record")

    def file_problem(self, file: Any) -> str | None:
        """Say what keeps the content of a file from being one of the command, but for records."""
        return self._problem(file, self.check_file, "the file")

    def _problem(self, value: Any, check: Callable[[object], object], called: str) -> str | None:
        try:
            # JSON itself knows neither NaN nor infinity, and a schema cannot exclude them.
            json.dumps(value, allow_nan=False)
            check(value)
        except fastjsonschema.JsonSchemaValueException as error:
            return str(error.message).replace("data", called, 1)[:200]
        except (TypeError, ValueError, RecursionError):
            return "it holds a number that is none, or is no JSON"
        return None


def _validator(rules: Mapping[str, Any]) -> Callable[[object], object]:
    """Return what raises for a value that rules do not allow."""
    formats = {"date-time": typed_json.is_moment}
    checking: Callable[[object], object] = fastjsonschema.compile(
        dict(rules), formats=formats, use_default=False
    )
    return checking


def parts(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the records of single measurements in a record: itself, or its alternatives."""
    return list(record.get("alternatives", [record]))


def single(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the same, with the name of what each took turns in, if it did, as `comparison`."""
    turns = {"comparison": record["name"]} if "alternatives" in record else {}
    return [part | turns for part in parts(record)]


def only(record: Mapping[str, Any], counts: Sequence[bool]) -> dict[str, Any]:
    """Return a record with those of its processes that count."""
    left = [
        {**part, "processes": [*itertools.compress(part["processes"], counts)]}
        for part in parts(record)
    ]
    return {**record, "alternatives": left} if "alternatives" in record else left[0]


def _values(record: "Process | Measurement", optional: Collection[str]) -> dict[str, Any]:
    """Return the fields of a record by their names, but for optional ones that are empty."""
    values = {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}
    return {name: value for name, value in values.items() if value or name not in optional}


@dataclasses.dataclass(frozen=True)
class Process:
    """What one process measured. Times are in seconds, for one call.

    `latency` holds a number for each round, of calls whose result was waited for; `throughput`
    the same of calls that were handed over one after the other. `calls` is how many a number of
    `latency` is the mean of. `cores` is how many cores it kept busy meanwhile, and `disturbed`
    whether other processes did too. `dropped` is the number of rounds that were left out.
    """

    date: str
    first_call: float | None
    calls: int
    latency: tuple[float, ...]
    throughput: tuple[float, ...] = ()
    cores: float | None = None
    disturbed: bool = False
    dropped: int = 0

    @classmethod
    def from_plain(cls, record: Mapping[str, Any]) -> Self:
        """Return what the record of a process says."""
        lists = {name: tuple(record.get(name) or ()) for name in ("latency", "throughput")}
        return cls(**{**record, **lists})

    def plain(self) -> dict[str, Any]:
        """Return its record."""
        return _values(self, {"throughput", "dropped"})

    def number(self, clock: str) -> float | None:
        """Return the process' number by a clock, in seconds; None where it has none."""
        value: Any = getattr(self, clock)
        if isinstance(value, tuple):
            return statistics.median(value) if value else None
        return float(value) if value else None

    def calls_until_paid(self, other: Self) -> float:
        """Return from how many calls on this one, first call and all, takes no longer in all."""
        call, other_call = statistics.median(self.latency), statistics.median(other.latency)
        first = self.first_call or call
        if first <= other_call:
            return 1
        faster = other_call - call
        return math.ceil((first - call) / faster) if faster > 0 else math.inf


class Earlier(enum.StrEnum):
    """What has changed since something was measured, but for the code that was measured.

    A first look is not earlier, but as little to be relied on.
    """

    CODE = "code"
    METHOD = "method"
    LOOK = "look"


@dataclasses.dataclass(frozen=True)
class Measurement:
    """A record that the schema allows, with the page that made it and the device it is of.

    `form` is the version of its record and `method` what its numbers mean, both 0 if there is no
    record. `comparison` is what it took turns in, if it did. `least` are the seconds that a call
    takes at least by published peaks, where that is known.
    """

    name: str
    framework: str
    device_kind: str | None
    processor: str
    shape: tuple[tuple[int, ...], ...]
    dtype: str
    precision: str
    work: float | None
    error: float | None
    versions: Mapping[str, str]
    settings: Mapping[str, str]
    processes: tuple[Process, ...]
    page: str = ""
    device: str = ""
    comparison: str = ""
    earlier: Earlier | None = None
    least: float | None = None
    form: int = 0
    method: int = 0

    @property
    def accelerated(self) -> bool:
        """Whether it is of an accelerator."""
        return self.device_kind not in (None, "cpu")

    @classmethod
    def from_plain(cls, record: Mapping[str, Any]) -> Self:
        """Return the measurement of a record that may have a page and a device."""
        names = {field.name for field in dataclasses.fields(cls)}
        values = {name: value for name, value in record.items() if name in names}
        values["shape"] = tuple(tuple(map(int, lengths)) for lengths in record["shape"])
        values["processes"] = tuple(map(Process.from_plain, record["processes"]))
        return cls(form=record.get("version", 0), **values)

    def plain(self) -> dict[str, Any]:
        """Return its record, with its page, its device, and what else is known of it."""
        values = _values(self, {"page", "device", "comparison", "earlier", "least"})
        processes = [process.plain() for process in self.processes]
        return values | {"version": values.pop("form"), "processes": processes}

    def of_processes(self, clock: str) -> tuple[float, ...]:
        """Return the seconds by a clock, for each process that measured it."""
        numbers = (process.number(clock) for process in self.processes)
        return tuple(number for number in numbers if number is not None)

    def range(self, clock: str = "latency") -> Range | None:
        """Return the median of the processes by a clock, with its range, in seconds."""
        numbers = self.of_processes(clock)
        return Range.of(numbers) if numbers else None

    def ratio(self, other: Self, clocks: tuple[str, str] = ("latency", "latency")) -> Range | None:
        """Return how many times as long it takes as another, of the same processes, or None.

        Where both took turns, the ratio of a process is that of its rounds.
        """
        if (self.page, self.device, len(self.processes)) != (
            other.page,
            other.device,
            len(other.processes),
        ):
            return None
        together = self.comparison and self.comparison == other.comparison
        # A first call has no turn.
        if not together and self.reference != other.reference and set(clocks) != {"first_call"}:
            return None
        pairs = list(zip(self.processes, other.processes, strict=True))
        if clocks == ("latency", "latency"):
            return ratio_of_rounds([(one.latency, another.latency) for one, another in pairs])
        numbers = [(one.number(clocks[0]), another.number(clocks[1])) for one, another in pairs]
        ratios = [above / below for above, below in numbers if above is not None and below]
        return Range.of_ratios(ratios) if ratios else None

    def calls_until_paid(self, other: Self) -> Range | None:
        """Return from how many calls on it takes no longer in all than another, if ever.

        None where its first call is not known. Both are of the same processes.
        """
        pairs = zip(self.processes, other.processes, strict=True)
        numbers = [one.calls_until_paid(another) for one, another in pairs if one.first_call]
        return Range.of(numbers) if numbers else None

    @property
    def latency(self) -> float:
        """How long a call takes whose result is waited for."""
        return statistics.median(self.of_processes("latency"))

    @property
    def throughput(self) -> float | None:
        """How long a call takes of many that are handed over one after the other."""
        numbers = self.of_processes("throughput")
        return statistics.median(numbers) if numbers else None

    @property
    def first_call(self) -> float | None:
        """How long the first call of a process takes, which may trace and compile."""
        numbers = self.of_processes("first_call")
        return statistics.median(numbers) if numbers else None

    @property
    def seconds(self) -> float:
        """The seconds of a call; on an accelerator those that one more call adds."""
        return self.throughput or self.latency

    @property
    def rate(self) -> float | None:
        """The work done in a second, in floating-point operations."""
        return self.work / self.seconds if self.work else None

    @property
    def date(self) -> str:
        """The day of its last process."""
        return max(process.date for process in self.processes)[:10]

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
        places = [self.device_kind, self.processor]
        where = ", ".join(place for place in places if place and place != "cpu")
        return f"{self.name}: {f'{self.framework} {self.version}'.strip()} on {where}, {self.date}"

    @property
    def version(self) -> str:
        """The version of its framework, which may come as one of several, such as `name-cpu`."""
        names = [self.framework, *(n for n in self.versions if n.startswith(f"{self.framework}-"))]
        return next((self.versions[name] for name in names if name in self.versions), "")
