"""Programs that functions are compiled to, for devices that need not be here.

`declared` finds the shapes that a module declares for its functions. A program beside this folder
compiles them and writes records, of which `programs` says what they hold; `program_files` reads
them and says whether each still belongs to its function. `view` shows them, by the templates that
lie here.
"""

from typing import TYPE_CHECKING, Any

from .options import CompiledOptions

if TYPE_CHECKING:
    from executed.hooks import Feature
    from executed.options import Options

OPTIONS = CompiledOptions


def for_book(options: "Options") -> "Feature":
    """Return the feature of a book with these options."""
    from .feature import Compiled

    return Compiled(options)


def setup(app: Any) -> dict[str, Any]:
    """Register the extension with Sphinx."""
    # What compiles uses this package without Sphinx.
    from executed.assets import add_assets
    from executed.build import add_options

    from . import view

    add_options(app, OPTIONS)
    add_assets(app, __file__, "compiled.css")
    view.setup(app)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
