"""The cache gives back what was put in, and never anything damaged."""

import json
import pathlib
import subprocess
import sys

import nbformat
import pytest
from _ext.records.cache import Store
from _ext.source.pages import Page

FACTS = {"executed": "2026-01-01T00:00:00+00:00", "seconds": 1.0, "device": "cpu"}


def page(docname, *cells, value="1"):
    notebook = nbformat.v4.new_notebook()
    for source in cells or ("f()",):
        output = nbformat.v4.new_output("execute_result", {"text/plain": value}, execution_count=1)
        notebook.cells.append(
            nbformat.v4.new_code_cell(source, outputs=[output], execution_count=1)
        )
    notebook.metadata["source_map"] = [1] * len(notebook.cells)
    return Page(docname, notebook, {}, False)


def unexecuted(docname, *cells):
    made = page(docname, *cells)
    for cell in made.code_cells:
        cell["outputs"], cell["execution_count"] = [], None
    return made


def texts(loaded):
    return [output["data"]["text/plain"] for cell in loaded.code_cells for output in cell.outputs]


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "_cache" / "cpu"


@pytest.fixture
def filled(folder):
    store = Store(folder)
    for name in ("one", "two", "three"):
        store.save(page(name, "f()", "g()", value=name), f"key {name}", FACTS)
    return folder


def file_of(folder, docname):
    for path in folder.glob("executed/*/base.ipynb"):
        if json.loads(path.read_text())["metadata"]["kernelspec"]["page"] == docname:
            return path
    raise LookupError(docname)


def test_outputs_and_facts_come_back(filled):
    wanted = unexecuted("one", "f()", "g()")
    assert Store(filled).load(wanted, "key one") == FACTS
    assert texts(wanted) == ["one", "one"]
    assert [cell.execution_count for cell in wanted.code_cells] == [1, 1]


def test_another_key_or_page_or_code_finds_nothing(filled):
    store = Store(filled)
    assert store.load(unexecuted("one", "f()", "g()"), "key two") is None
    assert store.load(unexecuted("two", "f()", "g()"), "key one") is None
    assert store.load(unexecuted("one", "f()", "h()"), "key one") is None
    assert store.load(unexecuted("one", "f()"), "key one") is None


def test_the_latest_outputs_replace_the_former(filled):
    store = Store(filled)
    store.save(page("one", "f()", "g()", value="new"), "key one", FACTS)
    wanted = unexecuted("one", "f()", "g()")
    store.load(wanted, "key one")
    assert texts(wanted) == ["new", "new"]


def too_few_cells(text):
    notebook = json.loads(text)
    notebook["cells"].pop()
    return json.dumps(notebook)


def without_facts(text):
    notebook = json.loads(text)
    del notebook["metadata"]["book"]
    return json.dumps(notebook)


DAMAGES = {
    "truncated": lambda text: text[: len(text) // 2],
    "emptied": lambda text: "",
    "not JSON": lambda text: "\x00\x01 garbage",
    "an empty object": lambda text: "{}",
    "a list": lambda text: "[]",
    "too few cells": too_few_cells,
    "without facts": without_facts,
    "not a notebook": lambda text: (
        '{"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": 7}'
    ),
}


@pytest.mark.parametrize("kind", DAMAGES)
def test_a_damaged_file_is_dropped_alone(filled, kind):
    path = file_of(filled, "two")
    path.write_text(DAMAGES[kind](path.read_text()))
    wanted = unexecuted("two", "f()", "g()")
    assert Store(filled).load(wanted, "key two") is None
    assert texts(wanted) == []
    assert not path.exists()

    store = Store(filled)
    store.save(page("two", "f()", "g()", value="again"), "key two", FACTS)
    for name, value in (("one", "one"), ("two", "again"), ("three", "three")):
        wanted = unexecuted(name, "f()", "g()")
        assert Store(filled).load(wanted, f"key {name}") == FACTS
        assert texts(wanted) == [value, value]


def test_a_file_that_is_missing_is_made_again(filled):
    file_of(filled, "two").unlink()
    assert Store(filled).load(unexecuted("two", "f()", "g()"), "key two") is None
    Store(filled).save(page("two", "f()", "g()"), "key two", FACTS)
    assert Store(filled).load(unexecuted("two", "f()", "g()"), "key two") == FACTS


@pytest.mark.parametrize("content", [b"", b"garbage", b"SQLite format 3\x00 cut off"])
def test_a_damaged_index_is_made_anew_and_loses_nothing(filled, content):
    (filled / "global.db").write_bytes(content)
    for name in ("one", "two", "three"):
        wanted = unexecuted(name, "f()", "g()")
        assert Store(filled).load(wanted, f"key {name}") == FACTS
        assert texts(wanted) == [name, name]


def test_files_that_no_index_lists_are_replaced(filled):
    (filled / "global.db").unlink()
    wanted = unexecuted("one", "f()", "g()")
    assert Store(filled).load(wanted, "key one") is None
    Store(filled).save(page("one", "f()", "g()", value="new"), "key one", FACTS)
    assert Store(filled).load(wanted, "key one") == FACTS
    assert texts(wanted) == ["new", "new"]


@pytest.mark.parametrize("kind", DAMAGES)
def test_a_damaged_file_below_a_damaged_index_is_dropped(filled, kind):
    path = file_of(filled, "two")
    path.write_text(DAMAGES[kind](path.read_text()))
    (filled / "global.db").write_bytes(b"garbage")
    store = Store(filled)
    assert store.load(unexecuted("two", "f()", "g()"), "key two") is None
    assert store.load(unexecuted("one", "f()", "g()"), "key one") == FACTS
    store.save(page("two", "f()", "g()"), "key two", FACTS)
    assert Store(filled).load(unexecuted("two", "f()", "g()"), "key two") == FACTS


WRITER = """
import sys
sys.path[:0] = {paths!r}
from test_cache import FACTS, Store, page, unexecuted
writer = int(sys.argv[1])
for number in range(12):
    store = Store({folder!r})
    name = f"page {{number}}"
    store.save(page(name, value=str(writer)), "key", FACTS)
    assert store.load(unexecuted(name), "key") == FACTS
    assert store.load(unexecuted(f"page {{11 - number}}"), "key") in (FACTS, None)
"""


def test_several_processes_may_use_one_store(folder, request):
    from _ext.records import cache as module

    paths = [
        str(request.path.parent),
        str(pathlib.Path(module.__file__).parents[2]),
    ]
    script = WRITER.format(paths=paths, folder=str(folder))
    writers = [
        subprocess.Popen([sys.executable, "-c", script, str(number)], stderr=subprocess.PIPE)
        for number in range(4)
    ]
    for writer in writers:
        _, errors = writer.communicate()
        assert writer.returncode == 0, errors.decode()
    for number in range(12):
        wanted = unexecuted(f"page {number}")
        assert Store(folder).load(wanted, "key") == FACTS
        assert texts(wanted)[0] in "0123"
    assert len(list(folder.glob("executed/*/base.ipynb"))) == 12


def test_a_build_executes_damaged_entries_again_and_stays_green(project):
    names = ["a/cut", "a/few", "a/lost", "a/whole"]
    for name in names:
        project.page(name, project.cell(f"print({name!r})"))
    assert project.build().executed == names

    cached = {
        json.loads(path.read_text())["metadata"]["kernelspec"]["page"]: path
        for path in project.cached()
    }
    cached["a/cut"].write_text(cached["a/cut"].read_text()[:200])
    cached["a/few"].write_text(too_few_cells(cached["a/few"].read_text()))
    cached["a/lost"].unlink()
    repaired = project.build(out="again/html")
    assert repaired.green
    assert repaired.executed == names[:3]
    for name in names[:3]:
        assert f"warning: the cached outputs of {name} cannot be read" in repaired.output
        assert name in project.html(name, "again/html")
    assert repaired.output.count("cannot be read") == 3

    (project.root / "_cache/cpu/global.db").write_bytes(b"garbage")
    rebuilt = project.build(out="third/html")
    assert rebuilt.green
    assert rebuilt.executed == []
    assert "warning: the index of the cache" in rebuilt.output
    assert "it is made anew from the cached pages" in rebuilt.output
