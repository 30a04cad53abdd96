"""Lists of errors: each entry has the message that was printed, here and with other versions."""

import re

import pytest

RAISING = """
```{code-cell} python
:raises: ValueError no pears
raise ValueError("no pears, 3 apples")
```
"""
LIST = """
```{error-entry} ValueError: no pears
They are sold out. [Buy some](one.md).
```
"""


@pytest.fixture
def book(project):
    project.with_versions()
    project.page("a/one", RAISING)
    project.page("a/list", LIST)
    return project


def recorded(project, version, **error):
    """Keep a recording of the page with a version, where its cell came to another error."""

    def change(outputs):
        outputs[0] |= error
        if not error.get("ename", True):
            outputs.clear()

    return project.recorded_on(version, "a/one", change)


def entry(project):
    return project.soup("a/list").select_one("section.error-entry")


def test_an_entry_is_a_section_with_the_message_as_it_was_printed(book):
    book.built()
    found = entry(book)
    assert found["id"] == "error-valueerror-no-pears"
    assert found.find(re.compile(r"h\d")).code.text == "ValueError: no pears"
    assert found.find("p", recursive=False).text == "They are sold out. Buy some."
    assert found.select_one("details pre").text == "ValueError: no pears, 3 apples"
    assert found.select_one("details.differs") is None


def test_a_message_is_shown_without_the_colours_of_a_terminal(book):
    book.page("a/one", RAISING.replace("no pears, 3", "no pears, \\x1b[35m3\\x1b[39m"))
    book.built()
    assert entry(book).select_one("details pre").text == "ValueError: no pears, 3 apples"


def test_versions_that_say_something_else_are_shown_together(book):
    recorded(book, "1.0", evalue="pears are out, 3 apples")
    recorded(book, "2.0", evalue="pears are out, 4 apples")
    recorded(book, "3.0", evalue="no pears, 17 apples")
    book.built()
    found = entry(book).select_one("details.differs")
    assert [heading.text for heading in found.select("p")] == ["ipykernel 1.0 to 2.0"]
    assert [text.text for text in found.select("pre")] == [
        "ValueError: no pears, 3 apples",
        "ValueError: pears are out, 3 apples",
    ]


def test_a_version_that_has_the_same_words_in_another_order_says_nothing_else(book):
    recorded(book, "1.0", evalue="3 apples, no pears")
    book.built()
    assert entry(book).select_one("details.differs") is None


def test_a_version_that_names_another_address_says_nothing_else(book):
    book.page("a/one", RAISING.replace("3 apples", "<pear at 0x7fa0>"))
    recorded(book, "1.0", evalue="no pears, <pear at 0x61b3>")
    book.built()
    assert entry(book).select_one("details.differs") is None


def test_two_entries_that_begin_alike_have_anchors_of_their_own(book):
    book.page("a/one", RAISING.replace("3 apples", "3 apples and some plums"))
    entries = [LIST.replace("no pears", f"no pears, 3 apples and {end}") for end in ("", "some")]
    book.page("a/list", *entries, notebook=False)
    book.built()
    found = book.soup("a/list").select("section.error-entry")
    anchor = "error-valueerror-no-pears-3-apples-and"
    assert [each["id"] for each in found] == [anchor, f"{anchor}-2"]


def test_a_version_without_the_error_says_so(book):
    recorded(book, "1.0", ename="")
    book.built()
    found = entry(book).select_one("details.differs")
    assert found.select("p")[-1].text == "ipykernel 1.0: no error"
    assert len(found.select("pre")) == 1


def test_a_version_that_lacks_a_name_the_cell_uses_says_nothing_of_its_error(book):
    for version, kind in (("1.0", "AttributeError"), ("2.0", "NameError"), ("3.0", "KeyError")):
        recorded(book, version, ename=kind, evalue="pears")
    book.built()
    assert [p.text for p in entry(book).select("details.differs p")] == ["ipykernel 3.0"]


def test_what_unrecorded_versions_said_is_shown_last(book):
    book.with_versions(earlier="earlier.toml")
    path = book.root / "earlier.toml"
    path.write_text(
        '["ValueError: no p"]\n"0.1" = "LookupError: pears?"\n[other]\n1 = "x"\n', "utf8"
    )
    book.built()
    found = entry(book).select_one("details.differs")
    assert found.select("p")[-1].text == "ipykernel 0.1"
    assert found.select("pre")[-1].text == "LookupError: pears?"
    book.edit(path, "pears?", "plums?")
    book.built()
    assert entry(book).select("pre")[-1].text == "LookupError: plums?"


def test_an_entry_that_no_cell_declares_is_refused(book):
    book.page("a/list", LIST.replace("no pears", "no plums"))
    build = book.build()
    assert not build.green
    (warning,) = build.warnings
    assert "a/list.md" in warning
    assert "no cell of the book declares the error 'ValueError: no plums'" in warning


def test_an_entry_that_is_quoted_needs_no_cell_and_names_its_source(book):
    book.with_versions(earlier="earlier.toml")
    (book.root / "earlier.toml").write_text("", "utf8")
    path = book.root / "quoted.toml"
    table = '[["ValueError: no plums"]]\n'
    rest = 'by = "Fruit 1.0"\nsource = "https://example.org/plums"\ntext = "no plums <here>"\n'
    path.write_text(table + rest + table + rest.replace("1.0", "2.0"), "utf8")
    book.page("a/list", LIST.replace("no pears", "no plums"))
    book.built()
    found = entry(book)
    assert found["id"] == "error-valueerror-no-plums"
    assert found.select_one("summary").text == "Quoted: Fruit 1.0"
    links = [(link.text, link["href"]) for link in found.select("details a")]
    assert links == [(f"Fruit {n}.0", "https://example.org/plums") for n in (1, 2)]
    assert {text.text for text in found.select("details pre")} == {"no plums <here>"}


def test_an_entry_may_be_printed_and_quoted(book):
    book.with_versions(earlier="earlier.toml")
    (book.root / "earlier.toml").write_text("", "utf8")
    rest = 'by = "Fruit"\nsource = "https://example.org"\ntext = "none"\n'
    (book.root / "quoted.toml").write_text('[["ValueError: no pears"]]\n' + rest, "utf8")
    book.built()
    printed, quoted = entry(book).select("details")
    assert printed.select_one("pre").text == "ValueError: no pears, 3 apples"
    assert quoted.select_one("pre").text == "none"


def test_a_text_of_a_version_is_left_out_once_the_code_has_changed(book):
    recorded(book, "1.0", evalue="pears are out")
    book.built()
    assert entry(book).select_one("details.differs")
    book.edit(book.path("a/one"), "3 apples", "5 apples")
    book.built()
    assert entry(book).select_one("details.differs") is None
    assert "1 texts left out, of a/one" in book.run("list_recordings").stdout


def test_a_list_follows_what_the_page_of_the_error_prints(book):
    book.built()
    book.edit(book.path("a/one"), "3 apples", "5 apples")
    book.built()
    assert entry(book).select_one("details pre").text == "ValueError: no pears, 5 apples"
