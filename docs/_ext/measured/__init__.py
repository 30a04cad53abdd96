"""Measurements: what a record holds, where it may be used, and how it is drawn.

A timer that pages use displays each measurement with a record of a MIME type of its own. `schema`
reads the JSON schema that lies beside the timer, and refuses records it does not allow. `processes`
joins records of several processes, `slices` says whether they measured the same, and `judging`
which are not recorded, because no time can be so short. `recording` executes pages that measure in
several processes. `ranges` has the range of a number over processes, and `texts` how both are
written. `expressions` reads what sentences ask for, and `references` gives `sentences` these
numbers, ratios and verdicts; `tables`, `charts` and `rooflines` show many measurements at once,
where `directives` ask for them. `works` say which framework is fastest at some work, and `fastest`
shows them. `machines` reads what was measured on other machines, `across` says how a ratio comes
out there, and `several` lists them; `releases` compares two versions, and `verdict_bars` count
verdicts. `book_measurements` has those of the whole book. `feature` is what this adds to the core,
and `options` has the schema and the sources of quotes. `reader` computes what pages show of a
reader's own, for the file that the command writes, and scripts in `static` put it there.
"""

from typing import Any


def setup(app: Any) -> dict[str, Any]:
    """Register the extension with Sphinx."""
    # Imported here, because commands use this package without Sphinx.
    import drawing
    from executed.assets import add_assets

    from . import book_measurements, directives, fastest, sentences, verdict_bars

    add_assets(app, drawing.__file__, "drawing.css")
    add_assets(app, __file__, "measured.css", "machine.css")
    # Before Sphinx's own scripts, which break off where a browser keeps nothing.
    app.add_js_file("machine.js", priority=150)
    book_measurements.setup(app)
    sentences.setup(app)
    directives.setup(app)
    fastest.setup(app)
    verdict_bars.setup(app)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
