"""Whether something that was recorded belongs to what it was recorded from."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class State:
    """One of current, stale, missing and unreadable, and why."""

    word: str
    reasons: tuple[str, ...] = ()

    @property
    def red(self) -> bool:
        """Whether a strict build must fail."""
        return self.word in ("stale", "unreadable")

    def __str__(self) -> str:
        """Say the state and its reasons in words."""
        return self.word + (f": {'; '.join(self.reasons)}" if self.reasons else "")
