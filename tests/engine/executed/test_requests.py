"""What pages ask for is heard in a browser, served or opened as files: all of it is in the site."""

import pathlib
import runpy

import pytest

CHECK = runpy.run_path(str(pathlib.Path(__file__).parents[2] / "page_check" / "check.py"))


@pytest.fixture(scope="module")
def asked(browser):
    """Return a function: what the pages of a folder ask for outside of it, served and as files."""

    def look(site):
        homes = CHECK["serve"](site), site.as_uri()
        return [CHECK["outside"](browser, home, CHECK["pages_of"](site)) for home in homes]

    return look


def test_the_site_asks_for_nothing_elsewhere(themed, noting, asked):
    themed.page(
        "a/one",
        themed.cell("note('x', 0.5)\nprint('text')", snippet="a.notes.note"),
        "{quoted}`post: 332 ms` and {measured}`x@python`.",
        "```{measurement-chart} x\nCaption.\n```",
    )
    themed.page("status", "```{page-status}\n```")
    themed.built()
    served, opened = asked(themed.root / "build/html")
    assert len(served) >= 4
    assert not any([*served.values(), *opened.values()])


FOREIGN = "https://other.example/"
MARKUP = {
    "picture": f'<img alt="" src="{FOREIGN}">',
    "script": f'<script src="{FOREIGN}"></script>',
    "fetched": "<script>fetch('https://other' + '.example/')</script>",
    "sheet": f'<link rel="stylesheet" href="{FOREIGN}">',
    "font": (
        f"<style>@font-face {{font-family: a; src: url({FOREIGN})}} p {{font-family: a}}</style>"
    ),
    "background": f'<p style="background: url({FOREIGN})">x</p>',
    "frame": f'<iframe src="{FOREIGN}"></iframe>',
    "nothing": "",
}


def test_a_page_that_asks_another_host_is_reported(tmp_path, asked):
    own = '<img alt="" src="own.svg"><img alt="" src="data:image/gif;base64,R0lGODlhAQABAAAAACw=">'
    link = f'<a href="{FOREIGN}">a link that is clicked may lead anywhere</a>'
    (tmp_path / "own.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    for name, markup in MARKUP.items():
        page = tmp_path / f"{name}.html"
        page.write_text(f"<!doctype html>{own}{link}<p>x</p>{markup}")
    leaves = [f"leaves the site: {FOREIGN}"]
    found = {f"{name}.html": leaves if markup else [] for name, markup in MARKUP.items()}
    assert asked(tmp_path) == [found, found]
