"""Beside a time stands the least that is possible by published peaks."""

import pytest

from drawing.peaks import Peaks
from measured.rooflines import Costs
from measured.schema import Measurement
from tests.engine.records import measured

# 4 kB/s; float32 is rounded unless its precision is said to be full.
PEAKS = {
    "bandwidth": 4e3,
    "rates": {"float32": 1e3, "TF32": 1e4, "float64": 500},
    "shortened": "TF32",
    "source": "https://vendor.example/card",
}
CONF = f'book_peaks = {{"A card": {PEAKS!r}}}'
CARD = "device_kind='A card', shape=[[10, 100], [7]]"


@pytest.mark.parametrize(
    ("fields", "seconds"),
    [
        # Two arrays of 1000 numbers of 4 bytes, or of 8.
        ({}, 2),
        ({"dtype": "float64"}, 4),
        ({"dtype": "int8"}, None),
        ({"name": "y"}, None),
        ({"shape": []}, None),
        ({"work": 1e3}, 2),
        ({"work": 3e3}, 3),
        ({"work": 3e3, "precision": "default"}, 2),
        ({"work": 3e3, "name": "y", "precision": "default"}, 0.3),
        ({"work": 3e3, "name": "y", "dtype": "float64"}, 6),
        ({"work": 3e3, "name": "y", "dtype": "bfloat16"}, None),
    ],
)
def test_bytes_and_operations_take_their_time(fields, seconds):
    record = measured("x", [9.0]) | {"shape": [[10, 100], [7]]} | fields
    least = Costs({"x": 2}, {}).least(Measurement.from_plain(record), Peaks(**PEAKS))
    assert least == (None if seconds is None else pytest.approx(seconds))


HEAD = "file_format: mystnb\n"


def page(project, code, *parts, arrays="x/*=2", benchmark=False):
    """Write a page whose calls move arrays as its head says."""
    cell = project.cell(code, snippet="a.notes.note")
    path = project.page("b/one", cell, *parts, benchmark=benchmark)
    project.edit(path, HEAD, f"{HEAD}arrays: {arrays}\n")


def test_a_table_and_a_sentence_say_it_where_it_is_known(project, noting):
    project.configure(CONF)
    code = f"note('x/a', 2.5, {CARD})\nnote('y', 0.5, {CARD})\nnote('x/cpu', 0.5, shape=[[9]])"
    page(
        project,
        code,
        "```{measurements} x/* y\n:columns: name latency\n```",
        "```{measurements} x/cpu y\n:columns: name latency\n```",
        "Of {measured}`x/a@python` at least {measured}`x/a@python.least` is needed.",
    )
    project.built()
    shown = project.soup("b/one")
    first, second = shown.select("table.measurements")
    assert [[cell.text.strip() for cell in row.select("td, th")] for row in first.select("tr")] == [
        ["measurement", "latency", "at least"],
        *(["x, a", "2.5 s", "2 s"], ["y", "500 ms", ""], ["x, cpu", "500 ms", ""]),
    ]
    assert "at least" not in second.text
    notes = [note.text for note in shown.select(".table-note")]
    assert notes.count("At least: by the peaks that vendor.example publishes.") == 1
    number, least = shown.select(".noted > .measured")
    assert least.text == "2 s"
    spoken = shown.find(id=number["aria-describedby"]).text
    assert spoken.endswith("By published peaks at least 2 s.")
    assert [record.get("least") for record in project.records()] == [pytest.approx(2), None, None]


def test_what_the_head_says_of_arrays_must_be_pairs(project, noting):
    page(project, "note('x/a', 1.5)", arrays="x", benchmark=True)
    build = project.build()
    assert build.status != 0
    assert "'arrays' in the head must say such as a/b=2 a/*=1" in build.output
    said = project.record()
    assert "'arrays' in the head must say such as a/b=2 a/*=1" in said.stdout + said.stderr


def test_what_the_head_says_of_arrays_must_be_of_a_measurement_of_the_page(project, noting):
    page(project, "note('x/a', 1.5)", arrays="x/*=2 xx/a=1")
    build = project.build()
    assert build.status != 0
    assert "b/one.md:1: WARNING: no measurement of the page matches 'arrays: xx/a'" in build.output
