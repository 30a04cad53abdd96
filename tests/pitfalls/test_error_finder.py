"""A pasted message finds its row: messages of other versions, from public issues.

`messages.json` names the issue that each is from, and the rows that may come first; they were
chosen before the ranking saw the message. Those for development may be looked at. The others are
only counted: whoever looks at which of them are wrong moves all of them to development, and
collects new ones.
"""

import html
import itertools
import json
import os
import pathlib
import shutil

import pytest
from _ext.measurements.schema import Schema
from _ext.records.error_results import declared_errors
from _ext.records.recordings import Recordings
from _ext.records.versions import Versions
from _ext.site.errors import earlier, meant, said

from tests.book import pages
from tests.book.pages import OPTIONS
from tests.book.test_errors import ROWS

ROOT = pathlib.Path(__file__).parents[2]
MESSAGES = json.loads(pathlib.Path(__file__).with_name("messages.json").read_text("utf8"))
EARLIER = earlier(ROOT / "docs" / "_versions" / "earlier.toml")
STATIC = ROOT / "docs" / "_static"
SCRIPT = "".join((STATIC / name).read_text("utf8") for name in ("finder.js", "errors.js"))
ENOUGH = 0.95
NOTHING = [
    "hello",
    "make: *** [all] Error 2",
    "KeyError: 'weights'",
    "ModuleNotFoundError: No module named 'jax'",
    "FileNotFoundError: [Errno 2] No such file or directory: 'data.csv'",
    "ImportError: cannot import name 'linear_util' from 'jax'",
]

# Pastes a text into the field, and returns the row that is offered first.
PASTED = """text => {
  const field = document.querySelector("textarea");
  field.value = text;
  field.dispatchEvent(new Event("input", { bubbles: true }));
  return document.querySelector(".error-finder li > a")?.textContent ?? null;
}"""


def known():
    """Return the errors that the book declares, with what was recorded of them."""
    here = Recordings(OPTIONS.folder("recordings"), Schema.of(OPTIONS))
    versions, found = Versions(OPTIONS), []
    for page in map(pages.page, pages.paths()):
        if page and any(cell.expected for cell in page.cells):
            found += declared_errors(page, here.read("cpu", page.docname), versions.of_page(page))
    return found


def row(number, words, errors):
    outcomes = {each for e in errors for each in (e.here, *e.versions.values()) if each}
    told = [said(each) for each in outcomes if each.type]
    told += [text for row, by in EARLIER.items() if words.startswith(row) for text in by.values()]
    texts = "".join(f"<pre>{html.escape(each)}</pre>" for each in told)
    return (
        f'<tr id="error-{number}"><td><code>{html.escape(words)}</code>'
        f"<details>{texts}</details></td><td>what to do</td></tr>"
    )


@pytest.fixture(scope="module")
def first():
    """Return a function that pastes a text and returns the row that is offered first, or None."""
    path = os.environ.get("BOOK_BROWSER") or shutil.which("chromium")
    if not path:
        pytest.skip("no browser: install Debian's chromium, or name one in BOOK_BROWSER")
    errors = known()
    rows = [f"{kind}: {words}" for kind, words in ROWS]
    body = "".join(row(number, words, meant(words, errors)) for number, words in enumerate(rows))
    page_text = (
        f"<section><p>About</p><section><div class='error-list'><table><tbody>{body}"
        f"</tbody></table></div></section></section><script>{SCRIPT}</script>"
    )
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page()
        page.set_content(page_text)

        yield lambda text: page.evaluate(PASTED, text)
        browser.close()


def right(message, offered):
    return offered is not None and any(offered.startswith(words) for words in message["rows"])


def test_messages_find_their_row(first):
    messages = MESSAGES["development"]
    offered = {each["from"]: first(each["text"]) for each in messages}
    wrong = {
        each["from"]: offered[each["from"]]
        for each in messages
        if not right(each, offered[each["from"]])
    }
    share = 1 - len(wrong) / len(messages)
    assert share >= ENOUGH, f"{share:.1%} of {len(messages)}: {wrong}"


def test_messages_that_nobody_tuned_for_find_their_row(first):
    held = MESSAGES["held back"]
    share = sum(right(each, first(each["text"])) for each in held) / len(held)
    assert share >= ENOUGH, f"{share:.1%} of {len(held)}"


def test_there_are_enough_messages_and_each_is_from_another_issue():
    sources = [each["from"] for half in MESSAGES.values() for each in half]
    assert len(set(sources)) == len(sources) >= 60
    assert len(MESSAGES["held back"]) >= 30


@pytest.mark.parametrize("text", NOTHING)
def test_what_is_no_message_of_the_book_finds_nothing(first, text):
    assert first(text) is None


def test_every_message_names_its_issue_and_a_row_that_exists():
    rows = [f"{kind}: {words}" for kind, words in ROWS]
    for message in itertools.chain.from_iterable(MESSAGES.values()):
        assert "#" in message["from"]
        for words in message["rows"]:
            assert any(each.startswith(words) for each in rows), words


@pytest.mark.parametrize("begins", EARLIER)
def test_what_older_versions_said_belongs_to_one_row(begins):
    assert sum(f"{kind}: {words}".startswith(begins) for kind, words in ROWS) == 1


@pytest.mark.parametrize("kind", ["InconclusiveDimensionOperation", "UnexpectedTracerError"])
def test_a_class_is_found_by_its_name_alone(first, kind):
    offered = first(f"{kind}                 Traceback (most recent call last)")
    assert offered.startswith(f"{kind}: ")
