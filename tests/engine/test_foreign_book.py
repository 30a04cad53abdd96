"""The engine serves another book: pages as the documentation of JAX writes them, no snippets."""

import pathlib
import re
import shutil
import subprocess

import nbformat
import pytest

from tests.engine.conftest import ENGINE, EXTENSIONS

CONF = """
import sys
sys.path.insert(0, {engine!r})
project = "Another book"
extensions = ["executed", "measured"]
book_pages = "source"
book_recordings = "source/_recorded"
book_variables = ["STAMPS"]
book_frameworks = {{"numpy": {{"packages": ["numpy"]}}}}
"""
PAGE = """---
jupytext:
  formats: ipynb,md:myst
  text_representation:
    extension: .md
    format_name: myst
    format_version: 0.13
    jupytext_version: 1.16.4
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---

# A page of another book

```{code-cell} ipython3
:tags: [remove-cell]

hidden = 6
```

```{code-cell} ipython3
import math

hidden * 7
```

```{code-cell} ipython3
:raises: ZeroDivisionError division by zero

hidden / 0
```
"""


def foreign(project):
    """Make the miniature project another book, in folders of other names."""
    (project.root / "conf.py").write_text(CONF.format(engine=str(project.engine)))
    assert len(CONF.strip().splitlines()) <= 10
    (project.root / "docs").rename(project.root / "source")
    page = project.root / "source" / "page.md"
    page.write_text(PAGE)
    (project.root / "source/index.md").write_text("# Book\n\n```{toctree}\npage\n```\n")
    return page


def build(project):
    (project.root / "docs").symlink_to("source") if not (project.root / "docs").exists() else None
    return project.build()


def test_another_book_is_executed_shown_and_cached(project):
    page = foreign(project)
    first = build(project)
    assert first.green, first.output
    assert first.executed == ["page"]
    shown = project.html("page")
    assert "42" in shown and "ZeroDivisionError: division by zero" in shown
    assert "hidden = 6" not in shown
    assert build(project).executed == []
    page.write_text(PAGE.replace("hidden * 7", "hidden * 8"))
    assert build(project).executed == ["page"]


def test_what_myst_nb_lets_pass_another_book_may_keep(project):
    page = foreign(project)
    tagged = ":raises: ZeroDivisionError division by zero", ":tags: [raises-exception]"
    page.write_text(PAGE.replace(*tagged))
    built = build(project)
    assert built.green, built.output
    assert "ZeroDivisionError" in project.html("page")
    page.write_text(page.read_text().replace("hidden / 0", "hidden / 1"))
    assert "did not raise" in build(project).output


@pytest.mark.parametrize("out", ["_build/html", "_build"])
def test_the_pages_of_another_book_may_lie_beside_its_conf(project, out):
    page = foreign(project)
    settings = 'book_pages = "."\nbook_recordings = "_recorded"'
    (project.root / "conf.py").write_text(f"{CONF.format(engine=str(project.engine))}{settings}\n")
    for path in (page, page.with_name("index.md")):
        path.rename(project.root / path.name)
    shutil.rmtree(page.parent)
    project.recorded()
    assert (project.root / "_recorded/cpu/page.ipynb").exists()
    assert "1 current" in project.run("list_recordings").stdout
    for _ in range(3):
        built = project.sphinx("-W", "--keep-going", ".", out)
        assert built.green, built.output
    pages = {path.stem for path in (project.root / out).glob("*.html")}
    assert pages == {"index", "page", "genindex", "search"}
    kept = [path.parent for path in (project.root / out).rglob("page.html")]
    assert kept == [project.root / out]


REPOSITORY = pathlib.Path(__file__).parents[2]
BLOCK = re.compile(
    r"^(?P<fence>`{3,})\{code-block\} \w+\n:caption: (?P<name>\S+)\n(?P<text>.*?)^(?P=fence)$",
    re.DOTALL | re.MULTILINE,
)


def documented():
    """Return the files of the small book that the documentation shows, and how to install it."""
    page = (REPOSITORY / "docs/appendix/other_books.md").read_text("utf8")
    return {found["name"]: found["text"] for found in BLOCK.finditer(page)}


def test_the_small_book_that_the_documentation_shows(project):
    files = documented()
    install = files.pop("install")
    export = files.pop("export.py")
    assert sorted(files) == ["conf.py", "docs/index.md", "snippets/sorting.py"]
    assert len(list(filter(None, files["conf.py"].splitlines()))) <= 10
    shutil.rmtree(project.root / "docs")
    for name, text in files.items():
        (project.root / name).parent.mkdir(exist_ok=True)
        (project.root / name).write_text(text, "utf8")
    (project.root / "engine").symlink_to(REPOSITORY)
    copying = next(line for line in install.splitlines() if line.startswith("cp "))
    subprocess.run(copying.split(), cwd=project.root, check=True)
    built = project.wait(project.start())
    assert built.green, built.output
    shown = project.html("index")
    assert re.search(r'class="measured[^>]*>[\d.]+\s[µm]s \(one process\)<', shown)
    # Beside other tests each process is disturbed, and would not be recorded.
    timer = project.root / "snippets" / "timer.py"
    timer.write_text(timer.read_text("utf8").replace("TAKEN = 0.25", "TAKEN = 1e9"), "utf8")
    project.recorded("--processes", "1")
    recorded = project.build("-D", "book_recorded=1", out="build/recorded")
    assert recorded.green and recorded.executed == [], recorded.output
    (project.root / "export.py").write_text(export, "utf8")
    project.wait(project.program("export.py", "cpu", "mystmd", PYTHONPATH="engine/docs/_ext"))
    exported = nbformat.read(project.root / "mystmd" / "index.ipynb", 4)
    nbformat.validate(exported)
    assert exported.cells[0].source.startswith("# A small book")
    (output,) = exported.cells[-1].outputs
    assert output.text.startswith("median/own [numpy]")


def without_measurements(files):
    """Return the small book for whoever does not have what draws on measurements."""
    conf = [line for line in files["conf.py"].splitlines() if "measure" not in line]
    page = re.sub(r"\{(measured|compared)\}`[^`]*`", "a number", files["docs/index.md"])
    return files | {"conf.py": "\n".join(conf), "docs/index.md": page}


FEATURES = [name for name in EXTENSIONS if name != "executed"]


@pytest.fixture(scope="module")
def outputs_of_cells(tmp_path_factory):
    """Return where outputs are kept, which do not depend on features."""
    return tmp_path_factory.mktemp("outputs")


@pytest.mark.parametrize("gone", [*([name] for name in FEATURES), FEATURES], ids="-".join)
def test_the_small_book_builds_where_features_are_deleted(project, gone, outputs_of_cells):
    files = documented()
    del files["install"], files["export.py"]
    if "measured" in gone:
        files = without_measurements(files)
    engine = project.root / "engine" / "docs" / "_ext"
    shutil.copytree(ENGINE, engine, ignore=lambda folder, names: gone)
    listed = [name for name in EXTENSIONS if name not in gone]
    files["conf.py"] += f"\nextensions = {listed}\nhtml_static_path = []\n"
    shutil.rmtree(project.root / "docs")
    shutil.copytree(REPOSITORY / "snippets" / "programs", project.root / "engine/snippets/programs")
    for name, text in files.items():
        (project.root / name).parent.mkdir(exist_ok=True)
        (project.root / name).write_text(text, "utf8")
    shutil.copy(REPOSITORY / "snippets" / "programs" / "timer.py", project.root / "snippets")
    # What it measures is not the question.
    options = ("book_preview=1", f"book_cache={outputs_of_cells}")
    built = project.wait(project.start(*(word for option in options for word in ("-D", option))))
    assert built.green, built.output
    assert "contenders" in project.html("index")
