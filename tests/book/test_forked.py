"""A page of the book prints the same in a forked kernel as in a process of its own."""

import json
import pathlib

import jax
import pytest
from _ext.execution import imports
from _ext.execution.schedule import execute_all
from _ext.measurements.schema import Schema
from _ext.options import Options
from _ext.records.outputs import record
from _ext.records.recordings import Recordings
from _ext.records.sanitising import recordable
from _ext.source.pages import find_pages, read_page
from _ext.source.snippets import Library

ROOT = pathlib.Path(__file__).parents[2]
OPTIONS = Options.from_file(ROOT / "conf.py")
SCHEMA = Schema.of(OPTIONS)
RECORDINGS = Recordings(OPTIONS.folder("recordings"), SCHEMA)
# One for each set of frameworks, and those that print jaxprs, tracebacks and random numbers;
# `nox -s build_benchmark` compares all pages.
PAGES = "jaxprs/reading start/arrays pitfalls/keys vectorizing/vmap".split()


def plain(outputs):
    """Return outputs as they are recorded, but for measurements."""
    kept = recordable(outputs, SCHEMA)
    return [json.loads(json.dumps(output)) for output in kept if record(output, SCHEMA) is None]


def differences(names):
    """Execute pages in processes of their own; return the cells that print something else."""
    library, found = Library.of(OPTIONS), find_pages(OPTIONS.folder("pages"))
    different = []

    def done(page, execution):
        forked = RECORDINGS.read("cpu", page.docname)
        if forked.facts.process != "forked" or execution.outputs.facts.process != "own":
            different.append(f"{page.docname}: not once forked and once in a process of its own")
        for number, cell in enumerate(execution.outputs.cells, 1):
            recorded = forked.cell(cell.key)
            if recorded is None or plain(cell.outputs) != plain(recorded.outputs):
                different.append(f"{page.docname}, cell {number}")

    pages = [read_page(name, found[name], library) for name in names]
    execute_all(pages, OPTIONS, "cpu", done, {}, print)
    return different


def test_pages_print_the_same_in_processes_of_their_own(monkeypatch):
    pytest.importorskip("torch")
    pytest.importorskip("tensorflow")
    recorded = RECORDINGS.read("cpu", PAGES[0]).facts.versions["jax"]
    if recorded != jax.__version__:
        pytest.skip(f"recorded with jax {recorded}, here is {jax.__version__}")
    monkeypatch.setattr(imports, "warm_modules", lambda *rest: None)
    assert differences(PAGES) == []
