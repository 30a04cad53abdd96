"""Show the outputs of a cell for every device: once where all agree, as tabs where they differ."""

import contextlib
import copy
import dataclasses
import html
import json

import nbformat
from docutils import nodes
from sphinx_design.shared import create_component

from ..records import outputs, recordings
from ..records import sanitising as foreign

# Stands before the outputs of each device, from the notebook until the page's nodes exist.
MARK = outputs.MARKING + "outputs of a device: "


@dataclasses.dataclass(frozen=True)
class Panel:
    """What one device gave for a cell: outputs fit to be shown, or a note why there are none."""

    device: str
    outputs: list | None
    note: str | None = None
    measured: bool = False


def order(config, home, found):
    """Return all devices of the site: where the build runs first, then those of the options."""
    return list(dict.fromkeys([home, *config.book_devices, *found]))


def label(config, device):
    """Return the name of a device as readers see it."""
    return config.book_devices.get(device, device)


def command(docname):
    """Return the command that records a page."""
    return f"nox -s record -- {docname}"


def panels(page, home, states, name_of, schema=None):
    """Return for each cell of the page its panels, the device of the build first.

    `home` is that device, None where the page's own outputs are not to be
    shown. `states` maps every other device to the State of its recording,
    `name_of` a device to its label.
    """
    keys = recordings.cell_keys(page)
    found = []
    for cell, key in zip(page.code_cells, keys, strict=True):
        of_cell = []
        if home is not None:
            framework = cell.metadata.get("skipped")
            if framework:
                of_cell.append(Panel(home, None, not_installed(framework)))
            else:
                of_cell.append(_with_outputs(home, cell, schema))
        for device, state in states.items():
            of_cell.append(_recorded(page, key, device, state, name_of(device), schema))
        found.append(_worth_showing(of_cell))
    return found


def _with_outputs(device, cell, schema):
    measured = bool(outputs.records(cell.outputs, schema))
    return Panel(device, outputs.presentable(cell.outputs, schema), measured=measured)


def not_installed(framework):
    """Say why a cell was not executed."""
    return f"Not recorded: {framework} is not installed."


def _recorded(page, key, device, state, name, schema):
    again = f"‘{command(page.docname)}’ on such a machine records it"
    if state.word == "missing":
        return Panel(device, None, f"Not recorded on {name} yet; {again}.")
    if state.recording is None:
        return Panel(device, None, f"The recording on {name} is {state}.")
    cell = state.recording.cell(key)
    if cell is None:
        note = f"This code was changed after it was recorded on {name}; {again} again."
        return Panel(device, None, note)
    if cell.skipped:
        return Panel(device, None, not_installed(cell.skipped))
    return _with_outputs(device, cell, schema)


def _worth_showing(of_cell):
    """Return the panels to show: one where all outputs agree, else all that are there."""
    with_outputs = [panel for panel in of_cell if panel.outputs is not None]
    if not with_outputs:
        return of_cell[:1]
    different = {json.dumps(_comparable(panel.outputs), sort_keys=True) for panel in with_outputs}
    measured = any(panel.measured for panel in with_outputs)
    if len(different) > 1 or measured or of_cell[0].outputs is None:
        return of_cell
    return with_outputs[:1]


def _comparable(shown):
    """Return outputs as a recording would hold them, without what numbers them."""
    found = []
    for output in copy.deepcopy(shown):
        with contextlib.suppress(foreign.Refused):
            output = foreign.accepted(output)
        found.append({k: v for k, v in output.items() if k not in ("execution_count", "metadata")})
    return found


def marked(of_cell, name_of):
    """Return the outputs of all panels in a row, each behind its mark; a single one has none."""
    if len(of_cell) == 1 and of_cell[0].outputs is not None:
        return of_cell[0].outputs
    found = []
    for panel in of_cell:
        facts = {"device": panel.device, "label": name_of(panel.device), "note": panel.note}
        found.append(nbformat.v4.new_output("stream", text=MARK + json.dumps(facts)))
        found += panel.outputs or []
    return found


def first_outputs(shown):
    """Return what `marked` was given for the first panel."""
    kept = []
    for number, output in enumerate(shown):
        if output.output_type == "stream" and output.text.startswith(MARK):
            if number:
                break
            continue
        kept.append(output)
    return kept


def arrange(document):
    """Make tabs of the outputs between marks, in a page that has just been parsed."""
    for container in document.findall(nodes.container):
        if container.get("nb_element") == "cell_code_output":
            groups = _groups(container)
            if groups:
                container.children = []
                container += _tabs(groups)


def _groups(container):
    """Return (facts, nodes) for each mark among the outputs of a cell."""
    groups = []
    for child in container.children:
        text = child.astext() if isinstance(child, nodes.literal_block) else ""
        if text.startswith(MARK):
            groups.append((json.loads(text.removeprefix(MARK)), []))
        elif groups:
            groups[-1][1].append(child)
    return groups


def _tabs(groups):
    if len(groups) == 1:
        return note_node(groups[0][0]["note"])
    tab_set = create_component("tab-set", classes=["sd-tab-set", "device-tabs"])
    for facts, children in groups:
        name = nodes.rubric("", facts["label"], classes=["sd-tab-label"])
        name["sync_id"], name["sync_group"] = facts["device"], "device"
        if facts["note"]:
            children = [note_node(facts["note"])]
        elif not children:
            children = [note_node("It printed nothing.")]
        content = create_component("tab-content", classes=["sd-tab-content"], children=children)
        tab_set += create_component("tab-item", classes=["sd-tab-item"], children=[name, content])
    return tab_set


def note_node(text):
    """Return the node of a note that stands where outputs would be."""
    parts = text.replace("’", "‘").split("‘")
    inline = [
        nodes.literal("", part) if n % 2 else nodes.Text(part) for n, part in enumerate(parts)
    ]
    return nodes.paragraph("", "", *inline, classes=["device-note"])


def tell(app, docname, templatename, context, doctree):
    """Give the page its switch, and the notices for devices on which it was not recorded."""
    config = app.config
    context["book_devices"] = list(config.book_devices.items())
    state = app.env.book_pages.get(docname)
    if state is None or not state.home or "body" not in context:
        return
    notices = []
    for device in config.book_devices:
        text = notice(config, docname, device, state)
        if text:
            notices.append(
                f'<p class="device-notice" data-device="{html.escape(device)}" hidden>'
                f"{html.escape(text)}</p>"
            )
    context["body"] = context["body"].replace("</h1>", "</h1>" + "".join(notices), 1)


def notice(config, docname, device, state):
    """Say what a reader who chose a device sees instead of its outputs; None where nothing."""
    if device == state.home:
        return None
    chosen, shown = label(config, device), label(config, state.home)
    if state.only:
        return f"This page is executed on {shown} only."
    recorded = state.states.get(device)
    if recorded is None or recorded.word == "missing":
        return f"Not recorded on {chosen} yet: what you see is from {shown}."
    if recorded.word == "current":
        return None
    return f"The recording on {chosen} is {recorded}."


def setup(app):
    """Register the options and the event."""
    app.add_config_value("book_devices", {"cpu": "CPU"}, "env")
    app.add_config_value("book_recordings", "docs/_recorded", "env")
    app.add_config_value("book_recorded", False, "env")
    app.connect("html-page-context", tell)
