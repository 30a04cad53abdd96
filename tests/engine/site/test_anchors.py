"""Ids in outputs that a page's author lets others link to."""

import re

import nbformat
from _ext.options import Options
from _ext.records.markup import cleaned
from _ext.site import parser
from _ext.site.tabs import Panel
from _ext.source.pages import Cell, Page

OPTIONS = Options(devices={"cpu": "CPU", "gpu": "GPU"}, record_command="record")
RECORDED = cleaned('<p id="row-one">a</p><p id="other">b</p>')


def panel(device, markup=RECORDED):
    output = nbformat.v4.new_output("execute_result", data={"text/html": markup})
    return Panel(device, [output])


def all_shown(metadata, *of_cells):
    """Return the markup of all outputs that have some."""
    nodes = [nbformat.v4.new_code_cell("1", metadata=metadata) for _ in of_cells]
    cells = tuple(Cell("key", "1", 1, None, node) for node in nodes)
    page = Page("a", nbformat.v4.new_notebook(cells=nodes), cells, {})
    page.notebook.metadata["source_map"] = [1] * len(nodes)
    parser.show(page, list(map(list, of_cells)), [], (), OPTIONS)
    notebook = parser.read_shown("", "a")
    parser.forget("a")
    outputs = [output for cell in notebook.cells for output in cell.outputs]
    return [output.data["text/html"] for output in outputs if "data" in output]


def shown(metadata, *panels):
    """Return the markup of the only cell's first output that has some."""
    return all_shown(metadata, panels)[0]


def test_ids_that_begin_as_the_cell_says_keep_their_names():
    found = shown({"anchors": "row-"}, panel("cpu"))
    assert 'id="row-one"' in found
    assert 'id="other"' not in found


def test_other_cells_keep_the_prefixes_of_their_recordings():
    prefix = re.match('<p id="(out-[^-]+-)row-one">', RECORDED)[1]
    assert shown({}, panel("cpu")) == RECORDED.replace(prefix, f"{prefix}1-1-")


def test_equal_outputs_have_ids_of_their_own():
    found = all_shown({}, [panel("cpu"), panel("gpu")], [panel("cpu")])
    ids = [name for text in found for name in re.findall(r' id="([^"]+)"', text)]
    assert len(ids) == len(set(ids)) == 6


def test_an_id_is_not_given_twice_where_devices_are_beside_each_other():
    assert 'id="row-one"' not in shown({"anchors": "row-"}, panel("cpu"), panel("gpu"))
