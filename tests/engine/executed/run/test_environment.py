"""Kernels see variables that say nothing, those the book names, and those of frameworks."""

import pytest

from executed.options import Options
from executed.run.environment import kernel_environment, passed

FRAMEWORKS = {
    "one": {
        "environment": {"": {"LOG": "2"}, "cpu": {"ONLY": "cpu"}, "gpu": {"ONLY": "gpu,cpu"}},
    }
}
OPTIONS = Options(frameworks=FRAMEWORKS, variables=("JAX_*", "CC"))
VARIABLES = {
    "PATH": "/bin",
    "LC_ALL": "C",
    "JAX_ENABLE_X64": "1",
    "CC": "cc",
    "CCACHE": "x",
    "XLA_FLAGS": "--x",
    "PYTHONPATH": "/x",
    "SECRET": "x",
    "ONLY": "tpu",
}


def test_what_the_book_names_is_passed_and_part_of_the_key():
    assert passed(OPTIONS, VARIABLES) == {"CC": "cc", "JAX_ENABLE_X64": "1"}


@pytest.mark.parametrize(
    ("device", "extra"),
    [("cpu", {"ONLY": "cpu"}), ("gpu-h200", {"ONLY": "gpu,cpu"}), ("tpu-v5e", {})],
)
def test_nothing_else_reaches_a_kernel(device, extra):
    found = kernel_environment(OPTIONS, device, VARIABLES)
    found.pop("PYDEVD_DISABLE_FILE_VALIDATION")
    expected = {"PATH": "/bin", "LC_ALL": "C", "JAX_ENABLE_X64": "1", "CC": "cc", "LOG": "2"}
    assert found == expected | {"PYTHONHASHSEED": "0"} | extra


def test_a_book_may_have_the_order_of_sets_drawn_anew():
    options = Options(variables=("PYTHON*",))
    found = kernel_environment(options, "cpu", {"PYTHONHASHSEED": "random"})
    assert found["PYTHONHASHSEED"] == "random"


def test_a_page_sees_no_other_variables(project, execute, monkeypatch):
    monkeypatch.setenv("SECRET", "x")
    monkeypatch.setenv("JAX_ENABLE_X64", "1")
    code = "import os\nprint('SECRET' in os.environ, os.environ.get('JAX_ENABLE_X64'))"
    project.page("a/one", project.cell(code))
    project.page("a/two", project.cell(code), benchmark=True)
    found = execute("a/one", "a/two", variables=("JAX_*",))
    for execution in found.values():
        assert execution.outputs.cells[0].outputs[0].text == "False 1\n"
