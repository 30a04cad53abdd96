"""Hand the executed notebook of a page to MyST-NB in place of the text it would read."""

import copy

from myst_nb.sphinx_ import Parser

from . import tabs as devices

_notebooks = {}


def show(page, panels, name_of):
    """Make the page's notebook the one that is rendered, each cell with its devices' outputs."""
    notebook = copy.deepcopy(page.notebook)
    code_cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for cell, of_cell in zip(code_cells, panels, strict=True):
        cell["outputs"] = devices.marked(of_cell, name_of)
        cell.metadata.pop("expected_error", None)
        cell.metadata.pop("skipped", None)
    # MyST-NB adds 1 where it takes a line over, and docutils 1 more.
    notebook.metadata["source_map"] = [line - 2 for line in notebook.metadata["source_map"]]
    _notebooks[page.docname] = notebook


def read_shown(text, docname):
    """Return the notebook that `show` was given; MyST-NB calls this as a custom format."""
    return _notebooks[docname]


class PageParser(Parser):
    """MyST-NB's parser, which reads the executed notebook where there is one."""

    def parse(self, inputstring, document):
        """Parse one page."""
        env = document.settings.env
        if env.docname not in _notebooks:
            return super().parse(inputstring, document)
        shared = env.mystnb_config
        reader = ("_ext.site.parser.read_shown", {"docname": env.docname}, False)
        env.mystnb_config = shared.copy(custom_formats={".md": reader})
        try:
            super().parse(inputstring, document)
            devices.arrange(document)
        finally:
            env.mystnb_config = shared
