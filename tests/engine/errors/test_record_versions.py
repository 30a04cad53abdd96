"""Pages are recorded on versions of a package, apart from the recordings of devices."""

import importlib.metadata
import json

import pytest

HERE = importlib.metadata.version("ipykernel")


@pytest.fixture
def record(project):
    """Return a function that records all pages with the version that is installed."""
    asked = "```{code-cell} python\n:by-version: true\nprint('pears')\n```"
    project.page("a/one", project.cell("1 / zero"), asked, project.cell("'not needed'"))
    project.page("b/none", "A page of a chapter that is left out.", notebook=False)
    (project.root / "prelude.py").write_text("import builtins\nbuiltins.zero = 0\n", "utf8")

    def run(*pages, supported=(), listed=HERE):
        project.with_versions(recorded=[listed], supported=supported, without=["b/*"])
        return project.run("versions", *pages)

    return run


def kept(project):
    """Return {page: texts} of the version that is installed; empty where nothing is kept."""
    path = project.root / "docs" / "_versions" / f"ipykernel-{HERE}.json"
    return json.loads(path.read_text("utf8"))["pages"] if path.exists() else {}


def test_what_an_old_version_makes_of_a_page_is_recorded(project, record):
    done = record()
    assert done.returncode == 0, done.stderr
    (text,) = kept(project)["a/one"]
    assert text["printed"] == "pears\n"
    assert not (project.root / "docs" / "_recorded").exists()
    assert "executed" not in record("--changed").stdout
    project.edit(project.path("a/one"), "pears", "plums")
    assert "1 texts left out, of a/one" in project.run("list_recordings").stdout
    assert "executed a/one" in record("--changed").stdout
    (text,) = kept(project)["a/one"]
    assert text["printed"] == "plums\n"


def test_on_a_supported_version_a_page_must_come_out_as_it_declares(project, record):
    done = record(supported=[HERE])
    assert done.returncode == 1
    assert "a/one.md:" in done.stderr
    # The prelude is for others.
    assert "NameError" in done.stderr
    assert kept(project) == {}


def test_another_version_than_those_listed_is_refused(project, record):
    done = record(listed="0.0.1")
    assert done.returncode == 2
    assert "conf.py lists 0.0.1" in done.stderr
    assert kept(project) == {}


def test_without_a_list_of_versions_nothing_is_recorded(project):
    done = project.run("versions")
    assert done.returncode == 2
    assert "book_versions" in done.stderr


def asking(project, docname, **head):
    cell = "```{code-cell} python\n:by-version: true\nprint('plums')\n```"
    project.page(docname, cell, **head)


def test_pages_of_the_cpu_that_need_nothing_more_are_recorded(project, record):
    asking(project, "a/two", device="cpu")
    asking(project, "a/three", device="gpu-h200")
    asking(project, "a/four", recorded="nox -s years --")
    asking(project, "b/five")
    project.page("a/six", project.cell("'nothing to keep'"))
    done = record()
    assert done.returncode == 0, done.stderr
    assert set(kept(project)) == {"a/one", "a/two"}
    assert f"ipykernel-{HERE}: current" in project.run("list_recordings").stdout


def test_the_texts_of_a_page_that_is_gone_go_with_the_next_recording(project, record):
    asking(project, "a/two")
    assert record().returncode == 0
    project.path("a/two").unlink()
    assert record().returncode == 0
    assert set(kept(project)) == {"a/one"}
