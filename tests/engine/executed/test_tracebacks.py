"""The message of an error is read at once; the frames are folded."""

import pytest
from docutils import nodes
from docutils.utils import new_document

from executed import tracebacks

MESSAGE = "TypeError: no array\nThe error occurred at line 4."


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"Traceback (most recent call last):\n  line 10\n    f(1)\n{MESSAGE}\n\nMore.", MESSAGE),
        (f"Traceback (most recent call last):\n{MESSAGE}\nSee https://a.b/c", MESSAGE),
        ("ValueError: a\n  b\nc\nd", "ValueError: a\n  b\nc"),
        ("Traceback (most recent call last):\nKeyError", "KeyError"),
        ("", ""),
    ],
)
def test_the_first_lines_of_the_message_are_read(text, said):
    assert tracebacks.message(text) == said


def folded(text, classes=("output", "traceback")):
    document = new_document("page")
    document += nodes.container("", nodes.literal_block(text, text, classes=list(classes)))
    tracebacks.FoldTracebacks(document).apply()
    return [node.astext() for node in document[0]]


def test_a_traceback_is_folded_behind_its_message():
    text = f"Traceback (most recent call last):\n  line 10\n    f(a < b)\n{MESSAGE} <a>"
    summary = f'<details class="traceback"><summary>{MESSAGE} &lt;a&gt;</summary>'
    assert folded(text) == [summary, text, "</details>"]


def test_what_says_no_more_than_its_message_and_what_is_no_error_stay():
    assert folded(MESSAGE) == [MESSAGE]
    assert folded("Traceback\n  a", classes=["output"]) == ["Traceback\n  a"]
