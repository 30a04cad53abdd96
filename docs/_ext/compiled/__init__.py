"""Programs that functions are compiled to, for devices that need not be here.

`declared` finds the functions that pages name and the shapes that their modules declare for
them. `compiling` compiles them with JAX for the devices that conf.py describes; the jaxpr is
counted and drawn by `jaxprs`. What it hands on is one of `records`. `store` keeps the files and
says whether each still belongs to its function. `hlo` finds kernels and collectives in the text of
a program, when it is shown.
"""

from typing import Any


def setup(app: Any) -> dict[str, Any]:
    """Register the extension with Sphinx."""
    # Imported here, because commands use this package without Sphinx.
    from . import scales, view

    view.setup(app)
    scales.setup(app)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
