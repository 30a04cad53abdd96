"""Outputs belong to their code and to what it ran on; when either changes they are made again."""

import hashlib
import pathlib

import pytest

from executed import frameworks
from executed.options import Options
from executed.run import ENGINE_VERSION
from executed.run import key as keys
from executed.source.pages import read_page
from executed.source.snippets import Library

REGISTRY = {"jax": {"packages": ["jax", "jaxlib"]}, "sklearn": {"packages": ["scikit-learn"]}}


@pytest.fixture
def key(project):
    """Return a function that gives the key of a page as it stands now."""

    def current(docname, device="cpu", **options):
        page = read_page(docname, project.path(docname), Library(project.root / "snippets"))
        return keys.key(page, Options(frameworks=REGISTRY, **options), device)

    return current


def install(folder, name, version):
    """Make `importlib.metadata` find a distribution below `folder`."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    # As a new process would.
    frameworks.version.cache_clear()


def test_the_key_follows_the_code_of_cells_and_nothing_else_that_is_written(project, key):
    low = project.snippet("a.low", "def low(): return 1\ndef unused(): return 1\n")
    one = project.snippet("a.one", "from snippets.a.low import low\ndef f(): return low()\n")
    project.page("a/one", "Prose.", project.cell("f()", snippet="one.f"))
    first = key("a/one")
    project.page("a/one", "Other prose, longer.", project.cell("f()", snippet="one.f"), "End.")
    project.edit(low, "def unused(): return 1", "def unused(): return 2")
    project.edit(one, "def f()", "\n\ndef f()")
    assert key("a/one") == first
    project.page("a/one", "Prose.", project.cell("f() + 0", snippet="one.f"))
    assert key("a/one") != first
    project.page("a/one", "Prose.", project.cell("f()", snippet="one.f"))
    assert key("a/one") == first
    project.edit(low, "def low(): return 1", "def low(): return 2")
    assert key("a/one") != first


def test_the_key_follows_the_head_of_the_page(project, key):
    heads = [{}, {"benchmark": True}, {"device": "cpu"}, {"device": "gpu-x"}]
    found = set()
    for head in heads:
        project.page("a/one", project.cell("1"), **head)
        found.add(key("a/one"))
    assert len(found) == len(heads)


def test_the_key_of_a_page_follows_whether_it_is_a_preview(project, key):
    project.page("a/one", project.cell("1"))
    project.page("a/bench", project.cell("1"), benchmark=True)
    assert key("a/bench", preview=True) not in (key("a/bench"), key("a/one"))
    assert key("a/one", preview=True) == key("a/one")
    prelude = project.root / "preview.py"
    prelude.write_text("1", "utf8")
    options = {"preview": True, "preview_prelude": "preview.py", "root": project.root}
    found = {key(f"a/{name}", **options) for name in ("one", "bench")}
    assert not found & {key("a/one"), key("a/bench", preview=True)}
    prelude.write_text("2", "utf8")
    assert not found & {key(f"a/{name}", **options) for name in ("one", "bench")}


def test_the_key_follows_what_decides_how_a_page_is_executed(project, key, monkeypatch):
    project.page("a/one", project.cell("import jax"))
    found = [key("a/one"), key("a/one", device="gpu-h200"), key("a/one", output_limit=7)]
    monkeypatch.setenv("JAX_ENABLE_X64", "1")
    assert key("a/one") == found[0]
    found.append(key("a/one", variables=("JAX_*",)))
    monkeypatch.setenv("JAX_ENABLE_X64", "0")
    found.append(key("a/one", variables=("JAX_*",)))
    monkeypatch.setattr(keys, "ENGINE_VERSION", ENGINE_VERSION + 1)
    found.append(key("a/one"))
    assert len(set(found)) == len(found)


def test_the_key_follows_what_a_snippet_declares(project, key):
    path = project.snippet("a.one", 'EXPECTED_ERRORS = {"f": (ValueError, "x")}\ndef f(): ...\n')
    project.page("a/one", project.cell("f()", snippet="one.f"))
    first = key("a/one")
    project.edit(path, "ValueError", "KeyError")
    assert key("a/one") != first


def test_the_key_follows_the_versions_of_what_the_page_imports(project, key, tmp_path, monkeypatch):
    project.page("a/none", project.cell("1"))
    project.page("a/jax", project.cell("import jax.numpy as jnp"))
    project.page("a/inside", project.cell("def f():\n    from sklearn import svm"))
    pages = ("a/none", "a/jax", "a/inside")

    def changed(package):
        before = {name: key(name) for name in pages}
        install(tmp_path / package, package, "99.0")
        monkeypatch.syspath_prepend(tmp_path / package)
        return [name for name in pages if key(name) != before[name]]

    assert changed("jaxlib") == ["a/jax"]
    assert changed("scikit-learn") == ["a/inside"]
    assert changed("torch") == []
    assert changed("ipykernel") == list(pages)


def test_the_key_follows_the_framework_whose_cell_it_is(project, key, tmp_path, monkeypatch):
    cells = [project.cell("1"), project.cell("2")]
    found = []
    for name in ("jax", "sklearn"):
        marked = [
            cell.replace("python\n", f"python\n:framework: {mark}\n")
            for cell, mark in zip(cells, (name, "other"), strict=True)
        ]
        project.page("a/one", *marked)
        found.append(key("a/one"))
    install(tmp_path, "scikit-learn", "99.0")
    monkeypatch.syspath_prepend(tmp_path)
    found.append(key("a/one"))
    project.page("a/one", *cells)
    found.append(key("a/one"))
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("name", ["TZ", "LANG", "LANGUAGE", "LC_TIME"])
def test_the_key_follows_how_dates_numbers_and_messages_are_written(
    project, key, monkeypatch, name
):
    project.page("a/one", project.cell("1"))
    first = key("a/one")
    monkeypatch.setenv("HOME", "elsewhere")
    assert key("a/one") == first
    monkeypatch.setenv(name, "Asia/Tokyo")
    assert key("a/one") != first


def test_a_page_whose_cells_were_left_out_is_red_where_none_may_be(project):
    frameworks = "book_frameworks = {{'nolib': {{'required': {}}}}}"
    project.page("a/one", project.cell("import nolib"))
    project.page("a/two", project.cell("1"))
    project.configure(frameworks.format(False), "book_leave_out = True")
    assert project.build().executed == ["a/one", "a/two"]
    for required, leave_out in ((False, False), (True, True)):
        project.configure(frameworks.format(required), f"book_leave_out = {leave_out}")
        build = project.build()
        assert build.status == 1
        assert build.executed == ["a/one"]
        assert "needs nolib, which is not installed" in build.output
    project.configure(frameworks.format(False), "book_leave_out = True")
    back = project.build()
    assert back.green
    assert back.executed == []


def test_another_version_executes_the_pages_that_import_it(project, tmp_path):
    project.page("a/one", project.cell("import numpy"))
    project.page("a/two", project.cell("2"))
    assert project.build().executed == ["a/one", "a/two"]
    install(tmp_path / "fake", "numpy", "99.0")
    changed = project.wait(project.start(PYTHONPATH=str(tmp_path / "fake")))
    assert changed.green
    assert changed.executed == ["a/one"]
    back = project.build()
    assert back.green
    assert back.executed == []


def test_an_edited_helper_executes_exactly_the_pages_that_reach_it(project):
    base = project.snippet("a.base", "def base(): return 'old value'\n")
    project.snippet("a.middle", "from snippets.a.base import base\ndef middle(): return base()\n")
    project.snippet("b.top", "from snippets.a.middle import middle\ndef top(): return middle()\n")
    project.snippet("b.other", "def other(): return 1\n")
    project.page("a/middle", project.cell("middle()", snippet="middle.middle"))
    project.page("b/top", project.cell("1"), project.cell("top()", snippet="top.top"))
    project.page("b/other", project.cell("other()", snippet="other.other"))
    project.page("plain", project.cell("1 + 1"))
    first = project.build()
    assert first.green
    assert first.executed == ["a/middle", "b/other", "b/top", "plain"]

    project.edit(base, "old value", "new value")
    second = project.build()
    assert second.green
    assert second.executed == ["a/middle", "b/top"]
    assert "0 added, 2 changed, 0 removed" in second.output
    for docname in ("a/middle", "b/top"):
        assert "'new value'" in project.html(docname)
        assert "'old value'" not in project.html(docname)

    prose = project.path("b/top")
    prose.write_text(prose.read_text("utf8") + "\nA sentence more.\n", "utf8")
    third = project.build()
    assert third.green
    assert third.executed == []
    assert "A sentence more." in project.html("b/top")
    assert "'new value'" in project.html("b/top")

    project.edit(base, "new value", "old value")
    back = project.build()
    assert back.green
    assert back.executed == []
    assert "'old value'" in project.html("b/top")


def test_a_page_of_another_device_or_of_an_unknown_one_is_refused(project):
    facts = {"modules": ["colorsys"], "device": "('cpu', 'cpu')"}
    broken = {"modules": ["ftplib"], "device": "1 / 0"}
    project.configure(f"book_frameworks = {{'lib': {facts}, 'broken': {broken}}}")
    project.page("a/broken", project.cell("import ftplib"))
    project.page("a/none", project.cell("1"))
    project.page("a/one", "Prose.", project.cell("import colorsys"))
    build = project.build(BOOK_DEVICE="gpu-h200")
    assert build.status == 1
    assert build.executed == ["a/broken", "a/none", "a/one"]
    elsewhere, unknown = sorted(build.warnings, reverse=True)
    assert (
        "docs/a/one.md:11: WARNING: cell 1: the page is executed for device 'gpu-h200', but the "
        "kernel ran on 'cpu'; set BOOK_DEVICE to the device that is meant"
    ) in elsewhere
    assert "docs/a/broken.md:9: WARNING: " in unknown
    assert "cannot be asked on which device the page ran (ZeroDivisionError" in unknown
    assert len(project.cached()) == 1
    project.path("a/broken").unlink()
    assert project.build().green


# What decides what cells give, and the digest of its lines that are no comments.
DECIDING = "availability environment expectations fork_template kernel page_run".split()
DIGEST = "0a5ac9a8988ede04"


def test_a_change_of_what_decides_outputs_raises_the_version():
    digest = hashlib.sha256()
    for name in DECIDING:
        lines = pathlib.Path(keys.__file__).with_name(f"{name}.py").read_text("utf8").splitlines()
        code = [line for line in lines if line.strip() and not line.lstrip().startswith("#")]
        digest.update("\n".join(code).encode())
    assert digest.hexdigest()[:16] == DIGEST, (
        "code that executes cells has changed: if the same cells may now give other outputs, raise "
        f"ENGINE_VERSION in docs/_ext/executed/run/__init__.py, now {ENGINE_VERSION}. Then put "
        f"{digest.hexdigest()[:16]!r} here as DIGEST"
    )
