"""The options of what pages load."""

import dataclasses

from executed.options import Table, option


@dataclasses.dataclass(frozen=True)
class LightOptions(Table):
    """The options of this extension, each called `book_<name>` in conf.py.

    light: whether pages of sphinx-book-theme load only what they use of it.
    search: make an index for Pagefind.
    """

    light: bool = option(False, "html")
    search: bool = option(False)


OPTIONS = LightOptions
