"""An index for Pagefind, which finds words section by section and loads only what a search needs.

It is given copies of the built pages with the names of sections at their headings, where it looks
for them, and below its title the words by which readers look for a page: `search` of its head. It
is made again only where a page has changed.

Pagefind answers with pages that have all words. Which of all pages comes first is said by a list
beside its index: what each word says of a page. The list also has the words of titles, headings
and heads of pages, for words that are misspelt, and the names in rows of tables that have an
address.
"""

import html
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from selectolax.lexbor import LexborHTMLParser
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

from executed.book import book_of

from . import page_weights
from .asset_bundle import is_behind
from .options import LightOptions

FOLDER, ENTRY = "pagefind", "pagefind-entry.json"
# What Pagefind offers besides: surfaces that this site has no use for.
SURFACES = ("pagefind-*ui*", "pagefind-highlight.js", "playground")
# What a page says of itself or of a number, and what is there to be used, is nothing to be found.
NOTES = (".note", ".device-notice", ".device-missing", ".provenance", ".read-next")
SKIPPED = (".headerlink", ".sd-tab-label", ".prev-next-footer", "script", "style", "svg", *NOTES)
ROOT = "article"
# What the words of a page count for; a title counts for 7.
WORDS = (
    '<p data-pagefind-weight="8" data-pagefind-meta="words, description[title]" title="{}">{}</p>'
)
# What a row of a table is found by: what code calls by a name after a dot.
NAMED = re.compile(r"(?<=\.)[a-z]\w*(?=\()")
WORD = re.compile(r"[a-z][a-z0-9_]{3,}")
LIST = "words.json"
HEADINGS = ", ".join(f"section[id] > h{level}" for level in range(1, 7))


def finish(app: Sphinx, exception: Exception | None) -> None:
    """Make the index of the finished site, where a page has changed since the last one."""
    if (
        exception
        or app.builder.format != "html"
        or not book_of(app.env).options.of(LightOptions).search
    ):
        return
    site, index = pathlib.Path(app.outdir), pathlib.Path(app.outdir, FOLDER, ENTRY)
    if not is_behind(index, app) and _pages(index):
        return
    texts = {}
    for docname in sorted(app.env.found_docs):
        uri, words = (
            app.builder.get_target_uri(docname),
            app.env.metadata[docname].get("search", ""),
        )
        texts[uri] = searched((site / uri).read_text("utf8"), words)
    expected = sum(f"<{ROOT}" in text for text in texts.values())
    _index(texts, index.parent)
    index.parent.mkdir(exist_ok=True)
    (index.parent / LIST).write_text(json.dumps(listed(texts), separators=(",", ":")), "utf8")
    if _pages(index) != expected:
        raise ExtensionError(f"{index} does not have the {expected} pages that were to be searched")


def _pages(entry: pathlib.Path) -> int:
    """Return how many pages an index knows, none where it cannot be read."""
    try:
        languages = json.loads(entry.read_text("utf8"))["languages"]
        return sum(language["page_count"] for language in languages.values())
    except (OSError, ValueError, KeyError):
        return 0


def _index(texts: dict[str, str], folder: pathlib.Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="book-") as marked:
        for uri, text in texts.items():
            page = pathlib.Path(marked, uri)
            page.parent.mkdir(parents=True, exist_ok=True)
            page.write_text(text, "utf8")
        command = [sys.executable, "-m", "pagefind", "--silent", "--keep-index-url"]
        command += ["--site", marked, "--output-path", str(folder), "--root-selector", ROOT]
        # Whatever comes of it, the pages that it has written are counted.
        subprocess.run([*command, "--exclude-selectors", ",".join(SKIPPED)], check=False)
    for pattern in SURFACES:
        for path in folder.glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def searched(text: str, words: str = "") -> str:
    """Return a page in which a heading has the name of its section, with words to be found by."""
    tree = LexborHTMLParser(text)
    for heading in tree.css(HEADINGS):
        if (section := heading.parent) and (name := section.attributes.get("id")):
            heading.attrs["id"] = name
            del section.attrs["id"]
    title, text = tree.css_first(f"{ROOT} h1"), tree.html or ""
    if not words or title is None:
        return text
    below = WORDS.format(html.escape(page_weights.about(tree)), html.escape(words))
    return text.replace(title.html or "", f"{title.html}{below}", 1)


def listed(texts: dict[str, str]) -> dict[str, object]:
    """Return what is known of pages as they are searched, beside Pagefind.

    These are the pages, [address, title, what it is about, the words of its head]; the weights of
    stems; the words of headings and heads; and {name: row}. A row is its address, its title, and
    whether no code of its last column has that name.
    """
    words: set[str] = set()
    pages: list[list[str]] = []
    parts = []
    rows: dict[str, tuple[str, str, bool]] = {}
    columns: list[tuple[int, str, tuple[str, str, bool]]] = []
    for uri, text in texts.items():
        tree = LexborHTMLParser(text)
        head, title = tree.css_first(page_weights.WORDS), tree.css_first(f"{ROOT} h1")
        called = title.text().strip().removesuffix("#").strip() if title else uri
        pages.append([uri, called, page_weights.about(tree), head.text() if head else ""])
        for node in tree.css(f"{ROOT} :is(h1, h2, h3), {ROOT} [data-pagefind-weight]"):
            words.update(WORD.findall(node.text().lower()))
        for row in tree.css(f"{ROOT} tbody[id]"):
            cells = row.css("tr:nth-child(2) td")
            title = row.css_first("th")
            named = [NAMED.findall(cell.text()) for cell in cells]
            for column, names in enumerate(named[:-1]):
                for name in names:
                    about = title.text(deep=False).strip() if title else name
                    found = f"{uri}#{row.attributes['id']}", about, name not in named[-1]
                    columns.append((column, name, found))
        parts.append(page_weights.parts_of(tree, ROOT, SKIPPED))
    # The first column's names before those of others.
    for _, name, found in sorted(columns, key=lambda each: each[0]):
        rows.setdefault(name, found)
    weights = page_weights.weights(parts)
    return {"pages": pages, "weights": weights, "words": sorted(words), "rows": rows}


def setup(app: Sphinx) -> None:
    """Register the event, before the finished site is checked."""
    app.connect("build-finished", finish, priority=710)
