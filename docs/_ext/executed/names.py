"""Names that people mistype."""

import difflib
from collections.abc import Collection, Iterable


def nearest(name: str, names: Iterable[str]) -> str:
    """Return a hint such as '; the nearest are a, b', empty where none is near."""
    near = difflib.get_close_matches(name, [*names], n=3, cutoff=0.4)
    return f"; the nearest are {', '.join(near)}" if near else ""


def is_misspelt(name: str, names: Collection[str]) -> bool:
    """Say whether a name is none of those known, but close to one; others may read the rest."""
    plain = name.lower().replace("_", "-")
    return name not in names and bool(difflib.get_close_matches(plain, names, cutoff=0.8))
