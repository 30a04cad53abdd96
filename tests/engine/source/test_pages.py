"""A page becomes a notebook whose cells need nothing but the frameworks."""

import pytest
from _ext.source.pages import HELPERS, PageError, read_page
from _ext.source.snippets import Library
from nbclient import NotebookClient


@pytest.fixture
def read(project):
    def read(docname, *parts, **settings):
        path = project.page(docname, *parts, **settings)
        return read_page(docname, path, Library(project.root / "snippets"))

    return read


def folded(cell):
    return cell.metadata.get("mystnb", {}).get("code_prompt_show") == HELPERS


def test_a_cell_is_imports_then_sources_then_lines_of_the_page(project, read):
    project.snippet(
        "a.one",
        """
        import math
        import os


        def area(radius):
            return math.pi * radius


        def twice(x):
            return 2 * x
        """,
    )
    page = read("a/one", project.cell("twice(area(1))", snippet="one.area one.twice"))
    (cell,) = page.code_cells
    assert cell.source == (
        "import math\n\n\n"
        "def area(radius):\n    return math.pi * radius\n\n\n"
        "def twice(x):\n    return 2 * x\n\n\n"
        "twice(area(1))"
    )


def test_helpers_come_folded_and_once_for_each_page(project, read):
    project.snippet("a.low", "import math\ndef low(x): return math.floor(x)\n")
    project.snippet(
        "a.one",
        """
        from snippets.a.low import low
        def f(x): return low(x)
        def g(x): return low(f(x))
        """,
    )
    page = read(
        "a/one",
        project.cell("f(1)", snippet="one.f"),
        project.cell("g(1)", snippet="one.g"),
        project.cell("low(1)", snippet="low.low"),
    )
    helpers, first, second, third = page.code_cells
    assert [folded(cell) for cell in page.code_cells] == [True, False, False, False]
    assert helpers.source == "import math\n\n\ndef low(x): return math.floor(x)"
    assert first.source == "def f(x): return low(x)\n\n\nf(1)"
    assert second.source == "def g(x): return low(f(x))\n\n\ng(1)"
    assert "def low" in third.source
    assert sorted(page.modules) == ["a.low", "a.one"]


def test_a_helper_of_the_same_name_from_another_module_is_not_taken_as_defined(project, read):
    project.snippet("a.one", "def scale(): return 1\ndef f(): return scale()\n")
    project.snippet("a.two", "def scale(): return 2\ndef g(): return scale()\n")
    page = read("a/one", project.cell("f()", snippet="one.f"), project.cell("g()", "two.g"))
    assert [cell.source for cell in page.code_cells if folded(cell)] == [
        "def scale(): return 1",
        "def scale(): return 2",
    ]


def test_a_page_knows_the_lines_of_its_cells(project, read):
    project.snippet("a.one", "def scale(): return 1\ndef f(): return scale()\n")
    page = read(
        "a/one", "Some prose.", project.cell("first"), "More.", project.cell("f()", "one.f")
    )
    fences = [
        number
        for number, line in enumerate(project.path("a/one").read_text().splitlines(), 1)
        if line.startswith("```{code-cell}")
    ]
    assert [page.line(cell) for cell in page.code_cells] == [fences[0], fences[1], fences[1]]
    prose = [cell for cell in page.notebook.cells if cell.cell_type == "markdown"]
    assert [page.line(cell) for cell in prose] == [
        project.line("a/one", "# Page"),
        project.line("a/one", "More."),
    ]


def test_a_page_without_cells_is_not_executed(project, read):
    assert read("a/one", "Only prose.") is None


def test_a_page_says_that_it_measures(project, read):
    assert read("a/one", project.cell("1"), benchmark=True).benchmark
    assert not read("a/one", project.cell("1")).benchmark


def test_an_error_in_the_lines_of_a_page_is_reported_at_its_line(project, read):
    project.snippet("a.one", "def f(): return 1\n")
    with pytest.raises(PageError) as refused:
        read("a/one", "Prose.", project.cell("f()\nx = = 3", snippet="one.f"))
    assert refused.value.line == project.line("a/one", "x = = 3")


def test_the_tag_that_accepts_any_error_is_refused(project, read):
    with pytest.raises(PageError, match="declare the error in EXPECTED_ERRORS") as refused:
        read("a/one", "Prose.", project.cell("1 / 0", tags="raises-exception"))
    assert refused.value.line == project.line("a/one", "{code-cell}")


def test_one_cell_cannot_show_two_declared_errors(project, read):
    project.snippet(
        "a.one",
        """
        EXPECTED_ERRORS = {"f": (ValueError, "f"), "g": (KeyError, "g")}
        def f(): raise ValueError("f")
        def g(): raise KeyError("g")
        """,
    )
    with pytest.raises(PageError, match=r"f and g.*a cell of its own"):
        read("a/one", project.cell("f()", snippet="one.f one.g"))


def test_pages_that_cannot_be_read_make_the_build_red_with_page_and_line(project):
    project.snippet("a.one", "def draw_twice(): return 1\n")
    project.page("a/good", project.cell("draw_twice()", snippet="one.draw_twice"))
    project.page("a/name", "Prose.", project.cell("1"), project.cell("2", "one.draw_twise"))
    project.page("a/tag", project.cell("1 / 0", tags="raises-exception"))
    project.page("a/syntax", project.cell("1", "one.draw_twice"), project.cell("x = = 3"))
    for build in (project.build(), project.build(strict=False)):
        assert build.status == 1
        assert set(build.executed) <= {"a/good", "a/syntax"}
        line = project.line("a/name", "draw_twise") - 1
        assert (
            f"docs/a/name.md:{line}: WARNING: there is no snippet 'one.draw_twise'; "
            "the nearest names are one.draw_twice" in build.output
        )
        line = project.line("a/tag", "{code-cell}")
        assert f"docs/a/tag.md:{line}: WARNING: the tag raises-exception" in build.output
        line = project.line("a/syntax", "x = = 3") - 1
        assert f"docs/a/syntax.md:{line}: WARNING: cell 2: raised SyntaxError" in build.output
        assert "3 failed: a/name, a/syntax, a/tag" in build.output
    assert len(project.cached()) == 1


def test_a_downloaded_notebook_runs_in_an_empty_folder_and_carries_its_outputs(project, tmp_path):
    project.snippet("a.low", "import math\ndef low(x): return math.floor(x)\n")
    project.snippet(
        "a.one",
        """
        from snippets.a.low import low
        EXPECTED_ERRORS = {"fail": (ZeroDivisionError, "division")}
        def f(x): return low(x) + 40
        def fail(): return 1 / 0
        """,
    )
    project.page(
        "a/one",
        "Prose.",
        project.cell("f(2.5)", snippet="one.f"),
        project.cell("fail()", snippet="one.fail"),
        project.cell("print('printed')\nf(3.5)"),
    )
    assert project.build().green
    notebook = project.notebook("a/one")
    carried = [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]
    assert [len(outputs) for outputs in carried] == [0, 1, 1, 2]
    assert carried[1][0]["data"]["text/plain"] == "42"
    assert carried[2][0]["ename"] == "ZeroDivisionError"
    assert carried[3][0]["text"] == "printed\n"
    assert "snippets" not in "".join(cell.source for cell in notebook.cells)

    for cell in notebook.cells:
        cell["outputs"] = []
    empty = tmp_path / "empty"
    empty.mkdir()
    NotebookClient(notebook, timeout=30, resources={"metadata": {"path": str(empty)}}).execute()
    again = [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]
    assert again[1] == carried[1]
    assert again[2][0]["ename"] == "ZeroDivisionError"
    assert again[3] == carried[3]
