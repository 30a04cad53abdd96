"""Output kinds: outputs under MIME types of their own, of which a feature knows what they say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from .output_format import PageOutputs


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

    def processes(self, outputs: PageOutputs) -> float:
        """Return in how many processes all such outputs of a page were made."""
        ...

    def moments(self, outputs: PageOutputs) -> Sequence[str]:
        """Return when the processes ran in which such outputs were made, as ISO dates."""
        ...

    def disturbed(self, outputs: PageOutputs) -> bool:
        """Say whether the outputs of a process are not to be kept, for it was disturbed."""
        ...

    def joined(self, former: PageOutputs, new: PageOutputs) -> PageOutputs | None:
        """Return former outputs with what a further process gave; None where they are not alike."""
        ...

    def kept(self, former: PageOutputs, new: PageOutputs) -> PageOutputs | None:
        """Return new outputs with what former processes gave, if what decides it is the same."""
        ...
