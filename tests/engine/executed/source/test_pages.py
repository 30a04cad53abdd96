"""A page becomes a notebook whose cells need nothing but the frameworks."""

import pytest
from nbclient import NotebookClient

from executed.source.expansion import HELPERS
from executed.source.pages import PageError, read_page
from executed.source.snippets import Library


@pytest.fixture
def read(project):
    """Return a function that reads a page of texts and cells: (code, snippet)."""

    def read(*parts, **settings):
        cells = [project.cell(*each) if isinstance(each, tuple) else each for each in parts]
        read.path = project.page("a/one", *cells, **settings)
        snippets = Library(project.root / "snippets")
        return read_page("a/one", read.path, snippets, cell_options=["by-version"])

    return read


def folded(cell):
    return cell.metadata.get("mystnb", {}).get("code_prompt_show", "").startswith(HELPERS)


def test_a_cell_is_imports_then_sources_then_lines_of_the_page(project, read):
    project.snippet(
        "a.one",
        """
        import math
        import os


        def area(radius):
            return math.pi * radius


        def twice(x):
            return 2 * x
        """,
    )
    page = read(("twice(area(1))", "one.area one.twice"))
    (cell,) = page.cells
    assert cell.source == (
        "import math\n\n\n"
        "def area(radius):\n    return math.pi * radius\n\n\n"
        "def twice(x):\n    return 2 * x\n\n\n"
        "twice(area(1))"
    )


def test_the_pieces_of_a_cell_have_the_blank_lines_of_one(project, read):
    code = "import math\nRATE = 0.1\n\nDECAY = 0.9\n\ndef f(x): return math.sin(RATE * DECAY * x)\n"
    project.snippet("a.one", code)
    page = read(
        ("import cmath\nprint(math.pi * cmath.pi)", "one.RATE one.DECAY"),
        ("import json\nx = f(json)", "one.f"),
        ("import cmath\ny = RATE", "one.RATE"),
        ("print(y)\nimport math", "one.f"),
    )
    assert [cell.source for cell in page.cells] == [
        "import math\n\nRATE = 0.1\nDECAY = 0.9\n\nimport cmath\nprint(math.pi * cmath.pi)",
        "def f(x): return math.sin(RATE * DECAY * x)\n\n\nimport json\nx = f(json)",
        "RATE = 0.1\n\nimport cmath\ny = RATE",
        "def f(x): return math.sin(RATE * DECAY * x)\n\n\nprint(y)\nimport math",
    ]


def test_a_fold_names_the_helpers_that_visible_cells_use(project, read):
    functions = ("def f(x): return g(x)", "def g(x): return h(x)", "def h(x): return k(x)")
    project.snippet("a.one", "\n".join((*functions, "def k(x): return x")))
    page = read(
        ("f(1)", "one.f"), "```{code-cell} python\n:tags: [hide-input]\nk\n```", ("h(1), g(1)",)
    )
    assert page.cells[0].node.metadata["mystnb"]["code_prompt_show"] == f"{HELPERS}: g, h"


def test_helpers_come_folded_and_once_for_each_page(project, read):
    project.snippet("a.low", "import math\ndef low(x): return math.floor(x)\n")
    project.snippet(
        "a.one",
        """
        from snippets.a.low import low
        def f(x): return low(x)
        def g(x): return low(f(x))
        """,
    )
    page = read(("f(1)", "one.f"), ("g(1)", "one.g"), ("low(1)", "low.low"))
    helpers, first, second, third = page.cells
    assert [folded(cell.node) for cell in page.cells] == [True, False, False, False]
    assert helpers.source == "import math\n\n\ndef low(x): return math.floor(x)"
    assert first.source == "def f(x): return low(x)\n\n\nf(1)"
    assert second.source == "def g(x): return low(f(x))\n\n\ng(1)"
    assert "def low" in third.source
    assert {"a.low", "a.one"} <= page.modules.keys()


def test_imports_are_shown_once_on_a_page(project, read):
    functions = "def f(x): return math.floor(x)\ndef g(x): return os.fspath(math.ceil(x))\n"
    project.snippet("a.one", f"import math\nimport os\n{functions}")
    cells = ("f(1)", "one.f"), ("g(1)", "one.g"), ("import sys",), ("math.pi", "one.f")
    page = read(*(project.cell(*each) for each in cells))
    sources = [cell.source.partition("def")[0].split() for cell in page.cells]
    assert sources == [["import", "math"], ["import", "os"], ["import", "sys"], []]


@pytest.mark.parametrize("hidden", ["a helper", "a tag"])
def test_an_import_that_stands_only_in_a_folded_cell_is_shown_where_it_is_used(
    project, read, hidden
):
    project.snippet(
        "a.one",
        """
        import math
        def low(x): return math.floor(x)
        def f(x): return math.ceil(low(x))
        """,
    )
    cells = [("f(1)", "one.f"), ("low(1)", "one.low")]
    if hidden == "a tag":
        cells.insert(0, project.cell("low(1)", snippet="one.low", tags="hide-input"))
    page = read(*cells)
    assert ["import math" in cell.source for cell in page.cells] == [True, True, False]


def test_modules_of_one_package_are_imported_each(project, read):
    project.snippet("a.one", "import xml.dom\ndef f(): return xml.dom\n")
    project.snippet("a.two", "import xml.sax\ndef g(): return xml.sax\n")
    page = read(("", "one.f"), ("", "two.g"))
    assert [cell.source.splitlines()[0] for cell in page.cells] == [
        "import xml.dom",
        "import xml.sax",
    ]


def test_what_a_page_names_as_folded_comes_as_a_helper_once(project, read):
    project.snippet("a.timer", "import time\ndef measure(f): return time.time, f()\n")
    project.snippet("a.one", "import math\ndef area(r): return math.pi * r\n")
    cell = "```{code-cell} python\n:folded: a.timer.measure\nmeasure(lambda: area(2))\n```"
    page = read(("area(1)", "one.area"), cell, cell)
    assert [folded(cell.node) for cell in page.cells] == [False, True, False, False]
    assert page.cells[1].source.startswith("import time\n\n\ndef measure")
    assert page.cells[1].node.metadata["mystnb"]["code_prompt_show"] == f"{HELPERS}: measure"
    assert page.cells[2].source == page.cells[3].source == "measure(lambda: area(2))"
    assert "folded" not in page.cells[2].node.metadata


TWO_SCALES = {
    "a helper": ("def scale(): return 1", "def scale(): return 2"),
    "a constant": ("scale = 1", "scale = 2"),
    "a function and a constant": ("def scale(): return 1", "scale = 2"),
    "an import": ("import math as scale", "import cmath as scale"),
    "an import from": ("from math import sin as scale", "from cmath import sin as scale"),
    "a helper and an import": ("def scale(): return 1", "import math as scale"),
    "a class": ("class scale: one = 1", "class scale: two = 2"),
}


@pytest.mark.parametrize("kind", TWO_SCALES)
@pytest.mark.parametrize("together", [True, False], ids=["in one cell", "in two cells"])
def test_a_name_with_two_meanings_is_refused_with_both_origins(project, read, kind, together):
    one, two = TWO_SCALES[kind]
    project.snippet("a.one", f"{one}\ndef f(): return scale\n")
    project.snippet("a.two", f"{two}\ndef g(): return scale\n")
    cells = [("f()", "one.f"), ("g()", "two.g")]
    if together:
        cells = [("f()\ng()", "one.f two.g")]
    with pytest.raises(PageError, match="the name 'scale' would stand for two things") as refused:
        read(*cells)
    last = project.path("a/one").read_text().rindex("```{code-cell}")
    assert refused.value.line == project.path("a/one").read_text().count("\n", 0, last) + 1
    for module, text in (("one", one), ("two", two)):
        origin = text if "import" in text else f"snippets/a/{module}.py"
        assert origin in str(refused.value)


@pytest.mark.parametrize(
    "own",
    [
        "scale = 5",
        "import math as scale",
        "def scale(): ...",
        "for scale in (1, 2): pass",
        "def change():\n    global scale\n    scale = 5",
        "if True:\n    import math as scale",
    ],
)
def test_a_snippet_cannot_take_over_a_name_that_the_page_has_bound(project, read, own):
    project.snippet("a.one", "scale = 1\ndef f(): return scale\n")
    cells = [(own,), ("f()", "one.f")]
    with pytest.raises(PageError, match=r"'scale' would stand for two things.*snippets/a/one\.py"):
        read(*cells)
    shown = ("f()", "one.f")
    with pytest.raises(PageError, match="'scale' would stand for two things"):
        read(shown, *cells)


def test_what_a_magic_takes_as_text_binds_nothing(project, read):
    project.snippet("a.one", "scale = 1\ndef f(): return scale\n")
    own = ("%%writefile other.py\nscale = 5",)
    assert len(read(own, ("f()", "one.f")).cells) == 3


def test_a_page_may_bind_a_constant_anew_in_full_view(project, read):
    project.snippet("a.one", "scale = 1\ndef f(): return scale\ndef g(): return -scale\n")
    page = read(
        ("f()\nscale = 5\nf()", "one.scale one.f"),
        ("scale = 6\nscale = 7",),
        ("for scale in (1, 2): print(g())", "one.g"),
    )
    assert len(page.cells) == 3


def test_one_import_written_in_several_ways_has_one_meaning(project, read):
    project.snippet("a.one", "import xml.dom\ndef f(): return xml.dom\n")
    project.snippet("a.two", "import xml.sax\nimport xml.dom\ndef g(): return xml.sax\n")
    page = read(("import xml.dom, xml.sax",), ("f()", "one.f"), ("g()", "two.g"))
    assert page.cells[-1].source == "def g(): return xml.sax\n\n\ng()"


def test_an_ordinary_cell_declares_its_error(project, read):
    page = read("```{code-cell} python\n:raises: ValueError not a number\nint('x')\n```")
    (cell,) = page.cells
    assert (cell.expected.type, cell.expected.fragment) == ("ValueError", "not a number")
    assert "raises-exception" in cell.node.metadata["tags"]
    other = read("```{code-cell} python\n:raises: ValueError number\nint('x')\n```")
    assert other.cells[0].key != cell.key


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (":raises:", "needs 'TypeOfTheError part of its message'"),
        (":snippet: one.f\n:raises: KeyError f", "f and the cell each declare an error"),
        (":snippet: one.f one.g", "f and g.*a cell of its own"),
        (":folded: timer.measure", r"there is no snippet 'timer\.measure'"),
    ],
)
def test_what_a_cell_cannot_declare_or_name_is_refused(project, read, options, words):
    project.snippet(
        "a.one",
        """
        EXPECTED_ERRORS = {"f": (ValueError, "f"), "g": (KeyError, "g")}
        def f(): raise ValueError("f")
        def g(): raise KeyError("g")
        """,
    )
    with pytest.raises(PageError, match=words):
        read(f"```{{code-cell}} python\n{options}\nf()\n```")


@pytest.mark.parametrize(
    ("head", "words"),
    [
        ("benchmark: yess", "'benchmark: yess' in the head must be true or false"),
        ("device: gpu-h300", "there is no device 'gpu-h300'.*nearest are gpu-h200"),
        ("- a\n- b", "not a list of names with values"),
        ("a: [", "cannot be read"),
        ("orphan: true\ndate: today\nbenchmrk: true", "no 'benchmrk'; the nearest are"),
        ("Benchmark: true", "no 'Benchmark'; the nearest are"),
        ("devices: true", "no 'devices'; the nearest are"),
    ],
)
def test_a_head_that_cannot_be_understood_is_refused(project, head, words):
    path = project.page("a/one", project.cell("1"))
    path.write_text(f"---\n{head}\n---\n# One\n\n{project.cell('1')}\n")
    with pytest.raises(PageError, match=words):
        read_page("a/one", path, Library(project.root / "snippets"), ("cpu", "gpu-h200"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (":snipet: a.b", "a code cell has no option 'snipet'; the nearest are snippet"),
        (":framwork: jax", "no option 'framwork'; the nearest are framework"),
        (":rasies: ValueError x", "no option 'rasies'; the nearest are raises"),
        (":Tags: [hide-input]", "no option 'Tags'; the nearest are tags"),
        (":by_version: true", "no option 'by_version'; the nearest are by-version"),
        ("---\ntags: [a]\nsnipet: b\n---", "no option 'snipet'"),
        (":name: a\n:tags: [hide-inputt]", "no tag 'hide-inputt'; the nearest are hide-input"),
    ],
)
def test_a_misspelt_option_or_tag_is_refused_at_the_line_of_its_cell(read, options, words):
    with pytest.raises(PageError, match=words) as refused:
        read("Prose.", f"```{{code-cell}} python\n{options}\n1\n```")
    lines = read.path.read_text().splitlines()
    assert refused.value.line == lines.index("```{code-cell} python") + 1


@pytest.mark.parametrize(
    "options",
    [
        ":name: a\n:lines_to_next_cell: 2\n:tags: [margin, show-input, parameters]",
        "---\nmystnb:\n  tags: a\n  image:\n    tags: b\nslideshow:\n  tags: c\n---",
        ":tags: [remove_cell, full-width, hide-output]\n\n:tags:\n",
    ],
)
def test_options_and_tags_of_other_programs_remain(read, options):
    assert read(f"```{{code-cell}} python\n{options}\n1\n```").cells


def test_a_page_is_read_as_text_of_any_system_and_nothing_else(project, read):
    unix = read(("print(1)\nprint(2)",))

    def again(text):
        read.path.write_bytes(text)
        return read_page("a/one", read.path, Library(project.root / "snippets"))

    text = read.path.read_bytes()
    windows = again(text.replace(b"\n", b"\r\n"))
    assert [cell.key for cell in windows.cells] == [cell.key for cell in unix.cells]
    with pytest.raises(PageError, match="cannot be read"):
        again(text + b"\xff")


def test_a_page_knows_the_lines_of_its_cells(project, read):
    project.snippet("a.one", "def scale(): return 1\ndef f(): return scale()\n")
    cells = ("first",), "More.", ("f()", "one.f")
    page = read("Some prose.", *cells)
    text = project.path("a/one").read_text().splitlines()
    first, second = [n for n, line in enumerate(text, 1) if line.startswith("```{code-cell}")]
    assert [cell.line for cell in page.cells] == [first, second, second]
    lines = zip(page.notebook.cells, page.notebook.metadata["source_map"], strict=True)
    prose = [line for cell, line in lines if cell.cell_type == "markdown"]
    assert prose == [project.line("a/one", "# Page"), project.line("a/one", "More.")]


def test_a_page_says_whether_it_is_executed_measures_and_what_records_it(project, read):
    assert read("Only prose.") is None
    plain = read(("1",))
    assert not plain.benchmark and plain.record_command == ""
    page = read(("1",), benchmark=True, recorded="nox -s years --")
    assert page.benchmark and page.record_command == "nox -s years --"
    assert "recorded" not in page.notebook.metadata


def test_an_error_in_the_lines_of_a_page_is_reported_with_its_line(project, read):
    project.snippet("a.one", "def f(): return 1\n")
    with pytest.raises(PageError, match="invalid syntax in line 2 of the cell") as refused:
        read("Prose.", ("f()\nx = = 3", "one.f"))
    assert refused.value.line == project.line("a/one", "{code-cell}")


def test_a_name_may_be_imported_twice_where_no_snippet_reads_it(project, read):
    project.snippet("a.one", "import math as m\ndef f(): return m\n")
    first, second = ("import math as m",), ("import cmath as m",)
    assert len(read(first, second).cells) == 2
    for cells in ([first, ("f()", "one.f"), second], [first, second, "one.f"]):
        cells = [project.cell("f()", each) if each == "one.f" else each for each in cells]
        with pytest.raises(PageError, match="'m' would stand for two things"):
            read(*cells)


def test_the_tag_of_myst_nb_declares_an_error_of_any_kind(project, read):
    (cell,) = read(project.cell("1 / 0", tags="raises-exception")).cells
    assert cell.expected and cell.node.metadata["tags"] == ["raises-exception"]
    text = "```{code-cell} python\n:raises: ValueError a\n:tags: [raises-exception]\n1\n```"
    (declared,) = read(text).cells
    assert declared.expected.type == "ValueError"


def test_a_downloaded_notebook_runs_in_an_empty_folder_and_carries_its_outputs(project, tmp_path):
    project.snippet("a.low", "import math\ndef low(x): return math.floor(x)\n")
    project.snippet(
        "a.one",
        """
        from snippets.a.low import low
        EXPECTED_ERRORS = {"fail": (ZeroDivisionError, "division")}
        def f(x): return low(x) + 40
        def fail(): return 1 / 0
        """,
    )
    project.page(
        "a/one",
        "Prose.",
        project.cell("f(2.5)", snippet="one.f"),
        project.cell("fail()", snippet="one.fail"),
        project.cell("print('printed')\nf(3.5)"),
    )
    project.built()
    notebook = project.notebook("a/one")
    carried = [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]
    assert [len(outputs) for outputs in carried] == [0, 1, 1, 2]
    assert carried[1][0]["data"]["text/plain"] == "42"
    assert carried[2][0]["ename"] == "ZeroDivisionError"
    assert carried[3][0]["text"] == "printed\n"
    assert "snippets" not in "".join(cell.source for cell in notebook.cells)

    for cell in notebook.cells:
        cell["outputs"] = []
    empty = tmp_path / "empty"
    empty.mkdir()
    # Only what hangs takes that long.
    limits = dict.fromkeys(("timeout", "startup_timeout", "iopub_timeout"), 600)
    resources = {"metadata": {"path": str(empty)}}
    NotebookClient(notebook, resources=resources, **limits).execute()
    again = [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]
    assert again[1] == carried[1]
    assert again[2][0]["ename"] == "ZeroDivisionError"
    assert again[3] == carried[3]
