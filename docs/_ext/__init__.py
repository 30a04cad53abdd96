"""The engine of the book: executes the snippets that pages show, and checks what they print."""

import gc
import hashlib
import pathlib


def setup(app):
    """Register the extension with Sphinx."""
    # Imported here, because the recorders use this package without Sphinx.
    from .site import (
        build,
        compiled,
        downloads,
        measurements,
        offline,
        references,
        status,
        tables,
        tabs,
    )

    # Modules, options and doctrees live until the build ends. Python's garbage collector would
    # search them again and again; left to run at its usual pace it takes a tenth of a build.
    gc.set_threshold(200_000, 20, 20)
    app.setup_extension("myst_nb")
    app.setup_extension("sphinx_design")
    for part in (
        build,
        measurements,
        compiled,
        tabs,
        references,
        tables,
        downloads,
        offline,
        status,
    ):
        part.setup(app)
    sources = sorted(pathlib.Path(__file__).parent.rglob("*.py"))
    engine = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
    return {
        "env_version": int(engine[:8], 16),
        "parallel_read_safe": True,
        "parallel_write_safe": True,
    }
