"""Templates are compiled once, and again where what is kept of them is no good."""

import pytest
from jinja2.bccache import bc_magic

BROKEN = {
    "empty": lambda kept: b"",
    "cut in its code": lambda kept: kept[: len(kept) // 2],
    "cut before its code": lambda kept: kept[: len(bc_magic) + 5],
    "no template": lambda kept: b"no template at all",
    "no digest": lambda kept: bc_magic + b"no digest at all",
}


@pytest.fixture
def kept(project):
    """Build a site; return what was kept of its templates."""
    project.page("a/one", "Prose.")
    # The second time pages name the digests of the files that the first one has copied.
    assert project.build().green
    assert project.build("-a").green
    found = sorted(project.root.rglob("templates/*.cache"))
    assert found
    return {path: path.read_bytes() for path in found}


def test_a_template_that_did_not_change_is_not_compiled_again(project, kept):
    project.edit(project.path("a/one"), "Prose.", "Other prose.")
    states = {path: path.stat().st_mtime_ns for path in kept}
    assert project.build().green
    assert {path: path.stat().st_mtime_ns for path in states} == states


def test_a_template_that_changed_is_compiled_again(project, kept):
    folder = project.root / "own"
    folder.mkdir()
    project.configure("templates_path = ['own']")
    for word in ("first", "second"):
        (folder / "page.html").write_text(f"{word} {{{{ title }}}}", "utf8")
        assert project.build("-a").green
        assert project.html("a/one").startswith(word)


@pytest.mark.parametrize("broken", BROKEN)
def test_what_is_kept_of_a_template_may_be_damaged(project, kept, broken):
    shown = project.html("a/one")
    for path, content in kept.items():
        path.write_bytes(BROKEN[broken](content))
    build = project.build("-a")
    assert build.green, build.output
    assert project.html("a/one") == shown
    assert all(path.read_bytes() == content for path, content in kept.items())
