"""The list of what is wrong without an error leads to each box that says so, and to no other."""

import posixpath
import re

from tests.book import pages

NAME = "pitfalls/silently_wrong"
BOX = re.compile(r"^\((silently-[\w-]+)\)=\n:::\{admonition\} Silently wrong\n", re.MULTILINE)
LINK = re.compile(r"\]\((\S+)\.md#([\w-]+)\)")


def test_each_box_is_listed_once():
    texts = {name: path.read_text("utf8") for name, path in pages.paths().items()}
    boxes = sorted(f"{name}#{label}" for name in texts for label in BOX.findall(texts[name]))
    links = LINK.findall(texts[NAME])
    listed = sorted(f"{posixpath.normpath(f'pitfalls/{page}')}#{label}" for page, label in links)
    assert listed == boxes


def test_a_box_looks_as_all_do():
    for name, path in pages.paths().items():
        text = path.read_text("utf8")
        found = re.findall(r":::\{admonition\} Silently wrong\n(.*)\n", text)
        assert len(found) == len(BOX.findall(text)), name
        assert set(found) <= {":class: danger silently-wrong"}, name
