"""The built site asks no other host for anything, and for nothing that is not there."""

import base64
import json
import os

import pytest

CLICKED = '<a href="https://other.example/page">a link</a>'
PICTURE = '<img alt="" src="//other.example/picture.png">'
STATIC = 'html_static_path = ["static"]'


def static(project, name, text):
    """Write a file that is copied into the site."""
    path = project.root / "static" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, "utf8")


@pytest.mark.parametrize(
    "tag",
    [
        '<script src="https://other.example/code.js"></script>',
        PICTURE,
        "<img alt='' src=https://other.example/picture.png>",
        '<link href="http://other.example/font.woff2" rel="preload" as="font">',
        '<style>@import "https://other.example/style.css";</style>',
        '<p style="background: url(https://other.example/picture.png)">x</p>',
        '<iframe title="x" src="data:text/html; base64 ,'
        f'{base64.b64encode(PICTURE.encode()).decode()}"></iframe>',
    ],
)
def test_a_page_that_loads_from_another_host_fails_the_build(project, tag):
    project.page("heavy", f"{tag}\n\n{CLICKED}", notebook=False)
    build = project.build()
    assert build.status != 0
    [warning] = [line for line in build.output.splitlines() if "from another host" in line]
    assert "heavy.md: WARNING: heavy.html would load" in warning
    assert "other.example" in warning
    assert build.output.count("other.example") == 1


def test_what_a_cell_displays_is_searched_too(project):
    picture = "HTML('<img src=http://other.example/picture.png>')"
    project.page("heavy", project.cell(f"from IPython.display import HTML\n{picture}"))
    build = project.build()
    assert build.status != 0
    assert "http://other.example/picture.png (<img src>)" in build.output


def test_a_link_that_is_clicked_may_lead_anywhere(project):
    project.page("light", CLICKED, notebook=False)
    assert project.build().green


def test_it_stays_so_until_it_is_mended(project):
    project.page("heavy", PICTURE, notebook=False)
    for build in (project.build(), project.build()):
        assert build.status == 1
        assert "heavy.html would load from another host" in build.output
    project.page("heavy", CLICKED, notebook=False)
    assert project.build().green


def test_a_file_that_is_not_in_the_site_fails_the_build(project):
    project.configure(STATIC, 'html_css_files = ["own.css"]')
    static(project, "own.css", "p { background: url(gone.png) } a { background: url(/top.png) }")
    project.page("a/one", '<img alt="" src="../../lost.png">', notebook=False)
    build = project.build()
    assert build.status != 0
    assert "a/one.html would load ../lost.png (<img src>), which is outside of" in build.output
    assert "_static/own.css would load _static/gone.png (url()), which is not in" in build.output
    assert "_static/own.css would load top.png (url()), which is not in the site, for " in (
        build.output
    )
    static(project, "own.css", "p { background: url('there%20it is.png?x#y') }")
    static(project, "there it is.png", "")
    project.page("a/one", "Mended.", notebook=False)
    assert project.build().green


def test_hidden_files_are_there_and_links_lead_nowhere(project):
    project.page("a", '<img alt="" src="_static/.hidden.svg">', notebook=False)
    out = project.root / "build/html"
    out.mkdir(parents=True)
    (out / "loop").symlink_to(".")
    (out / "gone").symlink_to("nowhere")
    (out / "_static").mkdir()
    (out / "_static/.hidden.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>", "utf8")
    build = project.build()
    assert build.green, build.output


def test_a_changed_static_file_is_searched_though_no_page_changed(project):
    project.configure(STATIC, 'html_css_files = ["own.css"]', 'html_js_files = ["own.js"]')
    static(project, "own.css", "p { color: red }")
    static(project, "own.js", "const licence = 'https://other.example/licence'")
    assert project.build().green
    static(project, "own.css", "p { background: url(https://other.example/x.png) }")
    build = project.build()
    assert build.status != 0
    assert "_static/own.css would load from another host" in build.output
    static(project, "own.css", "p { color: red }")
    static(project, "own.js", "fetch('https://other.example/x')")
    build = project.build()
    assert build.status != 0
    assert "_static/own.js would load from another host" in build.output
    static(project, "own.js", "")
    assert project.build().green


def test_a_file_that_is_put_into_the_site_is_searched_whatever_its_time(project):
    project.build()
    path = project.root / "build/html/older.html"
    path.write_text(PICTURE.replace("//other.example", "./other.example"), "utf8")
    os.utime(path, (1000, 1000))
    assert "is not in the site" in project.build().output
    path.write_text(PICTURE, "utf8")
    os.utime(path, (1, 1))
    assert "older.html would load from another host" in project.build().output
    path.unlink()
    assert project.build().green


@pytest.mark.parametrize("damage", ["", "[]", "{}", "5", "no json", '{"version": 1, "files": 5}'])
def test_what_was_remembered_may_be_damaged(project, damage):
    project.page("heavy", PICTURE, notebook=False)
    project.build()
    [memory] = project.root.glob("build/**/requests.json")
    version = json.loads(memory.read_text("utf8"))["version"]
    memory.write_text(damage.replace("1", json.dumps(version)), "utf8")
    build = project.build()
    assert build.status == 1
    assert "heavy.html would load from another host" in build.output
    assert "Traceback" not in build.output


def test_the_theme_asks_for_nothing_that_is_not_there(themed):
    themed.page("a/one", "Some text.", notebook=False)
    build = themed.build()
    assert build.green, build.output
    # Browsers that look ahead resolve an import in a style sheet as if it stood in the page.
    for sheet in themed.root.glob("build/html/_static/**/*.css"):
        assert "@import" not in sheet.read_text("utf8"), sheet
    assert "div.sphinxsidebar" in (themed.root / "build/html/_static/styles/theme.css").read_text(
        "utf8"
    )
