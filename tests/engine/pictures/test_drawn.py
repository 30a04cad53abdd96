"""Pictures are drawn from what ran, for every device, and the data stay with them."""

OPTIONS = ":picture: stages\n:caption: From <start> to end.\n"


def cell(code, options=OPTIONS):
    return f"```{{code-cell}} python\n{options}{code}\n```"


def test_a_picture_is_drawn_over_its_data_and_timelines_of_a_page_have_one_scale(project):
    project.page("a/one", cell("print('before')\n[('trace', 0.5), ('run', 0.25)]"))
    options = ":picture: timeline\n:caption: Before and after.\n"
    project.page("a/two", *(cell(f"[('a', 'b', 0, {end})]", options) for end in (4, 1)))
    project.built()
    page = project.soup("a/one")
    (figure,) = page.select("figure.picture")
    assert [bar["x"] for bar in figure.select(".bar")] == ["0%", "66.67%"]
    assert figure.figcaption.contents[0] == "From <start> to end."
    assert figure.select_one("details pre").get_text() == "[('trace', 0.5), ('run', 0.25)]"
    outputs = page.select_one(".cell_output")
    assert "before" in outputs.get_text()
    assert outputs.get_text().count("('trace', 0.5)") == 1
    assert "picture" not in page.select_one(".cell_input").get_text()
    # The notebook to download holds the data alone.
    (code,) = [each for each in project.notebook("a/one").cells if each.cell_type == "code"]
    assert code.outputs[-1].data == {"text/plain": "[('trace', 0.5), ('run', 0.25)]"}
    assert not code.outputs[-1].metadata
    bars = project.soup("a/two").select("figure .bar")
    assert [bar["width"] for bar in bars] == ["100%", "25%"]


WRONG = [
    ("[('run', 'x')]", OPTIONS, "is drawn from a list of (stage, seconds)"),
    ("None", OPTIONS, "gave nothing"),
    ("print([('run', 1)])", OPTIONS, "gave nothing"),
    ("[('run', 1)]", ":picture: stages\n", "needs ':caption:'"),
    ("[('run', 1)]", OPTIONS.replace("stages", "stage"), "there is no picture 'stage'"),
]


def test_data_that_cannot_be_drawn_fail_the_page_at_their_cell(project):
    # A page that fails is not blamed for the pictures that it did not come to.
    project.page("a/fails", cell("1 / 0", ""), cell("[('run', 1)]"))
    for number, (code, options, _) in enumerate(WRONG):
        project.page(f"a/p{number}", "Text.", cell(code, options))
    build = project.build()
    assert build.status != 0
    (blamed,) = [each for each in build.warnings if "/fails.md" in each]
    assert "ZeroDivisionError" in blamed
    for number, (_, _, said) in enumerate(WRONG):
        (warning,) = [each for each in build.warnings if f"/p{number}.md" in each]
        line = project.line(f"a/p{number}", "{code-cell}")
        assert f"p{number}.md:{line}: " in warning and said in warning
