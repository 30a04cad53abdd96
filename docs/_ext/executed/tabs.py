"""Show the outputs of a cell for every device: once where all agree, as tabs where they differ."""

import dataclasses
import html
import itertools
import json
from collections.abc import Iterable, Mapping
from typing import Any

import nbformat
from docutils import nodes
from sphinx_design.shared import create_component

from measured.schema import Schema
from measured.tables import SINCE

from .app import BookApp
from .book import PageState
from .options import Options
from .source.pages import Cell, Page
from .store import outputs
from .store.device_outputs import DeviceResult

# Stands before the outputs of each device, from the notebook until the page's nodes exist.
MARK = outputs.MARKING + "outputs of a device: "
LINK = "book-link"
# Marks an output that is shown as a picture, over the text that was printed.
DRAWN = "book-picture"


@dataclasses.dataclass(frozen=True)
class Panel:
    """What one device gave for a cell: outputs fit to be shown, or a note why there are none.

    Of what it gave of other code than today's, `earlier` is the day. `code` is that code and
    `former` what it printed; only measurements of it may be among the outputs.
    """

    device: str
    outputs: list[nbformat.NotebookNode] | None
    note: str = ""
    measured: bool = False
    earlier: str = ""
    code: str = ""
    former: list[nbformat.NotebookNode] = dataclasses.field(default_factory=list)


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
    day, other_code = edition.outputs.facts.day, f"Not recorded on {name} with this code."
    if cell is None:
        return Panel(device, None, other_code, earlier=day)
    if cell.missing:
        what = "executed" if edition.live else "recorded"
        label = options.framework_label(cell.missing)
        return Panel(device, None, f"Not {what}: {label} is not installed.")
    measured = [each for each in cell.outputs if outputs.record(each, schema) is not None]
    if not cell.standing:
        return Panel(device, outputs.presentable(cell.outputs, schema), measured=bool(measured))
    kept = outputs.presentable(measured if cell.measures else (), schema)
    rest = [each for each in cell.outputs if not kept or each not in measured]
    return Panel(
        device,
        kept or None,
        f"Measured {day}; {SINCE['code']}." if kept else other_code,
        measured=bool(kept),
        earlier=day,
        code=cell.source if rest else "",
        former=outputs.presentable(rest, schema),
    )


def _worth_showing(of_cell: list[Panel]) -> list[Panel]:
    """Return the panels to show: one where all outputs agree, else all that are there.

    Behind them are those of other devices that have nothing of today's code.
    """
    home, *others = of_cell
    beneath = [panel for panel in others if panel.earlier and panel.outputs is None]
    of_cell = [panel for panel in of_cell if panel not in beneath]
    beneath = [
        dataclasses.replace(panel, code="") if _same(panel.former, home.outputs) else panel
        for panel in beneath
        if panel.former or any(each.outputs for each in of_cell)
    ]
    with_outputs = [panel for panel in of_cell if panel.outputs is not None]
    if not with_outputs:
        return [home, *beneath]
    differ = any(not _same(panel.outputs, with_outputs[0].outputs) for panel in with_outputs)
    if differ or home.outputs is None or any(panel.measured for panel in with_outputs):
        return [*of_cell, *beneath]
    return [*with_outputs[:1], *beneath]


def _same(
    one: Iterable[nbformat.NotebookNode] | None, other: Iterable[nbformat.NotebookNode] | None
) -> bool:
    return _comparable(one or ()) == _comparable(other or ())


def _comparable(shown: Iterable[nbformat.NotebookNode]) -> str:
    """Return outputs as a recording would hold them, without what numbers them."""
    beside = ("execution_count", "metadata")
    kept = [{name: of for name, of in each.items() if name not in beside} for each in shown]
    return json.dumps(kept, sort_keys=True)


def marked(of_cell: list[Panel], options: Options) -> list[nbformat.NotebookNode]:
    """Return the outputs of all panels in a row, each behind its mark; a single one has none."""
    if len(of_cell) == 1 and of_cell[0].outputs is not None and not of_cell[0].note:
        return of_cell[0].outputs
    found = []
    for panel in of_cell:
        label = options.label(panel.device)
        facts = {"device": panel.device, "label": label, "note": panel.note}
        if panel.earlier and panel.outputs is None and panel is not of_cell[0]:
            facts["beneath"] = "yes"
        found += [_mark(facts), *(panel.outputs or [])]
        if panel.code:
            said = f"What {label} printed with other code, {panel.earlier}"
            found += [_mark({"code": panel.code, "summary": said}), *panel.former]
    return found


def _mark(facts: dict[str, str]) -> nbformat.NotebookNode:
    found: nbformat.NotebookNode = nbformat.v4.new_output("stream", text=MARK + json.dumps(facts))
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
    """Return the tabs of the groups, and what only those see who chose a device without one."""
    items: list[tuple[str, str, list[nodes.Node]]] = []
    beneath: list[list[nodes.Node]] = []
    shown: list[nodes.Node] = []
    for facts, children in groups:
        if "code" in facts:
            lines = nodes.literal_block(facts["code"], facts["code"], language="python")
            shown += fold(facts["summary"], lines, *children, class_="earlier")
            continue
        note = facts["note"] or ("" if children else "It printed nothing.")
        shown = [*([note_node(note)] if note else []), *children]
        if "beneath" not in facts:
            items.append((facts["device"], facts["label"], shown))
            continue
        device = html.escape(facts["device"])
        start = f'<div class="device-missing" data-device="{device}" hidden>'
        shown.insert(0, nodes.raw("", start, format="html"))
        beneath.append(shown)
    first = nodes.container("", *items[0][2]) if len(items) == 1 else tab_set("device", items)
    for each in beneath:
        each.append(nodes.raw("", "</div>", format="html"))
    return nodes.container("", first, *itertools.chain(*beneath))


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
        return f"On {chosen} part of this page is not recorded with this code, and says so there."
    return f"The recording on {chosen} is {recorded}."


def setup(app: BookApp) -> None:
    """Register the event."""
    app.connect("html-page-context", add_notices)
