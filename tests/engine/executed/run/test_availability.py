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


def test_who_asks_for_it_leaves_such_cells_out(project, execute):
    cells = ["x = 1", "import nothere", "nothere.f(x)", "x + 1"]
    project.page("a/one", *map(project.cell, cells))
    found = execute("a/one", frameworks=MISSING, leave_out=True)["a/one"]
    assert not found.failures
    assert [cell.missing for cell in found.outputs.cells] == ["", "nothere", "nothere", ""]
    assert found.outputs.cells[3].outputs[0].data["text/plain"] == "2"


def test_what_a_book_cannot_do_without_is_never_left_out(project, execute):
    project.page("a/one", project.cell("import nothere"))
    frameworks = {"nothere": {"required": True}}
    found = execute("a/one", frameworks=frameworks, leave_out=True)
    assert "install it with 'pip install nothere'" in found["a/one"].failures[0].message


def test_what_a_left_out_cell_imports_is_there_for_later_cells(project, execute):
    cells = ["import math\nimport nothere\nx = 1", "math.floor(2.5)", "math.floor(x)"]
    project.page("a/one", *map(project.cell, cells))
    found = execute("a/one", frameworks=MISSING, leave_out=True)["a/one"]
    assert not found.failures
    assert [cell.missing for cell in found.outputs.cells] == ["nothere", "", "nothere"]
    assert [len(cell.outputs) for cell in found.outputs.cells] == [0, 1, 0]


FOLLOWING = {
    "tf.x": False,
    "print('begun')\nz = y + 1": False,
    "z": False,
    "[tf.x for _ in range(2)]": False,
    "def f(): return tf.x": True,
    "f()": False,
    "def g(tf): return tf + 1\ng(1)": True,
    "y = 2": True,
    "y + 1": True,
}


def test_cells_that_need_what_a_left_out_cell_would_have_made_are_left_out_too(project, execute):
    cells = "y = 1", "import nothere as tf\ny = tf.constant(1)", *FOLLOWING
    project.page("a/one", *map(project.cell, cells))
    found = execute("a/one", frameworks=MISSING, leave_out=True)["a/one"]
    assert not found.failures
    shown = found.outputs.cells[2:]
    assert [not cell.missing for cell in shown] == list(FOLLOWING.values())
    assert {cell.missing for cell in shown} == {"", "nothere"}
    assert [len(cell.outputs) for cell in shown] == [0, 0, 0, 0, 0, 0, 1, 0, 1]


def test_a_name_that_no_cell_would_have_made_fails_its_page(project, execute):
    project.page("a/one", *map(project.cell, ["import nothere", "misspelt"]))
    (failure,) = execute("a/one", frameworks=MISSING, leave_out=True)["a/one"].failures
    assert "cell 2: raised NameError" in failure.message


def test_where_any_outcome_is_kept_cells_go_on_that_need_nothing_of_a_failed_one(project, execute):
    cells = [
        "x = 1\ny = 1 / 0\nz = 2",
        "x + 1",
        "y",
        "z",
        "y = 3",
        "y",
    ]
    project.page("a/one", *map(project.cell, cells))
    found = execute("a/one", any_outcome=True)["a/one"]
    assert not found.failures
    shown = found.outputs.cells
    assert shown[0].outputs[0].ename == "ZeroDivisionError"
    assert [cell.missing for cell in shown] == ["", "", "cell 1", "cell 1", "", ""]
    assert [len(cell.outputs) for cell in shown] == [1, 1, 0, 0, 0, 1]


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


def test_a_prelude_is_executed_before_the_first_cell_and_leaves_no_name(project, execute):
    project.page("a/one", project.cell("import math\nmath.tau"), project.cell("'math2' in dir()"))
    found = execute("a/one", prelude="import math\nmath2 = math\nmath.tau = 7.0")["a/one"]
    assert [cell.outputs[0].data["text/plain"] for cell in found.outputs.cells] == ["7.0", "False"]


def test_in_a_preview_pages_have_a_prelude_of_their_own(project, execute):
    (project.root / "preview.py").write_text("import math\nmath.tau += 1", "utf8")
    for name in ("one", "bench"):
        cell = project.cell("import math\nmath.tau")
        project.page(f"a/{name}", cell, benchmark=name == "bench")
    for preview, shown in ((False, ["7.0", "7.0"]), (True, ["8.0", "8.0"])):
        options = {"preview": preview, "preview_prelude": "preview.py", "root": project.root}
        found = execute("a/one", "a/bench", prelude="import math\nmath.tau = 7.0", **options)
        cells = [found[name].outputs.cells[0] for name in ("a/one", "a/bench")]
        assert [cell.outputs[0].data["text/plain"] for cell in cells] == shown


def test_what_is_needed_without_an_import_is_known_by_words_of_a_cell():
    page = without("tool")
    assert page.needed_by("f = start_tool(2)") == "tool"
    assert page.needed_by("print(f)") is None
    assert without().needed_by("f = start_tool(2)") is None


def test_what_is_optional_is_left_out_of_a_build_and_said_to_be(project):
    facts = {"modules": ["nowhere"], "label": "A tool", "words": ["use_it"], "optional": True}
    project.configure(f"book_frameworks = {{'tool': {facts}}}")
    project.page("a/one", project.cell("print(1)"), project.cell("result = use_it(2)"))
    build = project.build()
    assert build.green, build.output
    assert "Not executed: A tool is not installed." in project.html("a/one")
    facts["modules"] = ["json"]
    project.configure(f"book_frameworks = {{'tool': {facts}}}")
    assert "NameError: name 'use_it' is not defined" in project.build().output
