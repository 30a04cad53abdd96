"""What pages show of a reader's measurements is what the book says, for the same records."""

import copy
import dataclasses
import json

import pytest

from executed.nodes import JOINER
from measured import reader
from tests.engine.measured import readers_book
from tests.engine.measured.readers_book import compared, complete, file_of, html


def test_answers_are_the_book_s_for_the_same_records(book, turns):
    answers, found = turns["shown"]["answers"], html(book, "a/numbers")
    numbers = found.select("article section > p > .noted")
    assert len(numbers) > 700
    for noted in numbers:
        number, note = noted.contents[:2]
        shown = number.get_text().replace(JOINER, "")
        if "verdict" in number["class"]:
            told = note.get_text().partition(". ")[0].replace(JOINER, "")
            shown = told if told.startswith(shown) else f"{shown}: {told}"
        assert answers[number["data-yours"]] == [shown, "cpu"]
    words = " ".join(text for text, _ in answers.values())
    kinds = ("about equal", "cannot tell", "× slower", "× faster", "never", "1 call ", "calls (")
    assert not [kind for kind in kinds if kind not in words]


def test_numbers_of_tables_are_the_book_s_for_the_same_records(book, whole):
    cells = html(book, "a/charts").select("td span[data-of]")
    assert len(cells) > 150
    for cell in cells:
        _, text, brief = whole["shown"]["numbers"][cell["data-of"]][cell["data-field"]]
        # Where all of a column are of one process, a note below says so.
        assert cell.get_text().replace(JOINER, "") in (text, brief)


def test_the_fastest_are_the_book_s_for_the_same_records(book):
    found = compared(book, "race/")["shown"]["fastest"]
    rows = html(book, "a/races").select("table.fastest tbody tr")
    assert len(rows) == len(found) > 40
    for row, (text, leading) in zip(rows, found.values(), strict=True):
        said = row.select_one(".measured")
        assert [said.get_text().replace(JOINER, ""), said["data-leading"]] == [text, leading]
    words = " ".join(text for text, *_ in found.values())
    kinds = (" faster ", " than NumPy", "about equal", "cannot tell", ", NumPy ")
    assert not [kind for kind in kinds if kind not in words]


def test_the_roofs_are_the_book_s_for_the_same_records(book, whole):
    found = html(book, "b/roofline")
    (devices,) = json.loads(found.select_one(".roofline-data").string)["devices"].values()
    roofs = whole["shown"]["roofs"]
    assert [roofs["bandwidth"], roofs["rates"]] == devices
    rows = [[cell.get_text() for cell in row.select("td")] for row in found.select("tbody tr")]
    assert rows[: len(roofs["texts"])] == roofs["texts"]


def test_switches_and_other_programs_are_said_of_numbers(book, turns):
    file = copy.deepcopy(turns)
    slow, fast = file["records"][0]["alternatives"]
    slow["settings"] |= {"JAX_DISABLE_JIT": "1", "GOMP_SPINCOUNT": "30000"}
    fast["settings"] |= {"JAX_DISABLE_JIT": "1", "OMP_NUM_THREADS": "1"}
    fast["processes"][0]["disturbed"] = True
    shown = complete(book, file)["shown"]
    switches, key = (
        "with JAX_DISABLE_JIT=1 and OMP_NUM_THREADS=1",
        "compared {0}slow@python / {0}fast@python",
    )
    key = key.format("duel/0/")
    before, after = turns["shown"]["answers"][key][0], shown["answers"][key][0]
    assert after == f"{before}, {switches}, disturbed"
    count = sum(len(each["alternatives"]) for each in file["records"])
    assert shown["about"].endswith(
        f"{switches}, other programs ran beside 1 of {count} measurements"
    )


@pytest.mark.parametrize("apart", [False, True])
def test_a_ratio_has_no_answer_where_the_file_lacks_one_side(book, turns, apart):
    slow, fast = turns["records"][0]["alternatives"]
    both = [{**turns["records"][0], "alternatives": [fast]}]
    both += [{**turns["records"][0], "name": "duel", "alternatives": [slow]}] if apart else []
    answers = complete(book, turns | {"records": both})["shown"]["answers"]
    slow, fast = (f"duel/0/{each}@python" for each in ("slow", "fast"))
    assert f"measured {fast}" in answers
    assert f"measured {fast}.first_call / {fast}" in answers
    assert f"measured {fast} / {slow}" not in answers


def test_what_an_accelerator_s_machine_measured_stands_beside_such_machines(book):
    records = [each for each in book.records() if each["name"].startswith("x/")][:2]
    beside = [records[0] | {"device_kind": "A GPU"}, records[1] | {"device_kind": "cpu"}]
    numbers = file_of(book, beside)["shown"]["numbers"]
    assert [each["on"] for each in numbers.values()] == ["accelerator", "cpu accelerator"]


def test_long_settings_do_not_make_long_texts(book):
    flags = {"XLA_FLAGS": "--xla_dump_to=here " * 200, "JAX_LONG": "x" * 4000}
    records = [each | {"settings": flags} for each in book.records() if each["page"] == "a/charts"]
    shown = file_of(book, records)["shown"]
    texts = [shown["about"], *(each["latency"][1] for each in shown["numbers"].values())]
    assert max(map(len, texts)) <= reader.LONGEST
    assert "XLA_FLAGS=--xla_dump" in shown["about"]


def test_works_of_the_same_words_have_answers_of_their_own(book):
    records = [each for each in book.records() if each.get("comparison", "").startswith("race/")]
    lines = ["the same: race/0", "the same: race/9"]
    asked = dataclasses.replace(readers_book.asked_of(book), works=lines)
    plain = {"records": records, "machine": "A machine", "date": "2026-01-03T03:04:05+00:00"}
    found = reader.shown(plain, asked)["fastest"]
    assert list(found) == lines and found[lines[0]] != found[lines[1]]
