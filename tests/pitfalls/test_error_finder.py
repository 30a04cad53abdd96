"""A pasted message finds its row: messages of other versions, from public issues.

`messages.json` names the issue that each is from, and the rows that may come first. Every other
one is for development. Those between are only measured: nobody looks at which of them are wrong.
"""

import html
import json
import os
import pathlib
import shutil

import pytest
from _ext.measurements.schema import Schema
from _ext.options import Options
from _ext.records.outcomes import declared_errors
from _ext.records.recordings import Recordings
from _ext.site.errors import is_meant, said
from _ext.source.pages import find_pages, read_page
from _ext.source.snippets import Library

from tests.book.test_errors import ROWS

ROOT = pathlib.Path(__file__).parents[2]
MESSAGES = json.loads(pathlib.Path(__file__).with_name("messages.json").read_text("utf8"))
SCRIPT = (ROOT / "docs" / "_static" / "errors.js").read_text("utf8")


def known():
    """Return the errors that the book declares, with what was recorded of them."""
    options = Options.from_file(ROOT / "conf.py")
    schema = Schema.of(options)
    here = Recordings(options.folder("recordings"), schema)
    elsewhere = Recordings(options.root / options.versions["recordings"], schema)
    library, found = Library(options.folder("snippets")), []
    for name, path in find_pages(options.folder("pages")).items():
        if page := read_page(name, path, library):
            made = {edition: elsewhere.read(edition, name) for edition in elsewhere.devices()}
            made = {edition: outputs for edition, outputs in made.items() if outputs}
            found += declared_errors(page, here.read("cpu", name), made)
    return found


def row(number, words, errors):
    outcomes = {each for e in errors for each in (e.here, *e.versions.values()) if each}
    texts = "".join(f"<pre>{html.escape(said(each))}</pre>" for each in outcomes)
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
    body = "".join(
        row(number, words, [error for error in errors if is_meant(words, error)])
        for number, words in enumerate(rows)
    )
    page_text = (
        f"<section><p>About</p><section><div class='error-list'><table><tbody>{body}"
        f"</tbody></table></div></section></section><script>{SCRIPT}</script>"
    )
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page()
        page.set_content(page_text)

        def offered(text):
            page.fill("textarea", text)
            found = page.query_selector(".error-finder li > a")
            return found and found.text_content()

        yield offered
        browser.close()


def right(message, offered):
    return offered is not None and any(offered.startswith(words) for words in message["rows"])


@pytest.mark.parametrize("message", MESSAGES[::2], ids=lambda message: message["from"])
def test_a_message_finds_its_row(first, message):
    assert right(message, first(message["text"])), first(message["text"])


def test_most_of_the_messages_that_nobody_tuned_for_find_their_row(first):
    held = MESSAGES[1::2]
    found = sum(right(message, first(message["text"])) for message in held)
    assert found >= 0.8 * len(held)


@pytest.mark.parametrize("text", ["hello", "make: *** [all] Error 2", "KeyError: 'weights'"])
def test_what_is_no_message_of_the_book_finds_nothing(first, text):
    assert first(text) is None


def test_every_message_names_its_issue_and_a_row_that_exists():
    rows = [f"{kind}: {words}" for kind, words in ROWS]
    for message in MESSAGES:
        assert "#" in message["from"]
        for words in message["rows"]:
            assert any(each.startswith(words) for each in rows), words
