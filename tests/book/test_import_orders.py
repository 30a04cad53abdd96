"""Kernels import frameworks in the order of any page, and can use all of each afterwards."""

import importlib.util

import pytest

from executed.run import imports
from executed.run.schedule import execute_all
from executed.source.code import imported_modules
from executed.source.pages import read_page
from executed.source.snippets import Library
from tests.book import pages as book
from tests.book.pages import OPTIONS

REGISTERED = {module for framework in OPTIONS.registry for module in framework.modules}
BOTH = {"torch", "tensorflow"}
# What of PyTorch is loaded when it is first used.
USED = """
import torch._dynamo
torch._dynamo.reset()
torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
"""
PAGE = "---\nfile_format: mystnb\nbenchmark: {}\n---\n\n# Imports\n"


def imports_of(page):
    """Return cells that import what those of a page do, and touch what those touch."""
    cells = []
    for cell in page.cells:
        names = [n for n in imported_modules(cell.source, anywhere=True) if n in REGISTERED]
        now = imported_modules(cell.source)
        touched = (
            ["import os", "os.environ['TOUCHED'] = ''"]
            if imports.TOUCHES.search(cell.source)
            else []
        )
        for name in dict.fromkeys(names):
            # What a function imports is imported when it is called.
            inside = "" if name in now else f"def late():\n    import {name}\nlate()"
            touched.append(inside or f"import {name}")
        if touched:
            cells.append("\n".join(touched))
    return tuple(cells)


def orders():
    """Return {the order in which a kernel imports frameworks: (measures, cells)} of all pages."""
    found = {}
    for page in map(book.page, book.paths()):
        cells = imports_of(page) if page else ()
        names = [n for cell in cells for n in imported_modules(cell, anywhere=True)]
        if not BOTH <= set(names):
            continue
        before = imports.warm_modules(cells, OPTIONS.registry)
        forked = before is not None and not page.benchmark
        imported = (*before, *names) if forked else names
        first, *others = dict.fromkeys(n for n in imported if n in REGISTERED)
        # Each of the others imports NumPy too.
        order = first, *(n for n in others if n != "numpy")
        found.setdefault((forked, *order), (page.benchmark, cells))
    return found


def test_kernels_survive_each_order_in_which_pages_import_frameworks(tmp_path):
    missing = [name for name in (*BOTH, "triton") if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"no order is a fault without {', '.join(missing)}")
    pages = []
    for number, (measures, cells) in enumerate(orders().values()):
        path = tmp_path / f"{number}.md"
        code = [f"```{{code-cell}} python\n{cell}\n```\n" for cell in (*cells, USED)]
        path.write_text("\n".join([PAGE.format(str(measures).lower()), *code]), "utf8")
        pages.append(read_page(path.stem, path, Library(tmp_path)))
    assert len(pages) > 2
    failures = []
    execute_all(pages, OPTIONS, "cpu", lambda done: failures.extend(done.failures), {}, print)
    assert failures == []
