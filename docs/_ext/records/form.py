"""What a page printed on one device: the one form it has, whether cached here or recorded."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from nbformat import NotebookNode


@dataclasses.dataclass(frozen=True)
class Facts:
    """On what a page was executed.

    `executed` is a date in ISO format, `seconds` how long it took. `process` is "forked" where
    the kernel was forked from a warm parent, "own" where it was started for this page alone.
    `driver` and `memory` are of an accelerator.
    """

    page: str
    device: str
    device_kind: str
    executed: str
    seconds: float
    processor: str
    threads: int
    versions: Mapping[str, str]
    process: str = "own"
    driver: str = ""
    memory: str = ""


@dataclasses.dataclass(frozen=True)
class CellOutputs:
    """What one cell printed, by the key of its code.

    `missing` names the framework without which it could not be executed. `whole` names the
    file that holds all of an output that was too long for a page.
    """

    key: str
    outputs: tuple[NotebookNode, ...] = ()
    missing: str = ""
    whole: str = ""


@dataclasses.dataclass(frozen=True)
class PageOutputs:
    """What all cells of a page printed, in order; `modules` are digests of snippet modules."""

    facts: Facts
    cells: tuple[CellOutputs, ...]
    modules: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def cell(self, key: str) -> CellOutputs | None:
        """Return the outputs of the cell whose code has this key."""
        return next((cell for cell in self.cells if cell.key == key), None)

    def plain(self) -> dict[str, Any]:
        """Return the facts as plain data."""
        return dataclasses.asdict(self.facts)
