"""Hand the executed notebook of a page to MyST-NB in place of the text it would read."""

import copy
import re
from collections.abc import Iterable

import nbformat
from docutils import nodes
from myst_nb.sphinx_ import Parser

from predicted import covering as predictions

from . import downloads, tabs, tracebacks
from .options import Options
from .source.pages import Page

# The tag of a cell whose measurements the page shows in another form, and what its fold is called.
RAW = "raw"
SHOW_RAW = "Show the raw measurements"
CELLS = re.compile(r"\{(code|raw)-cell\}")
_notebooks: dict[str, nbformat.NotebookNode] = {}
_answers: dict[str, list[int | None]] = {}


def show(
    page: Page,
    panels: Iterable[list[tabs.Panel]],
    answers: list[int | None],
    options: Options,
) -> None:
    """Make the page's notebook the one that is rendered, each cell with its devices' outputs.

    `answers` are the numbers of the right ones to its questions.
    """
    notebook = copy.deepcopy(page.notebook)
    code_cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for number, (cell, of_cell) in enumerate(zip(code_cells, panels, strict=True), 1):
        cell["outputs"] = tabs.marked(of_cell, options)
        for output in cell.outputs:
            if output.output_type == "execute_result":
                output["execution_count"] = number
        cell["execution_count"] = number
        if RAW in (tags := cell.metadata.get("tags", [])):
            cell.metadata["tags"] = [*(tag for tag in tags if tag != RAW), "hide-output"]
            prompts = {"show": SHOW_RAW, "hide": SHOW_RAW.replace("Show", "Hide")}
            cell.metadata["mystnb"] = {f"code_prompt_{n}": text for n, text in prompts.items()}
    # MyST-NB adds 1 where it takes a line over, and docutils 1 more.
    notebook.metadata["source_map"] = [line - 2 for line in notebook.metadata["source_map"]]
    _notebooks[page.docname], _answers[page.docname] = notebook, answers


def forget(docname: str) -> None:
    """Let MyST-NB read the text of a page that has no code."""
    _notebooks.pop(docname, None)


def read_shown(text: str, docname: str) -> nbformat.NotebookNode:
    """Return the notebook that `show` was given; MyST-NB calls this as a custom format."""
    return _notebooks[docname]


class PageParser(Parser):  # type: ignore[misc]
    """MyST-NB's parser, which reads the executed notebook where there is one."""

    def parse(self, inputstring: str, document: nodes.document) -> None:
        """Parse one page."""
        env = document.settings.env
        if env.docname not in _notebooks:
            if env.docname not in env.book_pages:
                super().parse(inputstring, document)
                return
            # The build has refused it and said why; MyST-NB would stumble over its cells again.
            super(Parser, self).parse(CELLS.sub("", inputstring), document)
            predictions.cover(document, None)
            return
        shared = env.mystnb_config
        reader = (f"{__name__}.read_shown", {"docname": env.docname}, False)
        env.mystnb_config = shared.copy(
            custom_formats={".md": reader}, output_folder=str(downloads.rendered(env))
        )
        try:
            super().parse(inputstring, document)
            tabs.make_tabs(document)
            tracebacks.fold(document)
            predictions.cover(document, _answers[env.docname])
            tabs.make_framework_tabs(document, env.app.book.options)
        finally:
            env.mystnb_config = shared
