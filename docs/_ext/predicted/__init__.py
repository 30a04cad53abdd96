"""A question before a cell, whose right answer the build finds in what the cell prints.

`questions` reads what authors write, `feature` finds the right answers, and `covering` puts the
question over the output.
"""

from typing import Any


def setup(app: Any) -> dict[str, Any]:
    """Register the extension with Sphinx."""
    # Imported here, because commands use this package without Sphinx.
    from executed.assets import add_assets

    from . import covering

    add_assets(app, __file__, "predicted.css", "predicted.js")
    covering.setup(app)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
