"""Pictures of plain data: a cell gives lists, dicts, texts and numbers, and a kind draws them.

`kinds` holds for each kind what its data must be, and how they are drawn; `reading` takes the text
that a cell printed and says what is wrong with it. These two know no pages; `drawn` puts the
drawings into the panels of a page, as the hook of `feature` asks for.
"""

from typing import Any


def setup(app: Any) -> dict[str, Any]:
    """Register the extension with Sphinx."""
    import drawing
    from executed.assets import add_assets

    add_assets(app, drawing.__file__, "drawing.css")
    add_assets(app, __file__, "pictures.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
