"""A recorder executes pages that measure in several processes, and keeps what each measured."""

import json
import re
import signal

import pytest
from bs4 import BeautifulSoup

KIND = "application/vnd.jax-measured.record+json"
# `number` is in which process of its page a cell is executed.
RUNS = """
import os, pathlib
stamps = pathlib.Path(os.environ["STAMPS"])
number = len(list(stamps.glob("{name}-*")))
(stamps / f"{name}-{{number}}").touch()
with (stamps / "order").open("a") as order:
    print("{name}", file=order)
"""
THREE = "--processes", "3"


def recorded(project, docname):
    """Return the records in the recording of a page."""
    notebook = json.loads(project.recording(docname).read_text("utf8"))
    outputs = [output for cell in notebook["cells"] for output in cell["outputs"]]
    return [output["data"][KIND] for output in outputs if KIND in output.get("data", {})]


def latencies(record):
    """Return what each process of a measurement took."""
    return [process["latency"][0] for process in record["processes"]]


@pytest.fixture
def timed(project, noting):
    """Return a function that writes a page that measures 1 s in its first process, then 2 s."""

    def page(name="x", code="", benchmark=True, fields=""):
        project.page(
            f"a/{name}",
            project.cell(RUNS.format(name=name)),
            project.cell(f"note('{name}', 1.0 + number{fields})\n{code}", snippet="a.notes.note"),
            benchmark=benchmark,
        )

    return page


def runs(project, name="x"):
    return len(list(project.stamps.glob(f"{name}-*")))


def test_a_page_that_measures_is_recorded_in_ten_processes(project, timed):
    timed(code="print('printed by', number)")
    done = project.record("a/x")
    assert done.returncode == 0, done.stderr
    (record,) = recorded(project, "a/x")
    assert latencies(record) == [1.0 + n for n in range(10)]
    assert re.findall(r"process (\d+) of 10: 1 pages", done.stdout) == [
        str(1 + n) for n in range(10)
    ]
    # All else is what was printed first.
    assert "printed by 0" in project.recording("a/x").read_text("utf8")
    assert "executed" not in project.record("a/x").stdout
    project.page("x/uses", "{measured}`x@python`", notebook=False)
    assert project.build("-D", "book_recorded=1").green
    assert runs(project) == 10
    # The text below a cell, too, is that of all processes.
    (shown,) = BeautifulSoup(project.html("a/x"), "html.parser").select(".cell_output")
    assert "x [python] 5.5 s (2.0–9.0), first call 16 s (6.0–27)" in shown.text
    assert ">5.5 s (2.0–9.0)<" in project.html("x/uses")
    (published,) = project.records()
    assert len(published["processes"]) == 10


def test_other_pages_are_recorded_in_one(project, timed):
    timed(benchmark=False)
    assert project.record("a/x").returncode == 0
    assert runs(project) == 1


def test_the_processes_of_a_page_are_spread_over_those_of_the_others(project, timed):
    timed("x")
    timed("y")
    assert project.record(*THREE).returncode == 0
    order = project.stamp("order").read_text().split()
    # What took longer is executed first.
    assert [sorted(order[of : of + 2]) for of in (0, 2, 4)] == [["x", "y"]] * 3


def test_a_second_visit_goes_on_where_the_first_ended(project, timed):
    timed()
    assert project.record("--processes", "1").returncode == 0
    done = project.record(*THREE)
    assert done.returncode == 0
    assert "process 1 of 3" not in done.stdout
    assert runs(project) == 3
    assert latencies(recorded(project, "a/x")[0]) == [1.0, 2.0, 3.0]
    assert "executed" not in project.record(*THREE).stdout


def test_a_second_visit_may_begin_again(project, timed):
    timed()
    assert project.record("--processes", "2").returncode == 0
    assert project.record("--again", "--processes", "2").returncode == 0
    assert latencies(recorded(project, "a/x")[0]) == [3.0, 4.0]


def test_what_a_build_left_in_the_cache_is_no_process(project, timed):
    timed()
    assert project.build().green
    assert project.record("--processes", "2").returncode == 0
    assert latencies(recorded(project, "a/x")[0]) == [2.0, 3.0]


@pytest.mark.parametrize("fact", ["versions", "processor"])
def test_what_was_recorded_otherwise_is_replaced(project, timed, fact):
    timed()
    assert project.record("--processes", "2").returncode == 0
    path = project.recording("a/x")
    notebook = json.loads(path.read_text("utf8"))
    facts = notebook["metadata"]["recording"]
    if fact == "versions":
        facts["versions"]["python"] = "3.0"
    else:
        facts["processor"] = "Another"
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False), "utf8")
    assert project.record("--processes", "2").returncode == 0
    assert latencies(recorded(project, "a/x")[0]) == [3.0, 4.0]


def test_what_earlier_code_measured_is_replaced(project, timed):
    timed()
    assert project.record("--processes", "2").returncode == 0
    project.edit(project.path("a/x"), "1.0 + number", "11.0 + number")
    assert project.record("--processes", "2").returncode == 0
    assert latencies(recorded(project, "a/x")[0]) == [13.0, 14.0]


def test_what_varies_otherwise_is_of_the_last_process(project, timed):
    timed(fields=", dtype=f'float{number}'")
    assert project.record("--processes", "2").returncode == 0
    (record,) = recorded(project, "a/x")
    assert (record["dtype"], latencies(record)) == ("float1", [2.0])


def test_a_page_that_fails_in_a_later_process_keeps_what_it_had(project, timed):
    timed("x", code="assert number < 1")
    timed("y")
    done = project.record(*THREE)
    assert done.returncode == 1
    assert "AssertionError" in done.stderr
    assert "What was recorded before is still there." in done.stderr
    assert (runs(project, "x"), runs(project, "y")) == (2, 3)
    assert latencies(recorded(project, "a/x")[0]) == [1.0]
    assert latencies(recorded(project, "a/y")[0]) == [1.0, 2.0, 3.0]


def test_an_interrupted_recorder_keeps_what_it_had_and_the_next_goes_on(project, timed, until):
    timed(code="import time\ntime.sleep(25 if number == 1 else 0)")
    log = project.log("recorder")
    process = project.fork(
        "_ext.commands.record", THREE, log, log, [str(project.engine)], BOOK_DEVICE="cpu"
    )
    until(lambda: project.stamp("x-1").exists(), "the second process has not begun")
    process.send_signal(signal.SIGINT)
    assert process.wait() != 0
    assert latencies(recorded(project, "a/x")[0]) == [1.0]
    assert project.record(*THREE).returncode == 0
    assert latencies(recorded(project, "a/x")[0]) == [1.0, 3.0, 4.0]


def test_a_number_of_processes_must_be_one(project):
    done = project.record("--processes", "0")
    assert done.returncode == 2
    assert "--processes must be 1 or more" in done.stderr


def test_a_comparison_has_the_ratios_of_all_processes(project, comparing):
    cells = project.cell(RUNS.format(name="x")), "contest('x', 2.0 + number, 2.0, 4.0 + number)"
    project.page("a/x", cells[0], project.cell(cells[1], "a.contests.contest"), benchmark=True)
    assert project.record(*THREE).returncode == 0
    (record,) = recorded(project, "a/x")
    slow, fast = record["alternatives"]
    assert latencies(slow) == [0.5, 0.75, 1.0]
    assert latencies(fast) == [0.25] * 3
    project.page("x/uses", "{compared}`x/slow@python / x/fast@python`", notebook=False)
    assert project.build("-D", "book_recorded=1").green
    assert "3.0× slower (2.0–4.0)" in project.html("x/uses")


def test_a_cell_that_compares_twice_by_one_name_keeps_both(project, comparing):
    twice = "for more in (0, 10): contest('x', 2.0 + number + more)"
    cells = project.cell(RUNS.format(name="x")), project.cell(twice, "a.contests.contest")
    project.page("a/x", *cells, benchmark=True)
    assert project.record(*THREE).returncode == 0
    found = [latencies(each["alternatives"][0]) for each in recorded(project, "a/x")]
    assert found == [[0.5, 0.75, 1.0], [3.0, 3.25, 3.5]]


def test_a_page_that_measures_nothing_is_executed_once(project):
    project.page("a/x", project.cell(RUNS.format(name="x")), benchmark=True)
    assert project.record("a/x").returncode == 0
    assert project.record("a/x").returncode == 0
    assert runs(project) == 1
