"""Read the data of a picture from what a cell printed."""

import ast
from typing import Any

from .. import typed_json
from ..names import nearest
from .kinds import KINDS


class NoPicture(Exception):
    """What a cell gave cannot be drawn; the message says why and what is expected."""


def picture(kind: str, printed: str | None) -> str:
    """Return the HTML of a picture of the data that a cell printed; raises NoPicture."""
    found = KINDS.get(kind)
    if found is None:
        raise NoPicture(
            f"there is no picture '{kind}'{nearest(kind, KINDS)}; there are {', '.join(KINDS)}"
        )
    if printed is None:
        raise NoPicture(
            f"the picture '{kind}' is drawn from the last expression of its cell, which gave "
            f"nothing; it must give {found.expected}"
        )
    try:
        data = _plain(ast.literal_eval(printed.strip()))
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        raise NoPicture(
            f"the picture '{kind}' is drawn from {found.expected}, written as plain lists, dicts, "
            f"texts and numbers; the cell gave {printed.strip()[:80]}"
        ) from None
    try:
        return found.draw(typed_json.typed(found.form, data))
    except ValueError as wrong:
        problem = str(wrong).strip()
    raise NoPicture(f"the picture '{kind}' is drawn from {found.expected}; {problem}") from None


def _plain(data: Any) -> Any:
    """Return data as JSON has them: lists for tuples, texts for keys."""
    if isinstance(data, dict):
        return {str(key): _plain(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_plain(value) for value in data]
    if data is None or isinstance(data, (str, int, float)):
        return data
    raise ValueError(data)
