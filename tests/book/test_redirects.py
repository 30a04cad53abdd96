"""Old addresses lead to pages that there are, with scripts and without."""

import pathlib
import posixpath
import runpy
import string

import pytest
from selectolax.lexbor import LexborHTMLParser

ROOT = pathlib.Path(__file__).parents[2]
CONF = runpy.run_path(str(ROOT / "conf.py"))


@pytest.mark.parametrize(("old", "new"), CONF["redirects"].items())
def test_an_old_address_leads_to_a_page(old, new):
    path = posixpath.normpath(posixpath.join(posixpath.dirname(old), new))
    assert (ROOT / "docs" / path).with_suffix(".md").is_file()


def test_the_page_at_an_old_address_says_where_to_go():
    template = (ROOT / "docs" / CONF["redirect_html_template_file"]).read_text("utf8")
    page = LexborHTMLParser(string.Template(template).substitute(to_uri="../new.html"))
    assert page.css_first("html").attributes["lang"] == "en"
    assert page.css_first("title").text().strip()
    assert page.css_first("body a").attributes["href"] == "../new.html"
    assert 'url=../new.html"' in page.css_first("noscript").html
    assert '"../new.html" + location.hash' in page.css_first("script").text()
