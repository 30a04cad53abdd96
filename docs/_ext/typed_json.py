"""Plain data from elsewhere: compared with the types of a dataclass, and turned into one.

What a type alone does not say stands beside it in words of JSON schema, as in
`Annotated[int, bounds(minimum=0)]`. A field that is called like a word of Python ends in `_`;
its key in the data does not.
"""

import dataclasses
import datetime
import math
import types
import typing
from collections.abc import Mapping
from typing import Annotated, Any

import jsonschema

JSON = {str: "string", float: "number", int: "integer", bool: "boolean"}
FORMATS = jsonschema.FormatChecker(())


@FORMATS.checks("printable line")
def _is_printable(value: object) -> bool:
    return isinstance(value, str) and value.isprintable()


@FORMATS.checks("moment", raises=ValueError)
def is_moment(value: object) -> bool:
    """Whether a value is a date with time and zone in ISO format, of this century."""
    if not isinstance(value, str) or "T" not in value:
        return False
    found = datetime.datetime.fromisoformat(value)
    return found.tzinfo is not None and 2000 <= found.year < 2100


@FORMATS.checks("finite")
def _is_finite(value: object) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)


def bounds(**rules: Any) -> tuple[tuple[str, Any], ...]:
    """Return rules of JSON schema for an annotation, which must have a hash."""
    return tuple(rules.items())


def validator(schema: dict[str, Any]) -> Any:
    """Return what compares data with a schema. To JSON schema itself, 1.0 is an integer.

    Nor is a tuple an array to it, which one is in a file of Python.
    """
    base = jsonschema.Draft202012Validator
    whole = base.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int)
    rows = whole.redefine("array", lambda _, value: isinstance(value, list | tuple))
    extend: Any = jsonschema.validators.extend
    strict = extend(base, type_checker=rows)
    return strict(schema, format_checker=FORMATS)


def schema_of(kind: Any) -> dict[str, Any]:
    """Return the JSON schema of a type; a field with a default may be absent."""
    inner, origin = typing.get_args(kind), typing.get_origin(kind)
    if dataclasses.is_dataclass(kind):
        fields = {field.name.rstrip("_"): field for field in dataclasses.fields(kind)}
        needed = [key for key, field in fields.items() if _is_needed(field)]
        parts = {key: schema_of(field.type) for key, field in fields.items()}
        closed = {"additionalProperties": False, "required": needed}
        return {"type": "object", "properties": parts, **closed}
    if origin is Annotated:
        return schema_of(inner[0]) | dict(rule for rules in inner[1:] for rule in rules)
    if origin in (types.UnionType, typing.Union):
        return (found := schema_of(inner[0])) | {"type": [found["type"], "null"]}
    if origin is list or (origin is tuple and inner[-1] is ...):
        return {"type": "array", "items": schema_of(inner[0])}
    if origin is tuple:
        places = [schema_of(part) for part in inner]
        return {"type": "array", "prefixItems": places, "items": False, "minItems": len(places)}
    if origin in (dict, Mapping):
        names, values = map(schema_of, inner)
        return {"type": "object", "propertyNames": names, "additionalProperties": values}
    return {"type": JSON[kind]} if kind in JSON else {}


def _is_needed(field: dataclasses.Field[Any]) -> bool:
    return field.default is field.default_factory is dataclasses.MISSING


def typed(kind: Any, value: Any) -> Any:
    """Return data that agrees with the schema of a type as what the type says."""
    inner, origin = typing.get_args(kind), typing.get_origin(kind)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        if isinstance(value, kind):
            return value
        fields = {field.name.rstrip("_"): field for field in dataclasses.fields(kind)}
        given = {fields[key]: part for key, part in value.items()}
        return kind(**{field.name: typed(field.type, part) for field, part in given.items()})
    if value is None or not inner:
        return value
    if origin is list:
        return [typed(inner[0], part) for part in value]
    if origin is tuple:
        return tuple(typed(inner[0], part) for part in value)
    if origin in (dict, Mapping):
        return {name: typed(inner[1], part) for name, part in value.items()}
    return typed(inner[0], value)


def untyped(value: Any) -> dict[str, Any]:
    """Return the plain data of a dataclass."""

    def keyed(parts: list[tuple[str, Any]]) -> dict[str, Any]:
        return {name.rstrip("_"): part for name, part in parts}

    return dataclasses.asdict(value, dict_factory=keyed)
