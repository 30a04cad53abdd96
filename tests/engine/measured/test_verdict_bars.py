"""Bars of verdicts count what the roles of pages come to."""


def test_bars_count_the_verdicts_of_each_page(project, noting):
    project.page(
        "b/one", project.cell("contest('x', 1.9, 2.0, 2.1, apart=True)", "a.notes.contest")
    )
    ratio = "x/slow@python / x/fast@python"
    project.page(
        "x/claims",
        "{verdict}`holds`, {verdict}`holds` and {verdict}`wrong`.",
        f"{{verdict}}`{ratio} in 1.5.. ? holds : wrong`",
        "```{verdict-bars} x/claims\n```",
    )
    project.page("x/all", "```{verdict-bars} x/claims index\n```")
    project.built()
    assert project.soup("x/claims").select_one(".verdict-counts").text == "3 holds, 1 wrong"
    first, second = project.soup("x/all").select(".verdict-bars li")
    assert first.a["href"] == "claims.html"
    drawn = [(each["x"], each["width"], each["class"]) for each in first.select("rect")]
    assert drawn == [("0%", "75%", ["verdict-holds"]), ("75%", "25%", ["verdict-wrong"])]
    assert not second.select("rect")


def test_a_page_that_there_is_not_is_red_at_its_line(project):
    project.page("x/all", "```{verdict-bars} x/claim\n```")
    (warning,) = project.build().warnings
    assert "there is no page 'x/claim'" in warning
