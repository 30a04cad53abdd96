"""What programs read of the site: descriptions, pages in Markdown, and a skill of an agent.

`about` writes the first two, `skill` the third, where `options` asks for them.
"""

from typing import Any


def setup(app: Any) -> dict[str, Any]:
    """Register the extension with Sphinx."""
    # Imported here, because commands use this package without Sphinx.
    from . import about

    about.setup(app)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
