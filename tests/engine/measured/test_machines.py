"""What was measured on other machines stands beside the book's, where it is of the same code."""

import dataclasses
import json
import pathlib

import pytest

from measured.across import Across, summary
from measured.machines import Machine, MachineError, problems
from measured.schema import Schema
from measured.slices import slices
from tests.engine.measured.test_references import of, record, resolve
from tests.engine.records import measured, one_process

ROOT = pathlib.Path(__file__).parents[3]
SCHEMA = Schema.load(ROOT / "snippets" / "programs" / "measurement.schema.json")
HERE = (1.9, 2.0, 2.0, 2.1, 2.1)


def contest(name, ratios, **fields):
    """Return the record of a comparison of `slow` and `fast`, with a process for each ratio."""
    both = [measured(f"{name}/{each}", [1.0], **fields) for each in ("slow", "fast")]
    for part, factors in zip(both, (ratios, [1.0] * len(ratios)), strict=True):
        part["processes"] = [one_process(0.25 * factor) for factor in factors]
    return {"version": 3, "method": 2, "name": name, "alternatives": both}


def file_of(*records, **more):
    return {
        "format": "jax-measured",
        "version": 1,
        "book": "1.0.0",
        "machine": "Another processor",
        "date": "2026-03-04T05:06:07+00:00",
        "records": list(records),
        "code": {each["name"]: "0" * 64 for each in records},
    } | more


def quantity(*ratios):
    """Return the ratio of `slow` to `fast`, of a process for each."""
    slow = record("slow", *ratios, comparison="x")
    return resolve(
        "slow@jax / fast@jax", of(slow, record("fast", *[1.0] * len(ratios), comparison="x"))
    )


@pytest.mark.parametrize(
    ("ratios", "text"),
    [
        ((2.0, 2.1, 2.1, 2.2, 2.2), "2.0× (1.9–2.1, on 2 machines)"),
        ((5.0, 5.1, 5.1, 5.2, 5.2), "2.0 to 5.1× (on 2 machines)"),
        ((0.5, 0.5, 0.5, 0.5, 0.5), "2.0× (1.9–2.1; but 0.500× on AMD Zen 5)"),
        ((0.99, 1.0, 1.0, 1.0, 1.01), "2.0× (1.9–2.1; but about equal on AMD Zen 5)"),
        ((0.5, 1.0, 1.0, 2.0, 2.0), "2.0× (1.9–2.1; but cannot tell on AMD Zen 5)"),
    ],
)
def test_a_ratio_says_on_how_many_machines_it_comes_out_so(ratios, text):
    found = Across(quantity(*HERE), {"AMD Zen 5": quantity(*ratios)})
    assert found.text == text
    assert found.remarks == [f"On AMD Zen 5: {quantity(*ratios).text}."]


def test_of_three_machines_only_those_that_differ_are_named():
    same, other = quantity(2.0, 2.0, 2.1, 2.1, 2.2), quantity(0.5, 0.5, 0.5, 0.5, 0.5)
    assert Across(quantity(*HERE), {"A": same, "B": same}).text.endswith("on 3 machines)")
    assert (
        Across(quantity(*HERE), {"A": same, "B": other}).text == "2.0× (1.9–2.1; but 0.500× on B)"
    )


def test_numbers_of_calls_that_differ_are_told_as_ratios_are():
    own, other = (
        dataclasses.replace(quantity(*HERE), value=value, text=f"{value} calls ({low}–{high})")
        for value, low, high in ((610, 530, 840), (1500, 1200, 1900))
    )
    assert Across(own, {"A": other}).text == "610 to 1500 calls (on 2 machines)"
    assert Across(own, {"A": own}).text == "610 calls (530–840, on 2 machines)"


def test_ratios_that_stand_together_say_how_many_each_machine_measured():
    own, there = quantity(*HERE), {"A": quantity(*HERE)}
    both = there | {"B": quantity(*HERE)}
    assert summary([Across(own, both), Across(own, both)]) == (
        "Measured on A and B as well: none has another verdict there."
    )
    assert summary([Across(own, both), Across(own, there)]) == (
        "Measured on A and B (1 of 2) as well: none has another verdict there."
    )


def test_what_cannot_be_told_on_any_machine_and_single_times_stay_as_they_are():
    wide = quantity(0.5, 1.0, 1.0, 2.0, 2.0)
    assert Across(wide, {"A": wide}).text == wide.text
    time = resolve("slow@jax", of(record("slow", *HERE)))
    assert Across(time, {"A": time}).text == time.text
    assert Across(quantity(2.0), {"A": quantity(0.5)}).text == quantity(2.0).text


def test_a_verdict_that_another_machine_does_not_reach_depends_on_the_machine():
    own, there = quantity(*HERE), quantity(5.0, 5.0, 5.0, 5.0, 5.0)
    assert Across(own, {"A": there}, "holds", {"A": "holds"}).verdict == "holds"
    assert Across(own, {"A": there}, "holds", {"A": "wrong"}).verdict == "depends on the machine"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": "another"}, "the file.format must be"),
        ({"owner": "me"}, "the file must not contain {'owner'} properties"),
        ({"code": {}}, "x: 'code' does not say what it measured"),
        ({"records": [contest("x", HERE[:3])]}, "x: fewer than 5 processes; use --processes 5"),
        ({"records": [contest("x", HERE) | {"name": 3}]}, "3: the record"),
        ({"records": [3]}, "the file.records[0] must be object"),
    ],
)
def test_what_is_no_machine_of_the_book_says_why(change, words):
    assert any(words in said for said in problems(file_of(contest("x", HERE)) | change, SCHEMA))


def test_a_process_that_was_disturbed_does_not_count(tmp_path):
    found = contest("x", HERE)
    found["alternatives"][0]["processes"][0]["disturbed"] = True
    (said,) = problems(file_of(found), SCHEMA)
    assert said == "x: other programs kept a core busy; measure it again"
    found = contest("x", (9.0, *HERE))
    found["alternatives"][1]["processes"][0]["disturbed"] = True
    path = tmp_path / "A_machine.json"
    path.write_text(json.dumps(file_of(found)), "utf8")
    slow, fast = Machine.load(path, SCHEMA).measurements
    assert len(slow.processes) == len(fast.processes) == 5
    assert slow.range().high == 0.25 * max(HERE)


@pytest.mark.parametrize("text", ["{", "[]", "{}"])
def test_a_damaged_file_is_named(tmp_path, text):
    path = tmp_path / "A_machine.json"
    path.write_text(text)
    with pytest.raises(MachineError, match=r"A_machine\.json: "):
        Machine.load(path, SCHEMA)


CELL = "contest('x', 1.9, 2.0, 2.0, 2.1, 2.1, apart=True)"
ASKED = "It is {compared}`x/slow@python / x/fast@python`."


def added(project, *records):
    """Add a machine that measured what a page of the project does today."""
    cells = json.loads(project.recording("b/one").read_text("utf8"))["cells"]
    code = slices(tuple("".join(cell["source"]) for cell in cells))[-1]
    file = file_of(*records, code={each["name"]: code for each in records})
    folder = project.root / "docs" / "_machines"
    folder.mkdir()
    folder.joinpath("AMD_Zen_5.json").write_text(json.dumps(file), "utf8")


def said(project):
    """Return the numbers of the page that asks for one."""
    return [each.text for each in project.soup("x/uses").select(".noted > .measured")]


def test_a_page_says_where_a_ratio_comes_out_otherwise_until_its_code_changes(project, noting):
    project.configure('book_machines = "docs/_machines"')
    project.page("b/one", project.cell(CELL, snippet="a.notes.contest"), benchmark=True)
    project.page("x/uses", ASKED, f"| a | b |\n|---|---|\n| c | {ASKED} |")
    project.page("x/list", "```{machines}\n```", "```{machine-agreement}\n```")
    project.recorded("b/one")
    project.built()
    assert said(project) == ["2.0× slower (1.9–2.1)"] * 2
    assert "No ratio of this book was measured on a second machine" in project.soup("x/list").text
    added(project, contest("x", [1 / each for each in HERE]))
    project.built()
    assert said(project) == ["2.0× slower (1.9–2.1; but 2.0× faster on AMD Zen 5)"] * 2
    note = project.soup("x/uses").select_one(".table-note").text
    assert note == "Measured on AMD Zen 5 as well: 1 has another verdict there."
    rows = project.rows(project.soup("x/list").table)
    assert rows[-1] == ["AMD Zen 5", "A processor", "python 1.2.3", "2026-01-02", "2 of 2"]
    text = " ".join(project.soup("x/list").text.split())
    assert "1 of the 1 ratios" in text and "0 of these come out the same way" in text
    # The page measures something else now.
    project.page("b/one", project.cell(CELL.replace("1.9, ", "1.9, 1.9, "), "a.notes.contest"))
    project.built()
    assert said(project) == ["2.0× slower (1.9–2.1)"] * 2
    assert project.rows(project.soup("x/list").table)[-1][-1] == "0 of 2"


def test_a_machine_that_cannot_be_read_ends_a_build_in_words(project):
    project.configure('book_machines = "docs/_machines"')
    folder = project.root / "docs" / "_machines"
    folder.mkdir()
    folder.joinpath("Mine.json").write_text("{}", "utf8")
    result = project.build()
    assert not result.green
    assert "Mine.json: the file must contain" in result.output
