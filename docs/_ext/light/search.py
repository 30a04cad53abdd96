"""An index for Pagefind, which finds words section by section and loads only what a search needs.

It is given copies of the built pages with the names of sections at their headings, where it looks
for them, and below its title the words by which readers look for a page: `search` of its head. It
is made again only where a page has changed.
"""

import html
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

from selectolax.lexbor import LexborHTMLParser
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

from executed.book import book_of

from .asset_bundle import is_behind
from .options import LightOptions

FOLDER, ENTRY = "pagefind", "pagefind-entry.json"
# What Pagefind offers besides: surfaces that this site has no use for.
SURFACES = ("pagefind-*ui*", "pagefind-highlight.js", "playground")
# What a page says of itself or of a number, and what is there to be used, is nothing to be found.
NOTES = (".note", ".device-notice", ".device-missing", ".provenance")
SKIPPED = (".headerlink", ".sd-tab-label", ".prev-next-footer", "script", "style", "svg", *NOTES)
ROOT = "article"
# What the words of a page count for; a title counts for 7.
WORDS = (
    '<p data-pagefind-weight="8" data-pagefind-meta="words, description[title]" title="{}">{}</p>'
)
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
    title, said = tree.css_first(f"{ROOT} h1"), tree.css_first('meta[name="description"]')
    text = tree.html or ""
    if not words or title is None:
        return text
    about = said.attributes["content"] if said else ""
    below = WORDS.format(html.escape(about or ""), html.escape(words))
    return text.replace(title.html or "", f"{title.html}{below}", 1)


def setup(app: Sphinx) -> None:
    """Register the event, before the finished site is checked."""
    app.connect("build-finished", finish, priority=710)
