"""Names that people mistype."""

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a hint such as '; the nearest are a, b', empty where none is near."""
    near = difflib.get_close_matches(name, [*known], n=3, cutoff=0.4)
    return f"; the nearest are {', '.join(near)}" if near else ""
