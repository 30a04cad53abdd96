"""Exercises that check themselves: the hint, the solution and the tick behind a task.

`solutions` is the directive that follows the cells of an exercise, and `feature` keeps what it
shows of solutions out of Markdown and notebooks.
"""

from typing import Any


def setup(app: Any) -> dict[str, Any]:
    """Register the extension with Sphinx."""
    # Imported here, because commands use this package without Sphinx.
    from executed.assets import add_assets

    from . import solutions

    add_assets(app, __file__, "exercised.css", "exercised.js")
    solutions.setup(app)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
