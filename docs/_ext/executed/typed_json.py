"""Plain data from elsewhere: compared with the types of a dataclass, and turned into one.

What a type alone does not say stands beside it as a `Rule`, as in `Annotated[int, LEAST_1]`. A
field that is called like a word of Python ends in `_`; its key in the data does not. This is our
own because msgspec passes over keys that a dataclass does not have, knows no rules but those of
numbers and texts, and does not say below which key of a dictionary something is wrong.
"""

import dataclasses
import datetime
import enum
import json
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any

from . import files
from .names import nearest

MOMENT = re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)", re.ASCII)
PLAIN_TYPES: dict[Any, tuple[tuple[type, ...], str]] = {
    str: ((str,), "a text"),
    float: ((float, int), "a number"),
    int: ((int,), "a whole number"),
    bool: ((bool,), "True or False"),
}


class Mismatch(ValueError):
    """Data is not what a type says: it names the keys that lead to it, and what is expected."""

    def __init__(self, place: Iterable[Any], problem: str) -> None:
        """Take the keys and the words."""
        super().__init__("".join(f"[{key!r}]" for key in place) + f" {problem}")


@dataclasses.dataclass(frozen=True)
class Rule:
    """A rule that a value obeys besides its type, and the words for it."""

    holds: Callable[[Any], bool]
    words: str


NOT_NEGATIVE = Rule(lambda value: value >= 0, "0 or more")
LEAST_1 = Rule(lambda value: value >= 1, "1 or more")


def is_moment(value: object) -> bool:
    """Whether a value is a date with time and zone in ISO format, of this century."""
    if not isinstance(value, str) or not MOMENT.fullmatch(value):
        return False
    try:
        datetime.datetime.fromisoformat(value)
    except ValueError:
        return False
    return True


def typed(kind: Any, value: Any, place: tuple[Any, ...] = ()) -> Any:
    """Return data as what a type says; raises Mismatch. A field with a default may be absent."""
    inner, origin = typing.get_args(kind), typing.get_origin(kind)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return value if isinstance(value, kind) else _record(kind, value, place)
    if origin is Annotated:
        data = typed(inner[0], value, place)
        for rule in inner[1:]:
            _expect(rule.holds(data), value, rule.words, place)
        return data
    if origin in (types.UnionType, typing.Union):
        return None if value is None else typed(inner[0], value, place)
    if origin in (list, tuple):
        _expect(isinstance(value, list | tuple), value, "a list", place)
        # Of a list, and of a tuple of any length, all parts have one type.
        alike = origin is list or inner[-1] is Ellipsis
        kinds = inner[:1] * len(value) if alike else inner
        _expect(len(value) == len(kinds), value, f"a list of {len(kinds)}", place)
        pairs = enumerate(zip(kinds, value, strict=True))
        return origin(typed(one, part, (*place, n)) for n, (one, part) in pairs)
    if origin in (dict, Mapping):
        _expect(isinstance(value, Mapping), value, "a dictionary", place)
        return {
            typed(inner[0], key, place): typed(inner[1], part, (*place, key))
            for key, part in value.items()
        }
    if isinstance(kind, enum.EnumType):
        _expect(value in [*kind], value, " or ".join(map(repr, map(str, kind))), place)
        return kind(value)
    if kind in PLAIN_TYPES:
        accepted, words = PLAIN_TYPES[kind]
        # To Python, True is a number.
        good = isinstance(value, accepted) and (kind is bool or not isinstance(value, bool))
        _expect(good, value, words, place)
    return value


def _record(kind: type[Any], value: Any, place: tuple[Any, ...]) -> Any:
    """Return data as a dataclass, which has all of its keys and no others."""
    _expect(isinstance(value, Mapping), value, "a dictionary", place)
    fields = {field.name.rstrip("_"): field for field in dataclasses.fields(kind)}
    for key in value:
        if key not in fields:
            raise Mismatch(place, f"has no key {key!r}{nearest(str(key), fields)}")
    missing = dataclasses.MISSING
    needed = [k for k, field in fields.items() if field.default is field.default_factory is missing]
    if absent := [key for key in needed if key not in value]:
        raise Mismatch(place, f"lacks {', '.join(absent)}; it needs {', '.join(needed)}")
    given = {fields[key]: (key, part) for key, part in value.items()}
    return kind(
        **{
            field.name: typed(field.type, part, (*place, key))
            for field, (key, part) in given.items()
        }
    )


def _expect(good: bool, value: Any, words: str, place: tuple[Any, ...]) -> None:
    if not good:
        raise Mismatch(place, f"is {value!r:.100}, and must be {words}")


def untyped(value: Any) -> dict[str, Any]:
    """Return the plain data of a dataclass."""

    def keyed(parts: list[tuple[str, Any]]) -> dict[str, Any]:
        return {name.rstrip("_"): part for name, part in parts}

    return dataclasses.asdict(value, dict_factory=keyed)


def parse(kind: Any, text: str) -> Any:
    """Return the JSON in a text as what a type says; raises files.Unusable."""
    try:
        return typed(kind, json.loads(text))
    except Mismatch as error:
        raise files.Unusable(f"its content{error}") from None
    except ValueError as error:
        raise files.Unusable(f"it is no JSON: {error}") from None


def written(data: Mapping[str, Any]) -> str:
    """Return the text in which plain data is kept, the same for the same data."""
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"
