"""What a page imports, and which of these modules its kernel may find imported."""

import re
from collections.abc import Iterable, Sequence

from ..frameworks import Framework, by_module
from ..source.code import imported_modules

# What a page may change that frameworks read when they are imported. Who only reads it is taken for
# one who changes it: the page starts a second later.
TOUCHES = re.compile(
    r"\b(?:environ|environb|putenv|unsetenv|set_env|meta_path|path_hooks|setrlimit)\b"
    r"|\bsys\s*\.\s*(?:modules|path|flags)\b|\breload\b"
)


def warm_modules(sources: Sequence[str], registry: Iterable[Framework]) -> tuple[str, ...] | None:
    """Return the modules of frameworks that a page uses, in the order of the registry.

    Only imports at the top level of cells count: others may never happen. None where the page
    needs a process of its own, because it touches what its imports depend on before the last of
    them, or because a framework cannot be imported before a fork.
    """
    owners = by_module(registry)
    used: set[str] = set()
    last = -1
    for number, source in enumerate(sources):
        if names := {name for name in imported_modules(source) if name in owners}:
            used |= names
            last = number
    if any(TOUCHES.search(source) for source in sources[: last + 1]):
        return None
    if not all(owners[name].forkable for name in used):
        return None
    ordered = (
        module
        for name, framework in owners.items()
        if name in used
        for module in (*framework.first(), name, *framework.later)
    )
    return tuple(dict.fromkeys(ordered))


def first_modules(sources: Sequence[str], registry: Iterable[Framework]) -> tuple[str, ...]:
    """Return what has to be imported before anything that a page imports, sooner or later."""
    owners = by_module(registry)
    used = {name for source in sources for name in imported_modules(source, anywhere=True)}
    first = (name for module in owners if module in used for name in owners[module].first())
    return tuple(dict.fromkeys(first))
