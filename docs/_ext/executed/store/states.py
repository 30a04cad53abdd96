"""Whether something that was recorded belongs to what it was recorded from."""

import dataclasses
import enum


class Standing(enum.StrEnum):
    """How a recording stands to what it was recorded from."""

    CURRENT = "current"
    EARLIER = "earlier code"
    MISSING = "missing"
    UNREADABLE = "unreadable"
    LEFT_OVER = "left over"


class CellStanding(enum.StrEnum):
    """How the code that gave outputs differs from the cell's code today; false if it doesn't."""

    SAME = ""
    CHANGED = "changed"
    AFTER = "after"


@dataclasses.dataclass(frozen=True)
class State:
    """How something recorded stands, and why."""

    standing: Standing
    reasons: tuple[str, ...] = ()

    @property
    def current(self) -> bool:
        """Whether it is of the code of today."""
        return self.standing is Standing.CURRENT

    @property
    def missing(self) -> bool:
        """Whether nothing was recorded."""
        return self.standing is Standing.MISSING

    def __str__(self) -> str:
        """Say the state and its reasons in words."""
        return self.standing + (f": {'; '.join(self.reasons)}" if self.reasons else "")
