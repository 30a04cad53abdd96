"""The last line of a page names the page to read next, and says why."""

import pytest

SAYS = "shows `b`, and why it *matters* at 5 < 6."


@pytest.fixture
def book(project):
    """Return a project with a page that names another, and a function that sets what it says."""
    project.configure("book_markdown = True")
    path = project.page("a/one", "Words.", project.cell("40 + 2"))
    project.page("b/two", "Other words.")

    def says(line):
        text = path.read_text("utf8")
        kept = [each for each in text.splitlines() if not each.startswith("next: ")]
        path.write_text("\n".join([kept[0], f'next: "{line}"', *kept[1:], ""]), "utf8")

    return project, says


def line_of(project):
    """Return the line on the page: its text, and where it leads."""
    (line,) = project.soup("a/one").select("p.read-next")
    (link,) = line.select("a")
    return line.get_text(), link["href"], link.get_text()


def test_the_last_line_of_a_page_leads_to_the_page_of_its_head(book):
    project, says = book
    says(f"b/two {SAYS}")
    project.built()
    text, leads, title = line_of(project)
    assert text == "Read next: Page b/two shows b, and why it *matters* at 5 < 6."
    assert (leads, title) == ("../b/two.html", "Page b/two")
    line = project.soup("a/one").select_one("p.read-next")
    assert line.select_one("code").get_text() == "b"
    assert line.find_previous_sibling("p")["class"] == ["provenance"]
    assert not line.find_next_sibling(["p", "section"])
    assert not project.soup("b/two").select(".read-next")
    last = (project.root / "build/html/a/one.md").read_text("utf8").strip().splitlines()[-1]
    assert last.startswith("Read next: [Page b/two](../b/two.md) shows `b`, and why")
    assert project.notebook("a/one").cells[-1].source.startswith("Read next: Page b/two shows `b`")


def test_the_line_has_the_title_that_the_page_has_now(book):
    project, says = book
    says(f"b/two {SAYS}")
    project.built()
    project.edit(project.path("b/two"), "# Page b/two", "# Another `title`")
    project.built()
    assert line_of(project)[2] == "Another title"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("b/tow shows why.", "there is no page 'b/tow'; the nearest are b/two"),
        ("b/two shows why", "words that end with a full stop must follow 'b/two'"),
        ("b/two", "words that end with a full stop must follow 'b/two'"),
    ],
)
def test_a_line_that_cannot_be_is_reported_at_its_page(book, line, problem):
    project, says = book
    says(line)
    build = project.build(strict=False)
    (warning,) = build.warnings
    assert "a/one.md:1" in warning and f"'next' in the head: {problem}" in warning
    assert not project.soup("a/one").select(".read-next")


def test_a_page_whose_next_page_is_gone_is_reported_by_the_next_build(book):
    project, says = book
    says(f"b/two {SAYS}")
    project.built()
    project.path("b/two").unlink()
    (warning,) = project.build(strict=False).warnings
    assert "a/one.md:1" in warning and "there is no page 'b/two'" in warning
