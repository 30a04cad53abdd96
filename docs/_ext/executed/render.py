"""Read an executed page into docutils nodes, by MyST-NB's parts, with the outputs of each device.

MyST-NB reads the text of a page that has no code. Of one that has, it gets the notebook and the
panels of its cells as values, see `Book.shown_pages`.
"""

import copy
import html
import pathlib
import re
from collections.abc import Iterable, Sequence
from typing import Any

import nbformat
from docutils import nodes
from myst_nb.sphinx_ import (
    NbMetadataCollector,
    Parser,
    SphinxDocLogger,
    SphinxNbRenderer,
    SyntaxTreeNode,
    create_client,
    create_md_parser,
    create_warning,
    load_renderer,
    merge_file_level,
    notebook_to_tokens,
)

from .book import ShownPage, book_of
from .hooks import Feature
from .nodes import fold, raw
from .options import Options
from .panels import Note, Panel
from .source.pages import Page
from .tabs import tab_set

CELLS = re.compile(r"\{(code|raw)-cell\}")


class PageParser(Parser):  # type: ignore[misc]
    """MyST-NB's parser, which renders the executed notebook where there is one."""

    def parse(self, inputstring: str, document: nodes.document) -> None:
        """Parse one page."""
        env = document.settings.env
        book = book_of(env)
        if shown := book.shown_pages.get(env.docname):
            _render(shown, book.options, document)
        elif env.docname in book.pages:
            # The build has refused it and said why; MyST-NB would stumble over its cells again.
            notebook = pathlib.Path(env.doc2path(env.docname)).suffix == ".ipynb"
            text = f"# {env.docname}" if notebook else CELLS.sub("", inputstring)
            super(Parser, self).parse(text, document)
        else:
            super().parse(inputstring, document)


def _render(shown: ShownPage, options: Options, document: nodes.document) -> None:
    """Render a page as `myst_nb.sphinx_.Parser.parse` does, without a file or an execution."""
    env, notebook = document.settings.env, copy.deepcopy(shown.notebook)
    for number, panels in shown.panels.items():
        # Its client takes what is glued out of them.
        notebook.cells[number]["outputs"] = copy.deepcopy(panels[0].visible)
    # MyST-NB adds 1 where it takes a line over, and docutils 1 more.
    notebook.metadata["source_map"] = [line - 2 for line in notebook.metadata["source_map"]]

    def warn(subtype: Any, message: str) -> None:
        create_warning(document, message, line=1, append_to=document, subtype=subtype)

    md_config = merge_file_level(env.myst_config, notebook.metadata, warn)
    # Where images go that cells gave: a folder of this site alone.
    nb_config = env.mystnb_config.copy(output_folder=str(pathlib.Path(env.doctreedir, "rendered")))
    parser, logger = create_md_parser(md_config, PanelRenderer), SphinxDocLogger(document)
    parser.options.update(document=document, nb_config=nb_config, shown=(shown, options))
    renderer: Any = parser.renderer
    document.attributes["nb_renderer"] = load_renderer(nb_config.render_plugin)(renderer, logger)
    renderer.setup_render(parser.options, {})
    tokens = notebook_to_tokens(notebook, parser, {}, logger)
    with create_client(notebook, document["source"], nb_config, logger, None) as client:
        parser.options["nb_client"] = client
        renderer.render(tokens, parser.options, {})
    document.attributes.pop("nb_renderer")
    for key, (uri, kwargs) in document.attributes.pop("nb_js_files", {}).items():
        NbMetadataCollector.add_js_file(env, env.docname, key, uri, kwargs)


def show(page: Page, panels: Iterable[Sequence[Panel]], features: Iterable[Feature]) -> ShownPage:
    """Return a page as it is shown: its cells numbered, with their folds, and the panels."""
    notebook = copy.deepcopy(page.notebook)
    folded = {tag: name for feature in features for tag, name in feature.folded_outputs.items()}
    places = [n for n, cell in enumerate(notebook.cells) if cell.cell_type == "code"]
    for number, cell in enumerate((notebook.cells[place] for place in places), 1):
        cell["execution_count"] = number
        tags = cell.metadata.get("tags", [])
        for tag in folded.keys() & set(tags):
            tags = cell.metadata["tags"] = [*(t for t in tags if t != tag), "hide-output"]
            prompts = {f"code_prompt_{n}": f"{n.title()} {folded[tag]}" for n in ("show", "hide")}
            cell.metadata["mystnb"] = prompts
    return ShownPage(notebook, dict(zip(places, panels, strict=True)))


class PanelRenderer(SphinxNbRenderer):  # type: ignore[misc]
    """MyST-NB's renderer of cells, for cells that have outputs of several devices."""

    def _get_nb_code_cell_outputs(self, token: SyntaxTreeNode) -> tuple[int, list[Panel]]:
        """Return the number of a cell, and its panels where they show anything."""
        shown, _ = self.md_options["shown"]
        panels = shown.panels[token.meta["index"]]
        count, outputs = self.nb_client.code_cell_outputs(token.meta["index"])
        return count, [] if _is_plain(panels) and not outputs else panels

    def _render_nb_cell_code_outputs(self, token: SyntaxTreeNode, panels: list[Panel]) -> None:
        """Render the outputs of a cell: of one device as they are, of several as tabs."""
        if _is_plain(panels):
            outputs = self.nb_client.code_cell_outputs(token.meta["index"])[1]
            super()._render_nb_cell_code_outputs(token, outputs)
            return
        _, options = self.md_options["shown"]
        tabs, beneath = [], []
        for panel in panels:
            inside = self._panel(token, panel, options)
            if panel.earlier and panel.outputs is None and panel is not panels[0]:
                beneath += _for_readers_of(panel.device, inside)
            else:
                tabs.append((panel.device, options.label(panel.device), inside))
        only = nodes.container("", *tabs[0][2]) if len(tabs) == 1 else tab_set("device", tabs)
        self.current_node.append(nodes.container("", only, *beneath))

    def _panel(self, token: SyntaxTreeNode, panel: Panel, options: Options) -> list[nodes.Node]:
        outputs = self._outputs(token, panel.visible)
        note = panel.note or (None if outputs else Note("It printed nothing."))
        children = [*([note_node(note)] if note else []), *outputs]
        if panel.code:
            label = options.label(panel.device)
            code = nodes.literal_block(panel.code, panel.code, language="python")
            former = self._outputs(token, panel.earlier_outputs)
            summary = f"What {label} printed with other code, {panel.earlier}"
            children += fold(summary, code, *former, class_="earlier")
        return children

    def _outputs(
        self, token: SyntaxTreeNode, outputs: Sequence[nbformat.NotebookNode]
    ) -> list[nodes.Node]:
        """Return the nodes of some outputs."""
        container = nodes.container()
        with self.current_node_context(container):
            super()._render_nb_cell_code_outputs(token, list(outputs))
        return list(container.children)


def _is_plain(panels: Sequence[Panel]) -> bool:
    """Whether there is one panel that needs no note."""
    return len(panels) == 1 and not panels[0].note


def note_node(note: Note) -> nodes.paragraph:
    """Return the node of a note that stands where outputs would be."""
    inline: list[nodes.Node] = [nodes.Text(note.text)]
    if note.command:
        inline += [nodes.literal("", note.command), nodes.Text(note.rest)]
    return nodes.paragraph("", "", *inline, classes=["device-note"])


def _for_readers_of(device: str, inside: list[nodes.Node]) -> list[nodes.Node]:
    """Return nodes that only those see who chose a device."""
    start = f'<div class="device-missing" data-device="{html.escape(device)}" hidden>'
    return [raw(start), *inside, raw("</div>")]
