"""The engine of the book: executes what pages show, and checks what it prints.

A page is read by `source`, executed by `execution` unless `records` holds its outputs, and shown
by `site`, beside what was recorded on other devices. `measurements` are records among the
outputs, from which numbers, tables and charts are drawn, by `drawing`; `pictures` are drawn from
plain data that a cell gives. `programs` are functions compiled for devices that are not here.
`commands` record pages without Sphinx. A package imports only from those before it: source,
drawing, measurements, pictures, records, execution, programs, then site and commands; and `site`
alone knows Sphinx.
"""

from typing import Any


def setup(app: Any) -> dict[str, Any]:
    """Register the extension with Sphinx."""
    # Imported here, because the commands use this package without Sphinx.
    from . import site

    return site.setup(app)
