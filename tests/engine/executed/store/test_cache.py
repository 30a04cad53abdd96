"""The cache gives back what was put in, and never anything damaged."""

import dataclasses
import json
import os
import pathlib
import subprocess
import sys

import nbformat
import pytest

from executed.files import Unusable
from executed.source.pages import Cell, Page
from executed.store import cache as module
from executed.store.cache import KEPT, Cache
from executed.store.output_format import CellOutputs, PageOutputs, RunMetadata


def page(docname, *sources):
    cells = [Cell(source, source, 1, None, None) for source in sources or ("f",)]
    return Page(docname, nbformat.v4.new_notebook(), tuple(cells), {})


def outputs(of, value="1"):
    facts = RunMetadata(of.docname, "cpu", "cpu", "2026-01-01T00:00:00+00:00", 1.5, "P", 2, {})
    facts = dataclasses.replace(facts, cores=1.25, started=0.75)
    made = nbformat.v4.new_output("execute_result", {"text/plain": value})
    return PageOutputs(facts, tuple(CellOutputs(cell.key, (made,)) for cell in of.cells))


NAMES = ("one", "a/two", "three")
PAGES = {name: page(name, "f", "g") for name in NAMES}


@pytest.fixture
def cache(tmp_path):
    return Cache(tmp_path / "_cache" / "cpu")


@pytest.fixture
def filled(cache):
    for name in NAMES:
        cache.save(PAGES[name], "key", outputs(PAGES[name], name))
    return cache


def load(cache, name):
    return cache.load(PAGES[name], "key", "cpu")


def test_outputs_and_facts_come_back(filled):
    for name in NAMES:
        assert load(filled, name) == outputs(PAGES[name], name)


def test_another_key_or_page_finds_nothing(filled):
    assert filled.load(PAGES["one"], "other", "cpu") is None
    assert filled.load(page("two", "f", "g"), "key", "cpu") is None
    assert Cache(filled.folder / "none").load(PAGES["one"], "key", "cpu") is None


def test_outputs_of_other_cells_or_another_device_are_not_taken(filled):
    for other in (page("one", "f", "h"), page("one", "f"), page("one", "g", "f")):
        with pytest.raises(Unusable):
            filled.load(other, "key", "cpu")
    with pytest.raises(Unusable):
        filled.load(PAGES["one"], "key", "gpu-x")


def test_the_latest_outputs_replace_the_former(filled):
    filled.save(PAGES["one"], "key", outputs(PAGES["one"], "new"))
    assert load(filled, "one") == outputs(PAGES["one"], "new")
    assert load(filled, "three") == outputs(PAGES["three"], "three")


def without_a_cell(text):
    notebook = json.loads(text)
    notebook["cells"].pop()
    return json.dumps(notebook)


# What else a file may lack, `test_recordings` has: both are read alike.
DAMAGES = {
    "truncated": lambda text: text[: len(text) // 2],
    "emptied": lambda text: "",
    "not JSON": lambda text: "\x00\x01 garbage",
    "an empty object": lambda text: "{}",
    "a list": lambda text: "[]",
    "nothing": lambda text: "null",
    "a number": lambda text: "5",
    "too few cells": without_a_cell,
    "not a notebook": lambda text: (
        '{"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": 7}'
    ),
}


@pytest.mark.parametrize("kind", DAMAGES)
def test_a_damaged_file_is_refused_alone_and_replaced(filled, kind):
    path = filled.path(PAGES["a/two"], "key")
    path.write_text(DAMAGES[kind](path.read_text()))
    with pytest.raises(Unusable):
        load(filled, "a/two")
    filled.save(PAGES["a/two"], "key", outputs(PAGES["a/two"], "again"))
    for name, value in (("one", "one"), ("a/two", "again"), ("three", "three")):
        assert load(filled, name) == outputs(PAGES[name], value)


def test_a_save_that_fails_leaves_what_was_there(filled, monkeypatch):
    def full(self, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pathlib.Path, "replace", full)
    with pytest.raises(OSError, match="No space"):
        filled.save(PAGES["one"], "key", outputs(PAGES["one"], "new"))
    monkeypatch.undo()
    assert load(filled, "one") == outputs(PAGES["one"], "one")
    assert len(list(filled.folder.rglob(".*"))) == 0


def test_former_outputs_are_kept_but_not_for_ever(cache):
    of = page("a/one", "f")
    for number in range(KEPT + 3):
        cache.save(of, f"key{number}", outputs(of))
        os.utime(cache.path(of, f"key{number}"), (number, number))
    cache.save(of, "last", outputs(of))
    assert len(list(cache.folder.rglob("*.ipynb"))) == KEPT
    assert cache.load(of, "last", "cpu") and cache.load(of, f"key{KEPT}", "cpu")
    assert cache.load(of, "key0", "cpu") is None


def test_what_was_written_just_now_is_kept_with_a_clock_that_was_set_back(cache):
    of = page("a/one", "f")
    for number in range(KEPT):
        cache.save(of, f"key{number}", outputs(of))
        os.utime(cache.path(of, f"key{number}"), (4e9 + number, 4e9 + number))
    cache.save(of, "last", outputs(of))
    assert cache.load(of, "last", "cpu")
    assert cache.load(of, "key0", "cpu") is None
    assert len(list(cache.folder.rglob("*.ipynb"))) == KEPT


WRITER = """
import sys
sys.path[:0] = {paths!r}
from test_cache import Cache, outputs, page
writer = sys.argv[1]
cache = Cache({folder!r})
for number in range(12):
    of, other = page(f"page {{number}}"), page(f"page {{11 - number}}")
    cache.save(of, "key", outputs(of, writer))
    assert cache.load(of, "key", "cpu").cells
    cache.load(other, "key", "cpu")
"""


def test_several_processes_may_use_one_cache(cache, request):
    paths = [str(request.path.parent), str(pathlib.Path(module.__file__).parents[2])]
    script = WRITER.format(paths=paths, folder=str(cache.folder))
    writers = [
        subprocess.Popen([sys.executable, "-c", script, str(number)], stderr=subprocess.PIPE)
        for number in range(2)
    ]
    for writer in writers:
        _, errors = writer.communicate()
        assert writer.returncode == 0, errors.decode()
    for number in range(12):
        made = cache.load(page(f"page {number}"), "key", "cpu")
        assert made.cells[0].outputs[0]["data"]["text/plain"] in "01"
    assert len(list(cache.folder.rglob("*.ipynb"))) == 12


def test_a_build_executes_damaged_entries_again_and_stays_green(project):
    names = ["a/cut", "a/few", "a/lost", "a/whole"]
    for name in names:
        project.page(name, project.cell(f"print({name!r})"))
    assert project.build().executed == names

    cached = {path.parent.name: path for path in project.cached()}
    cached["cut"].write_text(cached["cut"].read_text()[:200])
    cached["few"].write_text(without_a_cell(cached["few"].read_text()))
    cached["lost"].unlink()
    repaired = project.built(out="again/html")
    assert repaired.executed == names[:3]
    for name in names[:2]:
        assert f"warning: the cached outputs of {name} cannot be used" in repaired.output
    for name in names:
        assert name in project.html(name, "again/html")


def test_a_cache_that_cannot_be_written_serves_what_it_holds(project):
    project.page("a/one", project.cell("print(6 * 7)"))
    project.built()
    cache = project.root / "_cache"
    moved = project.root / "cache of another place"
    cache.rename(moved)
    cache.symlink_to(moved)
    assert project.build(out="second/html").executed == []

    cache.unlink()
    cache.write_text("a file")
    for build in (project.build(out="third/html"), project.build(out="third/html")):
        assert build.status == 1
        assert build.executed == ["a/one"]
        assert any("a/one.md" in line and "_cache" in line for line in build.warnings)
        assert "42" in project.html("a/one", "third/html")
    cache.unlink()
    project.built(out="third/html")
