"""An index for Pagefind, which finds words section by section and loads only what a search needs.

It is given copies of the built pages with the names of sections at their headings, where it looks
for them. It is made again only where a page has changed.
"""

import asyncio
import hashlib
import json
import pathlib
import re
import shutil
import tempfile

from pagefind.index import IndexConfig, PagefindIndex

from .. import files
from .app import BookApp
from .states import book_of

FOLDER = "pagefind"
MEMORY = "search.json"
LARGEST_MEMORY = 1_000_000
SECTION = re.compile(
    r'<section( class="[^"]*")? id="([^"]+)"([^>]*)>'
    r"((?:\s*<span[^>]*></span>)*\s*<h[1-6])"
)
# What Pagefind offers besides: surfaces that this site has no use for.
SURFACES = ("pagefind-*ui*", "pagefind-highlight.js", "playground")
SKIPPED = [".headerlink", ".sd-tab-label", ".prev-next-footer", "script", "style", "svg"]


def finish(app: BookApp, exception: Exception | None) -> None:
    """Make the index of the finished site, where a page has changed since the last one."""
    if exception or app.builder.format != "html" or not book_of(app).options.search:
        return
    site, memory = pathlib.Path(app.outdir), pathlib.Path(app.doctreedir, MEMORY)
    pages = {name: site / app.builder.get_target_uri(name) for name in sorted(app.env.found_docs)}
    known = files.remembered(memory, LARGEST_MEMORY)
    states = {name: [path.stat().st_size, path.stat().st_mtime_ns] for name, path in pages.items()}
    folder = site / FOLDER
    if known.get("states") == states and folder.is_dir():
        return
    texts = {name: path.read_text("utf8") for name, path in pages.items()}
    digest = hashlib.sha256(repr(sorted(texts.items())).encode()).hexdigest()
    if known.get("digest") != digest or not folder.is_dir():
        uris = {app.builder.get_target_uri(name): text for name, text in texts.items()}
        asyncio.run(_index(uris, folder))
    files.write(memory, json.dumps({"states": states, "digest": digest}))


async def _index(texts: dict[str, str], folder: pathlib.Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    config = IndexConfig(
        root_selector="article",
        exclude_selectors=SKIPPED,
        output_path=str(folder),
        keep_index_url=True,
    )
    with tempfile.TemporaryDirectory(prefix="book-") as marked:
        for uri, text in texts.items():
            page = pathlib.Path(marked, uri)
            page.parent.mkdir(parents=True, exist_ok=True)
            page.write_text(SECTION.sub(r'<section\1\3>\4 id="\2"', text), "utf8")
        # In one go: after each answer Pagefind's client for Python sleeps for a tenth of a second.
        async with PagefindIndex(config=config) as index:
            await index.add_directory(marked)
    for pattern in SURFACES:
        for path in folder.glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def setup(app: BookApp) -> None:
    """Register the event, before the finished site is checked."""
    app.connect("build-finished", finish, priority=710)
