"""A cell that is tagged `alone` needs no other: it runs, and checks its own outcome."""

import pathlib
import sys

import pytest
from _ext.options import Options
from _ext.source.pages import read_page
from _ext.source.snippets import Library

ROOT = pathlib.Path(__file__).parents[2]
LIBRARY = Library.of(Options.from_file(ROOT / "conf.py"))


def alone():
    """Return (page, line, code) of each cell with the tag."""
    found = []
    for path in sorted((ROOT / "docs" / "claims").glob("*.md")):
        page = read_page(f"claims/{path.stem}", path, LIBRARY)
        for cell in page.cells if page else ():
            if "alone" in cell.node.metadata.get("tags", ()):
                found.append(pytest.param(cell.source, id=f"{path.stem}:{cell.line}"))
    return found


@pytest.mark.parametrize("code", alone())
def test_a_reproduction_runs_by_itself_and_checks_its_outcome(code):
    assert "\nassert " in code or "\n    assert " in code
    if torch := sys.modules.get("torch"):
        # It remembers the shapes that it has met, across functions.
        torch.compiler.reset()
    exec(compile(code, "reproduction", "exec"), {"__name__": "reproduction"})
