"""Refuse a site that would load anything from another host when it is read."""

import pathlib
import re

from sphinx.util import logging

# Links that are clicked (<a href>) may lead anywhere; these are followed by the browser itself.
LOADED = re.compile(
    r"<(?:script|img|iframe|source|video|audio|embed)\b[^>]*?\bsrc=[\"'](?:https?:)?//[^\"']+"
    r"|<link\b(?![^>]*rel=[\"'](?:canonical|author|license|next|prev|search)[\"'])[^>]*?"
    r"\bhref=[\"'](?:https?:)?//[^\"']+",
    re.IGNORECASE,
)
STYLED = re.compile(r"(?:url\(\s*|@import\s+)[\"']?(?:https?:)?//[^\"')\s;]+", re.IGNORECASE)
logger = logging.getLogger(__name__)


def loads(text, pattern):
    """Return the pieces of a file's text that make a browser ask another host."""
    return [found.group() for found in pattern.finditer(text)]


def check(app, exception):
    """Warn of each built file that loads something from another host."""
    if exception or app.builder.format != "html" or not app.book_changed:
        return
    for pattern, suffix in ((LOADED, "*.html"), (STYLED, "*.css")):
        for path in sorted(pathlib.Path(app.outdir).rglob(suffix)):
            for piece in loads(path.read_text("utf8", "replace"), pattern):
                logger.warning(
                    "%s would load from another host: %s",
                    path.relative_to(app.outdir),
                    piece,
                    type="book",
                    subtype="offline",
                )


def setup(app):
    """Register the check, before the build's result is decided."""
    app.connect("build-finished", check, priority=400)
