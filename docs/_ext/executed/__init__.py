"""The core of the book: executes what pages show, keeps it per device, and shows it.

A page is read by `source`, executed by `run` unless `store` holds its outputs, and shown beside
what was recorded on other devices. `build` takes each page its one way in the events of Sphinx:
`freshness` finds what must be read again, `render` puts the outputs of devices side by side,
`panels` decides what of each is shown, `tabs` joins the cells of frameworks, `tracebacks` folds
errors behind their messages, and `waiting` has places filled in once all pages are known. `status`
says on what each page was true, and `downloads` writes the notebooks that readers take with them,
their prose by `markdown`. `commands` record pages without Sphinx.

`book` is all that is known of a book while it is built, `options` what its conf.py says, of which
`frameworks` is a part, and `hooks` is what extensions add. They share `assets`, the scripts, styles
and templates of an extension; `nodes`, tables and texts with a note; `names` that people mistype;
`files` that may be damaged; and `typed_json`, the types of plain data.
"""

from typing import Any


def setup(app: Any) -> dict[str, Any]:
    """Register the extension with Sphinx."""
    # Imported here, because the commands use this package without Sphinx.
    import atexit
    import gc
    import hashlib
    import pathlib

    from . import assets, build, downloads, nodes, status, tabs, tracebacks, waiting

    # Modules, options and doctrees live as long as the process. Searched for garbage again and
    # again, and once more at its end, they take two fifths of a build in which nothing changed.
    gc.set_threshold(200_000, 20, 20)
    atexit.register(gc.freeze)
    app.setup_extension("myst_nb")
    app.setup_extension("sphinx_design")
    for part in (assets, build, nodes, downloads, status, waiting):
        part.setup(app)
    app.add_transform(tracebacks.FoldTracebacks)
    app.add_transform(tabs.FrameworkTabs)
    sources = sorted(pathlib.Path(__file__).parents[1].rglob("*.py"))
    engine = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
    return {
        "env_version": int(engine[:8], 16),
        "parallel_read_safe": True,
        "parallel_write_safe": True,
    }
