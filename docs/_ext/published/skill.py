"""An Agent Skill: pages as a folder for programs that help people to write code.

Its `SKILL.md` is made from a template of the book, which gets the `name`, and of the `pages` the
file, the title, the sections and the versions they were executed with. They lie in `references/`,
in the Markdown that the site has of them.
"""

import fnmatch
import pathlib
import posixpath
import re
import zipfile
from collections.abc import Collection, Iterable

from sphinx.application import Sphinx

from executed import downloads
from executed.book import book_of

from .options import PublishedOptions

TEMPLATE = "SKILL.md"
FENCED = re.compile(r"^(`{3,}).*?^\1", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?P<page>[^\s():#]+)\.md(?P<anchor>#[^\s()]*)?\)")
SECTION = re.compile(r"^## (.+)$", re.MULTILINE)


def name(app: Sphinx) -> str:
    """Return the name of the skill and of its folder: letters, digits and hyphens."""
    return "-".join(re.findall(r"[a-z0-9]+", app.config.project.lower()))


def pack(app: Sphinx, docnames: Iterable[str]) -> None:
    """Write an archive of the skill's pages into the site."""
    patterns = book_of(app.env).options.of(PublishedOptions).skill
    texts = {
        docname: pathlib.Path(app.outdir, f"{docname}.md").read_text("utf8")
        for docname in docnames
        if any(fnmatch.fnmatchcase(docname, pattern) for pattern in patterns)
    }
    pages = [
        {
            "file": f"references/{docname}.md",
            "title": app.env.titles[docname].astext(),
            "sections": SECTION.findall(FENCED.sub("", text)),
            "versions": list(downloads.requirements(app, docname).values()),
        }
        for docname, text in texts.items()
    ]
    context = {"name": name(app), "pages": pages}
    contents = {TEMPLATE: app.builder.templates.render(TEMPLATE, context)}
    contents |= {
        f"references/{n}.md": packed_text(app, n, text, texts) for n, text in texts.items()
    }
    with zipfile.ZipFile(pathlib.Path(app.outdir, f"{name(app)}.zip"), "w") as archive:
        for path, text in contents.items():
            # Without a date, so that only other texts make another archive.
            entry = zipfile.ZipInfo(f"{name(app)}/{path}")
            archive.writestr(entry, text, zipfile.ZIP_DEFLATED)


def packed_text(app: Sphinx, docname: str, text: str, packed: Collection[str]) -> str:
    """Return a page under its address; links to what isn't `packed` too lead to the site."""

    def link(match: re.Match[str]) -> str:
        other = posixpath.normpath(posixpath.join(posixpath.dirname(docname), match["page"]))
        address = downloads.published(app, other)
        return (
            match[0] if other in packed or not address else f"]({address}{match['anchor'] or ''})"
        )

    source = downloads.published(app, docname) or app.builder.get_target_uri(docname)
    return f"From {app.config.project}: {source}\n\n{LINK.sub(link, text)}"
