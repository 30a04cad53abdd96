"""The site: everything that knows Sphinx, docutils, MyST-NB and the theme.

`build` takes each page its one way in the events of Sphinx: `freshness` finds what must be read
again, `parser` hands the executed notebook to MyST-NB, and `tabs` puts the outputs of devices side
by side, and the cells of frameworks. `predictions` covers outputs with a question. `references`,
`tables` and `rooflines` leave places for numbers, tables and charts, and `waiting` has them filled
in once all `measurements` are known; `notes` says where a number comes from. `errors` shows what
declared errors came to, here and with other versions, and `versions` what cells printed there.
`compiled`, `jaxprs` and `scales` show compiled programs, and `status` says on what each page was
true. `downloads` writes the notebooks that readers take with them. `asset_bundle` makes what pages
load, `search` an index, and `about` and `skill` what programs read.
"""

import atexit
import gc
import hashlib
import pathlib
from typing import Any

from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, Any]:
    """Register all parts with Sphinx."""
    # Modules, options and doctrees live as long as the process. Searched for garbage again and
    # again, and once more at its end, they take two fifths of a build in which nothing changed.
    gc.set_threshold(200_000, 20, 20)
    atexit.register(gc.freeze)
    _load(app)
    sources = sorted(pathlib.Path(__file__).parents[1].rglob("*.py"))
    engine = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
    return {
        "env_version": int(engine[:8], 16),
        "parallel_read_safe": True,
        "parallel_write_safe": True,
    }


def _load(app: Sphinx) -> None:
    from . import (
        about,
        asset_bundle,
        build,
        compiled,
        downloads,
        errors,
        measurements,
        notes,
        predictions,
        references,
        rooflines,
        scales,
        search,
        status,
        tables,
        tabs,
        waiting,
    )

    app.setup_extension("myst_nb")
    app.setup_extension("sphinx_design")
    parts = [build, measurements, compiled, scales, tabs, predictions, notes, references, tables]
    parts += [rooflines, errors, downloads, about, asset_bundle, search, status, waiting]
    for part in parts:
        part.setup(app)
