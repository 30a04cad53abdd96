"""Below a cell that asks for it: the lines that other versions print in another way."""

import pytest

ASKING = """
```{code-cell} python
:by-version: true
print("apples 1\\n<b>pears</b> 2")
```
"""


PEARS = "<b>pears</b>"
# Of each page what other versions print: the same where there is nothing.
PRINTED = {
    "lines": {
        "1.0": f"apples 1\n{PEARS} 3\n",
        "2.0": f"apples 1\n{PEARS} 3\n",
        "3.0": f"apples 7\n{PEARS} 2\n",
    },
    "same": {"1.0": "", "3.0": ""},
    "gone": {"2.0": "apples 1\n"},
    "unknown": {},
    "unasked": {"1.0": "apples 9\n"},
}


@pytest.fixture(scope="module")
def book(empty_project, tmp_path_factory):
    made = empty_project(tmp_path_factory.mktemp("beside"))
    made.with_versions()
    for name in PRINTED:
        made.page(name, ASKING)
    made.edit(made.path("unasked"), ":by-version: true\n", "")
    made.recorded()
    for name, versions in PRINTED.items():
        for version, text in versions.items():
            printed = {"text": text} if text else {}
            made.recorded_on(version, name, lambda outputs, new=printed: outputs[0].update(new))
    made.built()
    return made


def beside(project, name):
    return project.soup(name).select_one(".by-version")


def test_only_lines_that_differ_are_shown_for_the_versions_that_print_them(book):
    found = beside(book, "lines")
    assert found.name == "details"
    assert found.summary.text == "Where other versions of ipykernel print something else"
    assert [p.text for p in found.select("p")] == ["ipykernel 1.0 to 2.0", "ipykernel 3.0"]
    assert [pre.text for pre in found.select("pre")] == [f"{PEARS} 3", "apples 7"]


def test_versions_that_print_the_same_are_named(book):
    assert beside(book, "same").text == "The same with ipykernel 1.0 to 3.0."


def test_where_only_lines_are_gone_those_that_stay_are_shown(book):
    found = beside(book, "gone")
    assert found.select_one("p").text == "ipykernel 2.0"
    assert found.select_one("pre").text == "apples 1"


def test_nothing_is_said_without_recordings_of_versions_or_where_no_cell_asks(book):
    assert beside(book, "unknown") is beside(book, "unasked") is None


def test_a_downloaded_notebook_has_what_the_page_printed_alone(book):
    (cell,) = (cell for cell in book.notebook("lines").cells if cell.cell_type == "code")
    assert [output.text for output in cell.outputs] == [f"apples 1\n{PEARS} 2\n"]
