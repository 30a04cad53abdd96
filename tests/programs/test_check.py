import ast
import json
import pathlib
import re
import subprocess
import sys

import pytest
from docutils import nodes

from snippets.programs import check
from tests.book import pages

ROOT = pathlib.Path(__file__).parents[2]
FOLDER = pathlib.Path(__file__).parent / "check"
RESULTS = FOLDER / "results.csv"
PAGES = sorted(
    path for path in (ROOT / "docs").rglob("*.md") if "_ext" not in path.relative_to(ROOT).parts
)


def samples(name):
    """Return {title: (blocks, set of (block, line, rule))} of a file of labelled timings."""
    found = {}
    for part in (FOLDER / f"{name}.md").read_text("utf8").split("\n## ")[1:]:
        title, text = part.split("\n", 1)
        blocks = [block for _, block in check.fences(text)]
        labels = set()
        for number, block in enumerate(blocks, 1):
            for line, code in enumerate(block.splitlines(), 1):
                for rule in code.partition("#!")[2].split():
                    labels.add((number, line, rule))
        found[title] = [re.sub(r" *#!.*", "", block) for block in blocks], labels
    return found


def found_in(blocks):
    cells = [check.Cell(number, 0, text) for number, text in enumerate(blocks, 1)]
    findings = check.Reader().follow(cells)
    return {(f.cell, f.line, f.rule) for f in findings}


def scores(name):
    """Return (timings, right ones, right findings, findings, mistakes, right ones silent)."""
    known = samples(name)
    results = {title: (found_in(blocks), labels) for title, (blocks, labels) in known.items()}
    silent = sum(not labels and not found for found, labels in results.values())
    right = sum(len(found & labels) for found, labels in results.values())
    return {
        "timings": len(known),
        "right": sum(not labels for _, labels in known.values()),
        "silent": silent,
        "mistakes": sum(len(labels) for _, labels in known.values()),
        "findings": sum(len(found) for found, _ in results.values()),
        "found": right,
    }


def share(part, whole):
    return f"{part} of {whole} ({100 * part / whole:.0f} %)"


def results():
    """Return the table of the page, as the labelled timings give it now."""
    lines = ["timings,right timings left alone,findings that are right,mistakes found"]
    for half, name in {"to develop with": "development", "held back": "held_back"}.items():
        found = scores(name)
        shares = (("silent", "right"), ("found", "findings"), ("found", "mistakes"))
        cells = [share(found[part], found[whole]) for part, whole in shares]
        lines.append(",".join([f"{found['timings']} of ours {half}", *cells]))
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("name", ["development", "held_back"])
def test_findings_are_right_and_right_timings_left_alone(name):
    found = scores(name)
    assert found["timings"] >= 30
    assert 0.4 <= found["right"] / found["timings"] <= 0.6
    assert found["found"] / found["findings"] >= 0.95
    assert found["silent"] / found["right"] >= 0.95


def test_each_rule_has_a_timing_that_breaks_it():
    labels = set()
    for name in ("development", "held_back"):
        for _, wrong in samples(name).values():
            labels |= {rule for _, _, rule in wrong}
    assert labels == set(check.RULES)


def test_the_page_shows_what_the_labelled_timings_give():
    assert RESULTS.read_text("utf8") == results(), f"write into {RESULTS}:\n{results()}"
    assert f"../../{RESULTS.relative_to(ROOT).as_posix()}" in page("check")


def page(name):
    return (ROOT / "docs" / "timing" / f"{name}.md").read_text("utf8")


@pytest.mark.parametrize("rule", check.RULES)
def test_a_rule_leads_to_a_section_of_the_book(rule):
    address, _ = check.RULES[rule]
    place, _, anchor = address.partition(".html#")
    titles = re.findall(r"^#+ (.+)$", (ROOT / "docs" / f"{place}.md").read_text("utf8"), re.M)
    assert anchor in {nodes.make_id(title) for title in titles}
    own = f"#{anchor}" if place == "timing/check" else f"{place.split('/')[1]}.md#{anchor}"
    assert f"]({own})" in page("check")


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_page_of_the_book_has_no_wrong_timing(path):
    assert check.check(path) == []


@pytest.mark.parametrize("name", ["timing/wrong_timings", "timing/dispatch", "timing/timer"])
def test_what_a_page_of_the_book_executes_has_none_either(name):
    cells = pages.page(name).cells
    assert found_in([cell.source for cell in cells]) == set()


@pytest.mark.parametrize("path", sorted((ROOT / "snippets").rglob("*.py")), ids=lambda p: p.name)
def test_a_snippet_of_the_book_has_no_wrong_timing(path):
    assert check.check(path) == []


def test_the_file_runs_where_nothing_is_installed(tmp_path):
    source = pathlib.Path(check.__file__).read_text("utf8")
    ast.parse(source, feature_version=(3, 9))
    (tmp_path / "check.py").write_text(source, "utf8")
    (tmp_path / "a.py").write_text(WRONG, "utf8")
    command = [sys.executable, "-I", "-S", "check.py", "--book", "https://example.org/", "a.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    assert done.stdout.splitlines() == [
        "a.py:8: The clock stops, and nothing has waited for `f`.",
        "    https://example.org/timing/wrong_timings.html#not-waiting-for-the-result",
        "a.py: 1 timing; 1 line above may be wrong.",
    ]


WRONG = """import time
import jax
import jax.numpy as jnp
f = jax.jit(jnp.sin)
x = jnp.ones(10)
f(x)
t = time.time()
f(x)
print(time.time() - t)
"""


def test_a_notebook_is_told_by_cell_and_line(tmp_path, capsys):
    first, second = WRONG[: WRONG.index("t = ")], WRONG[WRONG.index("t = ") :]
    cells = [
        {"cell_type": "markdown", "source": ["# t = 1"]},
        {"cell_type": "code", "source": first.splitlines(keepends=True)},
        {"cell_type": "code", "source": second},
    ]
    path = tmp_path / "n.ipynb"
    path.write_text(json.dumps({"cells": cells}), "utf8")
    assert check.main([str(path)]) == 1
    assert capsys.readouterr().out.startswith(f"{path}: cell 2, line 2: ")


def test_markdown_is_told_by_the_line_of_the_file(tmp_path, capsys):
    path = tmp_path / "m.md"
    fence = "```{code-cell} ipython3\n:tags: [hide-input]\n"
    other = "````text\n```python\nt = \n````\n"
    path.write_text(f"# Title\n\n{other}{fence}{WRONG}```\n", "utf8")
    assert check.main([str(path)]) == 1
    line = path.read_text("utf8").splitlines().index("t = time.time()") + 2
    assert capsys.readouterr().out.startswith(f"{path}:{line} (cell 1): ")


def test_prompts_and_what_they_printed_are_no_obstacle(tmp_path):
    path = tmp_path / "p.md"
    lines = [f">>> {line}" for line in WRONG.splitlines()]
    path.write_text("```python\n" + "\n".join([*lines, "0.1 s"]) + "\n```\n", "utf8")
    assert [finding.rule for finding in check.check(path)] == ["wait"]


def test_a_cell_that_is_no_python_is_passed_over():
    wrong = WRONG.replace("t = time.time()\n", "!nvidia-smi\n%matplotlib inline\nt = time.time()\n")
    blocks = ["%%bash\nls", "this is (no Python", wrong]
    assert {(cell, rule) for cell, _, rule in found_in(blocks)} == {(3, "wait")}


@pytest.mark.parametrize("loops", [1, 40])
def test_no_file_takes_for_ever(loops):
    text = WRONG
    for depth in range(loops):
        text += "    " * depth + f"for i{depth} in range(9):\n"
    blocks = [text + "    " * loops + "f(x)"]
    assert (1, 8, "wait") in found_in(blocks)


def printed(path, capsys):
    status = check.main([str(path)])
    return status, capsys.readouterr()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1\n", "no timing"),
        (
            WRONG.replace("f(x)\nprint", "f(x).block_until_ready()\nprint"),
            "1 timing; it looks right",
        ),
        (
            "import time\n" + 2 * "t = time.time()\nlen(range(9))\nprint(time.time() - t)\n",
            "2 timings; none looks wrong",
        ),
        (
            "import other, time\nt = time.time()\nother.f()\nprint(time.time() - t)\n",
            "1 timing; it cannot tell",
        ),
        (
            "import other, time\n"
            + "".join(
                f"t = time.time()\n{call}\nprint(time.time() - t)\n"
                for call in ("other.f()", "len(range(9))")
            ),
            "2 timings; none looks wrong; it cannot tell about 1",
        ),
    ],
)
def test_what_was_read_is_said_where_nothing_is_wrong(tmp_path, capsys, text, said):
    path = tmp_path / "a.py"
    path.write_text(text, "utf8")
    assert printed(path, capsys)[0] == 0
    check.main([str(path)])
    assert capsys.readouterr().out == f"{path}: {said}.\n"


def test_a_file_that_is_no_python_is_an_error(tmp_path, capsys):
    path = tmp_path / "old.py"
    path.write_text("import time\nprint time.time()\n", "utf8")
    status, said = printed(path, capsys)
    assert status == 2 and said.out == ""
    assert said.err == f"{path}: line 2 is no Python; nothing was read\n"


def test_a_cell_that_is_no_python_is_named_and_the_others_are_read(tmp_path, capsys):
    path = tmp_path / "n.ipynb"
    cells = [{"cell_type": "code", "source": text} for text in ("x = (\n", WRONG)]
    path.write_text(json.dumps({"cells": cells}), "utf8")
    status, said = printed(path, capsys)
    assert status == 1 and "cell 2, line 8" in said.out
    assert "cell 1 is no Python (line 1), and was not read" in said.out.splitlines()[-1]


@pytest.mark.parametrize(
    ("fence", "cells"),
    [
        ("{code-cell}", 1),
        ("{code-cell} ipython3", 1),
        ("{.python .input}", 1),
        ("python", 1),
        ("{code-block}", 0),
        ("bash", 0),
        ("", 0),
    ],
)
def test_a_cell_without_a_language_is_python_and_other_code_is_not(tmp_path, fence, cells):
    path = tmp_path / "p.md"
    path.write_text(f"```{fence}\n{WRONG}```\n", "utf8")
    assert len(check.check(path)) == cells


def test_what_cannot_be_read_is_said(tmp_path, capsys):
    broken = tmp_path / "b.ipynb"
    broken.write_text("{", "utf8")
    assert check.main([str(broken)]) == 2
    assert str(broken) in capsys.readouterr().err
    with pytest.raises(SystemExit):
        check.main([str(tmp_path / "b.txt")])
