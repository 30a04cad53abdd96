"""Visible code calls nothing that a reader has not met.

`PYTHONPATH=docs python -m tests.book.test_names [CHAPTER …]` lists what is called unexplained.
"""

import ast
import builtins
import collections
import dataclasses
import re
import sys

import pytest

from executed.source.code import bound_names, names_used
from executed.source.expansion import HELPERS, HIDING_TAGS
from executed.source.pages import read_page
from tests.book import pages

# `name`, `name(…)` or `module.name`.
INTRODUCED = re.compile(r"(?<!`)`(?:[\w.]*\.)?(\w+)(?:\([^`]*\))?`(?!`)")
ALWAYS = {*dir(builtins), "__name__", "display", "get_ipython"}


@dataclasses.dataclass(frozen=True)
class Unknown:
    """A name that a cell calls, and the line of its page at which the cell begins."""

    page: str
    line: int
    name: str

    @property
    def chapter(self):
        return self.page.partition("/")[0]

    def __str__(self):
        return f"docs/{self.page}.md:{self.line}: {self.name}"


def called(source):
    """Return the names from outside of some code that it calls, by themselves or a method of."""
    found = set()
    try:
        tree = ast.parse(source)
    except SyntaxError:
        # It holds lines for IPython.
        return []
    for node in ast.walk(tree):
        calls = [node.func] if isinstance(node, ast.Call) else getattr(node, "decorator_list", [])
        for function in calls:
            while isinstance(function, (ast.Attribute, ast.Subscript)):
                function = function.value
            if isinstance(function, ast.Name):
                found.add(function.id)
    return [name for name in names_used(source) if name in found]


def is_seen(cell):
    return HIDING_TAGS.isdisjoint(cell.metadata.get("tags", ()))


def unknown(page):
    """Return what the visible code of a page calls before it was defined or named."""
    lines = page.notebook.metadata["source_map"]
    cells = list(zip(page.notebook.cells, lines, strict=True))
    expected = {id(cell.node): cell.expected for cell in page.cells}
    met, found = set(ALWAYS), []
    for number, (cell, line) in enumerate(cells):
        if cell.cell_type != "code":
            met |= named(cell)
        elif not is_seen(cell):
            label = cell.metadata.get("mystnb", {}).get("code_prompt_show", "")
            met |= set(re.findall(r"\w+", label.removeprefix(HELPERS)))
        else:
            met |= bound_names(cell.source)
            below = next((each for each, _ in cells[number:] if each.cell_type != "code"), None)
            known = met | (named(below) if below else set())
            new = [name for name in called(cell.source) if name not in known]
            if (error := expected[id(cell)]) and error.type == "NameError":
                new = []
            found += [Unknown(page.docname, line, name) for name in new]
            met |= set(new)
    return found


def named(cell):
    """Return the names in the prose of a cell."""
    return set(INTRODUCED.findall(cell.source))


def everything():
    found = (pages.page(name) for name in sorted(pages.paths()))
    return [each for page in found if page for each in unknown(page)]


def test_visible_code_calls_what_readers_have_met():
    found = everything()
    assert not found, "show it, or say what it is as `name`:\n" + "\n".join(map(str, found))


PAGE = """---
file_format: mystnb
---

{above}

```{{code-cell}} python
:tags: [hide-input]
def helper(): return abs
```

```{{code-cell}} python
{code}
```

{below}
"""


@pytest.mark.parametrize(
    ("above", "code", "below", "missing"),
    [
        ("Text.", "helper()", "Text.", ["helper"]),
        ("`helper` does.", "helper()", "Text.", []),
        ("[`m.helper(x)`](a.md) does.", "helper()", "Text.", []),
        ("Text.", "helper()", "Here `helper` did.", []),
        ("`helpers` do, `not helper`.", "helper()", "Text.", ["helper"]),
        ("Text.", "def f(): return helper()(1)", "Text.", ["helper"]),
        ("Text.", "def helper(): ...\nhelper()", "Text.", []),
        ("Text.", "import helper\n@helper.jit\ndef f(x): return print(x)", "Text.", []),
        ("Text.", "@helper.jit\ndef f(x): return x.mean()", "Text.", ["helper"]),
        ("Text.", "print(helper)", "Text.", []),
        ("Text.", ":raises: NameError name 'helper' is not defined\nhelper()", "Text.", []),
    ],
)
def test_what_is_called_and_not_met_is_found(tmp_path, above, code, below, missing):
    path = tmp_path / "page.md"
    path.write_text(PAGE.format(above=above, code=code, below=below), "utf8")
    found = unknown(read_page("page", path, pages.LIBRARY))
    assert [each.name for each in found] == missing


if __name__ == "__main__":
    left = everything()
    for each in left:
        if each.chapter in (sys.argv[1:] or [each.chapter]):
            print(each)
    counts = collections.Counter(each.page for each in left)
    print(*(f"{page:40}{number:4}" for page, number in sorted(counts.items())), sep="\n")
    print(f"{'all':40}{len(left):4}")
