"""The list of error messages has every error of the book, in the words that readers meet."""

import json
import pathlib
import re

import jax.errors
import pytest
from _ext.source.pages import read_page
from _ext.source.snippets import Library

ROOT = pathlib.Path(__file__).parents[2]
DOCS = ROOT / "docs"
LIST = (DOCS / "pitfalls" / "index.md").read_text("utf8")
ROWS = re.findall(r"^\| `(\w+): (.+?)` \| .*\]\(", LIST, re.MULTILINE)

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
    """Return (type, fragment) of each error that a cell of the book must raise."""
    library, found = Library(ROOT / "snippets"), set()
    for path in sorted(DOCS.rglob("*.md")):
        docname = path.relative_to(DOCS).with_suffix("").as_posix()
        page = None if docname.startswith("_") else read_page(docname, path, library)
        cells = page.cells if page else ()
        found |= {(cell.expected.type, cell.expected.fragment) for cell in cells if cell.expected}
    return {(name.rpartition(".")[2], fragment) for name, fragment in found}


def recorded():
    """Return (type, message) of each error that is in the recordings of the CPU."""
    found = set()
    for path in (DOCS / "_recorded" / "cpu").rglob("*.ipynb"):
        for cell in json.loads(path.read_text("utf8"))["cells"]:
            for output in cell.get("outputs", ()):
                if output["output_type"] == "error":
                    found.add((output["ename"], output["evalue"].replace("`", "")))
    return sorted(found)


def says(row, error):
    """Return whether a row has the type of an error, and the words that its message begins with."""
    (kind, words), (raised, message) = row, error
    pieces = (re.escape(piece.strip()) for piece in words.split("…"))
    return kind == raised and re.match(".*".join(pieces), message, re.DOTALL) is not None


DECLARED = declared()
RECORDED = recorded()


@pytest.mark.parametrize("error", sorted(DECLARED), ids=": ".join)
def test_every_declared_error_is_in_the_list(error):
    kind, fragment = error
    assert any(kind == row and fragment in words for row, words in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=": ".join)
def test_every_row_of_the_list_is_a_declared_error_in_its_own_words(row):
    kind, words = row
    assert any(kind == raised and fragment in words for raised, fragment in DECLARED)
    assert any(says(row, error) for error in RECORDED)


@pytest.mark.parametrize("error", RECORDED, ids=lambda error: f"{error[0]}: {error[1][:40]}")
def test_a_reader_finds_the_message_that_is_printed(error):
    assert any(says(row, error) for row in ROWS)


def test_no_error_is_listed_twice():
    rows = re.findall(r"^\| `.*", LIST, re.MULTILINE)
    assert len(ROWS) == len(set(ROWS)) == len(rows) > 40


@pytest.mark.parametrize("name", sorted(CLASSES - set(UNRAISED)))
def test_every_class_of_jax_errors_has_a_row_that_a_snippet_raises(name):
    assert any(kind == name for kind, _ in ROWS)
    assert any(kind == name for kind, _ in DECLARED)


@pytest.mark.parametrize("name", sorted(UNRAISED))
def test_a_class_without_a_row_still_needs_its_exemption(name):
    assert name in CLASSES and UNRAISED[name]
    assert not any(kind == name for kind, _ in [*ROWS, *DECLARED])
