"""Show the outputs of a cell for every device: once where all agree, as tabs where they differ."""

import dataclasses
import html
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import nbformat
from docutils import nodes
from sphinx_design.shared import create_component

from ..measurements.schema import Schema
from ..options import Options
from ..records import matching, outputs
from ..records.device_outputs import DeviceResult
from ..source.pages import Cell, Page
from .app import BookApp
from .states import PageState

# Stands before the outputs of each device, from the notebook until the page's nodes exist.
MARK = outputs.MARKING + "outputs of a device: "
LINK = "book-link"
# Marks an output that is shown as a picture, over the text that was printed.
DRAWN = "book-picture"


@dataclasses.dataclass(frozen=True)
class Panel:
    """What one device gave for a cell: outputs fit to be shown, or a note why there are none.

    `note` also stands above outputs of earlier code, with the lines that have changed since as
    `difference`.
    """

    device: str
    outputs: list[nbformat.NotebookNode] | None
    note: str = ""
    measured: bool = False
    difference: str = ""


def panels(
    page: Page,
    editions: Iterable[DeviceResult],
    options: Options,
    schema: Schema | None = None,
) -> list[list[Panel]]:
    """Return for each cell of the page its panels, the device of the build first."""
    first, *others = editions
    # On what the page was never recorded is said by the page about recordings, not in each cell.
    editions = [first, *(each for each in others if each.recorded.word != "missing")]
    return [
        _worth_showing([_panel(page, cell, edition, options, schema) for edition in editions])
        for cell in page.cells
    ]


def _panel(
    page: Page,
    of_page: Cell,
    edition: DeviceResult,
    options: Options,
    schema: Schema | None,
) -> Panel:
    device, name = edition.device, options.label(edition.device)
    command = f"{page.recorded or options.record_command} {page.docname}"
    again = f"‘{command}’ on such a machine records it"
    if edition.outputs is None:
        if edition.recorded.word == "missing":
            return Panel(device, None, f"Not recorded on {name} yet; {again}.")
        return Panel(device, None, f"The recording on {name} is {edition.recorded}.")
    cell = edition.outputs.cell(of_page.key)
    if cell is None and edition.live:
        # The page failed before it came to this cell.
        return Panel(device, [])
    day = edition.outputs.facts.day
    if cell is None:
        note = f"Not recorded on {name}: this cell is newer than the recording of {day}; {again}."
        return Panel(device, None, note)
    if cell.missing:
        what = "executed" if edition.live else "recorded"
        label = options.framework_label(cell.missing)
        return Panel(device, None, f"Not {what}: {label} is not installed.")
    shown = outputs.presentable(cell.outputs, schema)
    found = Panel(device, shown, measured=bool(outputs.records(cell.outputs, schema)))
    if cell.standing == matching.CHANGED:
        difference = matching.difference(cell.source, of_page.source)
        return dataclasses.replace(found, note=f"Earlier code, {day}.", difference=difference)
    if cell.standing == matching.AFTER:
        return dataclasses.replace(found, note=f"After earlier code, {day}.")
    return found


def _worth_showing(of_cell: list[Panel]) -> list[Panel]:
    """Return the panels to show: one where all outputs agree, else all that are there."""
    with_outputs = [panel for panel in of_cell if panel.outputs is not None]
    if not with_outputs:
        return of_cell[:1]
    different = {
        json.dumps(_comparable(panel.outputs or []), sort_keys=True) for panel in with_outputs
    }
    measured = any(panel.measured for panel in with_outputs)
    if len(different) > 1 or measured or of_cell[0].outputs is None:
        return of_cell
    return with_outputs[:1]


def _comparable(shown: list[nbformat.NotebookNode]) -> list[dict[str, Any]]:
    """Return outputs as a recording would hold them, without what numbers them."""
    beside = ("execution_count", "metadata")
    return [{name: of for name, of in each.items() if name not in beside} for each in shown]


def marked(of_cell: list[Panel], options: Options) -> list[nbformat.NotebookNode]:
    """Return the outputs of all panels in a row, each behind its mark; a single one has none."""
    if len(of_cell) == 1 and of_cell[0].outputs is not None and not of_cell[0].note:
        return of_cell[0].outputs
    found = []
    for panel in of_cell:
        label = options.label(panel.device)
        facts = {"device": panel.device, "label": label}
        facts |= {"note": panel.note, "difference": panel.difference}
        found.append(nbformat.v4.new_output("stream", text=MARK + json.dumps(facts)))
        found += panel.outputs or []
    return found


def first_outputs(shown: Iterable[nbformat.NotebookNode]) -> list[nbformat.NotebookNode]:
    """Return what `marked` was given for the first panel, as it was printed.

    Links into the site and pictures are left out.
    """
    kept = []
    for number, output in enumerate(shown):
        if output.output_type == "stream" and output.text.startswith(MARK):
            if number:
                break
            continue
        if DRAWN in output.get("metadata", {}):
            text = {"text/plain": output["data"]["text/plain"]}
            output = nbformat.v4.new_output("display_data", text)
        if LINK not in output.get("metadata", {}):
            kept.append(output)
    return kept


def make_tabs(document: nodes.document) -> None:
    """Make tabs of the outputs between marks, in a page that has just been parsed."""
    for container in document.findall(nodes.container):
        if container.get("nb_element") == "cell_code_output":
            groups = _groups(container)
            if groups:
                container.children = []
                container += _tabs(groups)


def make_framework_tabs(document: nodes.document, options: Options) -> None:
    """Make tabs of neighbouring cells that are each of a framework, in the order of the page."""
    for first in [cell for cell in document.findall(nodes.container) if _framework(cell)]:
        if "framework-tab" not in first.parent["classes"]:
            _join_frameworks(first, options)


def _framework(node: nodes.Node) -> str:
    """Return the framework of a cell, empty for all that is none."""
    if not isinstance(node, nodes.container) or node.get("nb_element") != "cell_code":
        return ""
    metadata: Mapping[str, str] = node.get("cell_metadata", {})
    return metadata.get("framework", "")


def _join_frameworks(first: nodes.Element, options: Options) -> None:
    parent, place = first.parent, first.parent.index(first)
    cells: dict[str, list[nodes.Node]] = {}
    while place < len(parent) and (name := _framework(parent[place])):
        cells.setdefault(name, []).append(parent.pop(place))
    items = [(name, options.framework_label(name), children) for name, children in cells.items()]
    parent.insert(place, tab_set("framework", items))


def tab_set(group: str, items: Iterable[tuple[str, str, list[nodes.Node]]]) -> nodes.Element:
    """Return tabs, each (key, label, nodes), that switch together with others of their group."""
    found = create_component("tab-set", classes=["sd-tab-set", f"{group}-tabs"])
    for key, label, children in items:
        head = nodes.rubric("", label, classes=["sd-tab-label"])
        head["sync_id"], head["sync_group"] = key, group
        classes = ["sd-tab-content", f"{group}-tab"]
        content = create_component("tab-content", classes=classes, children=children)
        found += create_component("tab-item", classes=["sd-tab-item"], children=[head, content])
    return found


def _groups(container: nodes.Element) -> list[tuple[dict[str, str], list[nodes.Node]]]:
    """Return (facts, nodes) for each mark among the outputs of a cell."""
    groups: list[tuple[dict[str, str], list[nodes.Node]]] = []
    for child in container.children:
        text = child.astext() if isinstance(child, nodes.literal_block) else ""
        if text.startswith(MARK):
            groups.append((json.loads(text.removeprefix(MARK)), []))
        elif groups:
            groups[-1][1].append(child)
    return groups


def _tabs(groups: list[tuple[dict[str, str], list[nodes.Node]]]) -> nodes.Element:
    if len(groups) == 1:
        return nodes.container("", *_explained(*groups[0]))
    items = [(facts["device"], facts["label"], _explained(facts, of)) for facts, of in groups]
    return tab_set("device", items)


def _explained(facts: Mapping[str, str], children: Sequence[nodes.Node]) -> list[nodes.Node]:
    """Return the outputs of a device behind what is to be said of them."""
    note, difference = facts["note"], facts["difference"]
    if not note:
        return [*children] or [note_node("It printed nothing.")]
    found: list[nodes.Node] = [note_node(note)]
    if difference:
        lines = nodes.literal_block(difference, difference, language="diff")
        found += fold("What has changed since", lines, class_="earlier")
    return [*found, *children]


def fold(summary: str, *inside: nodes.Node, class_: str = "") -> list[nodes.Node]:
    """Return nodes that a reader sees who opens a summary."""
    mark = f' class="{class_}"' if class_ else ""
    start = f"<details{mark}><summary>{html.escape(summary)}</summary>"
    return [
        nodes.raw("", start, format="html"),
        *inside,
        nodes.raw("", "</details>", format="html"),
    ]


def note_node(text: str) -> nodes.paragraph:
    """Return the node of a note that stands where outputs would be."""
    parts = text.replace("’", "‘").split("‘")
    inline = [
        nodes.literal("", part) if n % 2 else nodes.Text(part) for n, part in enumerate(parts)
    ]
    return nodes.paragraph("", "", *inline, classes=["device-note"])


def add_notices(
    app: BookApp, docname: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """Give the page its switch, and the notices for devices on which it was not recorded."""
    options = app.book.options
    shown = app.book.shown
    names = [(device, options.label(device)) for device in shown]
    context["book_devices"] = names if len(names) > 1 else []
    state = app.env.book_pages.get(docname)
    if state is None or not state.home or "body" not in context:
        return
    notices = []
    if options.preview and state.records and state.facts and not options.recorded:
        notices.append(
            '<p class="device-notice">Preview: this page was measured with few samples. '
            "Its numbers may be far off.</p>"
        )
    for device in shown:
        text = notice(options, device, state)
        if text:
            notices.append(
                f'<p class="device-notice" data-device="{html.escape(device)}" hidden>'
                f"{html.escape(text)}</p>"
            )
    context["body"] = context["body"].replace("</h1>", "</h1>" + "".join(notices), 1)


def notice(options: Options, device: str, state: PageState) -> str:
    """Say what a reader who chose a device sees instead of its outputs; empty where nothing."""
    if device == state.home:
        return ""
    chosen, shown = options.label(device), options.label(state.home)
    if state.only:
        return f"This page is executed on {shown} only."
    recorded = state.states.get(device)
    if recorded is None or recorded.word == "missing":
        return f"Not recorded on {chosen} yet: what you see is from {shown}."
    if recorded.word == "current":
        return ""
    if recorded.word == "earlier code":
        day = state.recorded[device].day
        return f"On {chosen} some outputs are of earlier code, of {day}: they say so."
    return f"The recording on {chosen} is {recorded}."


def setup(app: BookApp) -> None:
    """Register the event."""
    app.connect("html-page-context", add_notices)
