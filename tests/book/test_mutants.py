"""The mistakes of `nox -s mutants` are in today's code, and one is noticed as it says."""

import tomllib

import pytest

from tests import mutants

CHANGES = tomllib.loads(mutants.MUTANTS.read_text("utf8"))["mutant"]


@pytest.mark.parametrize("change", CHANGES, ids=lambda each: f"{each['page']}: {each['mistake']}")
def test_a_mistake_replaces_what_is_there_once(change):
    path = mutants.ROOT / "snippets" / f"{change['module'].replace('.', '/')}.py"
    assert path.read_text("utf8").count(change["before"]) == 1
    assert (mutants.ROOT / "docs" / f"{change['page']}.md").exists()
    path, _, name = change.get("test", "tests/mutants.py").partition("::")
    function = name.partition("[")[0]
    assert f"def {function}(" in (mutants.ROOT / path).read_text("utf8") or not name
    assert name or not change.get("prints_code")


def test_a_page_notices_what_is_printed_or_raised_otherwise():
    right = [["x", ""], ["0.1 s", ""], ["True", ""]]
    again = [["x", ""], ["0.2 s", ""], ["True", ""]]
    assert mutants.notices(right, again, again) is None
    assert mutants.notices(right, again, [["x", ""], ["0.3 s", ""], ["False", ""]]) == 2
    assert mutants.notices(right, again, [["x", ""], ["", "ValueError"], ["True", ""]]) is None
    assert mutants.notices(right, again, [["", "status -9"]]) == 0


def test_a_page_is_executed_with_a_mistake_and_without():
    change = {"module": "pitfalls.leaks", "before": "", "after": ""}
    with pytest.raises(SystemExit, match=r"is not once in leaks\.py"):
        mutants.outputs("pitfalls/leaks", [change | {"before": "no such text"}])
    mistake = change | {"before": "import jax\n", "after": "\n"}
    right, again, wrong = mutants.outputs("pitfalls/leaks", [mistake])
    assert any(printed for printed, _ in right)
    assert mutants.notices(right, again, wrong) is not None


def test_a_mistake_is_noticed_by_the_test_of_its_row():
    name = "test_without_jit_an_attribute_keeps_a_value"
    change = {"module": "pitfalls.leaks", "test": f"tests/pitfalls/test_leaks.py::{name}"}
    mistake = {"before": "self.mean = x.mean()", "after": "self.mean = x.max()"}
    assert mutants.tested(change | mistake)
    assert not mutants.tested(change | {"before": "KEPT = []", "after": "KEPT = [1]"})
    with pytest.raises(SystemExit, match="cannot be run"):
        mutants.fails("tests/pitfalls/no_such_file.py", mutants.ROOT)
