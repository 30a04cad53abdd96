"""Read the data of a picture from what a cell printed."""

import ast
import json

from executed import typed_json
from executed.names import nearest

from .kinds import KINDS


class NoPicture(Exception):
    """What a cell gave cannot be drawn; the message says why and what is expected."""


def picture(kind: str, printed: str | None) -> str:
    """Return the HTML of a picture of the data that a cell printed; raises NoPicture."""
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
        # As JSON has them: lists for tuples, texts for keys.
        data = json.loads(json.dumps(ast.literal_eval(printed.strip())))
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        raise NoPicture(
            f"the picture '{kind}' is drawn from {entry.expected}, written as plain lists, dicts, "
            f"texts and numbers; the cell gave {printed.strip()[:80]}"
        ) from None
    try:
        return entry.draw(typed_json.typed(entry.form, data))
    except ValueError as wrong:
        problem = str(wrong).strip()
    raise NoPicture(f"the picture '{kind}' is drawn from {entry.expected}; {problem}") from None
