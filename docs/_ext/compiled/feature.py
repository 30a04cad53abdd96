"""What compiled programs add to the core."""

from executed.hooks import Feature


class Compiled(Feature):
    """Programs that pages show. The Markdown edition has only their source."""

    name = "compiled"
    not_in_markdown = (".compile-view details", ".compile-lit")


FEATURE = Compiled
