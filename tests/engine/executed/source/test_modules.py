"""Modules that pages import from a file beside them, in place of their source."""

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
    return [cell for cell in project.notebook(docname).cells if cell.cell_type == "code"]


def test_a_page_imports_the_module_its_notebook_brings_it_and_both_follow_it(project, clock):
    own = project.cell("print(twice(3))", snippet="a.uses.twice")
    project.page("a/own", own, benchmark=True)
    project.page("a/two", project.cell("print(2)"))
    project.built()
    for name in ("a/one", "a/own"):
        brings, *_, shown = cells(project, name)
        assert clock.read_text("utf8") in brings.source
        assert "from clock import ticks" in shown.source and "math" not in shown.source
        assert shown.outputs[0].text == "12\n"
    project.edit(clock, "STEP = 2", "STEP = 5")
    assert project.built().executed == ["a/one", "a/own"]
    assert cells(project)[-1].outputs[0].text == "30\n"


def test_a_change_of_the_module_leaves_recordings_current(project, clock):
    project.recorded()
    project.recorded_elsewhere("a/one")
    project.edit(clock, "STEP = 2", "STEP = 2.0")
    project.built()
    assert "earlier" not in project.html("a/one")
