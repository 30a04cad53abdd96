"""Errors are shown to readers with their own frames and the message, and nothing of the machine."""

import sys

import pytest


@pytest.fixture
def shown(project):
    """Return a function that builds a page of declared errors, and returns their texts."""

    def build(snippet, *cells):
        project.snippet("a.one", snippet)
        project.page("a/one", *cells)
        project.built()
        cells = project.notebook("a/one").cells
        outputs = [output for cell in cells for output in cell.get("outputs", [])]
        return ["\n".join(each.traceback) for each in outputs if each.output_type == "error"]

    return build


def test_frames_are_those_of_the_page_alone(shown, project):
    (text,) = shown(
        """
        import json
        EXPECTED_ERRORS = {"load": (json.JSONDecodeError, "Expecting value")}


        def load(text):
            return json.loads(text)
        """,
        project.cell("load('x')", snippet="one.load"),
    )
    assert text == (
        "Traceback (most recent call last):\n"
        "  line 8\n"
        "    load('x')\n"
        "  line 5, in load\n"
        "    return json.loads(text)\n"
        "JSONDecodeError: Expecting value: line 1 column 1 (char 0)"
    )
    assert "ipykernel" not in project.html("a/one")


def test_paths_in_messages_are_taken_out(shown, project):
    package = "/opt/somewhere/lib/python3.11/site-packages/jax/core.py:7"
    (text,) = shown(
        f"""
        import inspect
        EXPECTED_ERRORS = {{"fail": (ValueError, "see jax/core.py:7")}}
        def fail():
            here = inspect.currentframe().f_code.co_filename
            raise ValueError(f"see {package} and {{here}}:3 and {{here}}")
        """,
        project.cell("fail()", snippet="one.fail"),
    )
    assert text.endswith("ValueError: see jax/core.py:7 and line 3 and this page")


def test_an_error_of_jax_has_no_path_and_no_frame_of_a_library(shown, project):
    pytest.importorskip("jax")
    texts = shown(
        """
        import jax
        import jax.numpy as jnp
        EXPECTED_ERRORS = {
            "branch": (jax.errors.TracerBoolConversionError, "boolean conversion"),
            "mismatch": (TypeError, "contracting dimensions"),
        }


        @jax.jit
        def branch(x):
            return x if x > 0 else -x


        def mismatch():
            return jnp.dot(jnp.ones(3), jnp.ones(4))
        """,
        project.cell("branch(1.0)", snippet="one.branch"),
        project.cell("mismatch()", snippet="one.mismatch"),
    )
    page = project.html("a/one")
    for text in [*texts, page]:
        assert "site-packages" not in text
        assert "ipykernel" not in text
        assert sys.prefix not in text
        assert "JAX_TRACEBACK_FILTERING" not in text
    for text in texts:
        frames = [line for line in text.splitlines() if line.startswith("  line ")]
        assert len(frames) == 2, text
        assert "File " not in text
    assert "The error occurred while tracing the function branch at line" in texts[0]


def test_an_error_is_formatted_for_its_page_and_nowhere_else(cells_of):
    count = "from IPython.core.ultratb import VerboseTB\n"
    count += "VerboseTB.structured_traceback = lambda *rest, **named: print('formatted')"
    (error,) = cells_of(count, "1 / 0", any_outcome=True)[-1].outputs
    assert error.output_type == "error"


def test_a_signal_without_a_name_ends_the_page_alone(project, execute):
    project.page("a/one", project.cell("import os\nos.kill(os.getpid(), 40)"))
    project.page("a/two", project.cell("6 * 7"))
    found = execute("a/one", "a/two")
    (failure,) = found["a/one"].failures
    assert failure.message == "cell 1: the cell ended the kernel's process (Real-time signal 6)"
    assert not found["a/two"].failures


def test_a_kernel_has_no_debugger_unless_the_page_imports_one(cells_of):
    cells = cells_of("import sys\n'debugpy' in sys.modules", "import debugpy\ndebugpy.__name__")
    assert [cell.outputs[0].data["text/plain"] for cell in cells] == ["False", "'debugpy'"]


def test_a_kernel_knows_nothing_of_the_snippets_folder(project, tmp_path):
    project.snippet("a.one", "def f(): return 1\n")
    project.page("a/one", project.cell("import snippets.a.one"))
    build = project.build(PYTHONPATH=str(tmp_path))
    assert build.status == 1
    assert "cell 1: raised ModuleNotFoundError" in build.output
    assert "A package that pages import stands in the requirements" in build.output


def test_what_a_child_wrote_last_belongs_to_its_cell(project, execute):
    late = """
        import os, threading, time
        read = os.read
        def read_late(*rest):
            if threading.current_thread() is not threading.main_thread():
                time.sleep(0.3)
            return read(*rest)
        os.read = read_late
    """
    for name, benchmark in (("a/forked", False), ("a/own", True)):
        cells = [project.cell(f"os.system('echo {word}')\nNone") for word in ("é" * 700, "b", "c")]
        project.page(name, project.cell(late), *cells, benchmark=benchmark)
    for execution in execute("a/forked", "a/own").values():
        assert not execution.failures
        shown = ["".join(o.text for o in cell.outputs) for cell in execution.outputs.cells]
        assert shown == ["", "é" * 700 + "\n", "b\n", "c\n"]
