"""The lessons of the course: their order, what each says of itself, and how long it is."""

import re

import pytest

from tests.book import pages
from tests.book.test_terms import TREE, UNREAD

INDEX = (pages.ROOT / "docs" / "index.md").read_text("utf8")
LISTED = re.findall(r"^(\d+) · (.+) <(.+)>$", INDEX, re.MULTILINE)
LESSONS = [page for _, _, page in LISTED]
# The first is measured; the last is a project of several pages.
OTHERS = LESSONS[1:-1]
WORDS, CELLS = 1600, 12


def text(page):
    return pages.paths()[page].read_text("utf8")


def head(page):
    """Return (number, how many, minutes, the lesson before) that a lesson says of itself."""
    says = r"\*\*Lesson (\d+)\*\* of (\d+), (\d+) minutes, after \[.+?\]\((.+?)\.md\)"
    return re.search(says, text(page)).groups()


def test_lessons_come_first_and_are_numbered_in_their_order():
    assert TREE.findall(INDEX)[0].count(" · ") == len(LESSONS)
    assert [int(number) for number, _, _ in LISTED] == list(range(1, len(LESSONS) + 1))
    for _, title, page in LISTED:
        assert re.search(rf"^# {re.escape(title)}$", text(page), re.MULTILINE)


def test_the_table_of_lessons_has_them_in_their_order():
    rows = re.findall(r"^\| (\d+) \| \[(.+?)\]\((.+?)\.md\) \|", text("learn/index"), re.MULTILINE)
    found = [(n, title, target.removeprefix("../")) for n, title, target in rows]
    assert found == [(n, title, page.removeprefix("learn/")) for n, title, page in LISTED]


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
    # The first measures what compiling saves, which takes one more.
    assert len(seen) <= CELLS + (page == LESSONS[0])
    assert exercises.count(":::{solution}") == 3


@pytest.mark.parametrize("page", OTHERS)
def test_a_lesson_measures_nothing(page):
    assert not pages.page(page).benchmark
