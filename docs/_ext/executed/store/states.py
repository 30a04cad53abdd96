"""Whether something that was recorded belongs to what it was recorded from."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class State:
    """One of current, earlier code, missing, unreadable and left over, and why."""

    word: str
    reasons: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Say the state and its reasons in words."""
        return self.word + (f": {'; '.join(self.reasons)}" if self.reasons else "")
