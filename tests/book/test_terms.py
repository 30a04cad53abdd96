"""No page uses a word of the field before it is explained, unless it links to the explanation."""

import pathlib
import posixpath
import re

import pytest

DOCS = pathlib.Path(__file__).parents[2] / "docs"
TREE = re.compile(r"^```\{toctree\}\n(.*?)^```", re.M | re.S)
ROW = re.compile(r"^\| ([^|]+) \| [^|]+ \| \[\]\(([^)#]+)\.md[^)]*\) \|$", re.M)
# What is no prose: code, heads of pages and directives, roles.
CODE = (
    r"\A---\n.*?^---\n|^```\{(?:code-cell|toctree|literalinclude)\}.*?^```|^```\w*\n.*?^```"
    r"|^:[\w-]+:[^\n]*$|^:::\{solution\}[^\n]*$|\{[\w-]+\}`[^`]*`|`[^`]*`"
)
# What is no running text either: headings and their labels, the answers of questions.
UNREAD = re.compile(rf"{CODE}|^#+ [^\n]*$|^\([\w-]+\)=$|^- [^\n]* ~ [^\n]*$", re.M | re.S)
LINK = re.compile(r"\[(?:[^\]\[]|\[[^\]]*\])*\]\([^)]*\)")
# Looked up by whoever meets one of its errors or words; what it explains is linked to from pages.
REFERENCE = re.compile("pitfalls/|start/translation|terms$|(.*/)?index$")
WORDS = {
    "remat": r"remat(?:ernali\w+)?",
    "activation": "activations",
    "leaf": r"leaf|(?:the|its|all|of|into) leaves",
    "pad": r"pad(?:s|ded|ding)?",
    "retrace": r"retrac\w+",
    "trace": r"trac(?:es?|ed|ing)",
    "jit": r"jit|jitted",
    "dispatch": r"dispatch\w*",
    "process": r"(?:several|many|more) (?:JAX )?processes",
    "axis of a mesh": r"mesh axis|mesh axes|ax[ie]s of (?:a|the) mesh",
    "batch statistics": r"(?:batch|running) statistics",
    "pure": r"pure functions?|functions? must be pure",
    "static argument": r"static arguments?",
    "primitive": r"primitives?",
    "eager": r"eager(?:ly)?",
    "donation": r"donat\w+",
    "asynchronous dispatch": r"asynchronous\w*",
}


def order(name="index"):
    """Return all pages in the order in which the book has them."""
    found = [name]
    for entries in TREE.findall((DOCS / f"{name}.md").read_text("utf8")):
        for entry in entries.splitlines():
            # A page may have another title there: Title <page>.
            entry = re.sub(r"^.*<(.+)>$", r"\1", entry)
            if entry and not entry.startswith(":"):
                found += order(posixpath.normpath(posixpath.join(posixpath.dirname(name), entry)))
    return found


def terms():
    """Return (term, page that is linked to) for each row."""
    return ROW.findall((DOCS / "terms.md").read_text("utf8"))


def said_as(term):
    """Return a pattern for the forms of a term."""
    return re.compile(rf"\b(?:{WORDS.get(term, re.escape(term) + 's?')})\b", re.I)


def used(term, page):
    """Return where the prose of a page uses a term for the first time outside of a link."""
    text = UNREAD.sub(" ", (DOCS / f"{page}.md").read_text("utf8"))
    words = said_as(term)
    linked = next((m.start() for m in LINK.finditer(text) if words.search(m[0])), len(text))
    plain = words.search(LINK.sub(lambda match: " " * len(match[0]), text))
    return text[plain.start() - 60 : plain.end() + 40] if plain and plain.start() < linked else ""


def test_each_row_of_the_table_has_a_term_and_its_page():
    rows = re.findall(r"^\| .*\.md", (DOCS / "terms.md").read_text("utf8"), re.M)
    assert len(terms()) == len(rows) > 60


@pytest.mark.parametrize(("term", "page"), terms())
def test_a_term_is_explained_or_linked_before_it_is_used(term, page):
    pages = order()
    before = pages[: pages.index(page)]
    early = {
        each: found for each in before if not REFERENCE.match(each) and (found := used(term, each))
    }
    assert early == {}, f"link to docs/{page}.md where {term} is first said"


def test_the_page_that_explains_a_term_says_it():
    missing = [
        (term, page)
        for term, page in terms()
        if not said_as(term).search((DOCS / f"{page}.md").read_text("utf8"))
    ]
    assert missing == []
