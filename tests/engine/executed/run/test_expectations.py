"""An expected error is declared once, and a cell is held to it."""

import nbformat
import pytest

from executed.run.expectations import judge
from executed.source.snippets import ExpectedError


def verdict(raised=None, declared=None):
    expected = ExpectedError("f", *declared) if declared else None
    if raised is None:
        return judge([], expected)
    name, message = raised
    lines = [f"Traceback of {name}"]
    error = nbformat.v4.new_output("error", ename=name, evalue=message, traceback=lines)
    return judge([error], expected)


def test_a_cell_that_does_what_is_declared_is_right():
    assert verdict() is None
    raised = ("TracerBoolConversionError", "Attempted boolean conversion of traced array")
    declared = ("jax.errors.TracerBoolConversionError", "boolean conversion")
    assert verdict(raised, declared) is None


def test_an_error_that_did_not_come():
    found = verdict(declared=("ValueError", "no luck"))
    assert found == "did not raise: f declares ValueError with 'no luck' in its message"


@pytest.mark.parametrize("raised", [("TypeError", "no luck"), ("ValueError", "other words")])
def test_another_error_than_the_declared_one(raised):
    found = verdict(raised, ("ValueError", "no luck"))
    assert found.startswith("raised another error: f declares ValueError with 'no luck'")
    assert f"Traceback of {raised[0]}" in found


def test_a_cell_that_declares_its_own_error_is_the_subject():
    expected = ExpectedError("", "ValueErorr", "x")
    assert judge([], expected).startswith("did not raise: the cell declares ValueErorr with")
    error = nbformat.v4.new_output("error", ename="ValueError", evalue="x", traceback=["x"])
    found = judge([error], expected)
    assert found.startswith("raised another error: the cell declares ValueErorr with 'x'")


def test_an_error_that_nobody_declared():
    found = verdict(("KeyError", "'x'"))
    assert found == "raised KeyError, which no snippet declares\nTraceback of KeyError"


def test_each_verdict_fails_its_own_page_only(project):
    path = project.snippet(
        "a.one",
        """
        EXPECTED_ERRORS = {
            "divide": (ZeroDivisionError, "division by"),
            "quiet": (ValueError, "no luck"),
        }


        def divide(x):
            return x / 0


        def quiet():
            return 1


        def undeclared():
            raise KeyError("x")
        """,
    )
    project.page("a/good", project.cell("divide(1)", "one.divide"), project.cell("40 + 2"))
    project.page(
        "a/twice", project.cell("divide(1)", "one.divide"), project.cell("divide(2)", "one.divide")
    )
    project.page("a/none", project.cell("quiet()", "one.quiet"))
    project.page("a/another", project.cell("divide('x')", "one.divide"))
    project.page("a/undeclared", project.cell("1"), project.cell("undeclared()", "one.undeclared"))
    build = project.build()
    assert build.status == 1
    assert sorted(verdict for verdict, _ in build.progress) == ["executed"] * 2 + ["failed"] * 3
    assert "docs/a/none.md:9: WARNING: cell 1: did not raise: quiet declares" in build.output
    assert "docs/a/another.md:9: WARNING: cell 1: raised another error: divide" in build.output
    line = project.line("a/undeclared", ":snippet:") - 1
    assert (
        f"docs/a/undeclared.md:{line}: WARNING: cell 2: raised KeyError, which no" in build.output
    )
    assert "3 failed: a/another, a/none, a/undeclared" in build.output
    assert "42" in project.html("a/good")
    assert "ZeroDivisionError: division by zero" in project.html("a/good")
    assert len(project.cached()) == 2

    # What a snippet declares is part of what a page is: a changed declaration is enforced.
    project.edit(path, '"division by"', '"other words"')
    build = project.build()
    assert build.status == 1
    assert "docs/a/good.md:9: WARNING: cell 1: raised another error" in build.output
    assert "docs/a/twice.md:9: WARNING: cell 1: raised another error" in build.output
