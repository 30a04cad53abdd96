"""Exercises: each has a task on its page, a solution and a check."""

import ast
import importlib
import re

import pytest

from snippets.programs.practice import problem_of
from tests.book import pages

pytestmark = pytest.mark.usefixtures("few_objects")

SNIPPETS = pages.ROOT / "snippets"
# The pages with exercises, as chapter.module; those of the chapter learn are lessons.
LESSONS = sorted(
    f"{path.parents[1].name}.{path.stem}" for path in SNIPPETS.glob("*/exercises/[a-z]*.py")
)


def path_of(kind, lesson):
    chapter, name = lesson.split(".")
    return SNIPPETS / chapter / kind / f"{name}.py"


def module(kind, lesson):
    chapter, name = lesson.split(".")
    return importlib.import_module(f"snippets.{chapter}.{kind}.{name}")


def checks(lesson):
    """Return {exercise: check} of a lesson, in the order of its module."""
    found = vars(module("checks", lesson)).items()
    own = {key: value for key, value in found if key.startswith("check_")}
    return {key.removeprefix("check_"): value for key, value in own.items()}


EXERCISES = [(lesson, name) for lesson in LESSONS for name in checks(lesson)]


@pytest.mark.parametrize(("lesson", "name"), EXERCISES)
def test_the_solution_is_right_and_the_task_is_not(lesson, name, monkeypatch):
    # A page runs beside its data.
    chapter, stem = lesson.split(".")
    monkeypatch.chdir(pages.paths()[pages.with_exercises(stem, chapter)].parent)
    check = checks(lesson)[name]
    assert problem_of(check, getattr(module("solutions", lesson), name)) is None
    assert problem_of(check, getattr(module("exercises", lesson), name))


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_check_speaks_in_words(lesson):
    tree = ast.parse(path_of("checks", lesson).read_text("utf8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            assert node.msg, f"{lesson}.py:{node.lineno}: an assert without words"


@pytest.mark.parametrize("lesson", LESSONS)
def test_three_wrong_answers_to_each_are_told_different_things(lesson):
    chapter, stem = lesson.split(".")
    wrong = importlib.import_module(f"tests.{chapter}.exercises.test_{stem}").WRONG
    for name, check in checks(lesson).items():
        said = {words for judged, _, words in wrong if judged is check}
        assert len(said) >= 3, f"{lesson}.{name}: {said}"


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_lesson_has_three_exercises_each_with_its_check_and_its_solution(lesson):
    chapter, stem = lesson.split(".")
    text = pages.paths()[pages.with_exercises(stem, chapter)].read_text("utf8")
    names = list(checks(lesson))
    assert len(names) >= (3 if chapter == "learn" else 1)
    for name in names:
        task = re.search(rf"^:snippet:.*\bexercises\.{stem}\.{name}\b", text, re.MULTILINE).end()
        check = text.index(f"\njudge(check_{name}, {name})\n", task)
        assert re.search(rf"^:::{{solution}} .*solutions\.{stem}\.{name}$", text[check:], re.M)


@pytest.mark.parametrize("lesson", LESSONS)
def test_exercises_run_in_a_folder_of_their_own(lesson):
    for kind in ("exercises", "solutions", "checks"):
        text = path_of(kind, lesson).read_text("utf8")
        borrowed = set(re.findall(r"^from (snippets\.[\w.]+)", text, re.MULTILINE))
        assert borrowed <= ({"snippets.programs.practice"} if kind == "checks" else set())
