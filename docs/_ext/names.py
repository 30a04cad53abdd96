"""Names that somebody may have misspelt."""

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str:
    """Return what to add to a message about an unknown name: the nearest known ones, or nothing."""
    near = difflib.get_close_matches(name, list(known), n=3, cutoff=0.4)
    return f"; the nearest are {', '.join(near)}" if near else ""
