"""The lessons of the course: their order, what each says of itself, and how long it is."""

import ast
import re
import runpy

import pytest

from tests.book import pages
from tests.book.test_terms import TREE, UNREAD

INDEX = (pages.ROOT / "docs" / "index.md").read_text("utf8")
LISTED = re.findall(r"^(\d+) · (.+) <(.+)>$", INDEX, re.MULTILINE)
LESSONS = [page for _, _, page in LISTED]
# The first is no lesson of `learn/`; the last is a project of several pages.
OTHERS = LESSONS[1:-1]
WORDS, CELLS = 1600, 12


def text(page):
    return pages.paths()[page].read_text("utf8")


def head(page):
    """Return (number, how many, minutes, the lesson before) that a lesson says of itself."""
    says = r"\*\*Lesson (\d+)\*\* of (\d+), (\d+) minutes, after \[.+?\]\((.+?)\.md\)"
    return re.search(says, text(page)).groups()


def test_lessons_come_first_and_are_numbered_in_their_order():
    course, project, *_ = TREE.findall(INDEX)
    assert (course.count(" · "), project.count(" · ")) == (len(LESSONS) - 1, 1)
    assert [int(number) for number, _, _ in LISTED] == list(range(1, len(LESSONS) + 1))
    for _, title, page in LISTED:
        assert re.search(rf"^# {re.escape(title)}$", text(page), re.MULTILINE)


def test_the_cards_of_lessons_have_them_in_their_order_with_their_minutes():
    title, footer = r"\{grid-item-card\} \[(\d+) · (.+?)\]\((.+?)\.md\)", r":::\{card-footer\}"
    card = rf"^::::{title}\n.+\n\n{footer}\n(.+)$"
    cards = re.findall(card, text("learn/index"), re.MULTILINE)
    found = [(n, title, target.removeprefix("../")) for n, title, target, _ in cards]
    assert found == [(n, title, page.removeprefix("learn/")) for n, title, page in LISTED]
    minutes = ["10 minutes", *(f"{head(page)[2]} minutes" for page in OTHERS), "an afternoon"]
    assert [time for *_, time in cards] == minutes


@pytest.mark.parametrize("page", OTHERS)
def test_a_lesson_says_its_number_and_the_lesson_before(page):
    number, count, minutes, before = head(page)
    place = LESSONS.index(page)
    assert (int(number), int(count)) == (place + 1, len(LESSONS))
    assert 15 <= int(minutes) <= 30
    assert before.rpartition("/")[2] == LESSONS[place - 1].rpartition("/")[2]
    exercises = f"snippets/learn/exercises/{page.rpartition('/')[2]}.py"
    assert f'"""Lesson {number}, ' in (pages.ROOT / exercises).read_text("utf8")


@pytest.mark.parametrize("page", LESSONS[:-1])
def test_a_lesson_is_read_within_half_an_hour(page):
    prose = UNREAD.sub(" ", text(page))
    assert len(prose.split()) <= WORDS
    lesson, _, exercises = text(page).partition("\n## Exercises\n")
    cells = re.findall(r"^```\{code-cell\} python\n((?::.*\n)*)", lesson, re.MULTILINE)
    # Of tabs one is seen at a time.
    behind = re.compile(":framework: (torch|tensorflow)")
    seen = [cell for cell in cells if not behind.search(cell)]
    assert len(seen) <= CELLS
    assert exercises.count(":::{solution}") in (3, 4)


def test_the_first_lesson_takes_ten_minutes():
    first = text(LESSONS[0])
    assert len(UNREAD.sub(" ", first).split()) <= 950
    assert first.count("```{code-cell}") <= 18


@pytest.mark.parametrize("page", LESSONS[:-1])
def test_a_lesson_measures_nothing(page):
    assert not pages.page(page).benchmark


def test_the_course_links_the_repository_where_it_is_known(monkeypatch):
    monkeypatch.setenv("BOOK_REPOSITORY", "https://example.com/book.git")
    said = runpy.run_path(str(pages.ROOT / "conf.py"))["myst_substitutions"]
    assert "(https://example.com/book)" in said["copy_of_the_repository"]
    assert "In {{ copy_of_the_repository }}:" in text("learn/index")


def shown(page):
    """Return what readers of a page see before they open a hint or a solution."""
    prose = re.sub(r"^:::\{solution\}.*?^:::$", "", text(page), flags=re.MULTILINE | re.DOTALL)
    page = pages.page(page)
    unseen = ("hide-input", "remove-cell")
    cells = (c.node for c in (page.cells if page else ()))
    return prose + "\n".join(
        c.source for c in cells if not {*unseen} & {*c.metadata.get("tags", ())}
    )


@pytest.mark.parametrize("page", OTHERS)
def test_what_a_solution_calls_was_named_before(page):
    path = pages.ROOT / "snippets" / "learn" / "solutions" / f"{page.rpartition('/')[2]}.py"
    nodes = ast.walk(ast.parse(path.read_text("utf8")))
    calls = {ast.unparse(node) for node in nodes if isinstance(node, ast.Attribute)}
    known = "\n".join(map(shown, LESSONS[: LESSONS.index(page) + 1]))
    names = {call for call in calls if re.match(r"(jax|optax)\.", call)}
    assert not {name for name in names if not re.search(rf"\b{name.rpartition('.')[2]}\b", known)}
