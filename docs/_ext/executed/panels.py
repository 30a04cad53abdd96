"""What each device gave for a cell, fit to be shown, or a note why there is nothing."""

import dataclasses
import json
from collections.abc import Iterable, Sequence

from nbformat import NotebookNode

from .options import Options
from .source.pages import Cell, Page
from .store import outputs
from .store.device_outputs import DeviceResult
from .store.output_format import CellOutputs
from .store.output_kinds import OutputKind

# Said of what is kept of a cell, though other code of its page has changed.
SINCE = "other code of its page has changed since"


@dataclasses.dataclass(frozen=True)
class Note:
    """A sentence in the place of outputs, or above them: a text, a command in it, and the rest."""

    text: str
    command: str = ""
    rest: str = ""


@dataclasses.dataclass(frozen=True)
class Panel:
    """What one device gave for a cell: outputs fit to be shown, or a note why there are none.

    `shown` is what a page shows in place of these outputs, where a feature has changed them. If
    `of_device`, the page shows them for each device. If the device ran other code than today's,
    `earlier` is the day, `code` the code that ran, and `earlier_outputs` what it printed. Then
    `outputs` has only outputs of an output kind, such as measurements.
    """

    device: str
    outputs: list[NotebookNode] | None
    note: Note | None = None
    shown: list[NotebookNode] | None = None
    of_device: bool = False
    earlier: str = ""
    code: str = ""
    earlier_outputs: list[NotebookNode] = dataclasses.field(default_factory=list)

    @property
    def visible(self) -> list[NotebookNode]:
        """What a page shows of it."""
        return (self.outputs if self.shown is None else self.shown) or []


def panels(
    page: Page,
    results: Iterable[DeviceResult],
    options: Options,
    kinds: Sequence[OutputKind] = (),
) -> list[list[Panel]]:
    """Return for each cell of the page its panels, the device of the build first."""
    first, *others = results
    # On what the page was never recorded is said by the page about recordings, not in each cell.
    results = [first, *(result for result in others if not result.recorded.missing)]
    return [
        _worth_showing([_panel(page, cell, result, options, kinds) for result in results])
        for cell in page.cells
    ]


def _panel(
    page: Page, cell: Cell, result: DeviceResult, options: Options, kinds: Sequence[OutputKind]
) -> Panel:
    device, label = result.device, options.label(result.device)
    if result.outputs is None:
        if result.recorded.missing:
            command = f"{page.record_command or options.record_command} {page.docname}"
            words = f"Not recorded on {label} yet; ", command, " on such a machine records it."
            return Panel(device, None, Note(*words))
        return Panel(device, None, Note(f"The recording on {label} is {result.recorded}."))
    cell_outputs = result.outputs.cell(cell.key)
    if cell_outputs is None and result.live:
        # The page failed before it came to this cell.
        return Panel(device, [])
    day, other_code = result.outputs.facts.day, Note(f"Not recorded on {label} with this code.")
    if cell_outputs is None:
        return Panel(device, None, other_code, earlier=day)
    if cell_outputs.lacking:
        what = "executed" if result.live else "recorded"
        framework = options.framework_label(cell_outputs.missing)
        return Panel(device, None, Note(f"Not {what}: {framework} is not installed."))
    kind_outputs = [output for output in cell_outputs.outputs if outputs.kind_of(output, kinds)]
    if not cell_outputs.standing:
        shown = outputs.presentable(cell_outputs.outputs, kinds)
        note = _note_on_lent(result, cell_outputs, options)
        return Panel(device, shown, note, of_device=bool(kind_outputs))
    valid = outputs.presentable(kind_outputs if cell_outputs.kind_stands else (), kinds)
    rest = [output for output in cell_outputs.outputs if not valid or output not in kind_outputs]
    return Panel(
        device,
        valid or None,
        Note(f"Measured {day}; {SINCE}.") if valid else other_code,
        of_device=bool(valid),
        earlier=day,
        code=cell_outputs.source if rest else "",
        earlier_outputs=outputs.presentable(rest, kinds),
    )


def _note_on_lent(result: DeviceResult, cell_outputs: CellOutputs, options: Options) -> Note | None:
    """Say of outputs that a recording lends why they are not of this build, or of what they are."""
    if cell_outputs.lent is None or result.recording is None:
        return None
    day = result.recording.facts.day
    if cell_outputs.missing:
        framework = options.framework_label(cell_outputs.missing)
        return Note(f"Recorded {day}: {framework} is not installed here.")
    return Note(f"Measured {day}; {SINCE}.") if cell_outputs.lent else None


def _worth_showing(cell_panels: list[Panel]) -> list[Panel]:
    """Return the panels to show: one where all outputs agree, else all that are there.

    Behind them are those of other devices that have nothing of today's code.
    """
    home, *others = cell_panels
    earlier_panels = [panel for panel in others if panel.earlier and panel.outputs is None]
    tabs = [panel for panel in cell_panels if panel not in earlier_panels]
    earlier_panels = [
        dataclasses.replace(panel, code="") if _same(panel.earlier_outputs, home.outputs) else panel
        for panel in earlier_panels
        if panel.earlier_outputs or any(other.outputs for other in tabs)
    ]
    with_outputs = [panel for panel in tabs if panel.outputs is not None]
    if not with_outputs:
        return [home, *earlier_panels]
    differ = any(not _same(panel.outputs, with_outputs[0].outputs) for panel in with_outputs)
    if differ or home.outputs is None or any(panel.of_device for panel in with_outputs):
        return [*tabs, *earlier_panels]
    return [*with_outputs[:1], *earlier_panels]


def _same(first: Iterable[NotebookNode] | None, second: Iterable[NotebookNode] | None) -> bool:
    return _comparable(first or ()) == _comparable(second or ())


def _comparable(shown: Iterable[NotebookNode]) -> str:
    """Return outputs as a recording would hold them, without what numbers them."""
    incomparable = ("execution_count", "metadata")
    data = [
        {name: part for name, part in output.items() if name not in incomparable}
        for output in shown
    ]
    return json.dumps(data, sort_keys=True)
