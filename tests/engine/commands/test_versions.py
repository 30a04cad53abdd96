"""Pages are recorded on versions of a package, apart from the recordings of devices."""

import importlib.metadata
import json
import re

import pytest

HERE = importlib.metadata.version("ipykernel")


@pytest.fixture
def record(project):
    """Return a function that records all pages with the version that is installed."""
    project.page("a/one", project.cell("1 / zero"), project.cell("print('pears')"))
    (project.root / "prelude.py").write_text("import builtins\nbuiltins.zero = 0\n", "utf8")

    def run(*pages, supported=(), listed=HERE):
        project.with_versions(recorded=[listed], supported=supported, without=["b/*"])
        return project.run("versions", *pages)

    return run


def kept(project):
    return list((project.root / "docs" / "_versions").rglob("*.ipynb"))


def test_what_an_old_version_makes_of_a_page_is_recorded(project, record):
    done = record()
    assert done.returncode == 0, done.stderr
    (path,) = kept(project)
    edition = path.parts[-3]
    assert edition.startswith("ipykernel-")
    notebook = json.loads(path.read_text("utf8"))
    facts = notebook["metadata"]["recording"]
    assert facts["device"] == edition
    assert facts["command"] == "nox -s versions -- a/one"
    (error,), (printed,) = (cell["outputs"] for cell in notebook["cells"])
    assert error["ename"] == "ZeroDivisionError"
    assert printed["text"] == ["pears\n"]
    assert not (project.root / "docs" / "_recorded").exists()


def test_on_a_supported_version_a_page_must_come_out_as_it_declares(project, record):
    done = record(supported=[HERE])
    assert done.returncode == 1
    assert "a/one.md:" in done.stderr
    # The prelude is for others.
    assert "NameError" in done.stderr
    assert kept(project) == []


def test_another_version_than_those_listed_is_refused(project, record):
    done = record(listed="0.0.1")
    assert done.returncode == 2
    assert "conf.py lists 0.0.1" in done.stderr
    assert kept(project) == []


def test_without_a_list_of_versions_nothing_is_recorded(project):
    done = project.run("versions")
    assert done.returncode == 2
    assert "book_versions" in done.stderr


def test_a_version_is_recorded_on_the_cpu_also_what_is_executed_there_alone(project, record):
    project.page("a/two", project.cell("print('plums')"), device="cpu")
    project.page("a/three", project.cell("1"), device="gpu-h200")
    done = record("a/two", "a/three")
    assert done.returncode == 0, done.stderr
    assert [path.stem for path in kept(project)] == ["two"]
    assert "left out a/three, which is executed on gpu-h200 only" in done.stdout
    build = project.build()
    assert "stale" not in build.output


def test_pages_that_need_more_than_the_package_are_left_out(project, record):
    project.page("b/two", project.cell("1"))
    for names in ((), ("a/one", "b/two")):
        done = record(*names)
        assert done.returncode == 0
        assert re.search(r"left out b/two, which needs more than \S+", done.stdout)
        assert [path.stem for path in kept(project)] == ["one"]


def test_pages_that_are_recorded_on_no_version_are_not_missing_there(project, record):
    project.page("b/two", project.cell("1"))
    project.page("c/three", project.cell("1"), recorded="nox -s years --")
    assert record("a/one").returncode == 0
    listed = project.run("recordings")
    assert listed.returncode == 0, listed.stderr
    assert "a/one" in listed.stdout
    assert "b/two" not in listed.stdout and "c/three" not in listed.stdout


def test_a_page_with_a_command_of_its_own_is_recorded_on_no_version(project, record):
    project.page("a/two", project.cell("1"), recorded="nox -s years --")
    done = record("a/one", "a/two")
    assert done.returncode == 0, done.stderr
    assert [path.stem for path in kept(project)] == ["one"]
    assert "left out a/two, which is recorded by 'nox -s years -- a/two'" in done.stdout
