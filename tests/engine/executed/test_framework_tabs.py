"""Neighbouring cells of several frameworks are tabs, which remember the framework."""

import pytest

FRAMEWORKS = {
    "one": {"label": "The One", "modules": ["colorsys"]},
    "two": {"modules": ["textwrap"]},
}


def cell(framework, code, *options):
    lines = [f":framework: {framework}", *options]
    return "\n".join(["```{code-cell} python", *lines, code, "```"])


@pytest.fixture
def book(project):
    project.configure(f"book_frameworks = {FRAMEWORKS}")
    project.snippet("a.one", "def low(): return 40\ndef f(): return low()\n")
    return project


def tabs(project, docname="a/one"):
    """Return [(label, [output of each cell])] of each set of tabs."""
    page = project.soup(docname)
    found = []
    for tab_set in page.select(".framework-tabs"):
        labels = tab_set.select(":scope > label")
        assert {label["data-sync-group"] for label in labels} == {"framework"}
        contents = tab_set.select(":scope > .sd-tab-content")
        texts = [[o.get_text(strip=True) for o in c.select(".cell_output")] for c in contents]
        names = [f"{label.get_text(strip=True)}={label['data-sync-id']}" for label in labels]
        found.append(list(zip(names, texts, strict=True)))
    return found


def test_neighbouring_cells_are_tabs_with_the_names_of_frameworks(book):
    book.page(
        "a/one",
        book.cell("'alone'"),
        cell("one", "x = f()\nx", ":snippet: one.f"),
        cell("two", "x + 1"),
        cell("two", "x + 2"),
        "Prose.",
        cell("two", "x + 3"),
        cell("one", "x + 4"),
    )
    book.built()
    assert tabs(book) == [
        [("The One=one", ["40"]), ("two=two", ["41", "42"])],
        [("two=two", ["43"]), ("The One=one", ["44"])],
    ]
    page = book.soup("a/one")
    assert len(page.select(".framework-tab")[0].select(".cell")) == 2
    # They are downloaded one after the other.
    downloaded = [each.source for each in book.notebook("a/one").cells]
    assert downloaded[-5:] == ["x + 1", "x + 2", "Prose.", "x + 3", "x + 4"]
    # The framework that conf.py names first is open.
    opened = page.select(".framework-tabs > input[checked]")
    assert [box.find_next_sibling("label")["data-sync-id"] for box in opened] == ["one", "one"]


def test_outputs_of_devices_and_a_question_fit_into_a_tab(book):
    asked = '```{predict} Which?\n- a ~ "1"\n- b ~ "2"\n```'
    book.page("a/one", asked, cell("one", "1"), cell("two", "2"))
    book.recorded()
    book.recorded_elsewhere("a/one", ('"2"', '"3"'))
    book.built()
    page = book.soup("a/one")
    first, second = page.select(".framework-tab")
    assert len(first.select("details.predict-output")) == 1
    assert [o.get_text(strip=True) for o in second.select(".device-tab")] == ["2", "3"]


def test_a_framework_that_is_unknown_is_refused_with_its_line(book):
    book.page("a/one", cell("one", "1"), cell("to", "2"))
    build = book.build()
    assert "there is no framework 'to'; the nearest are two" in build.warnings[0]
    lines = book.path("a/one").read_text().splitlines()
    assert f"docs/a/one.md:{lines.index(':framework: to')}: " in build.warnings[0]
