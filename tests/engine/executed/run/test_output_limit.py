"""What a cell prints is bounded: the page shows its beginning, and says how much is left out."""

import json
import re

import pytest


@pytest.fixture
def long(cells_of):
    """Return a function that executes a page of cells, and returns the outputs of the last one.

    Beside them it returns how many characters of it are left out.
    """

    def run(*codes, limit=1000):
        outputs = cells_of(*codes, output_limit=limit)[-1].outputs
        notice = re.search(r"\n… and ([\d,]+) more characters\n$", text_of(outputs))
        return outputs, int(notice[1].replace(",", "")) if notice else 0

    return run


def text_of(outputs):
    return "".join(
        output.get("text", "") or output.get("data", {}).get("text/plain", "") for output in outputs
    )


@pytest.mark.parametrize(
    ("code", "size"),
    [
        ("for n in range(50_000): print(n)", 288_890),
        ("print('x' * 50_000_000)", 50_000_001),
        ("import os\nos.system('seq 100000')\nNone", 588_895),
        ("import sys\nfor n in range(1000): print('out'); print('err', file=sys.stderr)", 8000),
    ],
)
def test_every_way_to_print_is_counted(long, code, size):
    outputs, cut = long(code)
    assert cut == size - 1000
    assert len(text_of(outputs)) < 1200
    assert text_of(outputs).endswith(f"\n… and {cut:,} more characters\n")


def test_each_cell_has_the_limit_for_itself(long):
    outputs, cut = long("print('x' * 5000)", "print('y' * 500)")
    assert cut == 0
    assert text_of(outputs) == "y" * 500 + "\n"


def test_values_and_displays_count(long):
    outputs, cut = long("from IPython.display import display\ndisplay('x' * 700)\n'y' * 700")
    assert cut == 406
    assert outputs[1].data["text/plain"] == "'" + "y" * 296
    assert outputs[1].execution_count is None


def test_a_picture_is_all_there_or_not_at_all(long):
    code = (
        "from IPython.display import display\n"
        "drawing = '<svg xmlns=\"http://www.w3.org/2000/svg\">' + 'x' * {0} + '</svg>'\n"
        "display({{'image/svg+xml': drawing, 'text/plain': 'a picture'}}, raw=True)"
    )
    (output,), cut = long(code.format(15_000))
    assert len(output.data["image/svg+xml"]) == 15_046
    assert cut == 0
    (notice,), cut = long(code.format(25_000))
    assert notice.text == f"\n… and {cut:,} more characters\n"
    assert cut > 25_000


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


DISPLAYS = {
    "metadata": (
        "display({'text/html': 'x'}, metadata={'text/html': {'a': 'x' * 90_000}}, raw=True)"
    ),
    "text beside another format": (
        "for n in range(200): display({'text/html': 'x', 'text/plain': 'y' * 900}, raw=True)"
    ),
}


@pytest.mark.parametrize("kind", DISPLAYS)
def test_no_way_to_display_has_no_limit(long, kind):
    outputs, cut = long("from IPython.display import display\n" + DISPLAYS[kind] + "\nNone")
    assert len(json.dumps(outputs)) < 40_000
    assert cut > 40_000


def test_an_endless_output_ends_with_the_time_of_its_cell(project, execute):
    endless = {
        "a/prints": "while True: print('x' * 100)",
        "a/starts": "import subprocess\nsubprocess.run(['yes'])",
        "a/hands-on": "import subprocess, sys\nsubprocess.run(['yes'], stdout=sys.stdout)",
    }
    for name, code in endless.items():
        project.page(name, project.cell(code))
    found = execute(*endless, cell_timeout=1, jobs=len(endless))
    for name in endless:
        (failure,) = found[name].failures
        assert failure.message == (
            "cell 1: took longer than its 1 s; book_cell_timeout of conf.py is the limit"
        )
        assert len(text_of(found[name].outputs.cells[0].outputs)) < 110_000
        assert found[name].outputs.facts.seconds < 30
