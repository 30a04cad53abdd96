"""Cells that need a framework which is not installed are told apart from all others."""

import pytest

from executed.options import Options
from executed.run.availability import Frameworks

REGISTRY = Options(
    frameworks={
        "torch": {},
        "tensorflow": {"packages": ["tensorflow-cpu"]},
        "learn": {"modules": ["sklearn"]},
        "tool": {"words": ["start_tool"]},
    }
).registry


class Named(Frameworks):
    """Says the names of frameworks, which is what the tests compare."""

    def needed_by(self, source, own=""):
        needed = super().needed_by(source, own)
        return needed and needed.name


def without(*names):
    return Named(REGISTRY, lambda name: None if name in names else object())


@pytest.mark.parametrize(
    "source",
    [
        "import tensorflow as tf",
        "import tensorflow.keras",
        "from tensorflow import constant",
        "x = 1\nimport os, tensorflow",
    ],
)
def test_an_import_needs_its_framework(source):
    assert without("tensorflow").needed_by(source) == "tensorflow"
    assert without("torch").needed_by(source) is None
    assert without().needed_by(source) is None


def test_a_framework_need_not_be_called_as_its_package():
    assert without("sklearn").needed_by("from sklearn.svm import SVC") == "learn"


def test_a_cell_that_is_said_to_be_of_a_framework_needs_it():
    page = without("tensorflow")
    assert page.needed_by("y = arrays['tensorflow']", own="tensorflow") == "tensorflow"
    assert page.needed_by("z = arrays['torch']", own="torch") is None


def test_an_import_inside_a_function_is_only_tried_when_it_runs():
    assert without("torch").needed_by("def wait():\n    import torch") is None


def test_a_cell_that_is_no_python_is_left_to_the_kernel():
    assert without("tensorflow").needed_by("import tensorflow (") is None


MISSING = {"nothere": {"packages": ["nothere-cpu"]}}


def test_a_cell_without_its_framework_fails_the_page_with_the_package_to_install(project, execute):
    project.page("a/one", project.cell("1"), "Prose.", project.cell("import nothere"))
    project.page("a/two", project.cell("1"))
    found = execute("a/one", "a/two", frameworks=MISSING)
    (failure,) = found["a/one"].failures
    assert failure.line == project.line("a/one", "import nothere") - 1
    assert failure.message == (
        "cell 2: needs nothere, which is not installed; install it with 'pip install nothere-cpu'"
    )
    assert not found["a/two"].failures


def test_what_a_book_cannot_do_without_is_never_left_out(project, execute):
    project.page("a/one", project.cell("import nothere"))
    frameworks = {"nothere": {"required": True}}
    found = execute("a/one", frameworks=frameworks, leave_out=True)
    assert "install it with 'pip install nothere'" in found["a/one"].failures[0].message


def shown(cells):
    """Return what each cell shows, or in brackets why it is left out."""
    return [
        f"({cell.missing})" if cell.missing else "".join(map(plain, cell.outputs)) for cell in cells
    ]


def plain(output):
    return output.ename if output.output_type == "error" else output.data["text/plain"]


# Cells, and what is shown of each where `nothere` is left out.
LEFT_OUT = {
    "its names": {
        "x = 1": "",
        "import nothere": "(nothere)",
        "nothere.f(x)": "(nothere)",
        "x + 1": "2",
    },
    "what is imported beside it": {
        "import math\nimport nothere\nx = 1": "(nothere)",
        "math.floor(2.5)": "2",
        "math.floor(x)": "(nothere)",
    },
    "what it would have made": {
        "y = 1": "",
        "import nothere as tf\ny = tf.constant(1)": "(nothere)",
        "tf.x": "(nothere)",
        "print('begun')\nz = y + 1": "(nothere)",
        "z": "(nothere)",
        "[tf.x for _ in range(2)]": "(nothere)",
        "def f(): return tf.x": "",
        "f()": "(nothere)",
        "def g(tf): return tf + 1\ng(1)": "2",
        "y = 2": "",
        "y + 1": "3",
    },
}


@pytest.mark.parametrize("cells", LEFT_OUT.values(), ids=LEFT_OUT)
def test_cells_that_need_what_is_missing_are_left_out_and_no_others(cells, cells_of):
    found = cells_of(*cells, frameworks=MISSING, leave_out=True)
    assert shown(found) == list(cells.values())
    assert not any(cell.outputs for cell in found if cell.missing)


def test_a_name_that_no_cell_would_have_made_fails_its_page(project, execute):
    project.page("a/one", *map(project.cell, ["import nothere", "misspelt"]))
    (failure,) = execute("a/one", frameworks=MISSING, leave_out=True)["a/one"].failures
    assert "cell 2: raised NameError" in failure.message


def test_where_any_outcome_is_kept_cells_go_on_that_need_nothing_of_a_failed_one(cells_of):
    cells = "x = 1\ny = 1 / 0\nz = 2", "x + 1", "y", "z", "y = 3", "y"
    found = shown(cells_of(*cells, any_outcome=True))
    assert found == ["ZeroDivisionError", "2", "(cell 1)", "(cell 1)", "", "3"]


def raising(code, error):
    return f"```{{code-cell}} python\n:raises: {error}\n{code}\n```"


def test_where_any_outcome_is_kept_an_error_other_than_the_declared_is_one(project, execute):
    project.page(
        "a/one",
        raising("x = 1 / 0", "ValueError zero"),
        raising("y = 1 / 0", "ZeroDivisionError division"),
        raising("z = 1", "ValueError zero"),
        project.cell("z"),
        project.cell("x"),
    )
    assert execute("a/one")["a/one"].failures
    found = execute("a/one", any_outcome=True)["a/one"]
    assert not found.failures
    assert [cell.missing for cell in found.outputs.cells] == ["", "", "", "", "cell 1"]


def test_a_prelude_is_executed_before_the_first_cell_and_leaves_no_name(cells_of):
    prelude = "import math\nmath2 = math\nmath.tau = 7.0"
    cells = "import math\nmath.tau", "'math2' in dir()"
    assert shown(cells_of(*cells, prelude=prelude)) == ["7.0", "False"]


def test_in_a_preview_pages_have_a_prelude_of_their_own(project, execute):
    (project.root / "preview.py").write_text("import math\nmath.tau += 1", "utf8")
    for name in ("one", "bench"):
        cell = project.cell("import math\nmath.tau")
        project.page(f"a/{name}", cell, benchmark=name == "bench")
    for preview, tau in ((False, "7.0"), (True, "8.0")):
        options = {"preview": preview, "preview_prelude": "preview.py", "root": project.root}
        found = execute("a/one", "a/bench", prelude="import math\nmath.tau = 7.0", **options)
        assert [shown(page.outputs.cells) for page in found.values()] == [[tau]] * 2


def test_what_is_needed_without_an_import_is_known_by_words_of_a_cell():
    page = without("tool")
    assert page.needed_by("f = start_tool(2)") == "tool"
    assert page.needed_by("print(f)") is None
    assert without().needed_by("f = start_tool(2)") is None


def test_what_is_optional_is_left_out_of_a_build_and_said_to_be(project):
    facts = {"modules": ["nowhere"], "label": "A tool", "words": ["use_it"], "optional": True}
    project.configure(f"book_frameworks = {{'tool': {facts}}}")
    project.page("a/one", project.cell("print(1)"), project.cell("result = use_it(2)"))
    project.built()
    assert "Not executed: A tool is not installed." in project.html("a/one")
    facts["modules"] = ["json"]
    project.configure(f"book_frameworks = {{'tool': {facts}}}")
    assert "NameError: name 'use_it' is not defined" in project.build().output
