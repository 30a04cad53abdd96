"""A recorder executes a page that measures several times, and keeps what varies between them."""

import json
import re

import pytest

KIND = "application/vnd.jax-measured.record+json"
RUNS = """
import os, pathlib
runs = pathlib.Path(os.environ["STAMPS"])
number = len(list(runs.glob("run-*")))
(runs / f"run-{number}").touch()
"""
MACHINE = '{"load": 0, "steal": 0, "others": 0, "megahertz": None, "limits": {}, "disturbed": %s}'


def recorded(project, docname):
    """Return the records in the recording of a page."""
    notebook = json.loads(project.recording(docname).read_text("utf8"))
    outputs = [output for cell in notebook["cells"] for output in cell["outputs"]]
    return [output["data"][KIND] for output in outputs if KIND in output.get("data", {})]


@pytest.fixture
def noted(project, noting):
    def page(fields, benchmark=True):
        project.page(
            "a/timed",
            project.cell(RUNS),
            project.cell(f"note('x', 1.0 + number{fields})", snippet="a.notes.note"),
            benchmark=benchmark,
        )

    return page


def runs(project):
    return len(list(project.stamps.glob("run-*")))


def test_a_page_that_measures_is_recorded_in_three_processes(project, noted):
    noted("")
    done = project.record("a/timed")
    assert done.returncode == 0, done.stderr
    (record,) = recorded(project, "a/timed")
    assert (record["median"], record["processes"]) == (1.0, [1.0, 2.0, 3.0])
    assert project.record("a/timed").returncode == 0
    assert project.build().green
    assert runs(project) == 3
    (published,) = project.records()
    assert published["processes"] == [1.0, 2.0, 3.0]


def test_what_a_build_left_in_the_cache_is_recorded_in_three_processes(project, noted):
    noted("")
    assert project.build().green
    assert runs(project) == 1
    assert project.record("a/timed").returncode == 0
    assert recorded(project, "a/timed")[0]["processes"] == [2.0, 3.0, 4.0]


def test_other_pages_are_recorded_in_one(project, noted):
    noted("", benchmark=False)
    assert project.record("a/timed").returncode == 0
    assert runs(project) == 1


def test_the_steadiest_of_the_processes_is_shown(project, noted):
    noted(", stable=number == 1")
    assert project.record("a/timed").returncode == 0
    (record,) = recorded(project, "a/timed")
    assert (record["median"], record["stable"]) == (2.0, True)
    assert sorted(record["processes"]) == [1.0, 2.0, 3.0]


def test_each_measurement_is_that_of_the_process_in_which_it_was_steadiest(project, noting):
    project.page(
        "a/timed",
        project.cell(RUNS),
        project.cell("note('x', 1.0 + number, stable=number == 1)", snippet="a.notes.note"),
        project.cell("note('y', 1.0 + number, stable=number != 1)"),
        project.cell("note('z', 1.0 + number, stable=number == 0)"),
        project.cell("print('printed by', number)"),
        benchmark=True,
    )
    assert project.record("a/timed").returncode == 0
    found = recorded(project, "a/timed")
    assert [each["stable"] for each in found] == [True] * 3
    # All else is from the steadiest process, the first.
    assert [each["median"] for each in found] == [2.0, 1.0, 1.0]
    assert sorted(found[0]["processes"]) == [1.0, 2.0, 3.0]
    text = project.recording("a/timed").read_text("utf8")
    assert "x took 2.0" in text
    assert "x took 1.0" not in text
    assert "printed by 0" in text


NEWER = ", version=2, quartiles=[1.0, 1.0], outliers=0, machine="


def test_a_disturbed_process_is_replaced_by_another(project, noted):
    noted(NEWER + MACHINE % "number in (0, 2)")
    done = project.record("a/timed")
    assert done.returncode == 0
    assert runs(project) == 5
    # Who has an accelerator for minutes sees how far a page is.
    ended = re.findall(r"a/timed: process (\d) ended in \d+\.\d s(, while .*)?", done.stdout)
    other = ", while the machine did other work"
    assert ended == [("1", other), ("2", ""), ("3", other), ("4", ""), ("5", "")]
    (record,) = recorded(project, "a/timed")
    assert (record["median"], record["processes"]) == (2.0, [2.0, 4.0, 5.0])
    assert record["machine"]["repeated"] == 2
    project.page("x/uses", "{measured}`x@python`", notebook=False)
    assert project.build("-D", "book_recorded=1").green
    assert "Measured again 2×, as the machine did other work at first." in project.html("x/uses")


def test_where_all_are_disturbed_there_is_an_end(project, noted):
    noted(NEWER + MACHINE % "True")
    assert project.record("a/timed").returncode == 0
    assert runs(project) == 5
    (record,) = recorded(project, "a/timed")
    assert record["processes"] == [1.0, 2.0, 3.0]
    assert record["machine"]["disturbed"] is True
    project.page("x/uses", "{measured}`x@python`", notebook=False)
    assert project.build("-D", "book_recorded=1").green
    said = "The machine did other work meanwhile, although it was measured again 2×."
    assert said in project.html("x/uses")


def test_a_failure_in_one_process_fails_the_page(project):
    fails = project.cell(RUNS + "assert number < 1")
    project.page("a/timed", fails, benchmark=True)
    # Without a measurement nothing says that the machine was disturbed.
    done = project.record("a/timed")
    assert done.returncode == 1
    assert "AssertionError" in done.stderr
    assert not project.recording("a/timed").exists()


def test_a_comparison_keeps_the_ratios_of_all_processes(project, comparing):
    code = "contest('x', 2.0 + number, 1.5 + number, 2.5 + number)"
    cells = project.cell(RUNS), project.cell(code, "a.contests.contest")
    project.page("a/timed", *cells, benchmark=True)
    assert project.record("a/timed").returncode == 0
    (record,) = recorded(project, "a/timed")
    assert record["ratios"][0]["processes"] == [2.0, 3.0, 4.0]
    slow, fast = record["alternatives"]
    assert slow["processes"] == [0.5, 0.75, 1.0]
    assert fast["processes"] == [0.25] * 3
    project.page("x/uses", "{measured}`x/slow@python / x/fast@python`", notebook=False)
    assert project.build().green
    assert "interval from 1.5× to 4×" in project.html("x/uses")


def test_a_cell_that_compares_twice_by_one_name_keeps_both(project, comparing):
    twice = "for more in (0, 10): contest('x', 2.0 + number + more, 1.5, 30.0)"
    cells = project.cell(RUNS), project.cell(twice, "a.contests.contest")
    project.page("a/timed", *cells, benchmark=True)
    assert project.record("a/timed").returncode == 0
    found = [each["ratios"][0]["processes"] for each in recorded(project, "a/timed")]
    assert found == [[2.0, 3.0, 4.0], [12.0, 13.0, 14.0]]
