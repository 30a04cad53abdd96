"""The notebooks that readers download run by themselves, far from this repository."""

import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = pathlib.Path(__file__).parents[2]
# One page with declared errors, one that measures and shows records in its prose; and what
# frameworks they need besides JAX.
NEEDS = {"pitfalls/conversions": (), "timing/timer": ("torch", "tensorflow")}
PAGES = [
    page for page, needs in NEEDS.items() if all(importlib.util.find_spec(name) for name in needs)
]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build the book with these pages alone from its recordings, in another folder."""
    root = tmp_path_factory.mktemp("book")
    shutil.copytree(ROOT / "snippets", root / "snippets")
    shutil.copytree(ROOT / "docs" / "_ext", root / "docs" / "_ext")
    for folder in ("_static", "_templates"):
        shutil.copytree(ROOT / "docs" / folder, root / "docs" / folder)
    for name in ("conf.py", "pyproject.toml"):
        shutil.copy(ROOT / name, root)
    names = [name for page in PAGES for name in (f"{page}.md", f"_recorded/cpu/{page}.ipynb")]
    for name in names:
        target = root / "docs" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "docs" / name, target)
    (root / "docs" / "index.md").write_text("# Book\n", "utf8")
    with (root / "conf.py").open("a", encoding="utf8") as conf:
        # They name pages and a file that are not here.
        conf.write('book_skill, book_preview_prelude = (), ""\nbook_versions |= {"without": []}\n')
    options = ["-c", ".", "-D", "book_recorded=1", "-D", "book_search=0"]
    command = [sys.executable, "-m", "sphinx", *options, "docs", "build/html"]
    subprocess.run(command, cwd=root, check=True, capture_output=True)
    return root / "build" / "html"


@pytest.mark.parametrize("page", PAGES)
def test_a_downloaded_notebook_runs_in_an_empty_folder(site, page, tmp_path, monkeypatch):
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.setitem(os.environ, "XLA_FLAGS", "")
    path = tmp_path / "page.ipynb"
    shutil.copy(site / "_sources" / f"{page}.ipynb", path)
    assert f'href="../_sources/{page}.ipynb"' in (site / f"{page}.html").read_text("utf8")

    notebook = nbformat.read(path, 4)
    came_with = [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]
    assert any(came_with), "the notebook carries no outputs"
    prose = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    assert "{measured}" not in prose and "{quoted}" not in prose

    # Only what hangs takes that long.
    limits = dict.fromkeys(("timeout", "startup_timeout", "iopub_timeout"), 600)
    resources = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, resources=resources, **limits).execute()

    errors_before = [[o.ename for o in outs if o.output_type == "error"] for outs in came_with]
    errors_now = [
        [o.ename for o in cell.outputs if o.output_type == "error"]
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]
    assert errors_now == errors_before
