"""What a page says of itself to programs: to search engines, to chats that preview it, to readers.

Each page has a description, its first paragraph, which its chapter shows, too. Beside it lies the
same page in Markdown, with its outputs, and `llms.txt` lists all of them.
"""

import html
import pathlib
import posixpath
from typing import Any

from docutils import nodes
from selectolax.lexbor import LexborHTMLParser
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from executed import files
from executed.book import book_of
from executed.downloads import published
from executed.markdown import markdown

from . import skill
from .options import PublishedOptions

LONGEST = 160
LIST = "llms.txt"


def describe(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """Give a page its description and its card, and write it in Markdown."""
    if app.builder.format != "html":
        return
    book = book_of(app.env)
    options = book.options.of(PublishedOptions)
    text = description(doctree) if doctree else ""
    title = LexborHTMLParser(context.get("title", "")).text() or app.config.project
    facts = [("og:type", "article"), ("og:title", title), ("og:site_name", app.config.project)]
    base = app.config.html_baseurl
    if text:
        facts.append(("og:description", text))
    if doctree and (address := published(app, pagename)):
        facts.append(("og:url", address))
    if base and (card := options.card):
        facts += [
            ("og:image", posixpath.join(base, card)),
            ("og:image:width", "1200"),
            ("og:image:height", "630"),
            ("og:image:alt", app.config.project),
        ]
    lines = [f'<meta property="{name}" content="{html.escape(value)}">' for name, value in facts]
    lines.append('<meta name="twitter:card" content="summary_large_image">')
    summary = text or f"{title}: {app.config.project}"
    lines.append(f'<meta name="description" content="{html.escape(summary)}">')
    if doctree and options.markdown:
        uri = posixpath.basename(f"{pagename}.md")
        lines.append(
            '<link rel="alternate" type="text/markdown" title="Markdown" '
            f'href="{html.escape(uri)}">'
        )
        path = pathlib.Path(app.outdir, f"{pagename}.md")
        notebook = posixpath.join(base or "", "_sources", f"{pagename}.ipynb")
        files.write(path, markdown(context["body"], book.features, notebook))
    # How wide a screen is, the theme says as well.
    own = LexborHTMLParser(context.get("metatags") or "").css("meta:not([name=viewport])")
    context["metatags"] = "\n    ".join(["", *(node.html or "" for node in own), *lines])


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


def list_pages(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Have a chapter's list of pages say what each is about, in place of all their sections."""
    for toctree in [each for each in doctree.findall(addnodes.toctree) if not each["hidden"]]:
        names = [name for _, name in toctree["entries"]]
        if app.builder.format != "html" or not app.env.found_docs.issuperset(names):
            continue
        pages = nodes.definition_list(classes=["pages"])
        for name in names:
            uri = app.builder.get_relative_uri(docname, name)
            title = app.env.titles[name].deepcopy()
            link = nodes.reference("", "", *title.children, refuri=uri, internal=True)
            about = nodes.paragraph("", description(app.env.get_doctree(name)))
            entry = nodes.term("", "", link), nodes.definition("", about)
            pages += nodes.definition_list_item("", *entry)
        toctree.replace_self(pages)


def finish(app: Sphinx, exception: Exception | None) -> None:
    """Write the list of pages for programs."""
    if exception or app.builder.format != "html":
        return
    options = book_of(app.env).options.of(PublishedOptions)
    if options.markdown:
        path = pathlib.Path(app.outdir, LIST)
        text = _list(app)
        if not path.is_file() or path.read_text("utf8") != text:
            files.write(path, text)
    if options.skill:
        skill.pack(app, _all_pages(app))


def _list(app: Sphinx) -> str:
    """Return the pages in the order of the book, as llmstxt.org has it."""
    env, base = app.env, app.config.html_baseurl or ""
    lines = [f"# {app.config.project}", ""]
    if text := description(env.get_doctree(app.config.root_doc)):
        lines += [f"> {text}", ""]
    lines += ["## Pages", ""]
    for name in _all_pages(app):
        lines.append(f"- [{env.titles[name].astext()}]({posixpath.join(base, name)}.md)")
    if book_of(env).options.of(PublishedOptions).skill:
        address = posixpath.join(base, f"{skill.name(app)}.zip")
        lines += ["", "## Agent Skill", "", f"- [The pages for programs, as a folder]({address})"]
    return "\n".join(lines) + "\n"


def _all_pages(app: Sphinx) -> list[str]:
    """Return all pages, in the order of the book."""
    seen = list(dict.fromkeys(_ordered(app.env, app.config.root_doc)))
    return [*seen, *sorted(set(app.env.found_docs) - set(seen))]


def _ordered(env: BuildEnvironment, name: str) -> list[str]:
    inner = [page for child in env.toctree_includes.get(name, ()) for page in _ordered(env, child)]
    return [name, *inner]


def setup(app: Sphinx) -> None:
    """Register the events; the context of a page is complete when Sphinx asks at 800."""
    app.connect("doctree-resolved", list_pages)
    app.connect("html-page-context", describe, priority=800)
    app.connect("build-finished", finish, priority=690)
