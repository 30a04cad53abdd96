"""The finder of errors on a page with all entries of the list, and what it says of messages.

`python -m tests.pitfalls.finder` prints how many of the recent messages, `recent.toml`, find their
entry. Of those that are only counted it prints numbers and nothing else.
"""

import functools
import html
import json
import os
import pathlib
import re
import shutil
import tomllib

from errors.listing import earlier, error_text, matching_errors, quoted
from errors.outcomes import declared_errors
from errors.version_files import Versions
from executed.hooks import features, kinds
from executed.store.recordings import Recordings
from tests.book import pages
from tests.book.pages import OPTIONS

ROOT = pathlib.Path(__file__).parents[2]
HERE = pathlib.Path(__file__).parent
LIST = (ROOT / "docs" / "pitfalls" / "index.md").read_text("utf8")
MESSAGES = json.loads((HERE / "messages.json").read_text("utf8"))
RECENT = tomllib.loads((HERE / "recent.toml").read_text("utf8"))
FRESH = tomllib.loads((HERE / "fresh.toml").read_text("utf8"))
EARLIER = earlier(ROOT / "docs" / "_versions" / "earlier.toml")
QUOTED = quoted(ROOT / "docs" / "_versions" / "earlier.toml")
PATTERNS = ROOT / "docs" / "_static" / "messages"
SCRIPTS = (
    "docs/_ext/executed/static/elements.js",
    "docs/_ext/errors/static/errors.js",
    "docs/_static/pasted.js",
    # Loaded when it is needed, where there is a site.
    "docs/_static/jax_names.js",
    "docs/_static/habits.js",
    "docs/_static/jax_always.js",
    "docs/_static/raised.js",
    *sorted(f"docs/_static/messages/{path.name}" for path in PATTERNS.glob("*.js")),
)
SCRIPT = "".join((ROOT / name).read_text("utf8") for name in SCRIPTS)
# Where the first link of an entry leads.
LINKS = dict(
    re.findall(r"^:::\{error-entry\} (\w+: .+)\n(?::fix: .+\n)?.*?\]\((.+?)\)", LIST, re.MULTILINE)
)

# Pastes a text into the field, and returns what is said above the entries, what is known of the
# text besides, and the entries.
PASTED = """text => {
  const field = document.querySelector("textarea");
  field.value = text;
  field.dispatchEvent(new Event("input", { bubbles: true }));
  const texts = query => [...document.querySelectorAll(query)].map((each) => each.textContent);
  return {
    said: texts(".error-finder output > p:not(.known)")[0] ?? "",
    known: texts(".error-finder output > p.known"),
    rows: texts(".error-finder li > a"),
    search: document.querySelector(".error-finder p:not(.known) > a")?.href ?? "",
  };
}"""


def known():
    """Return the errors that the book declares, with what was recorded of them."""
    here = Recordings(OPTIONS.folder("recordings"), kinds(features(OPTIONS)))
    versions, found = Versions(OPTIONS), []
    for page in map(pages.page, pages.paths()):
        if page and any(cell.expected for cell in page.cells):
            found += declared_errors(page, here.read("cpu", page.docname), versions.texts(page))
    return found


def told(words, errors):
    """Return the messages that were printed for an entry, here and elsewhere."""
    outcomes = {each for e in errors for each in (e.here, *e.versions.values()) if each}
    texts = [error_text(each) for each in outcomes if each.type]
    texts += [
        text for name, by in EARLIER.items() if words.startswith(name) for text in by.values()
    ]
    return texts + [quote.text for quote in QUOTED.get(words, [])]


def told_by(errors):
    """Return {entry: the messages that were printed for it}."""
    return {words: told(words, matching_errors(words, errors)) for words in LINKS}


def entry(number, words, link, errors):
    """Return an entry of the list as the built page has it."""
    texts = "".join(f"<pre>{html.escape(each)}</pre>" for each in told(words, errors))
    return (
        f'<section class="error-entry" id="error-{number}">'
        f"<h3><code>{html.escape(words)}</code></h3><p><a href='{link}'>What to do</a></p>"
        f"<details>{texts}</details></section>"
    )


def finder(browser):
    """Return a function that pastes a text, once, and returns what is said and the entries."""
    errors = known()
    body = "".join(
        entry(number, words, LINKS[words], matching_errors(words, errors))
        for number, words in enumerate(LINKS)
    )
    page_text = f"<section><p>About</p><section>{body}</section></section><script>{SCRIPT}</script>"
    page = browser.new_page()
    page.set_content(page_text)
    return functools.cache(lambda text: page.evaluate(PASTED, text))


def is_right(message, row):
    """Return whether an entry is one that is right for a message."""
    return any(row.startswith(words) for words in message["rows"])


def verdict(message, found):
    """Return what the finder made of a message: first, offered, wrong, doubted or nothing.

    Where no entry is right, doubt and silence are.
    """
    sure = found["rows"] and not found["said"]
    if found["rows"] and is_right(message, found["rows"][0]) and sure:
        return "first"
    if any(is_right(message, each) for each in found["rows"]):
        return "offered"
    if sure:
        return "wrong"
    if not message["rows"]:
        return "first"
    return "doubted" if found["rows"] else "nothing"


def counts(messages, pasted):
    """Return {verdict: the messages that have it}."""
    found = {each: [] for each in ("first", "offered", "wrong", "doubted", "nothing")}
    for message in messages:
        found[verdict(message, pasted(message["text"]))].append(message)
    return found


def listed(messages):
    """Return the messages that some entry is right for."""
    return [message for message in messages if message["rows"]]


# Of which messages those that are not first are printed.
SHOWN = {("development", "fresh"), ("development", "recent")}


def main():
    """Print the figures of all messages, and which recent ones of development are not first.

    Those that some entry is right for are counted by themselves besides.
    """
    from playwright import sync_api

    path = os.environ.get("BOOK_BROWSER") or shutil.which("chromium")
    with sync_api.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=["--no-sandbox"])
        pasted = finder(browser)
        for name, halves in (("fresh", FRESH), ("recent", RECENT), ("earlier", MESSAGES)):
            for half, messages in halves.items():
                found = counts(messages, pasted)
                for what, some in (("", messages), (", listed", listed(messages))):
                    told = ", ".join(f"{len(each)} {w}" for w, each in counts(some, pasted).items())
                    print(f"{name}, {half}{what}: {len(some)} messages: {told}")
                for what in ("offered", "wrong", "doubted", "nothing"):
                    for each in found[what] if (half, name) in SHOWN else ():
                        seen = pasted(each["text"])
                        print(f"  {what}: {each['from']}: {seen['said']}{seen['rows'][:3]}")


if __name__ == "__main__":
    main()
