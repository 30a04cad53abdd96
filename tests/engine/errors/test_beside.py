"""Below a cell that asks for it: the lines that other versions print in another way."""

import pytest

ASKING = """
```{code-cell} python
:by-version: true
print("apples 1\\n<b>pears</b> 2")
```
"""


@pytest.fixture
def book(project):
    project.with_versions()
    project.page("a/one", ASKING)
    return project


def printed(project, version, text=None):
    """Keep a recording of the page with a version, where its cell printed another text."""

    def change(outputs):
        outputs[0]["text"] = text or outputs[0]["text"]

    project.recorded_on(version, "a/one", change)


def beside(project):
    project.built()
    return project.soup("a/one").select_one(".by-version")


def test_only_lines_that_differ_are_shown_for_the_versions_that_print_them(book):
    printed(book, "1.0", "apples 1\n<b>pears</b> 3\n")
    printed(book, "2.0", "apples 1\n<b>pears</b> 3\n")
    printed(book, "3.0", "apples 7\n<b>pears</b> 2\n")
    found = beside(book)
    assert found.name == "details"
    assert found.summary.text == "Where other versions of ipykernel print something else"
    assert [p.text for p in found.select("p")] == ["ipykernel 1.0 to 2.0", "ipykernel 3.0"]
    assert [pre.text for pre in found.select("pre")] == ["<b>pears</b> 3", "apples 7"]


def test_versions_that_print_the_same_are_named(book):
    for version in ("1.0", "3.0"):
        printed(book, version)
    assert beside(book).text == "The same with ipykernel 1.0 to 3.0."


def test_where_only_lines_are_gone_those_that_stay_are_shown(book):
    printed(book, "2.0", "apples 1\n")
    found = beside(book)
    assert found.select_one("p").text == "ipykernel 2.0"
    assert found.select_one("pre").text == "apples 1"


def test_without_recordings_of_versions_nothing_is_said(book):
    assert beside(book) is None


def test_cells_that_do_not_ask_show_nothing(book):
    book.edit(book.path("a/one"), ":by-version: true\n", "")
    printed(book, "1.0", "apples 9\n")
    assert beside(book) is None


def test_a_downloaded_notebook_has_what_the_page_printed_alone(book):
    printed(book, "1.0", "apples 9\n")
    beside(book)
    (cell,) = (cell for cell in book.notebook("a/one").cells if cell.cell_type == "code")
    assert [output.text for output in cell.outputs] == ["apples 1\n<b>pears</b> 2\n"]
