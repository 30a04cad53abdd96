"""What a page draws or tabulates is not printed above it once more."""

import pytest
from bs4 import BeautifulSoup

CELL = "note('x/a', 0.5)"
TABLE = "```{measurements} x/*\n```"
CHART = "```{measurement-chart} x/a x/b\n```"
ROW = "| a | b |\n|---|---|\n| {measured}`x/b@python.first_call / x/a@python.first_call` | 1 |"


def folds(project):
    """Return (summary, text) of each folded output of a page."""
    page = BeautifulSoup(project.html("b/one"), "html.parser")
    found = [(d.summary.get_text(" ", strip=True), d.text) for d in page.select(".cell details")]
    return [(summary, text) for summary, text in found if "helpers" not in summary]


@pytest.mark.parametrize("shown", [TABLE, CHART, ROW])
def test_measurements_that_the_page_shows_again_are_folded(project, noting, shown):
    cells = [project.cell(f"note('x/{n}', 0.5)", "a.notes.note") for n in "ab"]
    project.page("b/one", *cells, shown)
    build = project.build()
    assert build.green, build.output
    found = folds(project)
    assert len(found) == 2
    assert all("Show the raw measurements" in summary for summary, _ in found)
    assert "x/a" in found[0][1]


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        (CELL, "Only a sentence: {measured}`x/a@python`."),
        (CELL, TABLE.replace("x/*", "y/*")),
        (f"{CELL}\nprint('more')", TABLE),
        (f"{CELL}\nnote('z', 0.5)", TABLE),
    ],
    ids=["a number", "another table", "more output", "another measurement"],
)
def test_what_the_page_does_not_show_again_is_open(project, noting, code, shown):
    more = project.cell("note('y/a', 0.5)", "a.notes.note")
    project.page("b/one", project.cell(code, "a.notes.note"))
    project.page("b/two", more, shown)
    text = project.path("b/one").read_text("utf8")
    project.path("b/one").write_text(f"{text}\n{shown}\n", "utf8")
    build = project.build()
    assert build.green, build.output
    assert folds(project) == []


def test_a_comparison_is_folded_where_all_its_alternatives_are_shown(project, comparing):
    cells = [
        project.cell(f"contest('{name}', 3.9, 4.0, 4.1)", "a.contests.contest") for name in "xy"
    ]
    project.page("b/one", *cells, TABLE, "```{measurements} y/slow\n```")
    build = project.build()
    assert build.green, build.output
    ((_, text),) = folds(project)
    assert "slow [python] against fast [python]: 4.0× slower" in text
