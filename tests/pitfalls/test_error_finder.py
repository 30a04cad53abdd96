"""A pasted message finds its entry, or hears that it is not sure: messages from public issues.

`messages.json` names the issue that each is from, and the entries that are right, none where the
list has nothing; they were chosen before the ranking saw the message. Those for development may be
looked at. The others are only counted: whoever looks at which of them are wrong moves all of them
to development, and collects new ones.
"""

import itertools

import pytest

from tests.book.test_errors import ENTRIES
from tests.pitfalls import finder
from tests.pitfalls.finder import EARLIER, MESSAGES, QUOTED, RECENT, is_right

NOTHING = [
    "hello",
    "make: *** [all] Error 2",
    "KeyError: 'weights'",
    "ModuleNotFoundError: No module named 'flax'",
    "FileNotFoundError: [Errno 2] No such file or directory: 'data.csv'",
    "ImportError: cannot import name 'Foo' from 'bar'",
    "RuntimeWarning: overflow encountered in exp",
    "AssertionError",
    "IndexError: list index out of range",
    "NameError: name 'params' is not defined",
    "INFO:werkzeug:Press CTRL+C to quit",
]

@pytest.fixture(scope="module")
def pasted(browser):
    """Return a function that pastes a text, once, and returns what is said and the entries."""
    return finder.finder(browser)


def counted(messages, pasted):
    """Return {issue: row} of what is wrong and not doubted, and the issues whose row is missing."""
    wrong, missing = {}, []
    for message in messages:
        found = pasted(message["text"])
        if found["rows"] and not found["said"] and not is_right(message, found["rows"][0]):
            wrong[message["from"]] = found["rows"][0]
        if message["rows"] and not any(is_right(message, each) for each in found["rows"]):
            missing.append(message["from"])
    return wrong, missing


@pytest.mark.parametrize("half, names", [("development", True), ("held back", False)])
def test_a_wrong_row_is_doubted_and_the_right_one_is_offered(pasted, half, names):
    messages = MESSAGES[half]
    listed = [message for message in messages if message["rows"]]
    wrong, missing = counted(messages, pasted)
    shown = f": {wrong}, {missing}" if names else ""
    assert len(wrong) <= 0.05 * len(messages), f"{len(wrong)} of {len(messages)}{shown}"
    assert len(missing) <= 0.15 * len(listed), f"{len(missing)} of {len(listed)}{shown}"


@pytest.mark.parametrize("half", MESSAGES)
def test_most_messages_that_are_listed_find_their_row_without_a_doubt(pasted, half):
    listed = [message for message in MESSAGES[half] if message["rows"]]
    found = [(message, pasted(message["text"])) for message in listed]
    sure = sum(
        not got["said"] and any(is_right(message, each) for each in got["rows"][:1])
        for message, got in found
    )
    assert sure >= 0.6 * len(listed), f"{sure} of {len(listed)}"


def test_there_are_enough_messages_and_each_is_from_another_issue():
    sources = [each["from"] for half in MESSAGES.values() for each in half]
    assert len(set(sources)) == len(sources) >= 200
    assert len(MESSAGES["held back"]) >= 100
    assert sum(not each["rows"] for each in MESSAGES["held back"]) >= 20


@pytest.mark.parametrize("text", NOTHING)
def test_what_is_no_message_of_the_book_finds_nothing_without_a_doubt(pasted, text):
    found = pasted(text)
    assert found["said"].startswith("Not sure:" if found["rows"] else "This list has nothing like")
    assert found["said"].endswith("Search JAX's issues.")


def test_rows_that_are_close_are_offered_together(pasted):
    found = pasted("NameError: unbound axis name: i")
    assert found["said"] == "It may be one of these. "
    assert {each.partition(": ")[2][:7] for each in found["rows"][:2]} == {"Found a", "unbound"}


def test_what_is_quoted_is_found(pasted):
    for row, quotes in QUOTED.items():
        for quote in quotes:
            assert row in pasted(quote.text)["rows"], quote


def test_every_message_names_its_issue_and_an_entry_that_exists():
    entries = [f"{kind}: {words}" for kind, words in ENTRIES]
    for message in itertools.chain.from_iterable(MESSAGES.values()):
        assert "#" in message["from"]
        for words in message["rows"]:
            assert any(each.startswith(words) for each in entries), words


@pytest.mark.parametrize("begins", EARLIER)
def test_what_older_versions_said_belongs_to_one_entry(begins):
    assert sum(f"{kind}: {words}".startswith(begins) for kind, words in ENTRIES) == 1


@pytest.mark.parametrize("kind", ["InconclusiveDimensionOperation", "UnexpectedTracerError"])
def test_a_class_is_found_by_its_name_alone(pasted, kind):
    found = pasted(f"{kind}                 Traceback (most recent call last)")
    assert found["rows"][0].startswith(f"{kind}: ")


def test_the_line_that_raises_an_error_is_not_taken_for_the_error(pasted):
    row = "IndexError: … Got slice(None"
    message = (
        "Array slice indices must have static start/stop/step to be used with NumPy indexing "
        "syntax. Got slice(None, JitTracer(int32[]), None) at position 0."
    )
    line = f"IndexError: {message}"
    found = pasted(line)
    assert (found["said"], found["rows"][0]) == ("", row)
    assert pasted(f"in validate_slices\n    raise IndexError(msg)\n{line}") == found
    assert pasted(f"raise jax.errors.IndexError('{message}')")["rows"][0] == row


@pytest.mark.parametrize(
    ("before", "message", "row"),
    [
        (
            "RuntimeError: ",
            "ABORTED: The TPU is already in use by process with pid 7.",
            "in use by",
        ),
        ("I0420 10:15:02 xla_bridge.py:841] ", "INTERNAL: Failed to open libtpu.so", "libtpu"),
        (
            "INFO:2026-04-20:jax._src.xla_bridge:841: ",
            "INTERNAL: Failed to open libtpu.so",
            "libtpu",
        ),
    ],
)
def test_a_tpu_that_is_taken_and_one_that_is_not_there_are_told_apart(pasted, before, message, row):
    found = pasted(f"{before}Unable to initialize backend 'tpu': {message}")
    assert not found["said"] and row in found["rows"][0]
