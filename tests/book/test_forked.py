"""A page of the book prints the same in a forked kernel as in a process of its own."""

import json

import jax
import pytest

from executed.hooks import features, kinds
from executed.run import imports
from executed.run.schedule import execute_all
from executed.store.matching import align
from executed.store.outputs import kind_of
from executed.store.recordings import Recordings
from executed.store.sanitising import recordable
from tests.book import pages
from tests.book.pages import OPTIONS

KINDS = kinds(features(OPTIONS))
RECORDINGS = Recordings(OPTIONS.folder("recordings"), KINDS)
# One with JAX alone and one with all frameworks, which print jaxprs, tracebacks and random
# numbers; `nox -s build_benchmark` compares all pages.
PAGES = "vectorizing/vmap start/random_keys".split()


def plain(outputs):
    """Return outputs as they are recorded, but for measurements."""
    kept = recordable(outputs, KINDS)
    return [json.loads(json.dumps(output)) for output in kept if not kind_of(output, KINDS)]


def executed(names):
    """Execute pages on the CPU; return {page: outputs}."""
    found = {}

    def done(result):
        found[result.page.docname] = result.outputs

    execute_all(list(map(pages.page, names)), OPTIONS, "cpu", done, {}, print)
    return found


def differences(forked, own):
    """Return the cells that print something else in processes of their own."""
    different = []
    for name, outputs in own.items():
        if forked[name].facts.process != "forked" or outputs.facts.process != "own":
            different.append(f"{name}: not once forked and once in a process of its own")
        for number, cell in enumerate(outputs.cells, 1):
            other = forked[name].cell(cell.key)
            if other is None or plain(cell.outputs) != plain(other.outputs):
                different.append(f"{name}, cell {number}")
    return different


def test_pages_print_the_same_in_processes_of_their_own(monkeypatch):
    pytest.importorskip("torch")
    pytest.importorskip("tensorflow")
    recorded = RECORDINGS.read("cpu", PAGES[0]).facts.versions["jax"]
    if recorded != jax.__version__:
        pytest.skip(f"recorded with jax {recorded}, here is {jax.__version__}")
    monkeypatch.setattr(imports, "warm_modules", lambda *rest: None)
    # What was recorded was compiled with all optimisations, which change the last bit of a sum.
    monkeypatch.delenv("JAX_DISABLE_MOST_OPTIMIZATIONS", raising=False)
    # A docstring that was edited since makes another key, and prints nothing.
    forked = {name: align(RECORDINGS.read("cpu", name), pages.page(name), KINDS) for name in PAGES}
    assert differences(forked, executed(PAGES)) == []
