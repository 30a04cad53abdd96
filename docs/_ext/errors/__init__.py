"""The list of declared errors; not how an error looks, which is `executed/tracebacks.py`.

`outcomes` is what a page's errors came to; `version_files` keeps what other versions of a package
gave, which `record_versions` records. `by_version` shows it below a cell, `listing` all of it, and
`changed` what became another error. `answers` keeps the code that raises an error and the code
that works, for who pastes the error.
`feature` is what this adds to the core, and `options` has what conf.py says of versions.
"""

from typing import Any


def setup(app: Any) -> dict[str, Any]:
    """Register the extension with Sphinx."""
    # Imported here, because commands use this package without Sphinx.
    from executed.assets import add_assets

    from . import changed, listing

    add_assets(app, __file__, "errors.css")
    listing.setup(app)
    app.add_directive("errors-changed", changed.ErrorsChangedDirective)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
