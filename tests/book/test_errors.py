"""The list of error messages has every error of the book, in the words that readers meet."""

import json
import pathlib
import posixpath
import re

import jax.errors
import pytest

from errors.listing import quoted
from tests.book import pages

ROOT = pathlib.Path(__file__).parents[2]
DOCS = ROOT / "docs"
LIST = (DOCS / "pitfalls" / "index.md").read_text("utf8")
ENTRIES = re.findall(r"^:::\{error-entry\} (\w+): (.+)\n(?::fix: .+\n)?.*\]\(", LIST, re.MULTILINE)
QUOTED = quoted(DOCS / "_versions" / "earlier.toml")

# The classes of `jax.errors` that no snippet raises, and why.
UNRAISED = {
    "JAXIndexError": "the base of NonConcreteBooleanIndexError; JAX raises it nowhere",
    "JAXTypeError": "the base of the errors about tracers; JAX raises it nowhere",
}
CLASSES = {
    name
    for name, value in vars(jax.errors).items()
    if not name.startswith("_") and isinstance(value, type) and issubclass(value, BaseException)
}


def declared():
    """Return {(type, fragment): places} of each error that a cell of the book must raise."""
    found = {}
    for name, path in pages.paths().items():
        page = pages.page(name)
        for cell in page.cells if page else ():
            if cell.expected:
                error = cell.expected.type.rpartition(".")[2], cell.expected.fragment
                found.setdefault(error, []).append(f"{path.relative_to(ROOT)}:{cell.line}")
    return found


def recorded():
    """Return (type, message) of each error that is in the recordings of the CPU."""
    found = set()
    for path in (DOCS / "_recorded" / "cpu").rglob("*.ipynb"):
        for cell in json.loads(path.read_text("utf8"))["cells"]:
            for output in cell.get("outputs", ()):
                if output["output_type"] == "error":
                    found.add((output["ename"], output["evalue"].replace("`", "")))
    return sorted(found)


def says(entry, error):
    """Return whether an entry has the type of an error, and how its message begins."""
    (kind, words), (raised, message) = entry, error
    pieces = (re.escape(piece.strip()) for piece in words.split("…"))
    return kind == raised and re.match(".*".join(pieces), message, re.DOTALL) is not None


def section(path, line):
    """Return the address of the section that a line of a page is in, from the folder of pages."""
    headings, fenced = [], False
    for text in path.read_text("utf8").splitlines()[:line]:
        fenced ^= text.startswith("```")
        headings += [] if fenced else re.findall(r"^#+ (.+)", text)
    anchor = "-".join(re.findall(r"[a-z0-9]+", headings[-1].lower()))
    return f"{path.relative_to(DOCS)}#{anchor}"


DECLARED = declared()
RECORDED = recorded()
# What is printed may be quoted besides, as it stands elsewhere.
PRINTED = [
    entry
    for entry in ENTRIES
    if ": ".join(entry) not in QUOTED or any(says(entry, error) for error in RECORDED)
]


@pytest.mark.parametrize("error", sorted(DECLARED), ids=": ".join)
def test_every_declared_error_is_in_the_list(error):
    kind, fragment = error
    listed = any(kind == raised and fragment in words for raised, words in ENTRIES)
    places = ", ".join(DECLARED[error])
    assert listed, f"{places} declares {kind}: {fragment}; add an entry to docs/pitfalls/index.md"


@pytest.mark.parametrize("entry", PRINTED, ids=": ".join)
def test_every_entry_of_the_list_is_a_declared_error_in_its_own_words(entry):
    kind, words = entry
    declared = any(kind == raised and fragment in words for raised, fragment in DECLARED)
    assert declared, f"no cell declares {kind}: {words}; remove the entry of docs/pitfalls/index.md"
    printed = [message for raised, message in RECORDED if raised == kind]
    assert any(says(entry, error) for error in RECORDED), (
        f"the entry of docs/pitfalls/index.md says {words!r}, what was recorded says {printed}; "
        "write it as it was printed, or record the page with 'nox -s record -- PAGE'"
    )


@pytest.mark.parametrize("entry", QUOTED)
def test_what_is_quoted_is_an_entry_with_a_public_source(entry):
    assert entry in [": ".join(each) for each in ENTRIES]
    for quote in QUOTED[entry]:
        assert quote.source.startswith("https://")
        assert re.search(r"\d|XLA", quote.by), "name a version or a date"
        assert quote.text


@pytest.mark.parametrize("error", RECORDED, ids=lambda error: f"{error[0]}: {error[1][:40]}")
def test_a_reader_finds_the_message_that_is_printed(error):
    found = any(says(entry, error) for entry in ENTRIES)
    assert found, f"no entry of docs/pitfalls/index.md begins as {': '.join(error)!r} does"


@pytest.mark.parametrize("entry", PRINTED, ids=": ".join)
def test_an_entry_leads_to_where_its_error_is_raised(entry):
    kind, words = entry
    places = [
        each
        for (raised, part), found in DECLARED.items()
        for each in found
        if kind == raised and part in words
    ]
    sections = {
        section(ROOT / path, int(line))
        for path, _, line in (each.rpartition(":") for each in places)
    }
    (text,) = re.findall(
        rf"^:::\{{error-entry\}} {re.escape(': '.join(entry))}\n(?::fix: .+\n)?(.+)",
        LIST,
        re.MULTILINE,
    )
    links = {posixpath.normpath(f"pitfalls/{link}") for link in re.findall(r"\]\((.+?)\)", text)}
    assert links & sections, f"the entry links to none of {sections}"


def test_no_error_is_listed_twice():
    found = re.findall(r"^:::\{error-entry\}", LIST, re.MULTILINE)
    assert len(ENTRIES) == len(found) > 40, "an entry has no `Type: message`, or leads nowhere"
    assert sorted(ENTRIES) == sorted(set(ENTRIES))


@pytest.mark.parametrize("name", sorted(CLASSES - set(UNRAISED)))
def test_every_class_of_jax_errors_has_an_entry_that_a_snippet_raises(name):
    entries, errors = ({kind for kind, _ in found} for found in (ENTRIES, DECLARED))
    assert name in entries, f"add an entry for {name} to docs/pitfalls/index.md"
    assert name in errors, f"no snippet declares {name}, which jax.errors has; write one"


@pytest.mark.parametrize("name", sorted(UNRAISED))
def test_a_class_without_an_entry_still_needs_its_exemption(name):
    assert name in CLASSES and UNRAISED[name]
    raised = {kind for kind, _ in [*ENTRIES, *DECLARED]}
    assert name not in raised, f"{name} is raised now; remove it from UNRAISED"


FIXES = re.findall(r"^:::\{error-entry\} .+\n:fix: (.+)$", LIST, re.MULTILINE)


def test_code_that_an_entry_shows_as_its_fix_raises_no_error():
    snippets = [pages.LIBRARY.find(name, "pitfalls") for names in FIXES for name in names.split()]
    assert len(FIXES) >= 30
    assert not [each.name for each in snippets if pages.LIBRARY.expected_error(each)]
