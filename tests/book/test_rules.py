"""The rules of docs/contributing.md that can be checked by reading the files."""

import ast
import collections
import io
import itertools
import pathlib
import re
import tokenize

import pytest
from hypothesis import HealthCheck, settings

from _compile.__main__ import find_all
from executed.source.code import imports
from tests.book import pages
from tests.book.pages import LIBRARY

ROOT = pathlib.Path(__file__).parents[2]


# Programs have a room of their own, and comments.
MODULES = sorted(
    path
    for path in (ROOT / "snippets").rglob("*.py")
    if path.name != "__init__.py" and "programs" not in path.parts
)
PAGES = sorted(
    path for path in (ROOT / "docs").rglob("*.md") if "_ext" not in path.relative_to(ROOT).parts
)
PROGRAMS = find_all(LIBRARY)[0].values()
NUMBER = r"(?<![\w.@/-])\d[\d.,]*\s?"
TYPED_IN = re.compile(
    "|".join(
        (
            NUMBER
            + r"(?:ns|nanoseconds?|µs|us|microseconds?|ms|milliseconds?|seconds?|minutes?)\b",
            NUMBER + r"(?:s\b(?!\.)|×(?!\s?\d)|x\b)",
            NUMBER + r"[KMGT]?(?:FLOPS?(?:/s)?|B/s)\b",
            NUMBER
            + r"(?:%|percent|times)\s+(?:as\s+)?(?:fast|slow|quick|long|more time|less time)",
            r"\b(?:twice|thrice|half|\w+ times) as (?:fast|slow|quick|long)\b",
            r"\b\w+ times (?:faster|slower|quicker|longer)\b",
            r"\b\w+fold\b.{0,20}\b(?:faster|slower|speed)",
        )
    ),
    re.IGNORECASE,
)


def name(path):
    return str(path.relative_to(ROOT))


def docname(path):
    return path.relative_to(ROOT / "docs").with_suffix("").as_posix()


def module_of(path):
    return ".".join(path.relative_to(ROOT / "snippets").with_suffix("").parts)


def page_of(path):
    return pages.page(docname(path)) if docname(path) in pages.paths() else None


def prose(text):
    """Blank out what is not prose: front matter, code, roles; lines keep their numbers."""

    def blank(found):
        return "\n" * found.group().count("\n")

    text = re.sub(r"\A---\n.*?\n---\n", blank, text, flags=re.DOTALL)
    text = re.sub(r"^(`{3,}|:{3,}).*?^\1[ ]*$", blank, text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"\{[\w-]+\}(`+).+?\1", blank, text, flags=re.DOTALL)
    return re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", blank, text, flags=re.DOTALL)


def typed_in(text):
    """Return 'line: words' of each timing or ratio that stands in prose."""
    text = prose(text)
    found = TYPED_IN.finditer(text)
    return [f"{text.count(chr(10), 0, match.start()) + 1}: {match.group()}" for match in found]


def test_no_timing_is_typed_into_prose():
    found = [f"{name(p)}:{words}" for p in PAGES for words in typed_in(p.read_text("utf8"))]
    assert not found, "draw numbers from records with {measured} or {quoted}:\n" + "\n".join(found)


@pytest.mark.parametrize(
    "sentence",
    [
        "It took 12 ms.",
        "It took 1.85 µs a call.",
        "This is 8.2x faster.",
        "about 27× faster",
        "It reaches 400 GFLOP/s here.",
        "jit is ten times faster",
        "It runs twice as fast.",
        "5 % faster",
        "The first call takes 3 seconds.",
    ],
)
def test_the_search_for_typed_in_timings_finds_them(sentence):
    assert typed_in(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "a 3000×3000 product of float32 numbers",
        "{measured}`selu/jit@jax` and {quoted}`post: 332 ms`",
        "`sleep(1)  # 12 ms`",
        "```python\nx = 1  # 12 ms\n```\n",
        "75 % of the memory",
        "eight devices, 2 threads and 100 steps",
        "in jax 0.10.2 since 2026",
    ],
)
def test_the_search_leaves_other_numbers_alone(sentence):
    assert typed_in(sentence) == []


def unproven(text):
    """Return each sentence that calls something the fastest beside a number of one alternative."""
    text = re.sub(r"^(`{3,}).*?^\1[ ]*$", "\n", text, flags=re.DOTALL | re.MULTILINE)
    numbers = {"measured": "\0", "compared": "\0"}
    text = re.sub(r"\{(\w+)\}`[^`]+`", lambda role: numbers.get(role[1], ""), text)
    text = re.sub(r"\]\(.*?\)", "]", text)
    sentences = re.split(r"\n\s*\n|\n(?=[-|:])|\||(?<=[.!?])\s", text)
    return [
        sentence.strip()
        for sentence in sentences
        if "\0" in sentence and re.search(r"\b(?:fast|quick)est\b", sentence, re.IGNORECASE)
    ]


def test_what_is_called_the_fastest_is_looked_up():
    """Which of several is the fastest changes with a new recording: {fastest} looks it up."""
    found = [f"{name(p)}: {words}" for p in PAGES for words in unproven(p.read_text("utf8"))]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "sentence",
    [
        "The fastest is PyTorch, which takes {measured}`step/eager@torch`.",
        "| the fastest, {compared}`step/a@jax / step/b@jax in 2..3` | 1 |",
        "The quickest way\ntakes {measured}`step/a@jax. / first`.",
    ],
)
def test_the_search_for_what_is_not_looked_up_finds_it(sentence):
    assert len(unproven(f"Before. {sentence} After.")) == 1


@pytest.mark.parametrize(
    "sentence",
    [
        "The fastest takes {fastest}`step/*@torch`.",
        "Which is the fastest? JAX takes {measured}`step/a@jax`.",
        "| [the fastest](a.md) | {measured}`step/a@jax` |",
        "See [here](a.md#which-is-the-fastest): {measured}`step/a@jax`.",
    ],
)
def test_the_search_for_what_is_not_looked_up_leaves_others_alone(sentence):
    assert unproven(sentence) == []


LONGEST_CELL, WIDEST_CELL = 25, 79
UNSEEN = {"hide-input", "hide-cell", "remove-input", "remove-cell"}


def long_cells(path):
    """Return a line for each cell of a page that readers see and that is too long to be read."""
    page = page_of(path)
    found = []
    for cell in page.cells if page else ():
        below_imports = re.sub(r"\A(?:(?:import|from) .*\n|\n)+", "", cell.source)
        # A program of its own has its imports inside of a function.
        code = re.sub(r"^ +(?:import|from) .*\n", "", below_imports, flags=re.MULTILINE)
        length = len(code.splitlines())
        if length > LONGEST_CELL and UNSEEN.isdisjoint(cell.node.metadata.get("tags", ())):
            found.append(f"{name(path)}:{cell.line}: {length} lines")
    return found


def test_no_cell_is_longer_than_one_can_read():
    found = [cell for path in PAGES for cell in long_cells(path)]
    assert not found, "fold helpers with ':folded:', or split:\n" + "\n".join(found)


def wide_lines(path):
    """Return where a line of a page's cells is wider than the column in which it is read."""
    page = page_of(path)
    return [
        f"{name(path)}:{cell.line}: {line.strip()}"
        for cell in (page.cells if page else ())
        for line in cell.source.splitlines()
        if len(line) > WIDEST_CELL
        and UNSEEN.isdisjoint(cell.node.metadata.get("tags", ()))
        # What is one word cannot be broken.
        and " " in line.strip()
    ]


def test_no_line_of_a_cell_is_wider_than_its_column():
    found = [line for path in PAGES for line in wide_lines(path)]
    assert not found, f"break lines after {WIDEST_CELL} characters:\n" + "\n".join(found)


def stitched(source):
    """Return what a cell imports twice, and a constant that does not stand beside the others."""
    body = ast.parse(source).body
    made = collections.Counter(imports(ast.Module(body, [])))
    twice = [name for (name, _), times in made.items() if times > 1]
    constants = [
        number
        for number, node in enumerate(body)
        if isinstance(node, ast.Assign) and re.fullmatch("[A-Z_0-9]+", ast.unparse(node.targets[0]))
    ]
    apart = [b for a, b in itertools.pairwise(constants) if b > a + 1]
    lines = source.splitlines()
    apart += [
        b
        for a, b in itertools.pairwise(constants)
        if not all(lines[body[a].end_lineno : body[b].lineno - 1])
    ]
    return [*twice, *(ast.unparse(body[number].targets[0]) for number in dict.fromkeys(apart))]


def stitched_cells(path):
    page = page_of(path)
    found = []
    for cell in page.cells if page else ():
        if UNSEEN.isdisjoint(cell.node.metadata.get("tags", ())):
            source = re.sub(r"^[%!].*$", "pass", cell.source, flags=re.MULTILINE)
            found += [f"{name(path)}:{cell.line}: {each}" for each in stitched(source)]
    return found


def test_a_cell_imports_a_name_once_and_has_its_constants_together():
    found = [each for path in PAGES for each in stitched_cells(path)]
    assert not found, "leave an import of the snippet to it:\n" + "\n".join(found)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import numpy as np\nA = 1\nB = 2\n\nx = 3\n", []),
        ("import numpy as np\nA = 1\nimport numpy as np\n", ["np"]),
        ("A = 1\n\n\nB = 2\n", ["B"]),
        ("A = 1\ndef f(): ...\nB = 2\n", ["B"]),
    ],
)
def test_the_search_for_stitched_cells_finds_them(source, found):
    assert stitched(source) == found


def lonely_cells(path):
    """Return the lines of cells of a framework beside which there is none of another."""
    page = page_of(path)
    cells = page.notebook.cells if page else []
    lines = page.notebook.metadata["source_map"] if page else []
    marked = [
        (cell.metadata.get("framework"), line) for cell, line in zip(cells, lines, strict=True)
    ]
    groups = (list(group) for _, group in itertools.groupby(marked, lambda each: bool(each[0])))
    lonely = (group for group in groups if len({name for name, _ in group} - {None}) == 1)
    return [f"{name(path)}:{group[0][1]}" for group in lonely]


def test_there_is_something_to_choose_from_where_cells_are_tabs():
    assert [cell for path in PAGES for cell in lonely_cells(path)] == []


def test_a_cell_says_which_error_it_means():
    cells = [(path, cell) for path in PAGES if page_of(path) for cell in page_of(path).cells]
    found = [f"{name(p)}:{c.line}" for p, c in cells if c.expected and not c.expected.type]
    assert not found, "declare with ':raises:' or EXPECTED_ERRORS what comes:\n" + "\n".join(found)


def shown_names(path):
    """Return (module, name) of every definition that a page shows, folded ones included."""
    page = page_of(path)
    cells = "\n".join(cell.source for cell in page.cells) if page else ""
    defined = {
        node.name
        for node in ast.walk(ast.parse(re.sub(r"^[%!].*$", "", cells, flags=re.MULTILINE)))
        if isinstance(node, (ast.FunctionDef, ast.ClassDef))
    }
    modules = page.modules if page else {}
    return {
        (module, shown)
        # The digest is empty where the page looked for a module in vain.
        for module in (name for name, digest in modules.items() if digest)
        for shown in LIBRARY.module(module).definitions
        if shown in defined
    }


def compiled_names(path):
    """Return (module, name) of every definition that the compile views of a page show."""
    written = re.findall(r"\{compiled(?:-scale)?\}[ `]([\w.]+)", path.read_text("utf8"))
    ends = tuple(f".{each}" for each in written)
    compiled = [each.definition for each in PROGRAMS if f".{each.name}".endswith(ends)]
    excerpt = LIBRARY.excerpt(compiled)
    return {(definition.module, definition.name) for definition in excerpt.definitions}


def solutions(path):
    """Return (module, name) of every definition in the solutions that a page shows."""
    written = re.findall(r"\{solution\} (\S+)", path.read_text("utf8"))
    # There it is an example of how it is written.
    written = [] if docname(path) == "writing_cells" else written
    chapter = docname(path).rpartition("/")[0].replace("/", ".")
    excerpt = LIBRARY.excerpt([LIBRARY.find(each, chapter) for each in written])
    return {(definition.module, definition.name) for definition in excerpt.definitions}


def test_every_snippet_is_shown_on_a_page():
    kinds = shown_names, compiled_names, solutions
    shown = set().union(*(kind(path) for path in PAGES for kind in kinds))
    hidden = []
    for path in MODULES:
        module = module_of(path)
        tree = ast.parse(path.read_text("utf8"))
        for node in tree.body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                if (module, node.name) not in shown:
                    hidden.append(f"{name(path)}:{node.lineno}: {node.name}")
    assert not hidden, "no page shows:\n" + "\n".join(hidden)


def users(path):
    """Return how many pages show something of a module."""
    shown = (page.modules for each in PAGES if (page := page_of(each)))
    return sum(bool(modules.get(module_of(path))) for modules in shown)


def page_and_test(path):
    """Return the page and the test of a module; exercises are on the page of their name."""
    relative = path.relative_to(ROOT / "snippets")
    page, test = relative.with_suffix(".md"), relative.with_name(f"test_{relative.name}")
    if len(page.parts) == 3 and page.parent.name in ("exercises", "solutions", "checks"):
        test = test.parents[1] / "exercises" / test.name
        page = pathlib.Path(pages.with_exercises(page.stem, page.parts[0])).with_suffix(".md")
    return ROOT / "docs" / page, ROOT / "tests" / test


def test_every_module_has_a_page_or_several_and_a_test():
    for path in MODULES:
        page, test = page_and_test(path)
        assert page.exists() or users(path) > 1, name(path)
        assert test.exists(), name(path)


def is_shown(node):
    """Say whether the engine understands an import: `from snippets.chapter.topic import name`."""
    if isinstance(node, ast.Import):
        return not any(alias.name.split(".")[0] == "snippets" for alias in node.names)
    if node.module and node.module.split(".")[0] == "snippets":
        return node.module.count(".") > 1 and not any(alias.asname for alias in node.names)
    return not node.level


def refused(text):
    """Return the lines of a module that no cell would run as the module does."""
    found, bound = [], set()
    for node in ast.parse(text).body:
        names = []
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names = [node.name]
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [alias.asname or alias.name for alias in node.names]
            module = getattr(node, "module", "")
            if module == "__future__" or "*" in names or not is_shown(node):
                found.append(node.lineno)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            if len(node.targets) > 1:
                found.append(node.lineno)
        elif not (
            (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
            or (isinstance(node, ast.If) and ast.unparse(node.test) == "__name__ == '__main__'")
        ):
            found.append(node.lineno)
        found += [node.lineno for each in names if each in bound]
        bound.update(names)
    return found


def test_importing_a_snippet_only_defines_names_and_each_once():
    assert [f"{name(p)}:{n}" for p in MODULES for n in refused(p.read_text("utf8"))] == []


@pytest.mark.parametrize(
    "line",
    [
        *("T['a'] = 1", "f.k = 3", "T += 1", "A, B = 1, 2", "A = B = 1", "T = T + 1"),
        *("import cmath as T", "from cmath import sin as T", "def T(): ..."),
        *("from math import *", "from __future__ import annotations", "if T: A = 1"),
        *("import snippets.a.two", "from snippets import a", "from .two import f"),
        "from snippets.a.two import f as g",
        *("for A in T: pass", "print(T)", "assert T", "del T"),
    ],
)
def test_what_no_cell_would_run_is_found(line):
    assert refused(f"T = {{}}\n{line}\n") == [2]


def test_snippets_hold_no_comments():
    comments = []
    for path in MODULES:
        tokens = tokenize.generate_tokens(io.StringIO(path.read_text("utf8")).readline)
        comments += [f"{name(path)}:{t.start[0]}" for t in tokens if t.type == tokenize.COMMENT]
    assert not comments, "the prose of the page explains, not a comment"


def test_every_declared_error_is_tested_and_shown():
    pages = "\n".join(page.read_text("utf8") for page in PAGES)
    for path in MODULES:
        test = page_and_test(path)[1].read_text("utf8")
        for error in LIBRARY.module(module_of(path)).expected_errors:
            assert re.search(rf"raises_declared\([^)]*\b{error}\b", test), f"{error} is not tested"
            assert re.search(rf":snippet:.*\b{error}\b", pages), f"{error} is not shown"


def test_no_example_of_a_test_has_a_limit_of_time():
    assert settings.default.deadline is None
    assert HealthCheck.too_slow in settings.default.suppress_health_check
