"""Programs that functions are compiled to, for devices that need not be here.

`declared` finds the shapes that a module declares for its functions. A program beside this folder
compiles them and writes records, of which `programs` says what they hold; `program_files` reads
them and says whether each still belongs to its function. `view` shows them, by the templates that
lie here. `feature` keeps the view out of the Markdown of pages, and `options` has the devices.
"""

from typing import Any


def setup(app: Any) -> dict[str, Any]:
    """Register the extension with Sphinx."""
    # What compiles uses this package without Sphinx.
    import drawing
    from executed.assets import add_assets

    from . import view

    add_assets(app, drawing.__file__, "drawing.css")
    add_assets(app, __file__, "compiled.css")
    view.setup(app)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
