"""A build does what has changed and nothing else, alone or beside others, and may be broken off."""

import re
import shutil
import signal

import nbformat


def times(project, pages):
    """Return when the built files of pages were last written."""
    site = project.root / "build/html"
    built = [site / f"{page}.html" for page in pages]
    built += [site / ".doctrees" / f"{page}.doctree" for page in pages]
    return {path: path.stat().st_mtime_ns for path in built}


def test_an_unchanged_book_is_neither_executed_nor_read_nor_written(project, noting):
    project.page("status", "```{page-status}\n```")
    project.page("a/one", project.cell("note('x', 0.5)", snippet="a.notes.note"))
    project.page("a/two", "It took {measured}`x@python`.")
    project.built()
    pages = ["a/one", "a/two", "index", "status"]
    written = times(project, pages)
    again = project.built()
    assert again.executed == []
    assert "0 added, 0 changed, 0 removed" in again.output
    assert "no targets are out of date" in again.output
    assert "reading sources... [" not in again.output
    assert times(project, pages) == written


def test_a_page_whose_cells_are_gone_is_forgotten(project):
    project.page("a/one", project.cell("1 / 0"))
    assert project.build().status == 1
    project.page("a/one", "Prose.")
    project.built()


ENDING = """
import atexit
import gc

def say():
    print("imported:", {"jax", "torch", "tensorflow"} & set(sys.modules))
    print("to be searched:", len(gc.get_objects()))

# Registered before the engine does, so called after it.
atexit.register(say)
"""


def test_the_program_sphinx_build_imports_no_framework_and_leaves_no_garbage(project):
    project.configure(ENDING)
    project.page("a/one", project.cell("6 * 7"))
    project.page("a/two", project.cell("1 / 0"))
    program = "-c", "import sys; from sphinx.cmd.build import main; sys.exit(main())"
    arguments = "-W", "--keep-going", "-c", ".", "docs", "build/html"
    build = project.wait(project.program(*program, *arguments))
    assert build.status == 1
    assert "docs/a/two.md:9: WARNING: cell 1: raised ZeroDivisionError" in build.output
    assert "1 failed: a/two" in build.output
    assert "42" in project.html("a/one")
    assert (project.root / "build/html/measurements.json").exists()
    assert "imported: set()" in build.output
    # All of it is given back anyway.
    assert int(build.output.rpartition("to be searched:")[2]) < 1000


def test_two_builds_at_once_share_one_cache(project, stamping):
    together = project.cell(
        "stamp(f'at work {os.getpid()}')\n"
        "import time\n"
        "end = time.monotonic() + 25\n"
        "while len(list(stamps.glob('at work *'))) < 2:\n"
        "    assert time.monotonic() < end\n"
        "    time.sleep(0.02)"
    )
    project.page("a/one", stamping, together, project.cell("6 * 7"))
    for number in range(3):
        project.page(f"b/p{number}", project.cell(f"{number}"))
    process = project.start(out="first/html")
    builds = {"second/html": project.build(out="second/html"), "first/html": project.wait(process)}
    for out, build in builds.items():
        assert build.green, build.output
        assert "a/one" in build.executed
        assert "42" in project.html("a/one", out)
        assert "cannot be read" not in build.output
    assert len(project.cached()) == 4
    assert project.built(out="third/html").executed == []


def test_a_build_that_was_broken_off_while_writing_is_made_up_for(project):
    path = project.snippet("a.one", "def f(): return 'old value'\n")
    project.page("a/one", project.cell("f()", snippet="one.f"))
    project.page("a/two", project.cell("2"))
    project.built()
    project.edit(path, "old value", "new value")
    project.configure(
        """
        import os
        def setup(app):
            if "DIE" in os.environ:
                app.connect("html-page-context", lambda *_: os.kill(os.getpid(), 9), priority=1)
        """
    )
    broken = project.wait(project.start(DIE="1"))
    assert broken.status == -signal.SIGKILL
    assert broken.executed == ["a/one"]
    assert "'old value'" in project.html("a/one")
    assert project.built().executed == []
    assert "'new value'" in project.html("a/one")


def test_warnings_of_sphinx_stay_until_they_are_mended(project):
    project.page("a/one", "See [nothing](nothing.md).", project.cell("6 * 7"))
    project.page("a/two", project.cell("1"))
    for build in (project.build(), project.build()):
        assert build.status == 1
        (warning,) = build.warnings
        assert f"docs/a/one.md:{project.line('a/one', 'nothing')}: WARNING: " in warning
        assert "nothing.md" in warning
    assert build.executed == []
    project.edit(project.path("a/one"), "nothing.md", "two.md")
    project.built()
    assert "0 added, 0 changed, 0 removed" in project.build().output


def test_another_engine_reads_every_page_again(project):
    copied = shutil.copytree(project.engine, project.root / "engine")
    source = copied / "executed" / "__init__.py"
    project.configure(f"import executed\nexecuted.__file__ = {str(source)!r}")
    project.page("a/one", project.cell("6 * 7"))
    project.built()
    assert "0 added" in project.build().output
    with open(copied / "executed" / "store" / "outputs.py", "a") as module:
        module.write("\n# One line more.\n")
    again = project.built()
    assert again.executed == []
    assert "2 added" in again.output


def test_the_notebook_to_download_has_no_fences_of_colons(project):
    project.configure('myst_enable_extensions = ["colon_fence"]')
    inner = ":::{dropdown} More\nWithin.\n:::\n\n:::{div} class\nBeside.\n:::"
    outer = f"::::{{container}} aside\nBefore.\n\n{inner}\n\nAfter.\n::::"
    project.page("a/one", project.cell("1"), outer)
    project.built()
    prose = project.notebook("a/one").cells[-1].source
    assert prose.strip() == "Before.\n\n**More**\n\nWithin.\n\nBeside.\n\nAfter."


def test_the_theme_offers_the_notebook(themed):
    themed.page("a/one", themed.cell("40 + 2"))
    themed.page("a/prose", "Nothing is executed.")
    themed.built()
    links = [a.get("href", "") for a in themed.soup("a/one").find_all("a")]
    offered = [link for link in links if link.endswith(".ipynb")]
    assert offered
    assert ".ipynb" not in themed.html("a/prose")
    notebook = nbformat.read((themed.root / "build/html/a" / offered[0]).resolve(), 4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert code[-1].outputs[-1]["data"]["text/plain"] == "42"


UNREADABLE = {
    ":tags: hide-input": (
        "```{code-cell} python\n:name: a\n:tags: hide-input\n1\n```",
        "':tags: hide-input' cannot be",
    ),
    ":tags: 5": (
        "```{code-cell} python\n:name: a\n:tags: 5\n1\n```",
        "':tags: 5' cannot be",
    ),
    "+++": ("Prose.\n\n+++ {bad", "behind +++ stands nothing"),
    "{code-cell} python\n:caption": (
        "```{code-cell} python\n:caption: One: two.\n1\n```",
        "a value that has a colon in it is written in quotes",
    ),
}


def test_a_page_that_is_no_notebook_is_one_warning_at_its_line(project):
    project.page("a/two", project.cell("print(2)"))
    names = {mark: f"b/p{number}" for number, mark in enumerate(UNREADABLE)}
    lines = {}
    for mark, name in names.items():
        cells = () if "caption" in mark else (project.cell("1"),)
        path = project.page(name, "Prose.", *cells, UNREADABLE[mark][0])
        text = path.read_text("utf8")
        lines[mark] = text[: text.index(mark)].count("\n") + 1
    build = project.build("-j", "2")
    assert build.status == 1 and "Traceback" not in build.output, build.output
    for mark, name in names.items():
        (warning,) = [each for each in build.warnings if f"/{name}.md" in each]
        assert f"docs/{name}.md:{lines[mark]}: WARNING: " in warning
        assert UNREADABLE[mark][1] in build.output
    assert "2" in project.html("a/two")
    for name in names.values():
        project.page(name, project.cell("1"))
    project.page("b/p3", '```{code-cell} python\n:caption: "One: two."\n1\n```')
    project.built()


def test_a_page_with_a_mark_of_its_byte_order_is_executed(project):
    path = project.page("a/one", project.cell("print(1)"))
    path.write_text(path.read_text("utf8"), "utf-8-sig")
    build = project.build()
    assert build.green and build.executed == ["a/one"]


def test_a_page_says_where_a_cell_printed_too_much(project):
    project.configure("book_output_limit = 10")
    project.page("a/50% #1?", project.cell("print('x' * 100)"))
    project.built()
    assert "xxxxxxxxxx\n… and 91 more characters" in project.html("a/50% #1?")


def test_a_quiet_build_says_what_it_executes_and_what_failed_and_nothing_else(project):
    project.page("a/one", project.cell("1"))
    build = project.build("-q")
    assert build.status == 0
    assert re.fullmatch(r"\[1/1\] executed a/one in [\d.]+ s\n", build.output)
    assert project.build("-q").output == ""
    project.page("a/one", project.cell("1 / 0"))
    build = project.build("-q")
    first, warning, *_, last = build.output.splitlines()
    assert "failed a/one" in first and "WARNING" in warning and last == "1 failed: a/one"
