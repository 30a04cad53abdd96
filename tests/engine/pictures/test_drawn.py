"""Pictures are drawn from what ran, for every device, and the data stay with them."""

OPTIONS = ":picture: stages\n:caption: From <start> to end.\n"


def cell(code, options=OPTIONS):
    return f"```{{code-cell}} python\n{options}{code}\n```"


def test_a_picture_is_drawn_over_its_data(project):
    project.page("a/one", cell("print('before')\n[('trace', 0.5), ('run', 0.25)]"))
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


def test_timelines_of_a_page_have_one_scale(project):
    options = ":picture: timeline\n:caption: Before and after.\n"
    project.page("a/one", *(cell(f"[('a', 'b', 0, {end})]", options) for end in (4, 1)))
    project.built()
    page = project.soup("a/one")
    assert [bar["width"] for bar in page.select("figure .bar")] == ["100%", "25%"]


def test_the_notebook_to_download_holds_the_data_alone(project):
    project.page("a/one", cell("[('run', 0.25)]"))
    project.built()
    cells = project.notebook("a/one").cells
    (code,) = [each for each in cells if each.cell_type == "code"]
    (output,) = code.outputs
    assert output.data == {"text/plain": "[('run', 0.25)]"}
    assert not output.metadata


WRONG = [
    ("[('run', 'x')]", OPTIONS, "is drawn from a list of (stage, seconds)"),
    ("None", OPTIONS, "gave nothing"),
    ("print([('run', 1)])", OPTIONS, "gave nothing"),
    ("[('run', 1)]", ":picture: stages\n", "needs ':caption:'"),
    ("[('run', 1)]", OPTIONS.replace("stages", "stage"), "there is no picture 'stage'"),
]


def test_data_that_cannot_be_drawn_fail_the_page_at_their_cell(project):
    for number, (code, options, _) in enumerate(WRONG):
        project.page(f"a/p{number}", "Text.", cell(code, options))
    build = project.build()
    assert build.status != 0
    for number, (_, _, said) in enumerate(WRONG):
        (warning,) = [each for each in build.warnings if f"/p{number}.md" in each]
        line = project.line(f"a/p{number}", "{code-cell}")
        assert f"p{number}.md:{line}: " in warning and said in warning


def test_a_page_that_fails_is_not_blamed_for_pictures_it_did_not_come_to(project):
    project.page("a/one", cell("1 / 0", ""), cell("[('run', 1)]"))
    build = project.build()
    assert build.status != 0
    assert "ZeroDivisionError" in build.output
    assert "picture" not in build.output
