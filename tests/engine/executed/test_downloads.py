"""The notebook that readers download is read without Sphinx."""

import importlib.metadata
import json
import types

import pytest

from executed import downloads

SCRIPT = "python train.py\n# {measured} | all\n"


def test_a_notebook_holds_the_files_that_its_page_shows(project):
    project.page(
        "a/one",
        "For {download}`train.sh <run/train.sh>`, and {download}`run/train.sh`:",
        "```{literalinclude} run/train.sh\n:language: bash\n:caption: x\n```",
        "```{csv-table}\n:file: run/found.csv\n:header-rows: 1\n```",
        project.cell("1"),
    )
    folder = project.path("a/run").with_suffix("")
    folder.mkdir()
    (folder / "train.sh").write_text(SCRIPT)
    (folder / "found.csv").write_text('Rule,Found\n"a, b",1|2\n')
    project.built()
    prose = project.notebook("a/one").cells[1].source
    assert "For `train.sh`, and `run/train.sh`:" in prose and f"```\n{SCRIPT}```" in prose
    assert "| Rule | Found |\n|---|---|\n| a, b | 1\\|2 |" in prose


def test_numbers_in_sentences_are_text_in_the_notebook(project, noting):
    project.page("b/one", project.cell("contest('x', 2, 2, 2)", snippet="a.notes.contest"))
    project.page(
        "b/uses",
        "{measured}`x/fast@python`; {compared}`x/slow@python / x/fast@python`; "
        "{paid}`x/fast@python / x/slow@python`; "
        "{verdict}`x/slow@python / x/fast@python in 1.. ? holds : wrong`; {quoted}`post: 332 ms`.",
        "```{measurements} x/fast\n:columns: name latency\n```",
        project.cell("1"),
    )
    project.built()
    prose = project.notebook("b/uses").cells[1].source.partition("\n\n")[2]
    measured, ratio, calls, verdict, quoted = prose.split("; ")
    assert measured.startswith("250 ms") and ratio.startswith("2.0× the time")
    assert int(calls.split()[0]) >= 1
    assert verdict == "cannot tell" and "“332 ms”](https://" in quoted
    assert "| x, fast | 250 ms |" in quoted and "{" not in prose


def test_what_is_of_use_on_the_site_alone_is_not_in_the_notebook(project):
    project.page(
        "a/one",
        "First.\n\n(a-place)=\n## Second\n\n```{raw} html\n<p>\n\n</p>\n```\n\nThird.",
        "```{measurement-names}\n```",
        project.cell("1"),
    )
    project.built()
    prose = project.notebook("a/one").cells[1].source.partition("\n\n")[2]
    assert prose.strip() == "First.\n\n## Second\n\nThird."


FRAMEWORKS = {
    "jax": {"packages": ["numpy"], "modules": ["numpy"], "required": True},
    "torch": {
        "label": "PyTorch",
        "packages": ["nbformat-gpu", "nbformat"],
        "modules": ["nbformat"],
    },
    "unused": {"packages": ["nbclient"], "modules": ["nbclient"]},
}


def test_a_notebook_says_where_it_is_from_and_what_it_needs(project):
    settings = f'project = "The book"\nbook_frameworks = {FRAMEWORKS}'
    project.configure(settings)
    project.page("a/one", project.cell("import numpy"), project.cell("import nbformat"))
    project.page("a/two", project.cell("1"))
    project.built()
    numpy, form = (importlib.metadata.version(name) for name in ("numpy", "nbformat"))
    assert project.notebook("a/one").cells[0].source == (
        "*Page a/one* is a page of *The book*.\n\n"
        f"Its outputs come from `numpy=={numpy}`, `nbformat-gpu=={form}`.\n\n"
        "The first cell installs what is missing. What is there keeps its version.\n\n"
        "Without PyTorch, skip the cells that need what is missing."
    )
    install = project.notebook("a/one").cells[1]
    assert install.metadata["jupyter"]["source_hidden"] and install.metadata["cellView"] == "form"
    wanted = {"numpy": f"numpy=={numpy}", "nbformat": f"nbformat-gpu=={form}"}
    assert install.source.endswith(f"\n\n\ninstall_missing({wanted})")
    assert project.notebook("a/two").cells[0].source == "*Page a/two* is a page of *The book*."
    # The same where nothing is executed.
    project.recorded()
    project.built("-D", "book_recorded=1", out="build/recorded")
    first, second = (
        project.notebook("a/one", out).cells[0].source for out in ("build/html", "build/recorded")
    )
    assert first == second

    project.configure(settings, 'html_baseurl = "https://book.example/en"')
    project.built()
    assert (
        project.notebook("a/one")
        .cells[0]
        .source.startswith("*[Page a/one](https://book.example/en/a/one.html)* is")
    )


def test_what_a_page_folds_is_hidden_in_its_notebook(project):
    """By Jupyter and VS Code in one way, and by Colab in another."""
    project.snippet("a.task", "def low(x): return x\n\n\ndef double(x): return 2 * low(x)\n")
    project.page(
        "a/one",
        project.cell("double(1)", snippet="a.task.double"),
        project.cell("2", tags="hide-input"),
    )
    project.built()
    codes = [cell for cell in project.notebook("a/one").cells if cell.cell_type == "code"]
    hidden = [cell for cell in codes if cell.metadata.get("cellView") == "form"]
    assert ["def low" in hidden[0].source, hidden[1].source] == [True, "2"]
    assert all(cell.metadata["jupyter"]["source_hidden"] for cell in hidden)
    assert [cell.source.endswith("double(1)") for cell in codes if cell not in hidden] == [True]


def test_a_file_that_a_notebook_brings_replaces_none_of_a_reader(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    new = '"""Judges."""\nnew = True\n'
    path = tmp_path / "practice.py"
    for before in None, '"""Judges."""\nold = True\n':
        if before:
            path.write_text(before)
        downloads.bring("practice.py", new)
        assert path.read_text() == new
    for mine in "my_answers = {}\n", "", "# Übung\n":
        # Not all editors write UTF-8.
        path.write_text(mine, "latin-1")
        with pytest.raises(FileExistsError, match=r"another practice\.py here: move it"):
            downloads.bring("practice.py", new)
        assert path.read_text("latin-1") == mine


def test_a_notebook_that_takes_minutes_says_how_many(project):
    project.page("a/one", project.cell("1"))
    project.recorded()
    (path,) = project.root.glob("docs/_recorded/*/a/one.ipynb")
    recording = json.loads(path.read_text("utf8"))
    for seconds, expected in (50, False), (1352.05, True):
        (facts,) = (each for each in recording["metadata"].values() if "seconds" in each)
        facts["seconds"] = seconds
        path.write_text(json.dumps(recording), "utf8")
        project.built("-D", "book_recorded=1")
        said = project.notebook("a/one").cells[0].source
        assert ("All its cells took 23 minutes where " in said) == expected


def test_what_is_missing_is_installed_and_what_is_there_keeps_its_version(monkeypatch):
    asked = []
    shell = types.SimpleNamespace(run_line_magic=lambda *said: asked.append(said))
    monkeypatch.setattr("IPython.get_ipython", lambda: shell)
    downloads.install_missing({"numpy": "numpy==1.0"})
    assert asked == []
    wanted = {"numpy": "numpy==1.0", "yaml": "PyYAML==1.0", "not_there": "not-there==2.0"}
    downloads.install_missing(wanted)
    kept = [f"{name}=={importlib.metadata.version(name)}" for name in ("PyYAML", "numpy")]
    assert asked == [("pip", f"install --quiet not-there==2.0 {' '.join(kept)}")]


def test_a_page_is_run_elsewhere_where_its_notebook_lies_on_github(themed):
    themed.page("a/one", themed.cell("1"))
    themed.page("a/two", "No cells.", notebook=False)
    themed.page("a/three", themed.cell("1"), recorded="nox -s years --")
    themed.built()
    assert "colab" not in themed.html("a/one").lower()
    folder = "github.com/somebody/book/blob/notebooks"
    conf = themed.root / "conf.py"
    text = conf.read_text("utf8")
    conf.write_text(f'{text}book_notebooks = "https://{folder}"\n', "utf8")
    themed.built()
    shown = themed.html("a/one")
    colab = f"https://colab.research.google.com/{folder.replace('.com', '')}"
    assert f'href="{colab}/a/one.ipynb"' in shown
    assert f'href="https://kaggle.com/kernels/welcome?src=https://{folder}/a/one.ipynb"' in shown
    assert all("kaggle" not in themed.html(name) for name in ("a/two", "a/three"))


LINKS = """\
[Two](../b/two.md) and [the `x[0]`](../b/two.md#it-is-1-1), [below](#here),
[far](https://x.example/#a).

`f[0](x.md)` is code, and

```text
[a](../b/two.md)
```

## Here
"""


def test_a_link_of_a_notebook_leads_to_the_published_page_or_is_plain_text(project):
    more = "myst_heading_anchors = 2"
    project.configure(more)
    project.page("a/one", LINKS, project.cell("1"))
    project.page("b/two", "## It is 1.1", notebook=False)
    project.built()
    code = "`f[0](x.md)` is code, and\n\n```\n[a](../b/two.md)\n```\n\n## Here"
    assert project.notebook("a/one").cells[1].source.partition("\n\n")[2] == (
        f"Two and the `x[0]`, below, [far](https://x.example/#a).\n\n{code}"
    )
    project.configure(more, 'html_baseurl = "https://book.example"')
    project.built()
    assert 'id="it-is-1-1"' in project.html("b/two")
    assert project.notebook("a/one").cells[1].source.partition("\n\n")[2] == (
        "[Two](https://book.example/b/two.html) and "
        "[the `x[0]`](https://book.example/b/two.html#it-is-1-1), "
        "[below](https://book.example/a/one.html#here), [far](https://x.example/#a).\n\n"
        f"{code}"
    )
