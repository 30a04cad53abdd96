"""What programs read of the site: descriptions, pages in Markdown, and a skill of an agent.

`about` writes the first two, `skill` the third.
"""

from typing import Any

from .options import PublishedOptions

OPTIONS = PublishedOptions


def setup(app: Any) -> dict[str, Any]:
    """Register the extension with Sphinx."""
    # Imported here, because commands use this package without Sphinx.
    from executed.build import add_options

    from . import about

    add_options(app, OPTIONS)
    about.setup(app)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
