"""Modules that pages import from a file beside them, in place of their source."""

import json

import pytest

CLOCK = '''
"""A clock."""

import math

STEP = 2


def ticks(count):
    """Return a number of ticks."""
    return math.ceil(count) * STEP
'''


@pytest.fixture
def clock(project):
    """Return a book whose pages import `a.clock` as `clock`; one page shows what calls it."""
    project.configure('book_modules = {"a.clock": "clock"}')
    project.snippet(
        "a.uses",
        """
        from snippets.a.clock import ticks


        def twice(count):
            return 2 * ticks(count)
        """,
    )
    project.page("a/one", project.cell("print(twice(3))", snippet="a.uses.twice"))
    return project.snippet("a.clock", CLOCK)


def cells(project, docname="a/one"):
    path = project.root / "build" / "html" / "_sources" / f"{docname}.ipynb"
    found = json.loads(path.read_text("utf8"))["cells"]
    return [cell for cell in found if cell["cell_type"] == "code"]


@pytest.mark.parametrize("benchmark", [False, True], ids=["forked", "of its own"])
def test_a_page_imports_the_module_and_its_notebook_brings_it(project, clock, benchmark):
    project.page(
        "a/one", project.cell("print(twice(3))", snippet="a.uses.twice"), benchmark=benchmark
    )
    build = project.build()
    assert build.green, build.output
    brings, *_, shown = cells(project)
    assert "".join(brings["source"]) == f"%%writefile clock.py\n{clock.read_text('utf8')}"
    assert "from clock import ticks" in "".join(shown["source"])
    assert "math" not in "".join(shown["source"])
    assert shown["outputs"][0]["text"] == ["12\n"]


def test_a_change_of_the_module_executes_the_pages_that_import_it(project, clock):
    project.page("a/two", project.cell("print(2)"))
    assert project.build().green
    project.edit(clock, "STEP = 2", "STEP = 5")
    build = project.build()
    assert build.green and build.executed == ["a/one"]
    assert cells(project)[-1]["outputs"][0]["text"] == ["30\n"]


def test_a_change_of_the_module_leaves_recordings_current(project, clock):
    assert project.record().returncode == 0
    project.recorded_elsewhere("a/one")
    project.edit(clock, "STEP = 2", "STEP = 2.0")
    assert project.build().green
    assert "earlier" not in project.html("a/one")
