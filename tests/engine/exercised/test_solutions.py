"""Behind the task of an exercise: a hint and a solution, folded, and a tick that stays."""

import pytest

SOLUTION = "```{solution} a.solved.double\nAdd *x* to itself.\n```"
SNIPPET = (
    "import math\n\n\ndef low(x): return x\n\n\ndef double(x): return low(x) * math.prod([2])\n"
)


def test_hint_and_solution_are_folded_and_the_solution_is_not_executed(project):
    project.snippet("a.task", "def double(x): return x\n")
    project.snippet("a.solved", SNIPPET)
    task = project.cell("print(double(1))", snippet="a.task.double")
    project.page("a/one", task, SOLUTION, "Prose behind it.")
    project.built()
    hint, solution = project.soup("a/one").select(".exercise-help > details")
    assert hint.summary.text == "A hint" and hint.em.text == "x"
    assert solution.summary.text == "A solution"
    assert "import math" in solution.pre.text and "def low" in solution.pre.text
    assert solution.pre.text.rstrip().endswith("math.prod([2])")
    assert project.outputs("a/one") == ["1"]

    # The notebook has the task, and the hint, folded.
    text = "\n".join(cell.source for cell in project.notebook("a/one").cells)
    assert "Prose behind it." in text and "def double(x): return x" in text
    assert "<details><summary>A hint</summary>\n\nAdd *x* to itself.\n\n</details>" in text
    assert "A solution" not in text and "math.prod" not in text and "Solved" not in text
    project.snippet("a.solved", SNIPPET.replace("[2]", "[2, 1]"))
    project.built()
    assert "math.prod([2, 1])" in project.soup("a/one").select_one(".exercise-help").text


def test_an_author_is_told_what_is_wrong_at_its_line(project):
    wrong = SOLUTION.replace("double", "duble"), "```{solution} a.solved.double\n```"
    project.snippet("a.solved", SNIPPET)
    project.page("a/one", project.cell("0"), *wrong)
    build = project.build()
    assert build.status == 1
    line = project.line("a/one", "duble")
    assert f"a/one.md:{line}: ERROR: there is no snippet 'a.solved.duble'" in build.output
    assert "Content block expected" in build.output


@pytest.fixture(scope="module")
def site(lasting, served):
    """Build a page with an exercise, and one that lists lessons; yield the site's address."""
    lasting.snippet("a.solved", SNIPPET)
    lasting.page("a/one", lasting.cell("0"), SOLUTION)
    lessons = ":::{container} lessons\n[The lesson](a/one.md)\n:::"
    lasting.page("list", lessons, lasting.cell("0"))
    lasting.recorded()
    lasting.built()
    with served(lasting.root / "build" / "html") as address:
        yield address


def test_what_a_check_says_of_the_task_is_folded_beside_a_way_to_try_it(browser, site):
    page = browser.new_context().new_page()
    page.goto(f"{site}/a/one.html")
    page.get_by_text("What the check says before you begin").wait_for()
    assert not page.locator(".exercise-said .cell_output").is_visible()
    page.get_by_text("What the check says before you begin").click()
    assert page.locator(".exercise-said .cell_output").is_visible()


def test_a_tick_stays_and_is_counted_in_the_list(browser, site):
    page = browser.new_context().new_page()
    page.goto(f"{site}/a/one.html")
    page.get_by_label("Solved").check()
    page.reload()
    assert page.get_by_label("Solved").is_checked()
    page.goto(f"{site}/list.html")
    assert page.locator(".exercises-solved").inner_text() == "1 solved"
    page.goto(f"{site}/a/one.html")
    page.get_by_label("Solved").uncheck()
    page.goto(f"{site}/list.html")
    assert page.locator(".exercises-solved").count() == 0


def test_without_scripts_there_is_no_tick(browser, site):
    page = browser.new_context(java_script_enabled=False).new_page()
    page.goto(f"{site}/a/one.html")
    assert not page.get_by_text("Solved").is_visible()
    page.get_by_text("A solution").click()
    assert page.get_by_text("math.prod").is_visible()
