"""Read the data of a picture from what a cell printed."""

import ast
import contextlib
import json
from typing import Any

from executed import typed_json
from executed.names import nearest

from .kinds import KINDS, timeline

# The kind whose pictures on a page have one scale.
TIMELINE = "timeline"


class NoPicture(Exception):
    """What a cell gave cannot be drawn; the message says why and what is expected."""


def picture(kind: str, printed: str | None, last: float = 0) -> str:
    """Return the HTML of a picture of the data that a cell printed; raises NoPicture.

    The scale of a timeline reaches up to the `last` moment at least.
    """
    entry = KINDS.get(kind)
    if entry is None:
        raise NoPicture(
            f"there is no picture '{kind}'{nearest(kind, KINDS)}; there are {', '.join(KINDS)}"
        )
    if printed is None:
        raise NoPicture(
            f"the picture '{kind}' is drawn from the last expression of its cell, which gave "
            f"nothing; it must give {entry.expected}"
        )
    try:
        data = _data(printed)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        raise NoPicture(
            f"the picture '{kind}' is drawn from {entry.expected}, written as plain lists, dicts, "
            f"texts and numbers; the cell gave {printed.strip()[:80]}"
        ) from None
    try:
        typed = typed_json.typed(entry.form, data)
        return timeline(typed, last) if kind == TIMELINE else entry.draw(typed)
    except ValueError as wrong:
        problem = str(wrong).strip()
    raise NoPicture(f"the picture '{kind}' is drawn from {entry.expected}; {problem}") from None


def _data(printed: str) -> Any:
    """Return data as JSON has them: lists for tuples, texts for keys."""
    return json.loads(json.dumps(ast.literal_eval(printed.strip())))


def last_moment(printed: str | None) -> float:
    """Return the last moment of a timeline, 0 of what is none."""
    with contextlib.suppress(ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return max((end for *_, end in _data(printed or "")), default=0)
    return 0
