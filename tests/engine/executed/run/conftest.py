"""Pages of a miniature project, executed without a build around them."""

import pytest

from executed.options import Options
from executed.run import machine
from executed.run.schedule import execute_all
from executed.source.pages import read_page
from executed.source.snippets import Library


@pytest.fixture
def execute(project, monkeypatch):
    """Return a function that executes pages and returns {page: Result}, in their order."""
    own = project.environment()
    for name in ("STAMPS", "BOOK_LOCKS", "BOOK_KERNELS"):
        if name in own:
            monkeypatch.setenv(name, own[name])

    def run(*docnames, efforts=(), say=str, jobs=None, device="cpu", lent=(), **options):
        library = Library(project.root / "snippets")
        found = {}
        if jobs:
            monkeypatch.setattr(machine, "places", lambda each: jobs)

        def note(result):
            found[result.page.docname] = result

        execute_all(
            [read_page(name, project.path(name), library) for name in docnames],
            Options(**{"variables": ("STAMPS",), "cell_timeout": 30} | options),
            device,
            note,
            dict(efforts),
            say,
            lent,
        )
        return found

    return run


@pytest.fixture
def cells_of(project, execute):
    """Return a function that executes a page of cells, which must not fail, and returns those."""

    def run(*codes, **options):
        project.page("a/one", *map(project.cell, codes))
        found = execute("a/one", **options)["a/one"]
        assert not found.failures, found.failures
        return found.outputs.cells

    return run


@pytest.fixture
def both(project, execute):
    """Return a function that executes one page twice, and returns both (forked, own)."""

    def run(*cells, **options):
        project.page("a/forked", *cells)
        project.page("a/own", *cells, benchmark=True)
        found = execute("a/forked", "a/own", **options)
        return found["a/forked"], found["a/own"]

    return run
