"""Books that broke elsewhere, each a small one named by its situation: what a reader gets here."""

import json
import re

import nbformat

HEAD = "---\nfile_format: mystnb\norphan: true\n---\n"


def cell(code, *options):
    """Return a code cell as it stands in a page."""
    return "\n".join(["```{code-cell} python", *options, code, "```"])


def page(*parts, head=HEAD):
    """Return the text of a page of prose and cells."""
    return "\n\n".join([f"{head}# A page", *parts]) + "\n"


def notebook(*sources, outputs=(), **metadata):
    """Return the text of a notebook with a title, as Jupyter writes it."""
    cells = [nbformat.v4.new_code_cell(source, outputs=list(outputs)) for source in sources]
    cells = [nbformat.v4.new_markdown_cell("# A notebook"), *cells]
    whole = nbformat.v4.new_notebook(cells=cells, metadata={"orphan": True, **metadata})
    return nbformat.writes(whole)


def write(project, files):
    """Write the files of a book below its pages."""
    for name, text in files.items():
        path = project.root / "docs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf8")


IN_TABS = """``````{tab-set}
`````{tab-item} JAX
```{code-cell} python
print("in a tab")
```
`````
``````"""
IN_A_NOTE = """:::{note}
Before the cell.
```{code-cell} python
print("in a note")
```
:::"""
# Of each situation: its page, the line that is named, and the words there.
REFUSED = {
    "cells in tabs": (page(IN_TABS), 9, "not inside of {tab-item}: end that before it"),
    "a cell in a note of colons": (page(IN_A_NOTE), 9, "not inside of {note}"),
    "a cell of colons": (page(":::{code-cell} python\n1\n:::"), 7, "not inside of colons"),
    "a page of another language": (
        page(cell("x <- 1"), head="---\norphan: true\nkernelspec: {name: ir, language: R}\n---\n"),
        1,
        "its kernelspec says R, and only Python is executed",
    ),
    "a kernel that nobody knows": (
        page(cell("1 |> print"), head="---\norphan: true\nkernelspec: {name: coconut}\n---\n"),
        1,
        "its kernelspec says coconut",
    ),
    "a cell that waits for a person": (page(cell("input('who?')")), 7, "StdinNotImplementedError"),
    "a cell that has too little memory": (
        page(cell("import resource\nresource.setrlimit(resource.RLIMIT_AS, (1 << 32,) * 2)\n"
                  "kept = bytearray(1 << 40)")),
        7,
        "MemoryError",
    ),
}  # fmt: skip


def test_each_page_is_refused_at_its_line_and_the_others_go_on(project):
    project.configure("myst_enable_extensions = ['colon_fence']")
    pages = {f"page{number}": refused for number, refused in enumerate(REFUSED.values())}
    write(project, {f"{name}.md": text for name, (text, *_) in pages.items()})
    write(project, {"other.md": page(cell("6 * 7"))})
    built = project.build(strict=False)
    assert built.status == 1 and f"{len(pages)} failed: {', '.join(pages)}" in built.output
    assert project.outputs("other") == ["42"] and len(project.cached()) == 1
    assert len(built.warnings) == len(pages)
    for name, (text, line, words) in pages.items():
        said = built.output.partition(f"/{name}.md:{line}: ")[2]
        assert words in re.split(r"^/", said, maxsplit=1, flags=re.MULTILINE)[0], name
        # What the author wrote is still to be seen.
        code = re.search(r"code-cell\} python\n(.*\n)*?(.+)\n(```|:::)$", text, re.MULTILINE)[2]
        assert code.rpartition("\n")[2] in project.soup(name).get_text()


def test_an_example_of_a_cell_is_no_cell(project):
    shown = f"`````markdown\n{IN_A_NOTE}\n`````\n\n````{{code-block}} markdown\n{cell('1')}\n````"
    write(project, {"page.md": page(shown, cell("6 * 7"))})
    project.built()
    assert project.outputs("page") == ["42"]


BARS = """
import sys
for outer in range(20):
    sys.stderr.write(f"\\r\\x1b[32m{outer}/20\\x1b[0m")
    for inner in range(9):
        sys.stderr.write(f"\\n\\r{inner}/9\\x1b[A")
    print("between")
    sys.stderr.write("\\n\\r   \\r\\x1b[A")
sys.stderr.write("\\r\\x1b[32m20/20\\x1b[0m\\n");
"""


def test_of_bars_of_progress_beneath_each_other_the_last_frame_stays(project):
    write(project, {"page.md": page(cell(BARS))})
    project.recorded()
    project.configure("book_markdown = True", "book_skill = ['page']", "templates_path = ['.']")
    (project.root / "SKILL.md").write_text("{{ name }}")
    project.built()
    twin = (project.root / "build/html/page.md").read_text("utf8")
    recording = project.recording("page").read_text("utf8")
    written = (project.root / "build/html/_sources/page.ipynb").read_text("utf8")
    assert "\x1b" not in project.html("page") + twin
    for text in (project.html("page"), twin, recording, written):
        assert not {"\r", "8/9", "19/20"} & set(re.findall(r"\r|\d+/\d+", text))
    assert [text.split()[-1] for text in project.outputs("page")] == ["20/20"]


VIEW = """
from IPython.display import display
model = {"model_id": "a", "version_major": 2, "version_minor": 0}
data = {"application/vnd.jupyter.widget-view+json": model, "text/plain": "IntSlider(value=0)"}
display(data, raw=True)
"""


def test_a_widget_is_shown_as_text_and_its_state_is_dropped(project):
    state = {"application/vnd.jupyter.widget-state+json": {"state": {"a": "x" * 6_000_000}}}
    write(project, {"page.ipynb": notebook(VIEW, widgets=state)})
    project.built()
    assert project.outputs("page") == ["IntSlider(value=0)"]
    sizes = [path.stat().st_size for path in (project.root / "build/html").rglob("page.*")]
    assert sorted(sizes)[-1] > 6_000_000 > 100_000 > sorted(sizes)[-2], "all but its source"


def test_a_notebook_is_executed_cached_and_recorded_as_a_page(project):
    stored = nbformat.v4.new_output("stream", text="what another machine printed")
    write(project, {"page.ipynb": notebook("6 * 7", outputs=[stored])})
    assert project.built().executed == ["page"]
    assert project.outputs("page") == ["42"] and project.built().executed == []
    assert [c.source for c in project.notebook("page").cells[1:]] == ["# A notebook", "6 * 7"]
    project.recorded("docs/page.ipynb")
    assert project.build("-D", "book_recorded=1", out="build/recorded").executed == []
    assert project.outputs("page", "build/recorded") == ["42"]


def test_a_notebook_that_fails_or_is_damaged_is_named_with_its_line_and_cell(project):
    text = notebook("1", "1 / 0", outputs=[])
    write(project, {"page.ipynb": text, "line.ipynb": json.dumps(json.loads(text))})
    write(project, {"cut.ipynb": text[:-20]})
    built = project.build(strict=False)
    places = [n for n, line in enumerate(text.splitlines(), 1) if '"cell_type": "code"' in line]
    assert built.status == 1
    assert f"page.ipynb:{places[1]}: WARNING: cell 2: raised Zero" in built.output
    assert "line.ipynb:1: WARNING: cell 2: raised Zero" in built.output
    assert "cut.ipynb:1: WARNING: the notebook cannot be read" in built.output


def test_a_page_finds_the_files_beside_it_and_follows_them(project):
    files = {
        "part/page.md": page(cell("import helper\nopen('data/a.txt').read() + helper.text")),
        "part/helper.py": "import other\ntext = other.text",
        "part/other.py": "text = ' and a module'",
        "part/data/a.txt": "a file",
        "part/unnamed.py": "",
    }
    write(project, files)
    assert project.built().executed == ["part/page"]
    assert project.outputs("part/page") == ["'a file and a module'"]
    write(project, {"part/unnamed.py": "x = 1"})
    assert project.built().executed == []
    for name, text, words in (
        ("part/other.py", "text = ' and another'", "'a file and another'"),
        ("part/data/a.txt", "one file", "'one file and another'"),
    ):
        write(project, {name: text})
        assert project.built().executed == ["part/page"]
        assert project.outputs("part/page") == [words]


def test_another_build_has_finished_in_this_folder(project):
    project.configure(
        """
        import pathlib
        def setup(app):
            mark = pathlib.Path(app.doctreedir, "unfinished")
            app.connect("build-finished", lambda app, error: mark.unlink())
        """
    )
    project.built()


def test_a_notebook_that_an_rst_page_includes_is_not_executed(project):
    code = "import os, pathlib\npathlib.Path(os.environ['STAMPS'], 'ran').touch()"
    include = ".. include:: _part.ipynb\n   :parser: myst_nb.docutils_\n"
    write(project, {"page.rst": f":orphan:\n\nPage\n====\n\n{include}"})
    write(project, {"_part.ipynb": notebook(code)})
    assert "STAMPS" in (project.build(strict=False), project.html("page"))[1]
    assert not project.stamp("ran").exists()


def test_an_environment_in_the_folder_of_the_pages_is_no_part_of_the_book(project):
    readme = page(cell("1 / 0"))
    project.configure("exclude_patterns = ['env', '*/draft.*']")
    names = (".venv/lib/README.md", "env/lib/README.md", "part/draft.md")
    write(
        project, {".ipynb_checkpoints/a.ipynb": notebook("1 / 0"), **dict.fromkeys(names, readme)}
    )
    assert project.built().executed == []
    assert project.recorded().stdout == "recording on cpu\n"


def test_a_cell_that_is_skipped_shows_its_code_alone(project):
    skipped = cell("1 / 0", ":tags: [skip-execution]")
    write(project, {"page.md": page(skipped, cell("6 * 7"))})
    project.built()
    assert "1 / 0" in project.soup("page").get_text() and project.outputs("page") == ["42"]
    write(project, {"page.md": page(skipped.replace("skip-execution", "a-tag"), cell("6 * 7"))})
    assert "ZeroDivisionError" in project.build().output


def test_what_a_cell_glues_stands_in_the_text(project):
    glued = cell("from myst_nb import glue\nglue('answer', 6 * 7, display=False)")
    write(project, {"page.md": page(glued, "It is {glue:text}`answer`, and {glue:}`answer`.")})
    project.built()
    assert "It is 42, and 42." in project.soup("page").get_text()
    assert project.outputs("page") == []


def test_a_page_without_a_head_is_executed(project):
    write(project, {"page.md": page(cell("6 * 7"), "---", head=""), "index.md": "# I\n\n"})
    built = project.build(strict=False)
    assert built.executed == ["page"] and project.outputs("page") == ["42"]


def test_a_magic_command_needs_a_framework_that_is_absent(project):
    project.configure("book_frameworks = {'none_such': {'words': ['launch'], 'optional': True}}")
    write(project, {"page.md": page(cell("%%time\nlaunch()"), cell("6 * 7"))})
    project.built()
    assert project.outputs("page")[-1] == "42"
