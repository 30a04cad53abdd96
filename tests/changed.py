"""Run the tests that a change reaches: `nox -s tests -- --changed`.

    python tests/changed.py pytest [arguments of pytest ...]

Git says what has changed: all that is different from where the branch left main, and files that
aren't committed yet. Each test that a change reaches is printed with the reason, and then they run.
If the reach of a change isn't known, all tests run.
"""

import ast
import functools
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "docs" / "_ext")]

from executed.options import Options  # noqa: E402
from executed.source.code import imports, parsed  # noqa: E402
from executed.source.snippets import Library, SnippetError, chapter_of  # noqa: E402

BRANCHES = ("main", "origin/main", "upstream/main")
# Each test depends on them.
EVERYTHING = {"conf.py", "pyproject.toml", "requirements.lock", "tests/conftest.py"}
# Where imports don't say what a folder is used by.
SITE = ["tests/engine/", "tests/book/test_recorded.py"]
FOLDERS = {
    "docs/_ext/executed/": SITE,
    "docs/_ext/drawing/": SITE,
    "docs/_static/": SITE,
    "docs/_templates/": SITE,
    "docs/_package/": ["tests/programs/", "tests/engine/measured/"],
    "docs/_compile/": ["tests/engine/compile/", "tests/compiled/"],
    "snippets/programs/": ["tests/programs/"],
}
FEATURE = re.compile(r"docs/_ext/(\w+)/")
PAGE = re.compile(r"docs/(?!_)(.+)\.(?:md|ipynb)")
RECORDING = re.compile(r"docs/_recorded/[\w-]+/(.+)\.ipynb")
SHOWN = re.compile(r"^:(?:snippet|folded): (.+)$|^:::\{solution\} .*?([\w.]+)$", re.MULTILINE)
BROUGHT = re.compile(r"^from (\w+) import", re.MULTILINE)
# A test in tests/book that reads all pages or all snippets says one of these. Some read what they
# name.
READS_ALL = re.compile(r"""["'](?:docs|snippets)["']|\bbook(?:\.| import )pages\b""")
READ_SOME = re.compile(
    r"tests/book/test_(?:alone|first_page|forked|notebooks|preflight|prelude|preview|redirects)\.py"
)
# Texts beside the book. No test reads them.
TEXTS = re.compile(r"[\w-]+\.md|LICENSE[\w-]*|CITATION\.cff")


def changed_files(root=ROOT):
    """Return the paths of all files that differ from where the branch left main."""

    def git(*words):
        done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True)
        return done.stdout.strip("\0").split("\0") if done.stdout and not done.returncode else []

    bases = [git("merge-base", "HEAD", branch) for branch in BRANCHES]
    changed = set(git("ls-files", "-z", "--others", "--exclude-standard"))
    for base in ["HEAD", *(found[0].strip() for found in bases if found)]:
        changed.update(git("diff", "-z", "--name-only", "--no-renames", base))
    return sorted(changed)


class Book:
    """What the files of the book say of each other."""

    def __init__(self, root=ROOT):
        """Take the folder of the book; files are read when they are asked for."""
        self.root = root
        self.options = Options.from_file(root / "conf.py")
        self.library = Library.of(self.options)
        tests = root.joinpath("tests").rglob("test_*.py")
        self.tests = sorted(self.name(path) for path in tests)
        self.text = functools.cache(self.text)
        self.needs = functools.cache(self.needs)
        self.modules = functools.cache(self.modules)

    def name(self, path):
        """Return the path of a file as git names it."""
        return path.relative_to(self.root).as_posix()

    def text(self, name):
        """Return the text of a file, empty where there is none."""
        path = self.root / name
        return path.read_text("utf8", "replace") if path.is_file() else ""

    def modules(self, name):
        """Return the files that a Python file imports, anywhere in it; some may not exist."""
        nodes = (ast.Import, ast.ImportFrom)
        tree = [node for node in ast.walk(parsed(self.text(name))) if isinstance(node, nodes)]
        found = set()
        for _, line in imports(ast.Module(tree, [])):
            words = line.split()
            package = words[1]
            if package.startswith("."):
                up = len(package) - len(package.lstrip("."))
                above = name.removeprefix("docs/_ext/").removeprefix("docs/").split("/")[:-up]
                package = ".".join([*above, *filter(None, [package.lstrip(".")])])
            names = [package, f"{package}.{words[3]}"] if words[0] == "from" else [package]
            for each in names:
                path = each.replace(".", "/")
                for root in ("", "docs/", "docs/_ext/"):
                    if (self.root / root / path.partition("/")[0]).is_dir():
                        found |= {f"{root}{path}.py", f"{root}{path}/__init__.py"}
        return found

    def page(self, docname):
        """Return the files of a page: its text, and the snippets that it shows, and theirs."""
        text, chapter, modules = self.text(f"docs/{docname}.md"), chapter_of(docname), []
        brought = {of: module for module, of in self.library.brought.items()}
        modules += [brought[name] for name in BROUGHT.findall(text) if name in brought]
        for shown in SHOWN.finditer(text):
            for name in (shown[1] or shown[2]).replace(",", " ").split():
                try:
                    modules.append(self.library.find(name, chapter).module)
                except SnippetError:
                    continue
        paths = map(self.library.path, self.library.reached(modules))
        return {f"docs/{docname}.md", *map(self.name, paths)}

    def needs(self, test):
        """Return {file: why} of what a test reaches by imports, and of the pages that it tests."""
        folders = [parent / "conftest.py" for parent in pathlib.PurePosixPath(test).parents]
        settings = [str(path) for path in folders if self.text(str(path))]
        found = {test: "it is what has changed"} | dict.fromkeys(settings, "its settings are in")
        waiting = [(test, "it imports"), *((path, "its settings import") for path in settings)]
        while waiting:
            path, why = waiting.pop(0)
            for module in self.modules(path) - found.keys():
                found[module] = why
                waiting.append((module, why))
        chapter, _, topic = test.removeprefix("tests/").rpartition("/")
        own = f"{chapter}/{topic.removeprefix('test_').removesuffix('.py')}"
        named = {own, *re.findall(r"\w+/\w+", self.text(test))} & self.options.page_files.keys()
        for page in sorted(named, key=lambda name: name != own):
            for path in self.page(page):
                found.setdefault(path, f"it tests the page {page}, which shows")
        return found

    def reached(self, changed):
        """Return {test: why} of the tests that a changed file reaches, or None for all."""
        if changed in EVERYTHING:
            return None
        recorded = RECORDING.fullmatch(changed)
        file = f"docs/{recorded[1]}.md" if recorded else changed
        found = {test: self.needs(test)[file] for test in self.tests if file in self.needs(test)}
        for reason in (self.by_name(changed), self.by_folder(changed)):
            found = reason | found
        return found if found or self.is_known(changed) else None

    def by_folder(self, changed):
        """Return {test: why} of tests of a folder in which a file has changed."""
        feature = FEATURE.match(changed)
        of_feature = (
            [f"tests/engine/{feature[1]}/", "tests/engine/test_", SITE[1]] if feature else []
        )
        known = {feature[0]: of_feature} if feature else {}
        folder = next((f for f in known | FOLDERS if changed.startswith(f)), "")
        tests = tuple((known | FOLDERS).get(folder, ()))
        chosen = [test for test in self.tests if test.startswith(tests)] if tests else []
        return dict.fromkeys(chosen, f"it tests {folder}, with")

    def by_name(self, changed):
        """Return {test: why} of tests that read a changed file rather than import it."""
        page = PAGE.fullmatch(changed) or RECORDING.fullmatch(changed)
        names = re.compile(rf"(?<![\w/-])(?:{'|'.join(self.names(changed, page))})(?![\w-])")
        found = {}
        for test in self.tests:
            all_of_it = READS_ALL.search(self.text(test)) and not READ_SOME.fullmatch(test)
            if test.startswith("tests/book/") and (page or "snippets/" in changed) and all_of_it:
                found[test] = "it reads all of the book, with"
            files = [path for path in self.needs(test) if path.startswith("tests/")]
            if any(names.search(self.text(path)) for path in files):
                found.setdefault(test, "it names")
        return found

    @staticmethod
    def names(changed, page):
        """Return patterns of how a test names a changed file."""
        path = pathlib.PurePosixPath(changed)
        if page:
            chapter, _, topic = page[1].rpartition("/")
            return [page[1], rf"{chapter}[\"'] / [\"']{topic}\.md", rf"{chapter}/(?=[\"'])"]
        # What is imported has a name that others have, too.
        quote = "[\"']" if path.suffix == ".py" else ""
        return [quote + re.escape(path.name)]

    @staticmethod
    def is_known(changed):
        """Say whether it is known that no further test depends on a file."""
        return any(known.fullmatch(changed) for known in (PAGE, RECORDING, TEXTS))


def chosen(changed, book=None):
    """Return {test: why} of the tests that changed files reach; all where one is not known."""
    book, found = book or Book(), {}
    for path in changed:
        reached = book.reached(path)
        if reached is None:
            return dict.fromkeys(book.tests, f"it may depend, as each test, on {path}")
        found |= {test: f"{why} {path}" for test, why in reached.items() if test not in found}
    return found


def main():
    """Print which tests are chosen and why, and run them with the command that was given."""
    tests = chosen(changed_files())
    reasons = {*tests.values()}
    if len(tests) > len(reasons) == 1:
        print(f"all tests: {reasons.pop()}", flush=True)
    for test, why in sorted(tests.items()) if reasons else ():
        print(f"{test}: {why}", flush=True)
    if not tests:
        print("nothing has changed that a test depends on")
        return
    sys.exit(subprocess.run([*sys.argv[1:], *sorted(tests)], cwd=ROOT).returncode)


if __name__ == "__main__":
    main()
