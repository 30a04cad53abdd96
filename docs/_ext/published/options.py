"""The options of what programs read of a site."""

import dataclasses

from executed.options import Table, option


@dataclasses.dataclass(frozen=True)
class PublishedOptions(Table):
    """The options of this extension, each called `book_<name>` in conf.py.

    card: the picture that goes with a link to a page, as a path in the site; 1200 by 630 pixels.
    markdown: write each page in Markdown too, and a list of them.
    skill: patterns of pages that make an Agent Skill, with their Markdown; see `skill`.
    """

    card: str = option("", "html")
    markdown: bool = option(False, "html")
    skill: tuple[str, ...] = option((), "html", pages=tuple)


OPTIONS = PublishedOptions
