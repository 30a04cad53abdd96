"""What a page loads: of the theme only what it uses, and an index to search.

`asset_bundle` cuts the theme's files down, `sidebar` makes the list of pages once, `read_next` says
at the end of a page where to go on, and `search` has Pagefind read the finished site.
`page_weights` says how much each word says of a page. `options` says what is wanted.
"""

from typing import Any


def setup(app: Any) -> dict[str, Any]:
    """Register the extension with Sphinx."""
    # Imported here, because commands use this package without Sphinx.
    from executed.assets import add_assets

    from . import asset_bundle, read_next, search, sidebar

    add_assets(app, __file__, "light.css", "menus.js", "search.js")
    asset_bundle.setup(app)
    read_next.setup(app)
    search.setup(app)
    sidebar.setup(app)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
