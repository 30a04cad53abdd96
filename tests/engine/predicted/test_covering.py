"""Questions before cells: the build finds the answer, readers pick one, and then see the output."""

import pytest

from predicted import questions as predictions

ASKED = '```{predict} How many?\n- `one` ~ "1"\n- two ~ "traces: 2"\n```'
CELL = "```{code-cell} python\nprint('traces: 2')\n```"


@pytest.mark.parametrize(
    ("fragment", "printed", "is_in"),
    [
        ("2", "traces: 2", True),
        ("2", "[1, 2, 3]", True),
        ("2", "12", False),
        ("2", "2.5", False),
        ("5", "2.5", False),
        ("2", "2.", True),
        ("nan", "0.0 nan", True),
        ("nan", "nanosecond", False),
        ("f(x)", "f(x) + 1", True),
    ],
)
def test_a_fragment_is_no_part_of_another_word_or_number(fragment, printed, is_in):
    assert predictions.Answer("", fragment).is_in(printed) == is_in


@pytest.mark.parametrize(
    ("question", "lines", "words"),
    [
        ("", ['- a ~ "1"', '- b ~ "2"'], "needs a question"),
        ("Which?", ['- a ~ "1"'], "has 1 answers; give 2 to 4"),
        ("Which?", [f'- {n} ~ "{n}"' for n in range(5)], "has 5 answers"),
        ("Which?", ["- a", '- b ~ "2"'], "'- a' is no answer"),
        ("Which?", ['- a ~ "1"', '- a ~ "2"'], "has the answer 'a' twice"),
        ("Which?", ['a ~ "1"', '- b ~ "2"'], "'a ~ \"1\"' is no answer"),
    ],
)
def test_a_question_that_cannot_be_asked_is_refused(question, lines, words):
    with pytest.raises(predictions.PredictionError, match=words):
        predictions.read(question, lines)


@pytest.fixture(scope="module")
def site(empty_project, tmp_path_factory):
    """Build a page for each way to ask."""
    made = empty_project(tmp_path_factory.mktemp("asked"))
    made.configure('myst_enable_extensions = ["colon_fence"]')
    made.snippet("a.one", "def low(): return 2\ndef f(): return low()\n")
    made.page("a/one", made.cell("0"), ASKED, made.cell("print('traces:', f())", "one.f"))
    box = "(named)=\n:::{admonition} Careful\nIt is two.\n:::"
    explained = [CELL, box, "So it is two.", "More.", "(below)=\n## Below\n\nEnd."]
    made.page("a/explained", ASKED, *explained)
    made.page("a/cells", ASKED, CELL, CELL, "The end.")
    made.page("a/link", ASKED.replace("many", "[many](https://many.example)"), CELL)
    made.page("a/colons", ASKED.replace("many", "many of `f`").replace("```", ":::"), CELL)
    made.built()
    return made


def test_the_question_stands_between_code_and_output(site):
    page = site.soup("a/one")
    first, helpers, cell = page.select(".cell")
    assert not first.select(".predict") and not helpers.select(".predict")
    source, question, output = cell.find_all(recursive=False)
    assert "traces:" in source.text
    assert question.legend.text == "How many?" and question.button.code.text == "one"
    assert [button.text for button in question.select("button")] == ["one", "two"]
    assert question.fieldset["data-right"] == "1" and question.fieldset.has_attr("disabled")
    assert output.name == "details" and not output.has_attr("open")
    assert output.select_one(".predict-answer").text == "The answer: two"
    assert "traces: 2" in output.select_one(".cell_output").text
    assert "{predict}" not in page.text


def test_what_explains_the_output_is_seen_with_it(site):
    (covered,) = site.soup("a/explained").select(".predict-explanation")
    assert covered.find_previous_sibling().select("details.predict-output")
    assert covered.select_one(".admonition") and covered.find(id="named")
    assert "So it is two." in covered.text and "More." not in covered.text
    assert covered.find_next_sibling().text == "More."
    assert site.soup("a/explained").find(id="below")
    # A cell that follows at once explains nothing.
    assert not site.soup("a/cells").select(".predict-explanation")
    prose = "".join(cell.source for cell in site.notebook("a/explained").cells)
    assert "So it is two." in prose


def test_a_question_may_hold_a_link_or_code_between_colons_alone(site):
    link = site.soup("a/link").select_one("legend a")
    assert (link.text, link["href"]) == ("many", "https://many.example")
    assert site.soup("a/colons").select_one(".predict legend code").text == "f"


def test_the_downloaded_notebook_holds_the_question_as_text(site):
    prose = [cell.source for cell in site.notebook("a/link").cells if "source" in cell]
    asked = "**Before you look:** How [many](https://many.example)?\n\n- `one`\n- two"
    assert prose[1].endswith(asked)


def test_a_question_without_exactly_one_right_answer_fails_the_page(project):
    words = {
        "traces: 3": "and none of them does",
        "traces: 2 or 1": "and '`one`' and 'two' of them do",
    }
    names = {text: f"a/p{number}" for number, text in enumerate(words)}
    for text, name in names.items():
        project.page(name, "Prose.", ASKED, project.cell(f"print({text!r})"))
    for build in (project.build(), project.build()):
        assert build.status == 1
        for text, name in names.items():
            (warning,) = [each for each in build.warnings if f"/{name}.md" in each]
            line = project.line(name, "{predict}")
            assert f"{name}.md:{line}: WARNING: predict 'How many?': one answer" in warning
            assert words[text] in warning
        assert "2 failed: a/p0, a/p1" in build.output


def test_the_answer_must_be_the_same_on_every_device(project):
    project.page("a/one", ASKED, project.cell("print('traces: 2')"))
    project.recorded()
    project.recorded_elsewhere("a/one", ("traces: 2", "traces: 1"))
    build = project.build()
    assert "the answers differ: 'two' on CPU, '`one`' on gpu-h200" in build.output


# Parts of a page, and how many questions on it are without their cell.
ALONE = {
    "at the end": ((ASKED,), 1),
    "two": ((ASKED, "Prose.", ASKED), 2),
    "before prose": ((CELL, ASKED, "Prose.", CELL), 1),
    "before a heading": ((CELL, ASKED, "## A heading", CELL), 1),
    "behind the cell": ((CELL, ASKED, ""), 1),
    "before another": ((ASKED, ASKED, CELL), 1),
}


def test_a_question_without_its_cell_is_one_warning_at_its_line(project):
    names = {case: f"a/p{number}" for number, case in enumerate(ALONE)}
    for case, name in names.items():
        parts, _ = ALONE[case]
        project.page(name, *parts, notebook=CELL in parts)
    answers = '- yes ~ "alpha"\n- no ~ "beta"\n:::'
    project.page(
        "a/colons",
        f"::: {{predict}} First?\n{answers}",
        project.cell("print('beta')"),
        f":::{{predict}} Second?\n{answers}",
        project.cell("print('alpha')"),
    )
    project.configure('myst_enable_extensions = ["colon_fence"]')
    build = project.build()
    assert build.status == 1 and "Traceback" not in build.output
    # What MyST alone knows gives no other question its answer.
    assert "this question has no cell; write it as" in build.output
    (second,) = project.soup("a/colons").select(".predict")
    assert second.legend.text == "Second?" and second.fieldset["data-right"] == "0"
    for case, name in names.items():
        told = [each for each in build.warnings if f"/{name}.md" in each]
        assert len(told) == ALONE[case][1], case
        line = project.line(name, "{predict}")
        assert f"{name}.md:{line}: WARNING: a predict must stand directly before" in told[0], case
        assert not project.soup(name).select(".predict")
