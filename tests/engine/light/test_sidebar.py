"""The sidebar that is made once for the site is the one that the theme makes for each page."""

from unittest import mock

import pytest
from selectolax.lexbor import LexborHTMLParser
from sphinx.builders.html import StandaloneHTMLBuilder

from light import sidebar

pytest.importorskip("sphinx_book_theme")
PAGES = {
    "index": "```{toctree}\n:caption: A\na/index\nb\n```\n\n```{toctree}\n:caption: B\nc\n```",
    "a/index": "A chapter.\n\n```{toctree}\none\nOther words <two>\n```",
    "a/one": "Words.\n\n## A section\n\nMore.",
    "a/two": "```{toctree}\ndeep/three\n```",
    "a/deep/three": "Words.",
    "b": "Words.",
    "c": "Words.",
}


def entries(html):
    """Return the sidebar of a page: tag, classes, whether it is open, where it leads, words."""
    nav = LexborHTMLParser(html).css("nav.bd-docs-nav li, nav.bd-docs-nav ul")
    return [
        (
            node.tag,
            sorted((node.attributes.get("class") or "").split()),
            [link.attributes["href"] for link in node.css("a")],
            [link.attributes["class"] for link in node.css("a")],
            ["open" in fold.attributes for fold in node.css("details")],
            node.text(strip=True),
        )
        for node in nav
    ]


def test_every_page_has_the_sidebar_of_the_theme_which_made_it_once(themed, monkeypatch):
    for name, text in PAGES.items():
        themed.page(name, text, notebook=False)
    name, theirs = "_get_local_toctree", StandaloneHTMLBuilder._get_local_toctree
    with mock.patch.object(StandaloneHTMLBuilder, name, autospec=True, side_effect=theirs) as calls:
        themed.built()
    assert calls.call_count == 1
    made = {name: entries(themed.html(name)) for name in PAGES}
    monkeypatch.setattr(sidebar, "is_wanted", lambda app: False)
    themed.built("-E", "-a")
    assert made == {name: entries(themed.html(name)) for name in PAGES}
    shown = [classes for tag, classes, *_ in made["a/deep/three"] if tag == "li"]
    assert sum("active" in classes for classes in shown) == 3
