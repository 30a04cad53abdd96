"""A recorder executes pages that measure in several processes, and keeps what each measured."""

import json
import re
import signal
import types

import pytest

from measured import recording

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


def records(notebook):
    """Return the records in the notebook of a recording."""
    outputs = [output for cell in notebook["cells"] for output in cell["outputs"]]
    return [output["data"][KIND] for output in outputs if KIND in output.get("data", {})]


def read(project, name):
    """Return the recording of a page as a notebook."""
    return json.loads(project.recording(f"a/{name}").read_text("utf8"))


def edit(project, name, change):
    """Change the notebook of a recording."""
    notebook = read(project, name)
    change(notebook)
    text = json.dumps(notebook, indent=1, ensure_ascii=False)
    project.recording(f"a/{name}").write_text(text, "utf8")


def latencies(record):
    """Return what each process of a measurement took."""
    return [process["latency"][0] for process in record["processes"]]


def measured(project, name):
    """Return what each process of the only measurement of a page took."""
    (record,) = records(read(project, name))
    return latencies(record)


def timed(project, name, code="", benchmark=True, fields=""):
    """Write a page that measures 1 s in its first process, 2 s in its second, and so on."""
    runs = project.cell(RUNS.format(name=name))
    note = f"note('{name}', 1.0 + number{fields})\n{code}"
    project.page(f"a/{name}", runs, project.cell(note, "a.notes.note"), benchmark=benchmark)


def runs(project, name):
    return len(list(project.stamps.glob(f"{name}-*")))


def test_a_page_that_measures_is_recorded_in_ten_processes(project, noting):
    timed(project, "x", "print('printed by', number)")
    project.recorded("--processes", "1")

    def as_after_nine(notebook):
        (record,) = records(notebook)
        (first,) = record["processes"]
        took = [{"latency": [1.0 + n] * 5, "first_call": 3.0 + 3 * n} for n in range(9)]
        record["processes"] = [first | each for each in took]

    edit(project, "x", as_after_nine)
    for number in range(1, 9):
        project.stamp(f"x-{number}").touch()
    done = project.recorded("a/x")
    assert measured(project, "x") == [1.0 + n for n in range(10)]
    assert re.findall(r"process (\d+) of (\d+): 1 pages", done.stdout) == [("10", "10")]
    # All else is what was printed first.
    assert "printed by 0" in project.recording("a/x").read_text("utf8")
    assert "executed" not in project.record("a/x").stdout
    project.page("x/uses", "{measured}`x@python`", notebook=False)
    project.built("-D", "book_recorded=1")
    # The text below a cell, too, is that of all processes.
    (shown,) = project.soup("a/x").select(".cell_output")
    assert "x [python] 5.5 s (2.0–9.0), first call 16 s (6.0–27)" in shown.text
    assert ">5.5 s (2.0–9.0)<" in project.html("x/uses")
    (published,) = project.records()
    assert len(published["processes"]) == 10


@pytest.fixture(scope="module")
def recorded(lasting):
    """Record pages in three processes, once for all tests; return the project and what was said."""
    timed(lasting, "plain", benchmark=False)
    timed(lasting, "fails", "assert number < 1")
    nothing = lasting.cell(RUNS.format(name="nothing"))
    lasting.page("a/nothing", nothing, benchmark=True)
    twice = "for more in (0, 10): contest('twice', 2.0 + number + more)"
    lasting.page(
        "a/many",
        lasting.cell(RUNS.format(name="many")),
        lasting.cell("contest('x', 2.0 + number, 2.0, 4.0 + number)", "a.notes.contest"),
        lasting.cell(twice, "a.notes.contest"),
        benchmark=True,
    )
    return lasting, lasting.record("--processes", "3")


def test_the_processes_of_a_page_are_spread_over_those_of_the_others(recorded):
    project, _ = recorded
    order = project.stamp("order").read_text().split()
    rounds = ["plain"], ["fails", "many", "nothing"], ["fails", "many"], ["many"]
    for expected in rounds:
        assert sorted(order[: len(expected)]) == expected
        del order[: len(expected)]
    assert order == []


def test_a_page_that_measures_nothing_is_executed_once(recorded):
    project, _ = recorded
    project.recorded("a/nothing")
    assert runs(project, "nothing") == 1


def test_a_page_that_fails_in_a_later_process_keeps_what_it_had(recorded):
    project, done = recorded
    assert done.returncode == 1
    assert "AssertionError" in done.stderr
    assert "What was recorded before is still there." in done.stderr
    assert measured(project, "fails") == [1.0]


def test_a_comparison_has_the_ratios_of_all_processes(recorded):
    project, _ = recorded
    slow, fast = records(read(project, "many"))[0]["alternatives"]
    assert latencies(slow) == [0.5, 0.75, 1.0]
    assert latencies(fast) == [0.25] * 3
    project.page("x/uses", "{compared}`x/slow@python / x/fast@python`", notebook=False)
    project.build("-D", "book_recorded=1", strict=False)
    assert "3.0× slower (2.0–4.0)" in project.html("x/uses")


def test_a_cell_that_compares_twice_by_one_name_keeps_both(recorded):
    _, *twice = records(read(recorded[0], "many"))
    found = [latencies(each["alternatives"][0]) for each in twice]
    assert found == [[0.5, 0.75, 1.0], [3.0, 3.25, 3.5]]


def test_a_second_visit_goes_on_where_the_first_ended_unless_something_has_changed(project, noting):
    timed(project, "x", fields=", dtype=f'float{number // 9}'")

    def after(*words):
        """Let the recorder go on, and return what was measured then."""
        done = project.recorded(*words)
        executed.append("executed" in done.stdout)
        said.append(done.stdout)
        return measured(project, "x")

    executed, said = [], []
    # What a build leaves in the cache is no process.
    project.built()
    assert after("--processes", "1") == [2.0]
    assert after("--processes", "2") == [2.0, 3.0]
    assert after("--processes", "2") == [2.0, 3.0]
    assert executed == [True, True, False]
    project.edit(project.path("a/x"), "1.0 + number", "11.0 + number")
    assert after("--processes", "1") == [14.0]
    for fact in ({"processor": "Another"}, {"versions": {"python": "3.0"}}):
        edit(project, "x", lambda found, fact=fact: found["metadata"]["recording"].update(fact))
        after("--processes", "1")
        assert re.search(r"comes from elsewhere; here are .*, not (Another|3\.0); what", said[-1])
    assert measured(project, "x") == [16.0]
    assert after("--again", "--processes", "1") == [17.0]
    assert after("--processes", "2") == [17.0, 18.0]
    project.stamp("x-8").touch()
    # It says that it measured in another precision, so it is of another measurement.
    assert after("--processes", "3") == [20.0]


def test_a_page_whose_other_code_changed_is_executed_once_and_keeps_what_was_measured(
    project, noting
):
    timed(project, "x", "text = 'before'\nprint(text)")
    page = project.path("a/x")
    page.write_text(page.read_text("utf8") + project.cell("print('ripe', 'pears')"), "utf8")
    three = ("--processes", "3")
    project.recorded(*three)
    assert measured(project, "x") == [1.0, 2.0, 3.0]
    project.edit(page, "'ripe', 'pears'", "'ripe', 'plums'")
    assert "a/x" in project.record("--changed", *three).stdout
    assert (runs(project, "x"), measured(project, "x")) == (4, [1.0, 2.0, 3.0])
    text = project.recording("a/x").read_text("utf8")
    assert "ripe plums" in text and "ripe pears" not in text
    assert "cpu: 1 current" in project.run("list_recordings").stdout
    # Two more processes, for now there are to be five.
    project.record("a/x", "--processes", "5")
    assert (runs(project, "x"), measured(project, "x")) == (6, [1.0, 2.0, 3.0, 5.0, 6.0])
    # What is measured is another now.
    project.edit(page, "1.0 + number", "11.0 + number")
    project.recorded("--changed", *three)
    assert measured(project, "x") == [17.0, 18.0, 19.0]


def test_what_another_processor_measured_stays_where_only_other_code_changed(project, noting):
    timed(project, "x")
    page = project.path("a/x")
    page.write_text(page.read_text("utf8") + project.cell("print('before')"), "utf8")
    two = ("--processes", "2")
    project.recorded(*two)

    def as_elsewhere(notebook):
        notebook["metadata"]["recording"]["processor"] = "Another"
        (record,) = records(notebook)
        record["processor"] = "Another"

    edit(project, "x", as_elsewhere)
    project.edit(page, "print('before')", "print('afterwards')")
    project.recorded("--changed", *two)
    assert (runs(project, "x"), measured(project, "x")) == (3, [1.0, 2.0])
    (record,) = records(read(project, "x"))
    assert record["processor"] == "Another"
    assert "afterwards" in project.recording("a/x").read_text("utf8")
    # With other versions nothing of it stays.
    edit(project, "x", lambda found: records(found)[0].update(versions={"python": "3.0"}))
    project.edit(page, "print('afterwards')", "print('again')")
    project.recorded("--changed", *two)
    assert measured(project, "x") == [4.0, 5.0]


def test_a_page_that_measures_more_than_before_is_measured_anew(project, noting):
    timed(project, "x")
    two = ("--processes", "2")
    project.recorded(*two)
    page = project.path("a/x")
    more = project.cell("note('y', 1.0 + number)", "a.notes.note")
    page.write_text(page.read_text("utf8") + more, "utf8")
    project.recorded("--changed", *two)
    assert [latencies(each) for each in records(read(project, "x"))] == [[3.0, 4.0]] * 2


@pytest.mark.parametrize("again", [[], ["--again"]])
def test_a_process_that_was_disturbed_is_repeated_and_kept_nowhere(project, noting, again):
    timed(project, "x", fields=", process={'disturbed': number in (1, 2)}")
    done = project.recorded("--processes", "3", *again)
    assert measured(project, "x") == [1.0, 4.0, 5.0]
    assert done.stdout.count("a/x: other programs disturbed it, so it does not count") == 2


CARD = {
    "bandwidth": 4e3,
    "rates": {"float32": 1e3},
    "shortened": "float32",
    "source": "https://vendor.example/card",
}


def test_a_process_below_published_peaks_is_repeated_and_kept_nowhere(project, noting):
    """Two arrays of 1000 numbers of 4 bytes take 2 s at 4 kB/s."""
    project.configure(f'book_peaks = {{"A card": {CARD!r}}}')
    timed(project, "x", fields=", device_kind='A card', shape=[[1000]]")
    page = project.path("a/x")
    project.edit(page, "1.0 + number", "0.5 if number in (1, 2) else 2.5")
    project.edit(page, "file_format: mystnb\n", "file_format: mystnb\narrays: x=2\n")
    done = project.recorded("--processes", "2")
    assert measured(project, "x") == [2.5, 2.5]
    why = "a/x: x@python took 500 ms, less than the 2 s of published peaks, so it does not count"
    assert done.stdout.count(why) == 2
    # A build judges no number.
    project.edit(page, "2.5", "0.25")
    project.built("-D", "book_preview=1")
    project.built("-D", "book_preview=0")


ROOFLINE = """
```{measurement-chart} x
:x: intensity
:ceiling: product
:bandwidth: copy
:arrays: copy=2 x=2 product=3
:operations: x=4

A caption.
```
"""


def test_a_process_above_a_roof_is_repeated_and_then_refused(project, noting):
    """Copied were 8 kB in a second. In that time x moves as much, and so it is given a tenth."""
    roofs = "note('copy', 1.0, shape=[[1000]])\nnote('product', 1.0, shape=[[1000]], work=1e9)"
    project.page("a/roofs", project.cell(roofs, "a.notes.note"), benchmark=True)
    project.recorded("--processes", "1", "a/roofs")
    timed(project, "x", fields=", shape=[[1000]]")
    page = project.path("a/x")
    project.edit(page, "1.0 + number", "0.5 if number else 0.95")
    page.write_text(page.read_text("utf8") + ROOFLINE, "utf8")
    done = project.record("--processes", "2", "a/x")
    assert measured(project, "x") == [0.95]
    assert done.stdout.count("a/x: x@python lies above its roof (") == 3
    assert "docs/a/x.md: it has 1 of 2 processes; x@python lies above its roof (" in done.stderr
    assert "200%" in done.stderr
    # A build judges no number.
    project.edit(page, "0.95", "0.01")
    project.built("-D", "book_preview=1")
    project.built("-D", "book_preview=0")


def test_a_page_on_a_machine_that_is_never_calm_says_what_it_lacks(project, noting):
    timed(project, "x", fields=", process={'disturbed': number > 0}")
    timed(project, "y")
    done = project.record("--processes", "2")
    assert done.returncode == 1
    assert (
        "docs/a/x.md: it has 1 of 2 processes; other programs disturbed it. Repeat" in done.stderr
    )
    assert measured(project, "x") == [1.0]
    assert measured(project, "y") == [1.0, 2.0]


def test_what_is_measured_anew_and_disturbed_at_first_begins_anew(project, noting):
    timed(project, "x", fields=", process={'disturbed': number == 2}")
    project.recorded("--processes", "2")
    project.recorded("--processes", "2", "--again")
    assert measured(project, "x") == [4.0, 5.0]


@pytest.mark.parametrize("hours", [0, 5])
def test_the_processes_of_a_page_wait_for_their_time(project, noting, monkeypatch, hours):
    """The second of two is due so many minutes after the first, whatever the clock did since."""
    d = "__import__('datetime')"
    now = f"({d}.datetime.now({d}.UTC) + {d}.timedelta(hours={hours})).isoformat()"
    timed(project, "x", fields=f", process={{'date': {now}}}")
    slept = []
    monkeypatch.setattr(recording, "time", types.SimpleNamespace(sleep=slept.append))
    done = project.recorded("--processes", "2", "--minutes", "60")
    assert "waiting until" in done.stdout
    assert [0 < seconds <= 3600 for seconds in slept] == [True]
    assert "waiting" not in project.recorded("--processes", "2", "--minutes", "0").stdout


def test_what_cannot_be_recorded_is_not_measured_again(project, noting):
    script = "display({'application/javascript': 'alert(1)'}, raw=True)"
    timed(project, "x", f"from IPython.display import display\n{script}")
    done = project.record("--processes", "3")
    assert "cannot be recorded" in done.stderr
    assert runs(project, "x") == 1


def test_an_interrupted_recorder_keeps_what_it_had_and_the_next_goes_on(project, noting, until):
    busy = project.stamp("busy")
    wait = f"if number == 1: pathlib.Path({str(busy)!r}).touch(); time.sleep(600)"
    timed(project, "x", f"import pathlib, time\n{wait}")
    two = "--processes", "2"
    command = "-m", "executed.commands.record", *two
    process = project.program(*command, PYTHONPATH=str(project.engine), BOOK_DEVICE="cpu")
    until(busy.exists, "the second process has not begun")
    process.send_signal(signal.SIGINT)
    assert process.wait() != 0
    assert measured(project, "x") == [1.0]
    project.recorded(*two)
    assert measured(project, "x") == [1.0, 3.0]


def test_a_number_of_processes_must_be_one(project):
    done = project.record("--processes", "0")
    assert done.returncode == 2
    assert "--processes must be 1 or more" in done.stderr
