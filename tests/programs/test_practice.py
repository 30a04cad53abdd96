"""The judge of exercises, and the command that gives them as files and checks what is saved."""

import importlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
import types

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
        (
            lambda x: jax.vmap(jnp.add)(jnp.ones(x), jnp.ones(3)),
            "axes to be mapped: one axis had size 2: axis 0 of argument args of type float32[2];",
        ),
    ],
)
def test_an_answer_is_judged_in_words(answer, said, capsys):
    problem = practice.problem_of(check_double, answer)
    assert problem is None if said is None else said in problem
    practice.judge(check_double, answer)
    printed = " ".join(capsys.readouterr().out.split())
    assert printed == ("Right." if problem is None else f"Not yet: {problem}")


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (jnp.ones(2), "a JAX array"),
        (np.ones(2), "a NumPy array"),
        ([1.0], "a list"),
        (2, "an int"),
    ],
)
def test_a_value_is_named_in_words(value, kind):
    assert practice.kind_of(value) == kind
    said = []
    jax.jit(lambda x: said.append(practice.kind_of(x)))(1.0)
    assert said == ["a traced array"]


def test_a_pytree_is_shown_by_its_form():
    assert practice.form_of({"w": 1, "layers": [2, (3,)]}) == "{'layers': [*, (*,)], 'w': *}"


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


def test_all_exercises_are_files(package, tmp_path):
    package.practising.Practice(tmp_path)
    files = sorted(path.read_text("utf8") for path in tmp_path.glob("*.py"))
    given = sorted(path.read_text("utf8") for path in (LEARN / "exercises").glob("[a-z]*.py"))
    assert files == given


def test_files_are_checked(command, kept_programs):
    """Whether each task is refused and each solution accepted, tests of the book say."""
    done = command("practice", "here", "--once", "--lesson", "arrays", **kept_programs)
    assert done.returncode == 1 and "✓" not in done.stdout
    # A check lies where libraries do, and its words are for the reader.
    assert "  ✗ augment: a key is used twice, so " in done.stdout
    assert "To read: lesson 2, " in done.stdout
    # The text that it reads lies beside the files.
    done = command("practice", "here", "--once", "--lesson", "building", **kept_programs)
    assert "  ✗ optimizer: after 150 steps the loss is " in done.stdout


# By the files of lessons: what stands in it, and what is said of that.
UNCHECKED = {
    "04_gradients": ("def curvature(:", "line 1 is no Python: "),
    "03_tracing": ("import no_such_package", "no_such_package is not installed"),
    "05_control_flow": ("1 / 0", "the file raises ZeroDivisionError: division by zero"),
    "07_vmap": ("", "distances: the file defines no `distances`"),
    "10_memory": ("import os; os._exit(3)", "the program ended with status 3"),
}


def test_what_is_solved_is_kept_and_what_cannot_be_checked_says_why(package, tmp_path, capsys):
    here = tmp_path / "here"
    here.mkdir()
    shutil.copy(LEARN / "solutions" / "arrays.py", here / "02_arrays.py")
    for file, (text, _) in UNCHECKED.items():
        (here / f"{file}.py").write_text(text)
    practice = package.practising.Practice(here)
    for lesson in practice.lessons:
        if lesson.file.stem in {"02_arrays", *UNCHECKED}:
            practice.check(lesson)
    said = lines(capsys.readouterr().out)
    assert {"  ✓ mask_diagonal", "  ✓ histogram", "  ✓ augment"} <= set(said)
    solved = (LEARN / "solutions" / "arrays.py").read_text("utf8")
    assert (here / "02_arrays.py").read_text("utf8") == solved
    assert '"arrays.augment"' in (here / ".solved.json").read_text("utf8")
    for file, (_, why) in UNCHECKED.items():
        place = said.index(f"{file}.py")
        assert any(line.startswith(f"  ✗ {why}") for line in said[place : place + 4]), file


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


TOY = """
import functools

def double(x):
    return x + x

def fourfold(x):
    return double(double(x))

def eightfold(x):
    double_of = functools.partial(double)
    return double_of(fourfold(x))
"""


@pytest.fixture
def toy(package, monkeypatch, tmp_path):
    """Return what judges a text, of a lesson with three exercises that call each other."""
    checking = importlib.import_module("jax_measured.checking")
    solutions = types.ModuleType("jax_measured.solutions.toy")
    exec(TOY, vars(solutions))
    checks = types.ModuleType("jax_measured.checks.toy")
    for name, factor in {"double": 2, "fourfold": 4, "eightfold": 8}.items():

        def check(answer, factor=factor):
            if answer(3) != 3 * factor:
                raise AssertionError(f"not {factor}")

        setattr(checks, f"check_{name}", check)
    for module in (solutions, checks):
        monkeypatch.setitem(sys.modules, module.__name__, module)

    def verdicts(text):
        path = tmp_path / "toy.py"
        path.write_text(text)
        judge = checking.Judge("toy", path)
        return {name: judge.verdict(name) for name in judge.checks}

    return verdicts


def test_what_calls_a_wrong_exercise_is_judged_with_its_solution(toy):
    assert toy(TOY) == {
        "double": (None, []),
        "fourfold": (None, []),
        "eightfold": (None, []),
    }
    wrong = TOY.replace("return x + x", "return x")
    assert toy(wrong) == {
        "double": ("not 2", []),
        "fourfold": (None, ["double"]),
        "eightfold": (None, ["double"]),
    }
    # A compiled answer was traced with what was wrong.
    compiled = wrong.replace("def", "import jax\n@jax.jit\ndef")
    assert toy(compiled)["eightfold"] == (None, ["double"])
    both = wrong.replace("double(double(x))", "double(x)")
    assert toy(both)["fourfold"] == ("not 4", ["double"])
    assert toy(both)["eightfold"] == (None, ["double", "fourfold"])
    # What is wrong by itself is not blamed on others.
    alone = TOY.replace("double_of(fourfold(x))", "fourfold(x)")
    assert toy(alone)["eightfold"] == ("not 8", [])


def test_what_an_exercise_uses_is_found(package):
    used = package.practising.used_in
    assert used(TOY)["eightfold"] == {"double", "fourfold", "eightfold"}
    shadowed = "def one():\n    pass\n\ndef two(one):\n    return [one for _ in one]\n"
    assert used(shadowed)["two"] == {"two"}
    outside = "def one():\n    pass\n\nalias = one\n\ndef two():\n    return alias()\n"
    assert used(outside)["two"] == {"one", "two"}


def test_what_has_changed_is_checked_first_and_then_what_was_not_checked(package, tmp_path):
    practice = package.practising.Practice(tmp_path / "here", "arrays")
    (lesson,) = practice.lessons
    seen = practice.seen["arrays"]
    first, *others = lesson.exercises
    given = lesson.file.read_text("utf8")
    last = others[-1]
    # A comment changes nothing, a line of a function does.
    lesson.file.write_text(given.replace(f"def {last}(", f"# Mine.\ndef {last}("), "utf8")
    assert lesson.waiting(seen) == lesson.exercises
    changed = re.sub(rf"(def {last}\([^\n]*\n)", r"\1    answer = 1\n", given)
    changed = changed.replace('    answer = 1\n    """', '    \'Other.\'\n    """')
    lesson.file.write_text(changed, "utf8")
    assert lesson.waiting(seen) == [last, first, *others[:-1]]
    lesson.judged = {name: (parts, None, []) for name, parts in lesson.parts().items()}
    assert lesson.waiting(seen) == []
    lesson.file.write_text(given, "utf8")
    assert lesson.waiting(seen) == [last]
    # What all may use is checked with all.
    lesson.file.write_text(given + "\nsize = 3\n", "utf8")
    assert lesson.waiting(seen) == lesson.exercises


def test_a_save_comes_before_the_rest_of_another_file(package, tmp_path, monkeypatch, capsys):
    practice = package.practising.Practice(tmp_path / "here", None)
    one, other = practice.lessons[1:3]
    asked = []

    def process(lesson, names, stop):
        for name in names:
            asked.append((lesson.name, name))
            yield {"name": name, "problem": "no", "given": []}
            if len(asked) == 1:
                save(other)
            if stop():
                return

    def save(lesson):
        path = lesson.file
        os.utime(path, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns + 10**9))

    monkeypatch.setattr(package.practising.Lesson, "_process", process)
    wanted = len(one.exercises) + len(other.exercises)
    monkeypatch.setattr(practice, "next", lambda: len(asked) < wanted)
    monkeypatch.setattr(practice, "say", lambda: None)
    save(one)
    practice.watch()
    names = [name for name, _ in asked]
    assert names == [
        one.name,
        *[other.name] * len(other.exercises),
        *names[-len(one.exercises) + 1 :],
    ]
    assert names.count(one.name) == len(one.exercises)


def test_an_exercise_that_ends_its_process_leaves_the_others(package, tmp_path, capsys):
    practice = package.practising.Practice(tmp_path / "here", "2")
    (lesson,) = practice.lessons
    first, *others = lesson.exercises
    text = (LEARN / "solutions" / "arrays.py").read_text("utf8")
    ends = re.sub(rf"(def {first}\([^\n]*\n)", r"\1    import os; os._exit(3)\n", text)
    lesson.file.write_text(ends, "utf8")
    assert practice.check(lesson)
    said = capsys.readouterr().out
    assert f"✗ {first}: the program ended with status 3" in said
    assert all(f"✓ {name}" in said for name in others)
    # What is no Python was not checked, so what is solved stays so.
    lesson.file.write_text(text + "\ndef (", "utf8")
    assert not practice.check(lesson)
    assert practice.solved == {f"arrays.{name}" for name in others}


def test_one_lesson_is_practised(package, tmp_path, capsys):
    two = package.practising.Practice(tmp_path / "two", "18")
    assert [lesson.name for lesson in two.lessons] == ["building", "project"]
    assert (tmp_path / "two" / "tiny_shakespeare.txt").exists()
    package.practising.Practice(tmp_path / "one", "arrays")
    assert [path.name for path in (tmp_path / "one").iterdir()] == ["02_arrays.py"]
    assert package.command.main(["practice", str(tmp_path / "none"), "--lesson", "99"]) == 2
    assert capsys.readouterr().err == (
        "there is no lesson '99': take a number of the course, or the name of a lesson's page, "
        "such as vmap\n"
    )
    assert not (tmp_path / "none").exists()


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
    [("update", "ten_minutes"), ("6.train", "state"), ("measuring.train", "measuring")],
)
def test_a_solution_is_that_of_the_lesson_with_the_exercise(package, capsys, name, lesson):
    assert package.practising.solution(name) == 0
    assert capsys.readouterr().out == (LEARN / "solutions" / f"{lesson}.py").read_text("utf8")


def test_a_file_from_before_its_lesson_had_another_number_stays_the_readers(package, tmp_path):
    (tmp_path / "98_state.py").write_text("entries = 3")
    practice = package.practising.Practice(tmp_path)
    (file,) = tmp_path.glob("*_state.py")
    assert (file.name, file.read_text("utf8")) == ("98_state.py", "entries = 3")
    assert file in {lesson.file for lesson in practice.lessons}


def test_a_name_of_two_exercises_is_asked_back(package, capsys):
    assert package.practising.solution("train") == 2
    said = capsys.readouterr().err
    assert said.startswith("lessons 6, ") and "and 16, " in said and "solution 6.train" in said
