"""A cell that is tagged `alone` needs no other: it runs, and checks its own outcome."""

import sys

import pytest

from tests.book import pages


def alone():
    """Return (page, line, code) of each cell with the tag."""
    found = []
    for name in (name for name in pages.paths() if name.startswith("claims/")):
        page = pages.page(name)
        for cell in page.cells if page else ():
            if "alone" in cell.node.metadata.get("tags", ()):
                found.append(pytest.param(cell.source, id=f"{name}:{cell.line}"))
    return found


@pytest.mark.parametrize("code", alone())
def test_a_reproduction_runs_by_itself_and_checks_its_outcome(code):
    assert "\nassert " in code or "\n    assert " in code
    if torch := sys.modules.get("torch"):
        # It remembers the shapes that it has met, across functions.
        torch.compiler.reset()
    exec(compile(code, "reproduction", "exec"), {"__name__": "reproduction"})
