"""Lists of errors: each entry has the message that was printed, here and with other versions."""

import json
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


# Of each error what other versions say in its place; in messages and entries it is of `pears`.
SAID = {
    "pears": {
        "1.0": {"evalue": "pears are out, 3 apples"},
        "2.0": {"evalue": "pears are out, 4 apples"},
        "3.0": {"evalue": "no pears, 17 apples"},
    },
    "order": {"1.0": {"evalue": "3 apples, no order"}},
    "address": {"1.0": {"evalue": "no address, <pear at 0x61b3>"}},
    "none": {"1.0": {"ename": ""}},
    "names": {
        version: {"ename": kind, "evalue": "pears"}
        for version, kind in (("1.0", "AttributeError"), ("2.0", "NameError"), ("3.0", "KeyError"))
    },
    "colours": {},
    "alike": {},
}
APPLES = {
    "address": "<pear at 0x7fa0>",
    "colours": "\\x1b[35m3\\x1b[39m apples",
    "alike": "3 apples and some plums",
}


def recorded(project, version, docname="a/one", **error):
    """Keep a recording of a page with a version, where its cell came to another error."""

    def change(outputs):
        outputs[0] |= error
        if not error.get("ename", True):
            outputs.clear()

    project.recorded_on(version, docname, change)


def entry(project, name=""):
    return project.soup(f"{name}/list" if name else "a/list").select_one("section.error-entry")


@pytest.fixture(scope="module")
def site(empty_project, tmp_path_factory):
    """Build a page that raises each error, and one with its entry; versions have said others."""
    made = empty_project(tmp_path_factory.mktemp("errors"))
    made.with_versions()
    for name in SAID:
        raising, listing = (text.replace("pears", name) for text in (RAISING, LIST))
        made.page(f"{name}/one", raising.replace("3 apples", APPLES.get(name, "3 apples")))
        ends = ("3 apples and ", "3 apples and some") if name == "alike" else ("",)
        entries = [listing.replace("alike", f"alike, {end}") if end else listing for end in ends]
        made.page(f"{name}/list", *entries, notebook=False)
    made.recorded()
    for name, versions in SAID.items():
        for version, error in versions.items():
            recorded(made, version, f"{name}/one", **error)
    made.built()
    return made


def test_an_entry_is_a_section_with_the_message_as_it_was_printed(site):
    found = entry(site, "order")
    assert found["id"] == "error-valueerror-no-order"
    assert found.find(re.compile(r"h\d")).code.text == "ValueError: no order"
    assert found.find("p", recursive=False).text == "They are sold out. Buy some."
    assert found.select_one("details pre").text == "ValueError: no order, 3 apples"


def test_a_message_is_shown_without_the_colours_of_a_terminal(site):
    shown = entry(site, "colours").select_one("details pre").text
    assert shown == "ValueError: no colours, 3 apples"


def test_versions_that_say_something_else_are_shown_together(site):
    found = entry(site, "pears").select_one("details.differs")
    assert [heading.text for heading in found.select("p")] == ["ipykernel 1.0 to 2.0"]
    assert [text.text for text in found.select("pre")] == [
        "ValueError: no pears, 3 apples",
        "ValueError: pears are out, 3 apples",
    ]


@pytest.mark.parametrize("name", ["order", "address", "colours"])
def test_the_same_words_in_another_order_or_with_another_address_are_nothing_else(site, name):
    assert entry(site, name).select_one("details.differs") is None


def test_two_entries_that_begin_alike_have_anchors_of_their_own(site):
    found = site.soup("alike/list").select("section.error-entry")
    anchor = "error-valueerror-no-alike-3-apples-and"
    assert [each["id"] for each in found] == [anchor, f"{anchor}-2"]


def test_a_version_without_the_error_says_so(site):
    found = entry(site, "none").select_one("details.differs")
    assert found.select("p")[-1].text == "ipykernel 1.0: no error"
    assert len(found.select("pre")) == 1


def test_a_version_that_lacks_a_name_the_cell_uses_says_nothing_of_its_error(site):
    shown = [p.text for p in entry(site, "names").select("details.differs p")]
    assert shown == ["ipykernel 3.0"]


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


def test_an_entry_may_be_quoted_with_or_without_a_cell_and_names_its_source(book):
    book.with_versions(earlier="earlier.toml")
    (book.root / "earlier.toml").write_text("", "utf8")
    quoted = (
        '[["ValueError: no {0}"]]\nby = "Fruit {1}"\nsource = "https://example.org/{0}"\n'
        'text = "no {0} <here>"\n'
    )
    cases = ("plums", 1), ("plums", 2), ("pears", 3)
    (book.root / "quoted.toml").write_text("".join(quoted.format(*each) for each in cases), "utf8")
    book.page("a/list", LIST.replace("no pears", "no plums"), LIST)
    book.built()
    found, both = book.soup("a/list").select("section.error-entry")
    assert found["id"] == "error-valueerror-no-plums"
    assert found.select_one("summary").text == "Quoted: Fruit 1"
    links = [(link.text, link["href"]) for link in found.select("details a")]
    assert links == [(f"Fruit {n}", "https://example.org/plums") for n in (1, 2)]
    assert {text.text for text in found.select("details pre")} == {"no plums <here>"}
    printed, other = both.select("details")
    assert printed.select_one("pre").text == "ValueError: no pears, 3 apples"
    assert other.select_one("pre").text == "no pears <here>"


def test_a_text_of_a_version_is_left_out_once_the_code_has_changed(book):
    recorded(book, "1.0", evalue="pears are out")
    book.built()
    assert entry(book).select_one("details.differs")
    book.edit(book.path("a/one"), "3 apples", "5 apples")
    book.built()
    assert entry(book).select_one("details.differs") is None
    assert entry(book).select_one("details pre").text == "ValueError: no pears, 5 apples"
    assert "1 texts left out, of a/one" in book.run("list_recordings").stdout


FIXED = """
```{error-entry} ValueError: no pears
:fix: shop.sell
They are sold out. [Buy some](one.md).
```
"""
SHOP = '''"""A shop."""

import math


def sell(pears):
    """Sell pears."""

    return math.floor(pears)
'''


def answer(project, anchor="error-valueerror-no-pears"):
    """Return what the script of an entry says."""
    text = (project.root / "build/html/_static/answers" / f"{anchor}.js").read_text("utf8")
    return json.loads(text.partition(" = ")[2].removesuffix(";\n"))


@pytest.fixture
def fixed(book):
    book.snippet("a.shop", SHOP)
    book.page("a/list", FIXED)
    return book


def test_the_answer_has_code_that_raises_the_error_beside_code_that_works(fixed):
    fixed.built()
    known = answer(fixed)
    assert known["raises"] == 'raise ValueError("no pears, 3 apples")'
    assert known["fix"] == "def sell(pears):\n    return math.floor(pears)"


def test_the_code_that_works_is_that_of_today(fixed):
    fixed.built()
    fixed.edit(fixed.root / "snippets/a/shop.py", "math.floor(pears)", "pears")
    fixed.built()
    assert answer(fixed)["fix"] == "def sell(pears):\n    return pears"


@pytest.mark.parametrize(
    ("name", "said"),
    [("shop.sel", "the nearest are shop.sell"), ("shop.sell shop.LONG", "more than 12 lines")],
)
def test_a_fix_that_cannot_be_shown_is_refused(fixed, name, said):
    fixed.snippet("a.shop", SHOP + "\n\nLONG = [\n" + "    1,\n" * 12 + "]\n")
    fixed.page("a/list", FIXED.replace("shop.sell", name))
    build = fixed.build()
    assert not build.green and said in " ".join(build.warnings)


def test_of_two_cells_that_raise_an_error_the_one_like_the_fix_is_shown(fixed):
    other = 'pears = math.floor(0.5)\nraise ValueError("no pears, sell 3")'
    fixed.page(
        "a/other",
        RAISING.replace('raise ValueError("no pears, 3 apples")', f"import math\n{other}"),
    )
    fixed.built()
    assert answer(fixed)["raises"] == other


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("order", "In 1 of 3 recorded versions of ipykernel, 1.0."),
        (
            "pears",
            "In 1 of 3 recorded versions of ipykernel, 3.0; another text in 1.0 to 2.0.",
        ),
    ],
)
def test_the_answer_says_which_versions_say_it(site, name, said):
    assert answer(site, f"error-valueerror-no-{name}")["versions"] == said


def test_where_all_versions_say_it_all_are_named(book):
    for version in ("1.0", "2.0", "3.0"):
        recorded(book, version)
    book.built()
    assert answer(book)["versions"] == "In all 3 recorded versions of ipykernel, 1.0 to 3.0."
