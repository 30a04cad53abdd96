"""What a page draws or tabulates is not printed above it once more."""

from bs4 import BeautifulSoup

CELL = "note('x/a', 0.5)"
TABLE = "```{measurements} x/*\n```"
CHART = "```{measurement-chart} x/a x/b\n```"
ROW = "| a | b |\n|---|---|\n| {measured}`x/b@python.first_call / x/a@python.first_call` | 1 |"


def folds(project, docname="b/one"):
    """Return (summary, text) of each folded output of a page."""
    page = BeautifulSoup(project.html(docname), "html.parser")
    found = [(d.summary.get_text(" ", strip=True), d.text) for d in page.select(".cell details")]
    return [(summary, text) for summary, text in found if "helpers" not in summary]


def test_measurements_that_the_page_shows_again_are_folded(project, noting):
    shown = {"table": TABLE, "chart": CHART, "row": ROW}
    for kind, text in shown.items():
        cells = [project.cell(f"note('{kind}/{n}', 0.5)", "a.notes.note") for n in "ab"]
        project.page(f"b/{kind}", *cells, text.replace("x/", f"{kind}/"))
    build = project.build()
    assert build.green, build.output
    for kind in shown:
        found = folds(project, f"b/{kind}")
        assert len(found) == 2
        assert all("Show the raw measurements" in summary for summary, _ in found)
        assert f"{kind}/a" in found[0][1]


OPEN = {
    "a number": (CELL, "Only a sentence: {measured}`x/a@python`."),
    "another table": (CELL, TABLE.replace("x/*", "y/*")),
    "more output": (f"{CELL}\nprint('more')", TABLE),
    "another measurement": (f"{CELL}\nnote('z', 0.5)", TABLE),
}


def test_what_the_page_does_not_show_again_is_open(project, noting):
    project.page("b/y", project.cell("note('y/a', 0.5)", "a.notes.note"))
    names = {kind: f"b/p{number}" for number, kind in enumerate(OPEN)}
    for number, (kind, name) in enumerate(names.items()):
        code, shown = (text.replace("x/", f"x{number}/") for text in OPEN[kind])
        project.page(name, project.cell(code, "a.notes.note"), shown)
    build = project.build()
    assert build.green, build.output
    for kind, name in names.items():
        assert folds(project, name) == [], kind


def test_a_comparison_is_folded_where_all_its_alternatives_are_shown(project, comparing):
    cells = [
        project.cell(f"contest('{name}', 3.9, 4.0, 4.1)", "a.contests.contest") for name in "xy"
    ]
    project.page("b/one", *cells, TABLE, "```{measurements} y/slow\n```")
    build = project.build()
    assert build.green, build.output
    ((_, text),) = folds(project)
    assert "slow [python] against fast [python]: 4.0× slower" in text
