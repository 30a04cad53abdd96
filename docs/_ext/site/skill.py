"""An Agent Skill: pages as a folder for programs that help people to write code.

Its `SKILL.md` is a template of the book. The pages lie in `references/`, in the Markdown that the
site has of them.
"""

import fnmatch
import pathlib
import posixpath
import re
import urllib.parse
import zipfile
from collections.abc import Collection

from . import about, downloads
from .app import BookApp
from .states import book_of

TEMPLATE = "SKILL.md"
FENCED = re.compile(r"^(`{3,}).*?^\1", re.MULTILINE | re.DOTALL)
SECTION = re.compile(r"^## (.+)$", re.MULTILINE)


def finish(app: BookApp, exception: Exception | None) -> None:
    """Write the skill as an archive beside the pages."""
    skill = book_of(app).options.skill
    if exception or not skill or app.builder.format != "html":
        return
    texts = {
        name: pathlib.Path(app.outdir, f"{name}.md").read_text("utf8")
        for name in about.all_pages(app)
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in skill.pages)
    }
    pages = [
        {
            "file": f"references/{name}.md",
            "title": app.env.titles[name].astext(),
            "sections": SECTION.findall(FENCED.sub("", text)),
            "versions": list(downloads.requirements(app, name).values()),
        }
        for name, text in texts.items()
    ]
    found = {TEMPLATE: app.builder.templates.render(TEMPLATE, {"name": skill.name, "pages": pages})}
    found |= {f"references/{n}.md": carried(app, n, text, texts) for n, text in texts.items()}
    with zipfile.ZipFile(pathlib.Path(app.outdir, f"{skill.name}.zip"), "w") as archive:
        for path, text in found.items():
            # Without a date, so that only other texts make another archive.
            entry = zipfile.ZipInfo(f"{skill.name}/{path}")
            archive.writestr(entry, text, zipfile.ZIP_DEFLATED)


def carried(app: BookApp, docname: str, text: str, beside: Collection[str]) -> str:
    """Return a page under its address, with links that hold away from the site.

    They lead to what lies `beside` it, else to the site where its address is known.
    """

    def link(found: re.Match[str]) -> str:
        target = found["target"]
        if target is None or urllib.parse.urlsplit(target).scheme:
            return found[0]
        path, _, anchor = target.partition("#")
        there = posixpath.normpath(posixpath.join(posixpath.dirname(docname), path))
        name = there.removesuffix(".html") if path else docname
        if name in beside:
            address = f"{path.removesuffix('.html')}.md" if path else ""
        elif name in app.env.found_docs and downloads.published(app, name):
            address = downloads.published(app, name)
        else:
            return found["text"]
        return f"[{found['text']}]({address}{'#' if anchor else ''}{anchor})"

    source = downloads.published(app, docname) or app.builder.get_target_uri(docname)
    return f"From {app.config.project}: {source}\n\n{downloads.LINK.sub(link, text)}"


def setup(app: BookApp) -> None:
    """Register the event, after the one in which the pages are complete."""
    app.connect("build-finished", finish, priority=695)
