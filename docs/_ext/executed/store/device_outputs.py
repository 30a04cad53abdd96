"""A page's own outputs beside its recordings: a result for each device.

A preview measures nothing that anybody should read. So what was recorded is lent to it, as long as
the code that was measured is the same; and to any build, what it lacks a framework for.
"""

import dataclasses
from collections.abc import Iterable, Sequence

from nbformat import NotebookNode

from ..source.pages import Page
from .output_format import CellOutputs, PageOutputs
from .output_kinds import OutputKind
from .outputs import kind_of
from .recordings import Recordings
from .states import CellStanding, State


@dataclasses.dataclass(frozen=True)
class DeviceResult:
    """What a page gave on one device.

    `outputs` are None where there are none to show. `recorded` says how the recording of the
    device stands, and `recording` what it holds. `live` is true where the outputs were made,
    or cached, by this build, which does not exclude that some are `lent` by the recording.
    """

    device: str
    outputs: PageOutputs | None
    recorded: State
    recording: PageOutputs | None
    live: bool

    @property
    def lent(self) -> bool:
        """Whether some of the outputs are those of the recording, though the page was executed."""
        return self.live and any(cell.lent is not None for cell in self.cells)

    def is_own(self, cell: CellOutputs) -> bool:
        """Say whether the outputs of a cell were made, or cached, by this build."""
        return self.live and cell.lent is None

    @property
    def cells(self) -> tuple[CellOutputs, ...]:
        """The outputs of all cells, none where there is nothing to show."""
        return self.outputs.cells if self.outputs else ()


def device_results(
    page: Page,
    live: PageOutputs | None,
    recordings: Recordings,
    home: str,
    devices: Iterable[str],
    preview: bool = False,
    failed: bool = False,
) -> list[DeviceResult]:
    """Put a page's outputs beside its recordings; the device that it is executed on comes first.

    `home` is that device, `live` what it gave, None where only recordings are shown. Of what a
    `preview` measured the recording's numbers are shown, where there are any of the same code. A
    page that `failed` shows what it gave, and nothing else.
    """
    results = []
    for device in dict.fromkeys([home, *devices]):
        if page.device is not None and device != home:
            if not recordings.path(device, page.docname).exists():
                continue
        state, recording = recordings.state(device, page.docname, page)
        own = shown = live if device == home else None
        if own and recording and not failed:
            measured = preview and page.benchmark
            shown = with_lent(own, recording, measured, recordings.kinds)
        results.append(DeviceResult(device, shown or recording, state, recording, own is not None))
    return results


def with_lent(
    live: PageOutputs, recording: PageOutputs, measured: bool, kinds: Sequence[OutputKind]
) -> PageOutputs:
    """Return the outputs of a build with those that a recording of the same code lends it.

    These are the outputs of cells that lack a framework here. Of a page that is `measured` they
    are all that were recorded with the same code, and the measurements of cells after changed code,
    unless one was changed itself: numbers that are divided by each other are of one run.
    """
    pairs = [(cell, recording.cell(cell.key)) for cell in live.cells]
    measured = measured and all(_can_lend(cell, other, kinds) for cell, other in pairs)
    cells = [
        _lent(cell, other, kinds) if other and (measured or cell.missing) else cell
        for cell, other in pairs
    ]
    return dataclasses.replace(live, cells=tuple(cells))


def _can_lend(cell: CellOutputs, other: CellOutputs | None, kinds: Sequence[OutputKind]) -> bool:
    """Say whether all measurements of a cell were recorded with the code of today."""
    if not (count := len(_of_kinds(cell, kinds))):
        return True
    return other is not None and other.kind_stands and count <= len(_of_kinds(other, kinds))


def _lent(cell: CellOutputs, other: CellOutputs, kinds: Sequence[OutputKind]) -> CellOutputs:
    """Return a cell with the outputs that were recorded for it, as far as its code is the same."""
    if other.missing or not other.kind_stands:
        return cell
    shown = other.outputs
    if other.standing is not CellStanding.SAME:
        if not (lent := _of_kinds(other, kinds)):
            return cell
        own = _of_kinds(cell, kinds)
        shown = (*(output for output in cell.outputs if output not in own), *lent)
    return dataclasses.replace(cell, outputs=shown, lent=other.standing)


def _of_kinds(cell: CellOutputs, kinds: Sequence[OutputKind]) -> tuple[NotebookNode, ...]:
    return tuple(output for output in cell.outputs if kind_of(output, kinds))
