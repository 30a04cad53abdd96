"""The tests that `nox -s tests -- --changed` chooses, in a small book and in this one."""

import subprocess

import pytest

from tests import changed

FILES = {
    "conf.py": "",
    "docs/index.md": "# Book",
    "docs/a/one.md": "# One\n```{code-cell} python\n:snippet: one.f\nf()\n```\n",
    "docs/a/two.md": "# Two\n```{code-cell} python\n:snippet: one.f\n:folded: b.other.g\n```\n",
    "docs/a/plain.md": "# Plain",
    "docs/_ext/core/parts.py": "",
    "docs/_ext/feature/part.py": "from core import parts",
    "docs/_ext/executed/page.py": "",
    "snippets/a/one.py": "from snippets.b.base import h\ndef f(): h()",
    "snippets/b/base.py": "def h(): ...",
    "snippets/b/other.py": "def g(): ...",
    "tests/conftest.py": "from core import parts",
    "tests/helper.py": "import snippets.b.other",
    "tests/b/numbers.json": "{}",
    "tests/b/lonely.json": "{}",
    "tests/a/test_one.py": "from snippets.a import one",
    "tests/a/test_two.py": "def test(): ...",
    "tests/b/test_other.py": "def test():\n    from tests import helper\n    'numbers.json'",
    "tests/book/test_recorded.py": "ROOT / 'docs'",
    "tests/book/test_forked.py": "ROOT / 'docs', 'a/two'",
    "tests/engine/conftest.py": "from executed import page\nopen('samples.py')",
    "tests/engine/samples.py": "",
    "tests/engine/test_broken_books.py": "",
    "tests/engine/feature/test_part.py": "",
    "tests/engine/other/test_its.py": "",
}
ALL = {path for path in FILES if "/test_" in path}
ENGINE = {path for path in ALL if path.startswith("tests/engine/")}
SITE = "tests/book/test_recorded.py"
FORKED = "tests/book/test_forked.py"


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """Write the small book."""
    root = tmp_path_factory.mktemp("book")
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, "utf8")
    return root


@pytest.mark.parametrize(
    ("path", "tests"),
    [
        ("docs/a/one.md", {"tests/a/test_one.py", SITE}),
        ("docs/_recorded/cpu/a/one.ipynb", {"tests/a/test_one.py", SITE}),
        ("docs/a/new.md", {SITE}),
        ("snippets/a/one.py", {"tests/a/test_one.py", "tests/a/test_two.py", SITE, FORKED}),
        ("snippets/b/base.py", {"tests/a/test_one.py", "tests/a/test_two.py", SITE, FORKED}),
        ("snippets/b/other.py", {"tests/a/test_two.py", "tests/b/test_other.py", SITE, FORKED}),
        ("tests/helper.py", {"tests/b/test_other.py"}),
        ("tests/b/numbers.json", {"tests/b/test_other.py"}),
        ("tests/a/test_one.py", {"tests/a/test_one.py"}),
        ("tests/engine/conftest.py", ENGINE),
        ("tests/engine/samples.py", ENGINE),
        ("README.md", set()),
        (
            "docs/_ext/feature/part.py",
            {"tests/engine/feature/test_part.py", "tests/engine/test_broken_books.py", SITE},
        ),
        (
            "docs/_ext/feature/static/part.js",
            {"tests/engine/feature/test_part.py", "tests/engine/test_broken_books.py", SITE},
        ),
        ("docs/_ext/executed/page.py", {*ENGINE, SITE}),
        # The settings of all tests import it.
        ("docs/_ext/core/parts.py", ALL),
        ("tests/conftest.py", ALL),
        ("conf.py", ALL),
        # Nobody knows who reads these.
        ("tests/b/lonely.json", ALL),
        ("a/new/folder.cfg", ALL),
        ("snippets/a/unused.py", {SITE}),
    ],
)
def test_a_change_reaches(root, path, tests):
    found = changed.chosen([path], changed.Book(root))
    assert {*found} == tests
    assert all(path in why for why in found.values())


def test_what_several_changes_reach_is_joined(root):
    book = changed.Book(root)
    found = changed.chosen(["tests/a/test_two.py", "tests/helper.py"], book)
    assert {*found} == {"tests/a/test_two.py", "tests/b/test_other.py"}
    assert changed.chosen([], book) == {}
    assert {*changed.chosen(["tests/helper.py", "conf.py"], book)} == ALL


@pytest.fixture
def repository(tmp_path):
    """Return a function that calls git, in a branch that has left main."""

    def git(*words):
        person = ["-c", "user.name=a", "-c", "user.email=a@localhost"]
        subprocess.run(["git", *person, *words], cwd=tmp_path, check=True, capture_output=True)

    git("init", "--initial-branch", "main")
    for name in ("kept", "edited", "moved", "removed", "ignored.log"):
        (tmp_path / name).write_text(f"the text of {name}")
    (tmp_path / ".gitignore").write_text("*.log\n")
    git("add", ".")
    git("commit", "--message", "first")
    git("checkout", "-b", "branch")
    return git


def test_what_has_changed_since_the_branch_left_main(repository, tmp_path):
    assert changed.changed_files(tmp_path) == []
    (tmp_path / "edited").write_text("edited")
    repository("mv", "moved", "elsewhere")
    repository("commit", "--all", "--message", "second")
    repository("checkout", "main")
    (tmp_path / "later").write_text("on main alone")
    repository("add", ".")
    repository("commit", "--message", "third")
    repository("checkout", "branch")
    (tmp_path / "removed").unlink()
    (tmp_path / "ä new file").write_text("new")
    (tmp_path / "new.log").write_text("ignored")
    expected = ["edited", "elsewhere", "moved", "removed", "ä new file"]
    assert changed.changed_files(tmp_path) == expected


def test_this_book_is_understood():
    """An import, a page of another name that shows it, one in the code of a test, and a helper."""
    book = changed.Book()
    needs = {
        "tests/models/test_steps.py": "snippets/models/steps.py",
        "tests/models/test_precision.py": "snippets/models/steps.py",
        "tests/book/test_forked.py": "snippets/vectorizing/vmap.py",
        "tests/book/test_composition.py": "tests/book/pairs.py",
    }
    for test, path in needs.items():
        assert path in book.needs(test), test
    assert "snippets/models/steps.py" not in book.needs("tests/start/test_rows.py")
