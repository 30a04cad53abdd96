"""Hand the executed notebook of a page to MyST-NB in place of the text it would read."""

import copy

from myst_nb.sphinx_ import Parser

from .outputs import presentable

_notebooks = {}


def show(page):
    """Make the page's notebook, with its outputs fit to be seen, the one that is rendered."""
    notebook = copy.deepcopy(page.notebook)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell["outputs"] = presentable(cell.outputs)
            cell.metadata.pop("expected_error", None)
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
        reader = ("_ext.parser.read_shown", {"docname": env.docname}, False)
        env.mystnb_config = shared.copy(custom_formats={".md": reader})
        try:
            return super().parse(inputstring, document)
        finally:
            env.mystnb_config = shared
