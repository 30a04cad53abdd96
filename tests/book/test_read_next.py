"""Every page that teaches or answers something says at its end what to read next."""

import collections
import posixpath
import re

import pytest
import yaml

from tests.book.pages import paths

# What is there to be looked up, or for authors.
LEFT_OUT = ("About the book", "Contribute")
TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```", re.MULTILINE | re.DOTALL)
ENTRY = re.compile(r"^(?:.*<)?([\w/]+)>?$", re.MULTILINE)


def listed(name, captions=None):
    """Return the pages in the sidebar below a page, or below some of its captions."""
    found = []
    for tree in TOCTREE.findall(paths()[name].read_text("utf8")):
        caption = re.search(r"^:caption: (.+)$", tree, re.MULTILINE)
        if captions is None or (caption and caption[1] in captions):
            for entry in ENTRY.findall(tree):
                page = posixpath.join(posixpath.dirname(name), entry)
                found += [page, *(listed(page) if page.endswith("/index") else [])]
    return found


def head(name):
    """Return the head of a page."""
    text = paths()[name].read_text("utf8")
    lines = text.split("\n---\n")[0].removeprefix("---\n") if text.startswith("---\n") else ""
    return yaml.safe_load(lines) or {}


PAGES = [
    name
    for name in sorted(set(paths()) - set(listed("index", LEFT_OUT)))
    if name.rpartition("/")[2] != "index"
]
NEXT = {name: head(name).get("next", "") for name in PAGES}


def test_the_pages_that_say_it_are_nearly_all():
    assert len(PAGES) > 130
    assert {"learn/tracing", "appendix/upgrades", "benchmarks/selu"} <= set(PAGES)
    assert not {"method", "claims/texts", "appendix/years", "contributing"} & set(PAGES)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_leads_to_another_page_and_says_why(name):
    target, _, words = NEXT[name].partition(" ")
    assert target in paths(), f"{name} has no 'next' in its head, or it names no page: {target}"
    assert target != name
    assert words.endswith(".") and len(words.split()) <= 16


def test_no_page_is_everywhere_the_next():
    counted = collections.Counter(line.partition(" ")[0] for line in NEXT.values() if line)
    assert {name: times for name, times in counted.items() if times > 6} == {}


def test_no_two_pages_say_the_same():
    said = collections.Counter(line.partition(" ")[2] for line in NEXT.values() if line)
    assert [words for words, times in said.items() if times > 1] == []
