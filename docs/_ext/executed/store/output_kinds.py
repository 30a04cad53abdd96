"""Output kinds: outputs with MIME types of their own, which a feature can read."""

from collections.abc import Sequence
from typing import Any, Protocol


class OutputKind(Protocol):
    """Outputs with a MIME type of their own, which the core can't read.

    They are shown per device, even where all of them are equal.
    """

    @property
    def media_type(self) -> str:
        """The MIME type."""
        ...

    def problem(self, data: Any) -> str | None:
        """Say what keeps data from being such an output; None where nothing does.

        The words follow "the cell displays" and "holds", such as "a record without a name".
        """
        ...

    def text(self, data: Any) -> str:
        """Return what data says, as lines of text."""
        ...

    def deciding(self, sources: tuple[str, ...]) -> Sequence[str]:
        """Return for each cell of a page a digest of the code that decides such outputs of it."""
        ...
