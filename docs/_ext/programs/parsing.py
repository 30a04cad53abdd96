"""Turn the text of a record into a typed value, or say at which place it is none.

The text is data from elsewhere. It is compared with a JSON schema that is made from the types of
a record and their bounds, and only its first fault is looked for: it could have very many.
"""

import dataclasses
import datetime
import functools
import json
import re
import types
import typing
from typing import Annotated, Any

import jsonschema

from .records import ProgramRecord, Record, ScaleRecord

FORM = 1
MOST_LINES = 1_000
LONGEST_LINE = 2_000
LONGEST_MESSAGE = 300
JSON = {str: "string", float: "number", int: "integer"}
# "from" and "to" are what the file says; Python keeps the first word for itself.
RENAMED = {"above": "from", "below": "to"}
BOUNDS: dict[str, dict[str, Any]] = {
    "line": {"maxLength": LONGEST_LINE, "format": "printable line"},
    "text": {"minItems": 1},
    "hash": {"pattern": r"^[0-9a-f]{64}\Z"},
    "date": {"maxLength": 40, "format": "date"},
    "form": {"const": FORM},
    "number": {"minimum": 0, "maximum": 1e300},
    "count": {"minimum": 0, "maximum": 2**63},
    "chips": {"minimum": 1, "maximum": 2**63},
    "place": {"minimum": 0, "maximum": 1e4},
    "point": {"minItems": 2, "maxItems": 2},
}


class RecordError(Exception):
    """A record cannot be used; the message says what is wrong with it."""


def _schema(kind: Any) -> dict[str, Any]:
    """Return the JSON schema of a type."""
    inner, origin = typing.get_args(kind), typing.get_origin(kind)
    if dataclasses.is_dataclass(kind):
        parts = {_key(name): _schema(part) for name, part in _fields(kind).items()}
        closed = {"required": list(parts), "additionalProperties": False}
        return {"type": "object", **closed, "properties": parts}
    if origin is Annotated:
        return _schema(inner[0]) | BOUNDS[inner[1]]
    if origin in (types.UnionType, typing.Union):
        return (found := _schema(inner[0])) | {"type": [found["type"], "null"]}
    if origin is list:
        return {"type": "array", "maxItems": MOST_LINES, "items": _schema(inner[0])}
    if origin is dict:
        names, values = map(_schema, inner)
        bounds = {"maxProperties": MOST_LINES, "propertyNames": names}
        return {"type": "object", **bounds, "additionalProperties": values}
    return {"type": JSON[kind]} if kind in JSON else {}


def _key(name: str) -> str:
    return RENAMED.get(name, name)


def _fields(kind: Any) -> dict[str, Any]:
    return {field.name: field.type for field in dataclasses.fields(kind)}


def _typed(kind: Any, value: Any) -> Any:
    """Return plain data of the right form as what its type says."""
    inner, origin = typing.get_args(kind), typing.get_origin(kind)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        parts = _fields(kind).items()
        return kind(**{name: _typed(part, value[_key(name)]) for name, part in parts})
    if value is None or not inner:
        return value
    if origin is list:
        return [_typed(inner[0], part) for part in value]
    if origin is dict:
        return {name: _typed(inner[1], part) for name, part in value.items()}
    return _typed(inner[0], value)


FORMATS = jsonschema.FormatChecker(())


@FORMATS.checks("printable line")
def _is_printable(value: object) -> bool:
    return isinstance(value, str) and value.isprintable()


@FORMATS.checks("date", raises=ValueError)
def _is_date(value: object) -> bool:
    return isinstance(value, str) and bool(datetime.datetime.fromisoformat(value))


@functools.cache
def _validator(scaled: bool) -> Any:
    # To JSON Schema 1.0 is a whole number; it would be no index.
    base = jsonschema.Draft202012Validator
    whole = base.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int)
    strict = jsonschema.validators.extend(base, type_checker=whole)
    return strict(_schema(ScaleRecord if scaled else ProgramRecord), format_checker=FORMATS)


def _problem(error: jsonschema.ValidationError) -> str:
    """Say where a record departs from its form; of what is long, its two ends."""
    text = f"record{error.json_path[1:]}: {error.message}"
    return text if len(text) <= LONGEST_MESSAGE else f"{text[:150]} … {text[-100:]}"


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is no number")


@functools.lru_cache(maxsize=64)
def parse(text: str, scaled: bool) -> Record:
    """Return the record that a text holds, `scaled` for many devices; raises RecordError."""
    if mark := re.search(r"^(<{7}|>{7}) ", text, re.MULTILINE):
        line = text.count("\n", 0, mark.start()) + 1
        raise RecordError(f"line {line} is a mark of a merge conflict")
    try:
        plain = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise RecordError(f"it is no JSON: {error}") from None
    for fault in _validator(scaled).iter_errors(plain):
        raise RecordError(_problem(fault))
    record: Record = _typed(ScaleRecord if scaled else ProgramRecord, plain)
    if isinstance(record, ProgramRecord) and record.contradiction:
        raise RecordError(record.contradiction)
    return record


def written(record: Record) -> str:
    """Return the text of a record as it is kept, the same for the same record."""
    plain = dataclasses.asdict(
        record, dict_factory=lambda parts: {_key(name): value for name, value in parts}
    )
    return json.dumps(plain, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
