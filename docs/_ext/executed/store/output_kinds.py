"""Output kinds: outputs under MIME types of their own, of which a feature knows what they say."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol


class OutputKind(Protocol):
    """Outputs under a MIME type of their own, of which the core does not know what they say.

    They are shown per device, even where all of them are equal.
    """

    @property
    def media_type(self) -> str:
        """The MIME type."""
        ...

    def problem(self, data: Any) -> str | None:
        """Say what keeps data from being such an output; None where nothing does."""
        ...

    def text(self, data: Mapping[str, Any]) -> str:
        """Return what data says, as lines of text."""
        ...

    def deciding(self, sources: tuple[str, ...]) -> Sequence[str]:
        """Return for each cell of a page a digest of the code that decides such outputs of it."""
        ...
