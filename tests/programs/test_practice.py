"""The judge of exercises, and the command that gives them as files and checks what is saved."""

import os
import re
import shutil
import subprocess
import sys
import tomllib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snippets.programs import practice
from tests.book import pages

LEARN = pages.ROOT / "snippets" / "learn"


def check_double(double):
    if double(2) != 4:
        raise AssertionError("2 doubled is 4")


def broken(x):
    return x.double


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda x: 2 * x, None),
        (lambda x: x, "2 doubled is 4"),
        (broken, "it raises AttributeError: 'int' object has no attribute 'double', "),
        (jax.jit(broken), "at `return x.double`"),
        (lambda x: np.testing.assert_equal(x, 3), "it raises AssertionError: "),
        (lambda x: x + broken, "it raises TypeError: unsupported operand type(s)"),
        (lambda x: {}[broken], "it raises KeyError: `broken`"),
    ],
)
def test_an_answer_is_judged_in_words(answer, said, capsys):
    problem = practice.problem_of(check_double, answer)
    assert problem is None if said is None else said in problem
    practice.judge(check_double, answer)
    printed = " ".join(capsys.readouterr().out.split())
    assert printed == ("Right." if problem is None else f"Not yet: {problem}")


def test_what_has_no_body_is_to_be_written():
    def double(x):
        raise NotImplementedError

    assert practice.problem_of(check_double, double) == "write `double`; it has no body"


def test_what_calls_an_exercise_without_a_body_says_which():
    def half(x):
        raise NotImplementedError

    def double(x):
        return jax.vmap(half)(jnp.full(1, x)) * 4

    assert practice.problem_of(check_double, double) == "write `half`; it has no body"


def test_traces_and_compilations_are_counted_within_the_block():
    @jax.jit
    def twice(x):
        return x * 2

    for _ in range(2):
        with practice.counting() as counts:
            twice(jnp.ones(3))
            twice(jnp.ones(3))
            twice(jnp.ones(4))
        assert counts.traces.count("twice") == 2
        assert counts.compilations.count("jit(twice)") == 2
    twice(jnp.ones(5))
    assert counts.traces.count("twice") == 2


def lines(text):
    """Return the lines of a text with those that were wrapped joined again."""
    return text.replace("\n    ", " ").splitlines()


def test_all_exercises_are_files_that_are_checked(command, tmp_path):
    first = command("practice", "here", "--once")
    assert first.returncode == 1
    files = sorted((tmp_path / "here").glob("*.py"))
    given = sorted(path.read_text("utf8") for path in (LEARN / "exercises").glob("[a-z]*.py"))
    assert sorted(path.read_text("utf8") for path in files) == given
    assert "✓" not in first.stdout
    # The text that it reads lies beside the files.
    assert "  ✗ optimizer: after 150 steps the loss is " in first.stdout
    # A check lies where libraries do, and its words are for the reader.
    assert "  ✗ augment: a key is used twice, so " in first.stdout
    assert f"To read: lesson {int(files[0].name[:2])}, " in first.stdout


# By the files of lessons, with an exercise of each: what stands in it, and what is said of that.
UNCHECKED = {
    ("04_gradients", "curvature"): ("def curvature(:", "line 1 is no Python: "),
    ("05_tracing", "descend"): ("import no_such_package", "no_such_package is not installed"),
    ("06_control_flow", "unit"): ("1 / 0", "the file raises ZeroDivisionError: division by zero"),
    ("07_vmap", "distances"): ("", "the file defines no `distances`"),
    ("09_memory", "mixed_step"): ("import os; os._exit(3)", "the program ended with status 3"),
}


def test_what_is_solved_is_kept_and_what_cannot_be_checked_says_why(command, tmp_path):
    here = tmp_path / "here"
    here.mkdir()
    shutil.copy(LEARN / "solutions" / "arrays.py", here / "02_arrays.py")
    for (file, _), (text, _) in UNCHECKED.items():
        (here / f"{file}.py").write_text(text)
    said = lines(command("practice", "here", "--once").stdout)
    assert {"  ✓ mask_diagonal", "  ✓ histogram", "  ✓ augment"} <= set(said)
    solved = (LEARN / "solutions" / "arrays.py").read_text("utf8")
    assert (here / "02_arrays.py").read_text("utf8") == solved
    assert '"arrays.augment"' in (here / ".solved.json").read_text("utf8")
    for (_, name), (_, why) in UNCHECKED.items():
        assert any(line.startswith(f"  ✗ {name}: {why}") for line in said), name


def test_a_file_is_checked_when_it_is_saved(installed, tmp_path):
    words = [installed / "bin" / "jax-measured", "practice", "here"]
    own = {"PYTHONPATH": str(installed), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        words, cwd=tmp_path, env=os.environ | own, stdout=subprocess.PIPE, encoding="utf8"
    ) as process:
        try:
            said = ""
            while "To read" not in said:
                said += process.stdout.readline()
            shutil.copy(LEARN / "solutions" / "arrays.py", tmp_path / "here" / "02_arrays.py")
            while "✓ augment" not in said:
                line = process.stdout.readline()
                assert line, said
                said += line
        finally:
            process.kill()


def test_a_lesson_whose_package_is_missing_says_what_to_install(
    package, tmp_path, monkeypatch, capsys
):
    monkeypatch.setitem(sys.modules, "optax", None)
    practice = package.practising.Practice(tmp_path / "here")
    (lesson,) = [each for each in practice.lessons if each.name == "model"]
    practice.check(lesson)
    said = capsys.readouterr().out
    assert said == "08_model.py\n  lesson 8 needs optax: pip install optax\n"


def test_a_package_of_an_exercise_comes_with_the_extra():
    extra = tomllib.loads((pages.ROOT / "pyproject.toml").read_text("utf8"))["project"]
    brought = {*extra["optional-dependencies"]["practice"], *extra["dependencies"]}
    imports = re.compile(r"^(?:import|from) (\w+)", re.MULTILINE)
    for path in LEARN.glob("*/[a-z]*.py"):
        if path.parent.name in ("exercises", "checks", "solutions"):
            needed = set(imports.findall(path.read_text("utf8"))) - sys.stdlib_module_names
            assert needed <= brought | {"snippets"}, path


def test_a_solution_is_printed(command):
    expected = (LEARN / "solutions" / "arrays.py").read_text("utf8")
    assert command("solution", "histogram").stdout == expected
    assert command("solution", "nothing").returncode == 2


# An exercise of lesson 1, whose name is a helper's in another; and one of two lessons.
@pytest.mark.parametrize(
    ("name", "lesson"),
    [("update", "ten_minutes"), ("3.train", "state"), ("measuring.train", "measuring")],
)
def test_a_solution_is_that_of_the_lesson_with_the_exercise(package, capsys, name, lesson):
    assert package.practising.solution(name) == 0
    assert capsys.readouterr().out == (LEARN / "solutions" / f"{lesson}.py").read_text("utf8")


def test_a_name_of_two_exercises_is_asked_back(package, capsys):
    assert package.practising.solution("train") == 2
    said = capsys.readouterr().err
    assert said.startswith("lessons 3, ") and "and 15, " in said and "solution 3.train" in said
