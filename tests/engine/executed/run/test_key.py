"""Outputs belong to their code and to what it ran on; when either changes they are made again."""

import pytest

from executed import frameworks
from executed.options import Options
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


@pytest.fixture(autouse=True)
def unknown_versions():
    """Forget which versions a test has installed: the next one builds in the same process."""
    yield
    frameworks.version.cache_clear()


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
    monkeypatch.setattr(keys, "ENGINE_VERSION", keys.ENGINE_VERSION + 1)
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
    assert project.built().executed == []


def test_an_edited_helper_executes_exactly_the_pages_that_reach_it(project):
    base = project.snippet("a.base", "def base(): return 'old value'\n")
    project.snippet("a.middle", "from snippets.a.base import base\ndef middle(): return base()\n")
    project.snippet("b.top", "from snippets.a.middle import middle\ndef top(): return middle()\n")
    project.snippet("b.other", "def other(): return 1\n")
    project.page("a/middle", project.cell("middle()", snippet="middle.middle"))
    project.page("b/top", project.cell("1"), project.cell("top()", snippet="top.top"))
    project.page("b/other", project.cell("other()", snippet="other.other"))
    project.page("plain", project.cell("1 + 1"))
    assert project.built().executed == ["a/middle", "b/other", "b/top", "plain"]
    project.edit(base, "old value", "new value")
    second = project.built()
    assert second.executed == ["a/middle", "b/top"]
    assert "0 added, 2 changed, 0 removed" in second.output
    for docname in ("a/middle", "b/top"):
        assert "'new value'" in project.html(docname)
    project.edit(base, "new value", "old value")
    assert project.built().executed == []
    assert "'old value'" in project.html("b/top")


# Cells, and what each gives. Whatever is asked of outputs elsewhere, here they are all of it.
GIVEN = {
    "import sys\nprint('a')\nprint('b', file=sys.stderr)\nprint('c')": [
        ("stdout", "a\nc\n"),
        ("stderr", "b\n"),
    ],
    "import os\nos.system('echo native')": [("stdout", "native\n"), ("value", {"text/plain": "0"})],
    "import warnings\nwarnings.warn('careful')": [("stderr", "UserWarning: careful\n")],
    "from IPython.display import HTML, display\ndisplay(HTML('<b>x</b>'))": [
        (
            "display",
            {"text/html": "<b>x</b>", "text/plain": "<IPython.core.display.HTML object>"},
        )
    ],
    "{*map(chr, range(97, 103))}, sys.argv[1:2], __name__, os.listdir()": [
        ("value", {"text/plain": "({'a', 'b', 'c', 'd', 'e', 'f'}, ['-f'], '__main__', [])"})
    ],
    "'x' * 300": [
        ("value", {"text/plain": "'" + "x" * 199}),
        ("stdout", "\n… and 103 more characters\n"),
    ],
    "import nothere": "nothere",
    "nothere.f()": "nothere",
    "def f(x):\n    return 1 / x\n[f(1), f(0)]": [
        (
            "ZeroDivisionError: division by zero",
            "Traceback (most recent call last):\n"
            "  line 3\n    [f(1), f(0)]\n  line 2, in f\n    return 1 / x\n"
            "ZeroDivisionError: division by zero",
        )
    ],
    "f([])": [
        (
            "TypeError: unsupported operand type(s) for /: 'int' and 'list'",
            "Traceback (most recent call last):\n"
            "  line 1\n    f([])\n  an earlier cell, line 2, in f\n    return 1 / x\n"
            "TypeError: unsupported operand type(s) for /: 'int' and 'list'",
        )
    ],
    "x = 1\ny = = 2": [
        (
            "SyntaxError: invalid syntax",
            "Traceback (most recent call last):\n  line 2\n    y = = 2\n"
            "SyntaxError: invalid syntax",
        )
    ],
}


def given(cell):
    """Return what a cell gave, as GIVEN has it; how a stream is cut into pieces is chance."""
    found = {}
    for output in cell.outputs:
        if output.output_type == "stream":
            found[output.name] = found.get(output.name, "") + output.text
        elif output.output_type == "error":
            found[f"{output.ename}: {output.evalue}"] = "\n".join(output.traceback)
        else:
            kind = "value" if output.output_type == "execute_result" else "display"
            found[kind] = dict(output.data)
    return cell.missing or sorted(found.items())


def test_the_same_cells_give_the_same_outputs_as_long_as_the_version_is_the_same(project, both):
    settings = {"any_outcome": True, "leave_out": True, "output_limit": 200}
    for page in both(*map(project.cell, GIVEN), frameworks={"nothere": {}}, **settings):
        for cell, expected in zip(page.outputs.cells, GIVEN.values(), strict=True):
            wanted = expected if isinstance(expected, str) else sorted(expected)
            assert given(cell) == wanted, (
                f"{cell.source!r} gives something else than with ENGINE_VERSION "
                f"{keys.ENGINE_VERSION}: raise it in docs/_ext/executed/run/key.py, then change "
                "GIVEN here"
            )
