"""What a page says of itself to programs: to search engines, to chats that preview it, to readers.

Each page has a description, its first paragraph. Beside it lies the same page in Markdown, with
its outputs, and `llms.txt` lists all of them. The picture of the site is drawn from measurements.
"""

import dataclasses
import html
import json
import pathlib
import posixpath
import re
from typing import Any

from docutils import nodes
from selectolax.lexbor import LexborHTMLParser

from .. import files
from ..measurements.references import field_text
from ..options import Card
from . import measurements, skill
from .app import BookApp, BookEnvironment
from .markdown import markdown

LONGEST = 160
CARD = "_static/card.png"
LIST = "llms.txt"


def describe(
    app: BookApp, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """Give a page its description and its card, and write it in Markdown."""
    if app.builder.format != "html":
        return
    text = description(doctree) if doctree else ""
    title = LexborHTMLParser(context.get("title", "")).text() or app.config.project
    facts = [("og:type", "article"), ("og:title", title), ("og:site_name", app.config.project)]
    base = app.config.html_baseurl
    if text:
        facts.append(("og:description", text))
    if base and doctree:
        facts.append(("og:url", posixpath.join(base, app.builder.get_target_uri(pagename))))
    if base and (card := app.book.options.card):
        facts += [
            ("og:image", posixpath.join(base, CARD)),
            ("og:image:width", "1200"),
            ("og:image:height", "630"),
            ("og:image:alt", card.title),
        ]
    lines = [f'<meta property="{name}" content="{html.escape(value)}">' for name, value in facts]
    lines.append('<meta name="twitter:card" content="summary_large_image">')
    said = text or f"{title}: {app.config.project}"
    lines.append(f'<meta name="description" content="{html.escape(said)}">')
    if doctree and app.book.options.markdown:
        uri = posixpath.basename(f"{pagename}.md")
        lines.append(
            '<link rel="alternate" type="text/markdown" title="Markdown" '
            f'href="{html.escape(uri)}">'
        )
        path = pathlib.Path(app.outdir, f"{pagename}.md")
        files.write(path, markdown(context["body"]))
    # Sphinx has said how wide a screen is.
    metatags = re.sub(r'<meta name="viewport"[^>]*>\s*', "", context.get("metatags") or "")
    context["metatags"] = "\n    ".join([metatags, *lines])


def description(doctree: Any) -> str:
    """Return the first paragraph of a page, shortened at the end of a sentence or of a word."""
    for paragraph in doctree.findall(nodes.paragraph):
        if not isinstance(paragraph.parent, nodes.section):
            continue
        text = " ".join(paragraph.astext().split())
        if len(text) <= LONGEST:
            return text
        whole = text[: LONGEST + 1].rpartition(". ")[0]
        return f"{whole}." if len(whole) > 60 else f"{text[:LONGEST].rpartition(' ')[0]} …"
    return ""


def finish(app: BookApp, exception: Exception | None) -> None:
    """Write the list of pages for programs, and draw the picture of the site."""
    if exception or app.builder.format != "html":
        return
    options = app.book.options
    if options.markdown:
        path = pathlib.Path(app.outdir, LIST)
        text = _list(app)
        if not path.is_file() or path.read_text("utf8") != text:
            files.write(path, text)
    if options.skill:
        skill.pack(app, _all_pages(app))
    if options.card:
        _draw(app, options.card)


def _list(app: BookApp) -> str:
    """Return the pages in the order of the book, as llmstxt.org has it."""
    env, base = app.env, app.config.html_baseurl or ""
    lines = [f"# {app.config.project}", ""]
    if text := description(env.get_doctree(app.config.root_doc)):
        lines += [f"> {text}", ""]
    lines += ["## Pages", ""]
    for name in _all_pages(app):
        lines.append(f"- [{env.titles[name].astext()}]({posixpath.join(base, name)}.md)")
    if app.book.options.skill:
        address = posixpath.join(base, f"{skill.name(app)}.zip")
        lines += ["", "## Agent Skill", "", f"- [The pages for programs, as a folder]({address})"]
    return "\n".join(lines) + "\n"


def _all_pages(app: BookApp) -> list[str]:
    """Return all pages, in the order of the book."""
    seen = list(dict.fromkeys(_ordered(app.env, app.config.root_doc)))
    return [*seen, *sorted(set(app.env.found_docs) - set(seen))]


def _ordered(env: BookEnvironment, name: str) -> list[str]:
    inner = [page for each in env.toctree_includes.get(name, ()) for page in _ordered(env, each)]
    return [name, *inner]


def _draw(app: BookApp, card: Card) -> None:
    """Draw measurements as bars, 1200 by 630 pixels, where they are others than those drawn."""
    found = measurements.matching(app.env, card.measurements.split())
    options = app.env.book_options
    bars = sorted(
        (
            (
                each.latency,
                f"{each.name.rpartition('/')[2]} · {options.framework_label(each.framework)}",
                field_text("latency", each, with_range=False),
            )
            for each in found
            if each.device == app.env.book_home
        ),
        reverse=True,
    )
    path = pathlib.Path(app.outdir, CARD)
    memory = pathlib.Path(app.doctreedir, "card.json")
    state = json.dumps([app.config.project, dataclasses.asdict(card), bars])
    if not bars or (path.is_file() and memory.is_file() and memory.read_text("utf8") == state):
        return
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 6.3), dpi=100, facecolor="#0f1b2d")
    figure.text(0.05, 0.87, app.config.project, color="white", size=44, weight="bold")
    figure.text(0.05, 0.78, card.title, color="#b9c7dc", size=21)
    axes = figure.add_axes((0.3, 0.08, 0.55, 0.62), facecolor="none")
    axes.barh(range(len(bars)), [bar[0] for bar in bars], color="#4da3ff", log=True)
    axes.set_yticks(range(len(bars)), [bar[1] for bar in bars], color="white", size=18)
    for place, bar in enumerate(bars):
        axes.text(bar[0] * 1.1, place, bar[2], color="white", size=18, va="center")
    axes.set_xticks([])
    axes.minorticks_off()
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    files.write(memory, state)


def setup(app: BookApp) -> None:
    """Register the events; the context of a page is complete when Sphinx asks at 800."""
    app.connect("html-page-context", describe, priority=800)
    app.connect("build-finished", finish, priority=690)
