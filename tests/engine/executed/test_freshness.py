"""What a file holds decides whether it is read and executed again; nothing stays stale for good."""

import os
import shutil


def back_in_time(path, seconds=3600):
    """Give a file a time of modification before that of every build."""
    before = path.stat().st_mtime - seconds
    os.utime(path, (before, before))


def test_neither_an_older_time_of_modification_hides_a_change_nor_a_newer_one_is_one(project):
    snippet = project.snippet("a.one", "def f(): return 'one'\n")
    cells = {
        "a/cell": project.cell("print('one')"),
        "a/prose": f"Prose one.\n\n{project.cell('1')}",
        "a/snippet": project.cell("f()", "one.f"),
        "a/same": project.cell("print('two')"),
    }
    pages = {name: project.page(name, cell) for name, cell in cells.items()}
    pages["a/plain"] = project.page("a/plain", "Plain one.", notebook=False)
    project.built()
    changes = (
        (pages["a/cell"], "print('one')", "print('two')"),
        (pages["a/prose"], "Prose one", "Prose two"),
        (pages["a/plain"], "Plain one", "Plain two"),
        (snippet, "return 'one'", "return 'two'"),
    )
    for changed, before, after in changes:
        project.edit(changed, before, after)
        back_in_time(changed)
    pages["a/same"].touch()
    build = project.built()
    assert build.executed == ["a/cell", "a/snippet"]
    for name in pages:
        assert "two" in project.html(name), name
    assert project.build().executed == []


def test_a_page_that_is_saved_while_the_build_executes_is_read_by_the_next(project):
    save = """
        import pathlib
        for saved in pathlib.Path({!r}).rglob("*.md"):
            text = saved.read_text().replace("Old prose", "New prose")
            saved.write_text(text.replace("old " + "value", "new value"))
        print("old value")
    """
    project.page("a/one", "Old prose.", project.cell(save.format(str(project.root))))
    project.page("a/plain", "Old prose.", notebook=False)
    first = project.build()
    assert first.green and first.executed == ["a/one"]
    assert project.built().executed == ["a/one"]
    for name in ("a/one", "a/plain"):
        shown = project.html(name)
        assert "New prose." in shown and "Old prose." not in shown
        assert "old value" not in shown
    assert project.build().executed == []


def test_a_page_follows_what_precedes_it_in_a_preview(project):
    prelude = project.root / "preview.py"
    prelude.write_text("import math\nmath.tau = 7", "utf8")
    project.configure("book_preview = True", "book_preview_prelude = 'preview.py'")
    for name in ("one", "bench"):
        project.page(f"a/{name}", project.cell("import math\nmath.tau"), benchmark=name == "bench")
    assert sorted(project.build().executed) == ["a/bench", "a/one"]
    prelude.write_text("import math\nmath.tau = 8", "utf8")
    assert sorted(project.build().executed) == ["a/bench", "a/one"]
    assert project.build().executed == []


def test_a_page_for_another_device_shows_its_recording_alone(project):
    page = project.page("a/one", project.cell("print('from the', 'other device')"))
    project.recorded("a/one")
    project.recorded_elsewhere("a/one", ("from the other device", "recorded there"))
    shutil.rmtree(project.recording("a/one").parent)
    project.built()
    page.write_text(page.read_text().replace("---\n", "---\ndevice: gpu-h200\n", 1))
    assert project.built().executed == []
    shown = project.html("a/one")
    assert "recorded there" in shown and "from the other device" not in shown


def test_two_sites_of_one_book_keep_their_outputs_apart(project):
    project.configure('book_variables = ["STAMPS", "WORD"]')
    project.page("a/one", project.cell("import os\nprint('word', os.environ['WORD'])"))
    project.page("a/two", project.cell("2"))
    project.built(out="build/one", WORD="first")
    project.built(out="build/two", WORD="second")
    project.edit(project.path("a/two"), "# Page", "# The page")
    project.built(out="build/one", WORD="first")
    for out, word in (("build/one", "first"), ("build/two", "second")):
        outputs = project.notebook("a/one", out).cells[-1].outputs
        assert [output.text for output in outputs] == [f"word {word}\n"]
        assert f"word {word}" in project.html("a/one", out)


def test_a_download_is_the_same_from_the_cache(project):
    project.page("a/one", project.cell("6 * 7"), project.cell("print(1)\n2"))
    project.built()
    path = project.root / "build/html/_sources/a/one.ipynb"
    before = path.read_bytes()
    cached = project.build(out="again/html")
    assert cached.executed == []
    assert (project.root / "again/html/_sources/a/one.ipynb").read_bytes() == before
