"""Recordings: made on one machine, checked and shown on another."""

import getpass
import json
import re
import shutil
import socket

import pytest

from tests.engine.conftest import RECORDS

DEVICES = 'book_devices = {"cpu": "CPU", "gpu-h200": "NVIDIA H200"}'


@pytest.fixture(scope="module")
def recorded(tmp_path_factory, empty_project):
    """Record a page on 'cpu', once for all tests; return the folder of recordings."""
    made = empty_project(tmp_path_factory.mktemp("recorded"))
    two_cells(made)
    made.recorded()
    return made.root / "docs" / "_recorded"


def two_cells(project):
    project.configure(DEVICES)
    project.page("a/one", project.cell("'first'"), project.cell("print('pears')"))


@pytest.fixture
def two_devices(project, recorded):
    """Return a project for two devices, with one page recorded on 'cpu'."""
    two_cells(project)
    shutil.copytree(recorded, project.root / "docs" / "_recorded")
    return project


def tabs(project, docname):
    """Return {label: text} for each set of tabs on a page."""
    page = project.soup(docname)
    found = []
    for of_cell in page.select(".device-tabs"):
        names = [label.get_text(strip=True) for label in of_cell.select("label")]
        panels = [p.get_text(" ", strip=True) for p in of_cell.select(".sd-tab-content")]
        found.append(dict(zip(names, panels, strict=True)))
    return found


def test_a_recorded_site_shows_what_a_live_one_does(two_devices):
    two_devices.built()
    live = two_devices.outputs("a/one")
    assert live == ["'first'", "pears"]
    build = two_devices.built("-D", "book_recorded=1", out="build/recorded")
    assert build.executed == []
    assert two_devices.outputs("a/one", "build/recorded") == live


def test_a_recording_is_a_notebook_with_the_code_that_ran(two_devices):
    notebook = json.loads(two_devices.recording("a/one").read_text("utf8"))
    assert [cell["source"] for cell in notebook["cells"]] == [["'first'"], ["print('pears')"]]
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    facts = notebook["metadata"]["recording"]
    assert facts["device"] == "cpu"
    assert facts["page"] == "a/one"
    assert facts["command"] == "nox -s record -- a/one"
    assert facts["versions"]["python"]
    assert facts["processor"]
    assert facts["executed"].startswith("20")


def test_what_the_cache_holds_is_executed_if_asked_and_not_written_again_if_the_same(project):
    project.page("a/one", project.cell("print({'b': 1, 'a': 2})\nobject()"), project.cell("'end'"))
    project.recorded()
    before = project.recording("a/one").read_bytes()
    assert "executed" not in project.record().stdout
    again = project.record("--again")
    assert again.returncode == 0 and "executed a/one" in again.stdout
    assert "a/one: the same as recorded" in again.stdout
    assert project.recording("a/one").read_bytes() == before


def test_what_has_changed_alone_is_recorded(two_devices):
    two_devices.page("b/two", two_devices.cell("2"))
    done = two_devices.recorded("--changed")
    assert "b/two" in done.stdout and "a/one" not in done.stdout
    two_devices.edit(two_devices.path("a/one"), "'first'", "'edited'")
    done = two_devices.record("--changed")
    assert "executed a/one" in done.stdout and "b/two" not in done.stdout
    assert "cpu: 2 current" in two_devices.run("list_recordings").stdout


def test_pages_can_be_named_and_others_stay(two_devices):
    two_devices.page("b/two", two_devices.cell("2"))
    before = two_devices.recording("a/one").read_bytes()
    done = two_devices.recorded("b/two")
    assert "a/one" not in done.stdout
    assert two_devices.recording("b/two").exists()
    assert two_devices.recording("a/one").read_bytes() == before


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("a/on", "there is no page 'a/on'; the nearest are a/one"),
        ("index", "the page 'index' has no code to execute"),
    ],
)
def test_a_name_that_is_no_page_records_nothing(two_devices, name, words):
    done = two_devices.record("a/one", name)
    assert done.returncode == 1
    assert words in done.stderr
    assert "executed" not in done.stdout


SCRIPT = "get_ipython().display_pub.publish({'application/javascript': 'alert(1)'})"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("1 / 0", "docs/a/one.md:{line}: cell 2: raised ZeroDivisionError"),
        (SCRIPT, "cannot be recorded: holds application/javascript, which is not accepted"),
    ],
)
def test_a_page_that_fails_or_is_not_accepted_keeps_its_former_recording(two_devices, code, words):
    before = two_devices.recording("a/one").read_bytes()
    two_devices.edit(two_devices.path("a/one"), "print('pears')", code)
    two_devices.page("b/two", two_devices.cell("2"))
    done = two_devices.record()
    assert done.returncode == 1
    assert words.format(line=two_devices.line("a/one", code) - 1) in done.stderr
    assert two_devices.recording("a/one").read_bytes() == before
    assert two_devices.recording("b/two").exists()


def test_names_of_machine_and_user_are_not_recorded(project):
    project.page(
        "a/one",
        project.cell(
            """
            import os, pathlib, socket
            who = os.environ["USER"]
            print(f"{who}@{socket.gethostname()}", pathlib.Path.home() / "x", os.getcwd())
            object()
            """
        ),
        project.cell("print(id)"),
    )
    project.recorded(USER="somebody", LOGNAME="somebody", HOME="/home/somebody")
    text = project.recording("a/one").read_text("utf8")
    for name in (f"@{socket.gethostname()}", "/home/somebody", "somebody", "book-"):
        assert name not in text
    assert "object at 0x…" in text
    assert getpass.getuser() == "root" or getpass.getuser() not in text


def test_the_recorder_needs_no_sphinx(two_devices, tmp_path):
    blocked = tmp_path / "blocked"
    blocked.mkdir()
    names = "sphinx", "myst_nb", "myst_parser", "jupyter_cache", "docutils"
    lines = [f"sys.modules[{name!r}] = None" for name in names]
    (blocked / "sitecustomize.py").write_text("\n".join(["import sys", *lines]))
    path = f"{blocked}:{two_devices.engine}"
    command = "-m", "executed.commands.record"
    done = two_devices.wait(two_devices.program(*command, PYTHONPATH=path, BOOK_DEVICE="cpu"))
    assert done.status == 0, done.output


def test_a_missing_framework_costs_its_own_cells_alone(project):
    project.configure(DEVICES, 'book_frameworks = {"nolib": {"label": "A library"}}')
    cells = "'before'", "import nolib as n\nx = n.f(1)", "print(x)", "x = 'own'", "x"
    project.page("a/one", *map(project.cell, cells))
    done = project.recorded()
    assert "but for cells that need nolib\n" in done.stdout
    project.built("-D", "book_recorded=1", out="build/recorded")
    without = "Not recorded: A library is not installed."
    assert project.outputs("a/one", "build/recorded") == ["'before'", without, without, "'own'"]

    # What was recorded is cached, and serves only builds that leave out as well.
    whole = project.build(out="build/whole")
    assert whole.status == 1
    assert whole.executed == ["a/one"]
    without = "Not executed: A library is not installed."
    # The second build takes the page from the cache.
    for options in ((), ("-E",)):
        live = project.built(*options, "-D", "book_leave_out=1")
        assert live.executed == []
        assert project.outputs("a/one") == ["'before'", without, without, "'own'"]
        (project.root / "build" / "html" / "a" / "one.html").unlink()


def test_outputs_that_agree_are_shown_once_and_those_that_differ_are_tabs(two_devices):
    two_devices.recorded_elsewhere("a/one", ("pears", "zweites"))
    two_devices.built()
    assert two_devices.outputs("a/one")[0] == "'first'"
    assert tabs(two_devices, "a/one") == [{"CPU": "pears", "NVIDIA H200": "zweites"}]
    (found,) = two_devices.notebook("a/one").cells[-1].outputs
    assert found.text == "pears\n"


def test_hostile_facts_and_texts_are_shown_as_text(two_devices):
    mark = "outputs of a device: "
    two_devices.configure(DEVICES, 'book_devices["odd"] = "<b>odd"')
    two_devices.recorded_elsewhere(
        "a/one",
        ('"processor": "', '"processor": "<script>alert(1)</script>'),
        ("pears\\n", f"{mark}x"),
        device="odd",
    )
    two_devices.built("-j", "2")
    html = two_devices.html("a/one")
    assert "<script>alert(1)" not in html and "<b>" not in html
    assert "&lt;script&gt;alert(1)" in html
    (found,) = tabs(two_devices, "a/one")
    assert found["CPU"] == "pears"
    assert found["<b>odd"] == f"{mark}x"


def test_a_recorded_site_says_what_is_not_recorded(two_devices, noting):
    two_devices.configure(DEVICES, 'book_devices["tpu-v5e"] = "TPU"')
    two_devices.page("b/bench", two_devices.cell("note('x', 0.5)", snippet="a.notes.note"))
    two_devices.page(
        "c/use",
        "Here {measured}`x@python`.",
        "```{measurements} x\n```",
        "```{measurement-chart} x\n\nA chart.\n```",
    )
    two_devices.page("c/far", two_devices.cell("'elsewhere'"), device="tpu-v5e")
    two_devices.page("c/gpu", two_devices.cell("'gpu'"))
    two_devices.recorded("c/gpu")
    two_devices.recorded_elsewhere("c/gpu")
    two_devices.recording("c/gpu").unlink()
    two_devices.built("-D", "book_recorded=1")
    assert two_devices.outputs("b/bench")[-1].startswith("Not recorded on CPU yet;")
    words = two_devices.soup("c/use").get_text()
    assert "Here not recorded: x with python." in words
    assert two_devices.outputs("c/far")[0].startswith("Not recorded on TPU yet;")
    (found,) = tabs(two_devices, "c/gpu")
    assert found["NVIDIA H200"] == "'gpu'"
    assert "on gpu-h200 (" in two_devices.html("c/gpu")


def test_a_recording_that_comes_or_goes_changes_its_page_alone(two_devices):
    two_devices.page("b/two", two_devices.cell("2"))
    two_devices.page("c/three", two_devices.cell("3"))
    two_devices.recorded("c/three")
    two_devices.recorded_elsewhere("c/three")
    two_devices.built()
    other = two_devices.root / "build" / "html" / "b" / "two.html"
    written = other.stat().st_mtime_ns
    path = two_devices.recorded_elsewhere("a/one", ("pears", "zweites"))
    build = two_devices.build()
    assert build.green and build.executed == []
    assert len(tabs(two_devices, "a/one")) == 1
    path.unlink()
    two_devices.built()
    assert tabs(two_devices, "a/one") == []
    assert other.stat().st_mtime_ns == written
    assert "0 added, 0 changed, 0 removed" in two_devices.build().output


def test_numbers_tables_and_charts_hold_every_device(two_devices, noting):
    two_devices.configure(
        'book_devices = {"cpu": "CPU", "gpu-h200": "NVIDIA H200", "tpu": "TPU"}',
    )
    two_devices.page(
        "b/bench",
        two_devices.cell("note('x', 0.5)\nnote('y', 0.25)", snippet="a.notes.note"),
        "Here {measured}`x@python`, there {measured}`x@python on gpu-h200`, "
        "{measured}`x@python.first_call / x@python on gpu-h200`, far {measured}`x@python on tpu`.",
        "```{measurements} x y\n:columns: name latency dtype\n```",
        "```{measurement-chart} x y\n:columns: name latency\n\nA chart.\n```",
    )
    two_devices.recorded("b/bench")
    two_devices.recorded_elsewhere("b/bench", ("0.5", "0.002"))
    two_devices.built()
    page = two_devices.soup("b/bench")
    for note in page.select(".note"):
        note.decompose()
    sentence = page.find(string=lambda text: "Here" in text).find_parent("p").get_text()
    assert sentence == (
        "Here 500 ms (one process) CPU, there 2.00 ms (one process) NVIDIA H200, "
        "750× CPU and NVIDIA H200, "
        "far not recorded on TPU."
    )
    panels = {"CPU": ["500 ms", "250 ms"], "NVIDIA H200": ["2 ms", "250 ms"]}
    sets = [each for each in page.select(".device-tabs") if each.select("table.measurements")]
    assert [len(shown.select(".chart-figure")) for shown in sets] == [0, 2]
    for shown in sets:
        labels = [label.get_text(strip=True) for label in shown.select(".sd-tab-label")]
        assert labels == list(panels)
        for panel, latencies in zip(shown.select(".sd-tab-content"), panels.values(), strict=True):
            rows = panel.select("table.measurements tr")[1:]
            assert [row.select("td")[1].get_text(strip=True) for row in rows] == latencies
    captions = [each.get_text(strip=True) for each in page.select(".chart-caption")]
    assert captions == ["A chart."] * 2
    text = "\n".join(cell.source for cell in two_devices.notebook("b/bench").cells)
    assert "CPU\n\n| measurement | latency |" in text
    assert "NVIDIA H200\n\n| measurement | latency |" in text
    assert text.count("One process: latency.") == 4
    devices = [record["device"] for record in two_devices.records()]
    assert sorted(devices) == ["cpu", "cpu", "gpu-h200", "gpu-h200"]


def listed(project, *words):
    """Return what the list of recordings says of each page, by device."""
    found, device = {}, ""
    for line in project.run("list_recordings", *words).stdout.splitlines():
        if not line.startswith(" "):
            device = line.partition(":")[0]
        elif line.strip():
            page, state = line[13:].split(None, 1)
            found[device, page] = state.strip()
    return found


def test_what_no_cell_needs_leaves_every_recording_current(two_devices):
    code = 'def answer():\n    """Return it."""\n    return 41\n\n\ndef other(): ...\n'
    snippet = two_devices.snippet("b.one", code)
    two_devices.page("b/two", two_devices.cell("answer()", snippet="one.answer"))
    two_devices.recorded()
    two_devices.recorded_elsewhere("b/two", ("41", "42"))
    text = 'def answer():  # now\n    """Return the answer, in full."""\n\n    return (41)\n'
    snippet.write_text(f"{text}\n\ndef other(): return 1\n", "utf8")
    two_devices.built("-D", "book_recorded=1")
    assert set(listed(two_devices).values()) == {"current"}
    assert tabs(two_devices, "b/two") == [{"CPU": "41", "NVIDIA H200": "42"}]


@pytest.fixture(scope="module")
def earlier(tmp_path_factory, empty_project):
    """Record pages on two devices and edit them then: the project, and a build after that."""
    made = empty_project(tmp_path_factory.mktemp("earlier"))
    made.configure(DEVICES)
    first, pears, end = map(made.cell, ("'first'", "print('pears')", "print('end')"))
    snippet = made.snippet("a.two", "def answer():\n    return 41")
    asked = '```{predict} What?\n- pears ~ "pears"\n- plums ~ "plums"\n```'
    made.page("a/edited", first, pears, end)
    made.page("a/renamed", made.cell("answer()", snippet="two.answer"))
    made.page("a/asked", asked, pears)
    for name in ("a/gone", "a/middle", "a/moved"):
        made.page(name, first, pears)
    made.recorded()
    other = ("pears\\n", "zweites\\n")
    made.recorded_elsewhere("a/edited", other, ("end\\n", "Ende\\n"))
    made.recorded_elsewhere("a/renamed", ('"41"', '"42"'))
    made.recorded_elsewhere("a/asked")
    for name in ("a/middle", "a/moved"):
        made.recorded_elsewhere(name, other)

    made.path("a/gone").unlink()
    made.edit(made.path("a/edited"), "print('pears')", "print('pea' + 'rs')")
    made.edit(made.path("a/asked"), "print('pears')", "print('plums')")
    made.edit(snippet, "answer", "reply")
    made.edit(made.path("a/renamed"), "answer", "reply")
    made.page("a/middle", first, made.cell("print(7)"), pears)
    made.page("a/moved", pears, first)
    build = made.build()
    assert build.green and not build.warnings, build.output
    made.built("-D", "book_recorded=1", out="build/recorded")
    return made


def test_recordings_of_earlier_code_are_listed(earlier):
    edited = "earlier code: 1 cell edited"
    middle = "earlier code: 1 cell new; 1 cell after earlier code"
    states = listed(earlier)
    assert {name: state for (device, name), state in states.items() if device == "gpu-h200"} == {
        "a/asked": edited,
        "a/edited": f"{edited}; 1 cell after earlier code",
        "a/middle": middle,
        "a/moved": "earlier code: 2 cells after earlier code",
        "a/renamed": edited,
    }
    assert states["cpu", "a/middle"] == middle
    assert states["cpu", "a/gone"] == "left over: the page is gone, or has no code any more"
    assert earlier.run("list_recordings").returncode == 0
    assert earlier.run("list_recordings", "--check").returncode == 1


def beneath(project, docname, out="build/html"):
    """Return what stands beneath each output for who chose another device, folds included."""
    page = project.soup(docname, out)
    found = page.select(".device-missing[hidden]")
    assert all(each["data-device"] == "gpu-h200" for each in found)
    return [[part.get_text().strip() for part in each.select("p, pre")] for each in found]


def test_what_other_code_gave_elsewhere_is_folded_beside_that_code(earlier):
    missing = "Not recorded on NVIDIA H200 with this code."
    assert tabs(earlier, "a/edited") == []
    assert earlier.outputs("a/edited")[0] == "'first'"
    assert beneath(earlier, "a/edited") == [
        [missing, "print('pears')", "zweites"],
        [missing, "print('end')", "Ende"],
    ]
    text = earlier.html("a/edited")
    assert text.count("<summary>What NVIDIA H200 printed with other code, 20") == 2
    # A cell that is new has nothing to fold, and neither has one that printed the same.
    assert beneath(earlier, "a/middle") == [[missing], [missing, "print('pears')", "zweites"]]
    assert beneath(earlier, "a/moved") == [[missing, "print('pears')", "zweites"], [missing]]
    for cell in earlier.notebook("a/edited").cells:
        assert "Ende" not in str(cell.get("outputs"))


def test_what_other_code_gave_here_is_folded_where_nothing_is_executed(earlier):
    first, second, third = earlier.outputs("a/edited", "build/recorded")
    assert first == "'first'"
    for shown, said in ((second, "( 'pears' ) pears"), (third, "( 'end' ) end")):
        assert shown.startswith("Not recorded on CPU with this code. What CPU printed with other")
        assert said in shown


def test_a_renamed_snippet_is_other_code_elsewhere(earlier):
    ((missing, *_, printed),) = beneath(earlier, "a/renamed")
    assert (missing, printed) == ("Not recorded on NVIDIA H200 with this code.", "42")


def test_an_answer_that_earlier_code_contradicts_is_no_fault(earlier):
    page = earlier.soup("a/asked")
    assert page.select_one(".predict fieldset")["data-right"] == "1"


SHOWN = """
A number {measured}`x@python on gpu-h200`.
A verdict {verdict}`x@python on gpu-h200 in 0.1.. ? holds : wrong`.

```{measurements} x
:columns: name latency
```

```{measurement-chart} x
:x: name

A chart.
```
"""
THERE = "{measured}`gone@python on gpu-h200`"
ONE = f"```{{container}} of-one-device\nThere it takes {THERE}.\n```"
ROW = f"| x | {{measured}}`gone@python` | {THERE} |"
USES = (
    "There are times.",
    ONE,
    ONE.replace("There", "Beside {measured}`gone@python`, and there"),
    f"| | here | there |\n|-|-|-|\n{ROW}",
    f"```{{container}} of-one-device\n| | there |\n|-|-|\n| y | {THERE} |\n```",
    f"## There alone\n\n{ONE}",
)


@pytest.fixture(scope="module")
def remeasured(tmp_path_factory, empty_project):
    """Record two pages that measure on two devices, and edit both: the project after a build.

    Of the page that measures `gone`, what is measured is edited, of the other another cell.
    """
    made = empty_project(tmp_path_factory.mktemp("remeasured"))
    made.configure(DEVICES)
    made.snippet("a.notes", RECORDS)
    for name, docname in (("x", "b/bench"), ("gone", "b/gone")):
        noted = made.cell(f"note('{name}', 0.5)", snippet="a.notes.note")
        shown = re.sub(r"\bx(?=@|\n:)", name, SHOWN)
        made.page(docname, made.cell("'before'"), noted, shown)
    made.page("c/uses", *USES, notebook=False)
    made.recorded()
    for docname in ("b/bench", "b/gone"):
        made.recorded_elsewhere(docname, ("0.5", "0.25"))
    made.edit(made.path("b/bench"), "'before'", "'after'")
    made.edit(made.path("b/gone"), "note('gone', 0.5)", "note('gone', 1 / 2)")
    made.built()
    return made


def test_what_was_measured_stays_where_only_other_code_has_changed(remeasured):
    page = remeasured.soup("b/bench")
    marks = [mark.get_text() for mark in page.select("p sup.earlier")]
    assert marks == ["†", "†"]
    since = "† NVIDIA H200, 2026-01-02: other code of its page has changed since."
    assert sum(since in note.get_text() for note in page.select(".note")) == 2
    notes = [note.get_text() for note in page.select(".table-note")]
    # Of the table, of the chart, and of the table below it.
    assert notes.count(since) == 3
    rows = [row.get_text(" ", strip=True) for row in page.select("table.measurements tr")]
    found = [row for row in rows if "250 ms" in row]
    assert found == ["x† 250 ms", "x† python 250 ms 1.5 s"]
    (found,) = [each for each in tabs(remeasured, "b/bench") if "x [python]" in each["CPU"]]
    assert found["NVIDIA H200"].startswith("Measured 20") and "250 ms" in found["NVIDIA H200"]


def test_what_was_measured_of_other_code_is_shown_nowhere_but_folded(remeasured):
    page = remeasured.soup("b/gone")
    missing = "not recorded on NVIDIA H200 with this code"
    assert [each.get_text() for each in page.select(".not-recorded")] == [missing] * 2
    assert page.select(".earlier:is(sup)") == []
    # Those who chose another device see the figure of that, and no note.
    notes = [note.get_text() for note in page.select('[data-device="gpu-h200"].table-note[hidden]')]
    assert notes == [f"N{missing[1:]}. What you see is from CPU."] * 2
    # A tab would hold nothing else.
    assert not [
        note for note in page.select(".table-note") if note.find_parent(class_="sd-tab-set")
    ]
    assert len(page.select("svg.chart, .chart-figure svg")) == 1
    devices = [each["device"] for each in remeasured.records() if each["name"] == "gone"]
    assert devices == ["cpu"]
    ((said, *code, printed),) = beneath(remeasured, "b/gone")
    assert said == "Not recorded on NVIDIA H200 with this code."
    assert "note('gone', 0.5)" in code[0] and "250 ms" in printed


def test_sentences_on_a_device_are_left_out_where_other_code_was_measured(remeasured):
    page = remeasured.soup("c/uses").body
    missing = "not recorded on NVIDIA H200 with this code"
    text = page.get_text(" ", strip=True)
    assert "it takes" not in text and "Beside" not in text
    assert [each.get_text() for each in page.select(".table-note")] == [
        f"Left out, {missing}: there.",
        f"Left out, {missing}: y.",
        f"There alone. Left out: what follows from numbers that were {missing}.",
    ]
    assert page.select("h2") == []
    (row,) = page.select("tbody tr")
    head, here = (each.get_text(" ", strip=True) for each in row.select("td"))
    assert head == "x" and here.startswith("500 ms")


def test_a_page_for_one_device_is_recorded_there_alone(two_devices):
    two_devices.page("b/two", two_devices.cell("2"), device="cpu")
    two_devices.recorded("b/two", "a/one")
    two_devices.recorded_elsewhere("b/two")
    two_devices.built()
    state = "left over: the page is executed on cpu only"
    assert listed(two_devices)["gpu-h200", "b/two"] == state
    two_devices.recording("b/two", "gpu-h200").unlink()
    two_devices.recorded_elsewhere("a/one")
    two_devices.built()
    assert "executed on CPU only" in two_devices.html("b/two")
    done = two_devices.run("record", BOOK_DEVICE="gpu-h200")
    assert done.returncode == 0, done.stderr
    assert "left out b/two, which is executed on cpu only" in done.stdout
    assert two_devices.recording("a/one", "gpu-h200").exists()
    assert not two_devices.recording("b/two", "gpu-h200").exists()


def unknown_type(text):
    return text.replace('"text/plain"', '"application/javascript"')


DAMAGE = {
    "a/conflict": (
        lambda text: text.replace(' "cells"', '<<<<<<< ours\n "cells"', 1),
        "it is no recording (NotJSONError",
    ),
    "a/type": (unknown_type, "application/javascript, which is not accepted"),
}


def test_a_damaged_recording_names_itself_and_harms_nothing_else(project):
    project.configure(DEVICES)
    for name in (*DAMAGE, "b/two"):
        project.page(name, project.cell("'first'"), project.cell("print('pears')"))
    project.recorded()
    project.recorded_elsewhere("b/two", ("pears", "zweites"))
    for name, (damage, _) in DAMAGE.items():
        path = project.recorded_elsewhere(name, ("pears", "zweites"))
        path.write_text(damage(path.read_text("utf8")), "utf8")
    for build in (project.built(), project.built()):
        assert not build.warnings
    states = listed(project)
    for name, (_, words) in DAMAGE.items():
        assert project.outputs(name) == ["'first'", "pears"]
        assert "The recording on NVIDIA H200 is unreadable" in project.html(name)
        assert states["gpu-h200", name].startswith("unreadable") and words in str(states)
    assert tabs(project, "b/two") == [{"CPU": "pears", "NVIDIA H200": "zweites"}]


def test_the_list_says_what_is_missing_on_the_device_that_everybody_has(two_devices):
    two_devices.page("b/two", two_devices.cell("2"))
    two_devices.recorded_elsewhere("a/one")
    done = two_devices.run("list_recordings")
    assert done.returncode == 0
    assert "cpu: 1 missing, 1 current" in done.stdout
    assert "gpu-h200: 1 current\n" in done.stdout


def test_the_recorder_finds_the_device_by_itself(project):
    facts = {"modules": ["colorsys"], "device": "('cpu', colorsys.__name__)"}
    project.configure(f"book_frameworks = {{'lib': {facts}}}")
    project.page("a/one", project.cell("import colorsys"))
    done = project.run("record")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("recording on cpu")
    assert project.recording("a/one", "cpu").exists()


def test_a_page_with_a_command_of_its_own_is_recorded_where_it_is_named_and_never_built(project):
    project.configure(DEVICES)
    project.page("a/one", project.cell("'first'"), recorded="nox -s years --")
    project.page("a/two", project.cell("'second'"))
    assert project.built().executed == ["a/two"]
    assert "nox -s years -- a/one" in "".join(project.outputs("a/one"))
    done = project.recorded()
    assert "left out a/one, which is recorded by 'nox -s years -- a/one'" in done.stdout
    assert not project.recording("a/one").exists()
    assert project.recording("a/two").exists()
    project.recorded("a/one")
    facts = json.loads(project.recording("a/one").read_text("utf8"))["metadata"]["recording"]
    assert facts["command"] == "nox -s years -- a/one"
    assert project.built().executed == []
    assert project.outputs("a/one") == ["'first'"]
