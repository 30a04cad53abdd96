"""The built site asks no other host for anything."""

import pytest
from _ext.site import offline

CLICKED = '<a href="https://other.example/page">a link</a>'


@pytest.mark.parametrize(
    "tag",
    [
        '<script src="https://other.example/code.js"></script>',
        '<img alt="" src="//other.example/picture.png">',
        '<link rel="stylesheet" href="https://other.example/style.css">',
        '<link href="http://other.example/font.woff2" rel="preload" as="font">',
    ],
)
def test_a_page_that_loads_from_another_host_fails_the_build(project, tag):
    project.page("heavy", f"{tag}\n\n{CLICKED}", notebook=False)
    build = project.build()
    assert build.status != 0
    [warning] = [line for line in build.output.splitlines() if "from another host" in line]
    assert "WARNING: heavy.html would load" in warning
    assert "other.example" in warning


def test_a_link_that_is_clicked_may_lead_anywhere(project):
    project.page("light", CLICKED, notebook=False)
    assert project.build().green


@pytest.mark.parametrize(
    ("rule", "found"),
    [
        ('@import "https://other.example/style.css";', 1),
        ("src: url(//other.example/font.woff2);", 1),
        ("src: url(fonts/local.woff2);", 0),
        ("/* see https://other.example */", 0),
    ],
)
def test_style_sheets_are_searched_too(rule, found):
    assert len(offline.loads(rule, offline.STYLED)) == found


def test_it_stays_so_until_it_is_mended(project):
    project.page("heavy", '<img alt="" src="//other.example/picture.png">', notebook=False)
    for build in (project.build(), project.build()):
        assert build.status == 1
        assert "heavy.html would load from another host" in build.output
    project.page("heavy", CLICKED, notebook=False)
    assert project.build().green
