"""The schema of a measurement's record, and the measurement as the engine uses it."""

import dataclasses
import datetime
import functools
import json
import pathlib
from collections.abc import Mapping
from typing import Any, Self

import jsonschema

from .. import files
from ..options import Options

LARGEST_FILE = 100_000
FORMATS = jsonschema.FormatChecker(formats=())


@FORMATS.checks("date-time", raises=ValueError)
def _is_date(value: object) -> bool:
    """Accept RFC 3339, which jsonschema itself checks only with a further package."""
    return not isinstance(value, str) or (
        "T" in value and datetime.datetime.fromisoformat(value).tzinfo is not None
    )


class SchemaError(Exception):
    """The file that `book_measurements` names is no schema of a measurement."""


@dataclasses.dataclass(frozen=True)
class Schema:
    """What a record must hold: the JSON schema that lies beside the timer.

    Besides the rules for a record it names, under keywords of its own, the MIME type of
    a record and the functions whose first argument is the name of a measurement.
    """

    rules: Mapping[str, Any]

    @classmethod
    def load(cls, path: pathlib.Path) -> Self:
        """Read the schema in a file; raises SchemaError."""
        try:
            rules = json.loads(files.read(path, LARGEST_FILE))
            jsonschema.Draft202012Validator.check_schema(rules)
            schema = cls(rules)
            parts = (schema.media_type, schema.functions, schema.version, schema.framework)
        except FileNotFoundError:
            raise SchemaError(f"{path}: there is no such file") from None
        except (files.Unusable, ValueError) as error:
            raise SchemaError(f"{path}: {error}") from None
        except jsonschema.SchemaError as error:
            raise SchemaError(f"{path}: it is no JSON schema: {error.message}") from None
        except (KeyError, TypeError) as error:
            raise SchemaError(f"{path}: it does not say {error}") from None
        used = {field.name for field in dataclasses.fields(Measurement)} - {"page", "device"}
        if missing := sorted(used - set(rules.get("required", ()))):
            raise SchemaError(f"{path}: it does not require '{missing[0]}', which pages show")
        if [type(part) for part in parts] != [str, tuple, int, str]:
            raise SchemaError(f"{path}: mediaType, functions or the version is of the wrong type")
        return schema

    @classmethod
    def of(cls, options: Options) -> Self | None:
        """Read the schema that conf.py names, if it names one; raises SchemaError."""
        return cls.load(options.folder("measurements")) if options.measurements else None

    @property
    def media_type(self) -> str:
        """The MIME type under which an output holds a record."""
        return self.rules["mediaType"]

    @property
    def functions(self) -> tuple[str, ...]:
        """The functions that measure; the first argument of each is a measurement's name."""
        return tuple(self.rules["functions"])

    @property
    def version(self) -> int:
        """The version that records must have."""
        return self.rules["properties"]["version"]["const"]

    @property
    def framework(self) -> str:
        """What a record names as its framework where none took part."""
        return self.rules["properties"]["framework"]["default"]

    @functools.cached_property
    def _validator(self) -> jsonschema.Draft202012Validator:
        return jsonschema.Draft202012Validator(self.rules, format_checker=FORMATS)

    def problem(self, record: object) -> str | None:
        """Say what keeps a record from being a measurement; None where nothing does."""
        try:
            # JSON itself knows neither NaN nor infinity, and a schema cannot exclude them.
            json.dumps(record, allow_nan=False)
        except (TypeError, ValueError, RecursionError):
            return "it holds a number that is none, or is no JSON"
        version = record.get("version") if isinstance(record, dict) else None
        if isinstance(version, bool) or version != self.version:
            return (
                f"it is of version {str(version)[:20].lower()}, where version {self.version} is "
                "needed; measure again"
            )
        error = jsonschema.exceptions.best_match(self._validator.iter_errors(record))
        if error is None:
            return None
        place = ".".join(map(str, error.absolute_path)) or "record"
        return f"{place}: {error.message[:200]}"


@dataclasses.dataclass(frozen=True)
class Measurement:
    """A record that the schema allows, with the page that made it and the device it is of.

    Times are in seconds, `rate` is in operations per second.
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
    spread: float
    stable: bool
    rate: float | None
    page: str
    device: str

    @classmethod
    def from_plain(cls, record: Mapping[str, Any]) -> Self:
        """Return the measurement of a record that has a page and a device."""
        values = {field.name: record[field.name] for field in dataclasses.fields(cls)}
        values["shape"] = tuple(tuple(map(int, lengths)) for lengths in record["shape"])
        values["samples"] = tuple(record["samples"])
        # To JSON, 2.0 is an integer too.
        values["threads"] = int(record["threads"])
        return cls(**values)

    @property
    def reference(self) -> str:
        """What pages call it, such as `selu/jit@jax`."""
        return f"{self.name}@{self.framework}"

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
