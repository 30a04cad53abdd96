"""What a cell prints is bounded: the page shows the beginning, a file beside it holds the whole."""

import json

import pytest


@pytest.fixture
def long(project, execute):
    """Return a function that executes a page of cells, and returns what the last one gave.

    Its text, and the content of the file with its whole output.
    """

    def run(*cells, limit=1000, **options):
        project.page("a/one", *map(project.cell, cells))
        texts = {}

        def done(page, execution):
            assert not execution.failures, execution.failures
            last = execution.outputs.cells[-1]
            texts["outputs"] = last.outputs
            whole = execution.whole.get(last.key)
            texts["whole"] = None if whole is None else whole.read_text("utf8")

        execute("a/one", done=done, output_limit=limit, **options)
        return texts["outputs"], texts["whole"]

    return run


def text_of(outputs):
    return "".join(
        output.get("text", "") or output.get("data", {}).get("text/plain", "") for output in outputs
    )


def test_an_output_within_the_limit_is_as_ever(long):
    outputs, whole = long("print('x' * 999)")
    assert whole is None
    assert text_of(outputs) == "x" * 999 + "\n"


@pytest.mark.parametrize(
    ("code", "size"),
    [
        ("for n in range(500_000): print(n)", 3_388_890),
        ("print('x' * 50_000_000)", 50_000_001),
        ("import os\nos.system('seq 100000')\nNone", 588_895),
        ("import sys\nfor n in range(1000): print('out'); print('err', file=sys.stderr)", 8000),
    ],
)
def test_a_long_output_is_cut_and_kept(long, code, size):
    outputs, whole = long(code)
    shown = text_of(outputs)
    assert len(shown) < 1200
    if "stderr" not in code:
        assert len(whole) == size
        assert shown.endswith(
            f"\n… {size - 1000:,} more characters; the whole output is in a file beside this page\n"
        )
    assert whole.startswith(shown[:100]) or "err" in code


def test_each_cell_has_the_limit_for_itself(long):
    outputs, whole = long("print('x' * 5000)", "print('y' * 500)")
    assert whole is None
    assert text_of(outputs) == "y" * 500 + "\n"


def test_what_is_too_long_even_for_the_file_is_dropped_and_said(long):
    outputs, whole = long("for n in range(70): print('x' * 999_999)")
    assert len(whole) == 64_000_000
    assert text_of(outputs).endswith(
        "\n… 69,999,000 more characters; the first 64,000,000 are in a file beside this page\n"
    )


def test_values_and_displays_count(long):
    outputs, whole = long("from IPython.display import display\ndisplay('x' * 700)\n'y' * 700")
    assert whole == f"'{'x' * 700}'\n'{'y' * 700}'\n"
    assert outputs[1].data["text/plain"] == "'" + "y" * 296
    assert outputs[1].execution_count is None


def test_a_picture_is_whole_or_not_there(long):
    code = (
        "from IPython.display import display\n"
        "drawing = '<svg xmlns=\"http://www.w3.org/2000/svg\">' + 'x' * {0} + '</svg>'\n"
        "display({{'image/svg+xml': drawing, 'text/plain': 'a picture'}}, raw=True)"
    )
    (output,), whole = long(code.format(15_000))
    assert len(output.data["image/svg+xml"]) == 15_046
    assert whole is None
    (output, notice), whole = long(code.format(25_000))
    assert output.data == {"text/plain": "a picture"}
    assert "in a file beside this page" in notice.text
    assert whole.startswith(("a picture\n<svg xmlns", "<svg xmlns"))


def test_an_error_is_shown_after_a_long_output(project, execute):
    project.snippet(
        "a.one",
        """
        EXPECTED_ERRORS = {"fail": (ValueError, "no luck")}

        def fail():
            print("x" * 5000)
            raise ValueError("no luck" + "y" * 5000)
        """,
    )
    project.page("a/one", project.cell("fail()", "one.fail"))
    found = execute("a/one", output_limit=1000)["a/one"]
    assert not found.failures
    (cell,) = found.outputs.cells
    (error,) = [output for output in cell.outputs if output.output_type == "error"]
    assert "ValueError: no luckyyy" in error.traceback[0]
    assert len(error.traceback[0]) == 1000


UPDATES = {
    "many of them": (
        "handles = [display('', display_id=True) for n in range(40)]\n"
        "for handle in handles: handle.update({'text/html': 'x' * 9000}, raw=True)"
    ),
    "of text": (
        "handles = [display('', display_id=True) for n in range(40)]\n"
        "for handle in handles: handle.update({'text/plain': 'x' * 9000}, raw=True)"
    ),
    "a value that is no text": (
        "handle = display('', display_id=True)\n"
        "handle.update({'application/json': ['x' * 90_000]}, raw=True)"
    ),
    "metadata of an update": (
        "handle = display('', display_id=True)\n"
        "handle.update({'text/html': 'x'}, metadata={'text/html': {'a': 'x' * 90_000}}, raw=True)"
    ),
    "metadata of a display": (
        "display({'text/html': 'x'}, metadata={'text/html': {'a': 'x' * 90_000}}, raw=True)"
    ),
    "text beside another format": (
        "for n in range(200): display({'text/html': 'x', 'text/plain': 'y' * 900}, raw=True)"
    ),
}


@pytest.mark.parametrize("kind", UPDATES)
def test_no_way_to_display_has_no_limit(long, kind):
    outputs, whole = long("from IPython.display import display\n" + UPDATES[kind] + "\nNone")
    assert len(json.dumps(outputs)) < 40_000
    assert "more characters; the whole output is in a file beside this page" in outputs[-1].text
    assert len(whole) > 40_000


@pytest.mark.parametrize(
    "code",
    [
        "while True: print('x' * 100)",
        "import subprocess\nsubprocess.run(['yes'])",
        "import subprocess, sys\nsubprocess.run(['yes'], stdout=sys.stdout)",
    ],
)
def test_an_endless_output_ends_with_the_time_of_its_cell(project, execute, code):
    project.page("a/one", project.cell(code))
    found = execute("a/one", cell_timeout=1)["a/one"]
    (failure,) = found.failures
    assert failure.message == (
        "cell 1: took longer than its 1 s; book_cell_timeout of conf.py is the limit"
    )
    assert len(text_of(found.outputs.cells[0].outputs)) < 110_000
    assert found.outputs.facts.seconds < 30
