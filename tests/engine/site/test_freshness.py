"""What a file holds decides whether it is read and executed again; nothing stays stale for good."""

import os
import shutil

import pytest


def back_in_time(path, seconds=3600):
    """Give a file a time of modification before that of every build."""
    before = path.stat().st_mtime - seconds
    os.utime(path, (before, before))


@pytest.mark.parametrize("kind", ["a cell", "prose", "a page without code", "a snippet"])
def test_an_older_time_of_modification_hides_no_change(project, kind):
    snippet = project.snippet("a.one", "def f(): return 'one'\n")
    page = project.page("a/one", "Prose one.", project.cell("print('one')\nf()", "one.f"))
    plain = project.page("a/plain", "Plain one.", notebook=False)
    assert project.build().green
    changed, before, after, docname = {
        "a cell": (page, "print('one')", "print('two')", "a/one"),
        "prose": (page, "Prose one", "Prose two", "a/one"),
        "a page without code": (plain, "Plain one", "Plain two", "a/plain"),
        "a snippet": (snippet, "return 'one'", "return 'two'", "a/one"),
    }[kind]
    project.edit(changed, before, after)
    back_in_time(changed)
    build = project.build()
    assert build.green
    shown = project.html(docname)
    assert "two" in shown
    assert build.executed == ([] if docname == "a/plain" or kind == "prose" else ["a/one"])
    assert project.build().executed == []


def test_a_newer_time_of_the_same_content_executes_nothing(project):
    page = project.page("a/one", project.cell("print('one')"))
    assert project.build().executed == ["a/one"]
    page.touch()
    assert project.build().executed == []


@pytest.mark.parametrize("with_code", [True, False], ids=["with code", "without code"])
def test_a_page_that_is_saved_while_the_build_executes_is_read_by_the_next(
    project, stamping, until, with_code
):
    slow = project.cell("stamp('busy')\nwait_for('go')\nprint('old value')")
    page = project.page("a/one", stamping, "Old prose.", slow)
    plain = project.page("a/plain", "Old prose.", notebook=False)
    process = project.start()
    until(lambda: project.stamp("busy").exists(), "the page never ran")
    saved = page if with_code else plain
    if with_code:
        project.edit(saved, "old value", "new value")
    project.edit(saved, "Old prose", "New prose")
    project.stamp("go").touch()
    first = project.wait(process)
    assert first.green
    second = project.build()
    assert second.green
    assert second.executed == (["a/one"] if with_code else [])
    shown = project.html("a/one" if with_code else "a/plain")
    assert "New prose." in shown and "Old prose." not in shown
    assert "old value" not in shown
    assert project.build().executed == []


def test_a_module_that_captures_a_name_is_noticed(project):
    project.snippet("b.three", "def low(): return 'of b'\n")
    project.page("a/one", project.cell("low()", snippet="b.three.low"))
    assert project.build().green
    capturing = project.snippet("a.b.three", "def low(): return 'of a'\n")
    assert project.build().executed == ["a/one"]
    assert "of a" in project.html("a/one")
    capturing.unlink()
    assert project.build().executed == []
    assert "of b" in project.html("a/one")


@pytest.mark.parametrize("head", ["benchmark: true", "device: cpu"])
def test_a_head_that_changes_how_a_page_is_executed_executes_it_again(project, head):
    page = project.page("a/one", project.cell("print(6 * 7)"))
    assert project.build().executed == ["a/one"]
    page.write_text(page.read_text().replace("---\n", f"---\n{head}\n", 1))
    assert project.build().executed == ["a/one"]
    assert project.build().executed == []


def test_a_page_that_measures_follows_what_precedes_it_in_a_preview(project):
    prelude = project.root / "preview.py"
    prelude.write_text("import math\nmath.tau = 7", "utf8")
    project.configure("book_preview = True", "book_preview_prelude = 'preview.py'")
    for name in ("one", "bench"):
        project.page(f"a/{name}", project.cell("import math\nmath.tau"), benchmark=name == "bench")
    assert sorted(project.build().executed) == ["a/bench", "a/one"]
    prelude.write_text("import math\nmath.tau = 8", "utf8")
    assert project.build().executed == ["a/bench"]
    assert project.build().executed == []


def test_a_page_for_another_device_shows_its_recording_alone(project):
    page = project.page("a/one", project.cell("print('from the', 'other device')"))
    assert project.record("a/one").returncode == 0
    project.recorded_elsewhere("a/one", ("from the other device", "recorded there"))
    shutil.rmtree(project.recording("a/one").parent)
    assert project.build().green
    page.write_text(page.read_text().replace("---\n", "---\ndevice: gpu-h200\n", 1))
    build = project.build()
    assert build.green, build.output
    assert build.executed == []
    shown = project.html("a/one")
    assert "recorded there" in shown and "from the other device" not in shown


def test_two_sites_of_one_book_keep_their_outputs_apart(project):
    project.configure('book_variables = ["STAMPS", "WORD"]')
    project.page("a/one", project.cell("import os\nprint('word', os.environ['WORD'])"))
    project.page("a/two", project.cell("2"))
    assert project.build(out="build/one", WORD="first").green
    assert project.build(out="build/two", WORD="second").green
    project.edit(project.path("a/two"), "# Page", "# The page")
    (project.root / "build/one/_sources/a/one.ipynb").unlink()
    assert project.build(out="build/one", WORD="first").green
    for out, word in (("build/one", "first"), ("build/two", "second")):
        outputs = project.notebook("a/one", out).cells[-1].outputs
        assert [output.text for output in outputs] == [f"word {word}\n"]
        assert f"word {word}" in project.html("a/one", out)


def test_a_download_that_is_gone_is_made_again(project):
    project.page("a/one", project.cell("6 * 7"))
    assert project.build().green
    path = project.root / "build/html/_sources/a/one.ipynb"
    before = path.read_bytes()
    path.unlink()
    assert project.build().green
    assert path.read_bytes() == before


def test_downloads_are_the_same_whether_executed_or_cached(project):
    project.page("a/one", project.cell("6 * 7"), project.cell("print(1)\n2"))
    assert project.build().green
    fresh = (project.root / "build/html/_sources/a/one.ipynb").read_bytes()
    cached = project.build(out="again/html")
    assert cached.executed == []
    assert (project.root / "again/html/_sources/a/one.ipynb").read_bytes() == fresh


def test_what_a_page_leaves_goes_with_it(project):
    project.page("a/one", project.cell("1"))
    cells = project.page("a/two", project.cell("2"))
    assert project.build().green
    project.path("a/one").unlink()
    text = cells.read_text()
    cells.write_text(text[: text.index("```{code-cell}")])
    assert project.build().green
    left = [path for path in (project.root / "build/html").rglob("one*")]
    assert {path.suffix for path in left} <= {".doctree"}
    assert not (project.root / "build/html/_sources/a/two.ipynb").exists()
    assert (project.root / "build/html/a/two.html").exists()


BROKEN_OFF = """
import os

def setup(app):
    app.connect("html-page-context", stop)

def stop(app, docname, *others):
    if docname == "a/one" and os.environ.get("WORD") == "stop":
        raise KeyboardInterrupt
"""


def test_a_page_that_was_read_but_not_written_is_written_by_the_next_build(project):
    project.snippet("a.one", "def f(): return 'old'\n")
    project.configure(BROKEN_OFF)
    project.page("a/one", project.cell("f()", "one.f"))
    assert project.build().green
    project.snippet("a.one", "def f(): return 'new'\n")
    assert project.build(WORD="stop").status != 0
    assert "old" in project.html("a/one")
    assert project.build().green
    assert "new" in project.html("a/one")
