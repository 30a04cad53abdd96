"""Which outputs belong to which cell, whatever was edited."""

import ast
import dataclasses
import types

import hypothesis
import pytest
from hypothesis import strategies as st

from executed.source.code import fingerprint
from executed.store.matching import align, changes
from executed.store.output_format import CellOutputs, PageOutputs, RunMetadata
from executed.store.states import CellStanding

SAME, CHANGED, AFTER = CellStanding
FACTS = RunMetadata("a/one", "gpu-x", "X", "2026-01-02T03:04:05+00:00", 1.5, "A processor", 2, {})
CODES = st.lists(st.sampled_from(["a = 1", "a = 12", "print(a)", "b = a\nprint(b)", "x"]))


def page(*sources):
    """Return what the matching reads of a page."""
    cells = [
        types.SimpleNamespace(key=f"{n} {text}", source=text) for n, text in enumerate(sources)
    ]
    return types.SimpleNamespace(cells=cells)


def recorded(*sources):
    """Return a recording of cells whose output is their number."""
    cells = [CellOutputs(f"{n}", (n,), source=text) for n, text in enumerate(sources)]
    return PageOutputs(FACTS, tuple(cells))


def states(then, now):
    """Return for each cell of today the number of its output and how it stands, or None."""
    cells = page(*now).cells
    made = {cell.key: cell for cell in align(recorded(*then), page(*now)).cells}
    return [
        (made[cell.key].outputs[0], made[cell.key].standing) if cell.key in made else None
        for cell in cells
    ]


SAME_CODE = {
    "formatting": ("f( 1,2 )", "f(\n    1,\n    2,\n)"),
    "comments": ("a = 1  # one", "a = 1"),
    "quotes": ("'a'", '"a"'),
    "a docstring": ('def f():\n    """Two."""\n    return 2', 'def f():\n    "2"\n    return 2'),
    "its absence": ('def f():\n    """Two."""\n    return 2', "def f():\n    return 2"),
    "of a class": ('class A:\n    """A."""\n    b = 1', "class A:\n    b = 1"),
}
OTHER_CODE = {
    "a number": ("a = 1", "a = 2"),
    "a type of number": ("a = 1", "a = 1.0"),
    "a name": ("a = 1", "b = 1"),
    "a text that is used": ("f('a')", "f('b')"),
    "a text that is the value of a cell": ("'a'", "'b'"),
    "order": ("a = 1\nb = 2", "b = 2\na = 1"),
    "a value that is not shown": ("a", "a;"),
}


@pytest.mark.parametrize("one, other", SAME_CODE.values(), ids=SAME_CODE)
def test_how_code_is_written_does_not_count(one, other):
    assert fingerprint(one) == fingerprint(other)
    assert states([one, "x"], [other, "x"]) == [(0, SAME), (1, SAME)]


@pytest.mark.parametrize("one, other", OTHER_CODE.values(), ids=OTHER_CODE)
def test_what_code_does_counts(one, other):
    assert fingerprint(one) != fingerprint(other)


@pytest.mark.parametrize("source", ["%%writefile a.py\n1", "a ="])
def test_what_is_no_python_counts_by_its_text(source):
    assert fingerprint(source) == fingerprint(source) != fingerprint(source + " ")


def test_edits_are_told_apart():
    three = ["first = 1", "print(first + 1)", "print(first + 2)"]
    edited = [three[0], "print(first + 7)", three[2]]
    assert states(three, edited) == [(0, SAME), (1, CHANGED), (2, AFTER)]
    inserted = [three[0], "import os", *three[1:]]
    assert states(three, inserted) == [(0, SAME), None, (1, AFTER), (2, AFTER)]
    assert states(three, three[:2]) == [(0, SAME), (1, SAME)]
    assert states(three, three[1:]) == [(1, AFTER), (2, AFTER)]
    turned = [three[0], three[2], three[1]]
    assert states(three, turned) == [(0, SAME), (2, AFTER), (1, AFTER)]
    assert states(three, [three[0], "import os", three[2]]) == [(0, SAME), None, (2, AFTER)]


def test_the_kinds_of_edits_are_counted_in_words():
    now = page("first = 1", "print(first + 7)", "import os", "print(first + 2)")
    made = align(recorded("first = 1", "print(first + 1)", "print(first + 2)"), now)
    assert changes(made, now) == ("1 cell edited", "1 cell new", "1 cell after earlier code")


@hypothesis.given(CODES, CODES)
def test_an_output_is_shown_once_and_called_current_only_where_all_before_it_is_the_same(then, now):
    found = states(then, now)
    numbers = [each[0] for each in found if each]
    assert len(set(numbers)) == len(numbers)
    for place, each in enumerate(found):
        if each is None:
            continue
        number, standing = each
        same = then[number] == now[place]
        if standing == SAME:
            assert then[: place + 1] == now[: place + 1] and number == place
        assert (standing == CHANGED) == (not same)
    if then == now:
        assert found == [(number, SAME) for number in range(len(now))]


@hypothesis.given(CODES)
def test_recordings_of_code_that_is_written_anew_stay_current(sources):
    written = [ast.unparse(ast.parse(text)) + "  # again" for text in sources]
    assert states(sources, written) == [(number, SAME) for number in range(len(sources))]


def test_a_change_that_concerns_one_kind_outdates_no_output_of_another():
    class Kind:
        def __init__(self, media_type):
            self.media_type = media_type

        def deciding(self, sources):
            return [self.media_type in "".join(sources[: n + 1]) for n in range(len(sources))]

    kinds = [Kind("x/a"), Kind("x/b")]
    cells = [
        CellOutputs("0", (), source="1"),
        CellOutputs("1", ({"data": {"x/a": {}}},), source="2"),
        CellOutputs("2", ({"data": {"x/b": {}}},), source="3"),
    ]
    made = align(PageOutputs(FACTS, tuple(cells)), page("'x/b'", "2", "3"), kinds)
    assert [cell.kind_stands for cell in made.cells] == [True, False]


def test_what_was_recorded_is_not_changed():
    outputs = recorded("a = 1", "a = 2")
    before = dataclasses.replace(outputs)
    align(outputs, page("a = 2", "a = 1"))
    assert outputs == before
