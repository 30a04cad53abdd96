"""Draw the pictures of cells that ask for one with `:picture:`, over what each device printed."""

import copy
import dataclasses
import html
from collections.abc import Sequence

import nbformat

from executed.panels import Panel
from executed.run.page_run import Failure
from executed.source.pages import Cell, Page

from .reading import NoPicture, picture


def drawn(
    page: Page, panels: Sequence[list[Panel]], failed: bool
) -> tuple[list[list[Panel]], tuple[Failure, ...]]:
    """Return the panels of a page with pictures in place of data, and what cannot be drawn.

    Of a page that `failed`, the cells that gave nothing are not to blame.
    """
    page_panels, failures = [], []
    for cell, cell_panels in zip(page.cells, panels, strict=True):
        if "picture" in cell.node.metadata:
            try:
                cell_panels = [
                    # What other code gave may have been meant for another picture, or for none.
                    panel if panel.earlier else _drawn(cell, panel, failed)
                    for panel in cell_panels
                ]
            except NoPicture as problem:
                failures.append(Failure(cell.line, str(problem)))
        page_panels.append(cell_panels)
    return page_panels, tuple(failures)


def _drawn(cell: Cell, panel: Panel, failed: bool) -> Panel:
    if panel.outputs is None:
        return panel
    kind, caption = (str(cell.node.metadata.get(name, "")) for name in ("picture", "caption"))
    if not caption:
        raise NoPicture(f"the picture '{kind}' needs ':caption:', one sentence on what it shows")
    shown = copy.deepcopy(panel.visible)
    data = next((o for o in reversed(shown) if o.output_type == "execute_result"), None)
    if data is None and failed:
        return panel
    printed = data["data"].get("text/plain") if data else None
    html_of = _figure(kind, picture(kind, printed), caption, printed or "")
    content = {"text/plain": printed, "text/html": html_of}
    output = nbformat.v4.new_output("display_data", content)
    return dataclasses.replace(panel, shown=[output if o is data else o for o in shown])


def _figure(kind: str, drawing: str, caption: str, printed: str) -> str:
    """Return a picture with its caption, and the data folded beneath."""
    return (
        f'<figure class="picture picture-{html.escape(kind)}">{drawing}'
        f"<figcaption>{html.escape(caption)}"
        "<details><summary>The data of this picture</summary>"
        f"<pre>{html.escape(printed)}</pre></details></figcaption></figure>"
    )
