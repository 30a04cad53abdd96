"""Ids in outputs that a page's author lets others link to."""

import nbformat
from _ext.options import Options
from _ext.records.markup import TEXT, cleaned
from _ext.site import parser
from _ext.site.tabs import Panel
from _ext.source.pages import Cell, Page

OPTIONS = Options(devices={"cpu": "CPU", "gpu": "GPU"}, record_command="record")
RECORDED = cleaned('<p id="row-one">a</p><p id="other">b</p>', TEXT)


def panel(device):
    output = nbformat.v4.new_output("execute_result", data={"text/html": RECORDED})
    return Panel(device, [output])


def shown(metadata, *panels):
    """Return the markup of the only cell's first output that has some."""
    cell = nbformat.v4.new_code_cell("1", metadata=metadata)
    cells = (Cell("key", "1", 1, None, cell),)
    page = Page("a", "", nbformat.v4.new_notebook(cells=[cell]), cells, {})
    page.notebook.metadata["source_map"] = [1]
    parser.show(page, [list(panels)], [], (), OPTIONS)
    outputs = parser.read_shown("", "a").cells[0].outputs
    parser.forget("a")
    return next(o.data["text/html"] for o in outputs if "data" in o)


def test_ids_that_begin_as_the_cell_says_keep_their_names():
    found = shown({"anchors": "row-"}, panel("cpu"))
    assert 'id="row-one"' in found
    assert 'id="other"' not in found


def test_other_cells_keep_the_prefixes_of_their_recordings():
    assert shown({}, panel("cpu")) == RECORDED


def test_an_id_is_not_given_twice_where_devices_are_beside_each_other():
    assert 'id="row-one"' not in shown({"anchors": "row-"}, panel("cpu"), panel("gpu"))
