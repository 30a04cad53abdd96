"""Draw the pictures of cells that ask for one with `:picture:`, over what each device printed."""

import copy
import dataclasses
import html
from collections.abc import Sequence
from typing import Any

import nbformat

from executed.panels import Panel
from executed.run.outcome import Failure
from executed.source.pages import Cell, Page

from .reading import TIMELINE, NoPicture, last_moment, picture


def drawn(
    page: Page, panels: Sequence[list[Panel]], failed: bool
) -> tuple[list[list[Panel]], tuple[Failure, ...]]:
    """Return the panels of a page with pictures in place of data, and what cannot be drawn.

    Of a page that `failed`, the cells that gave nothing are not to blame.
    """
    page_panels, failures = [], []
    lasts: dict[str, float] = {}
    for cell, cell_panels in zip(page.cells, panels, strict=True):
        if cell.node.metadata.get("picture") == TIMELINE:
            for panel in filter(lambda panel: panel.outputs and not panel.earlier, cell_panels):
                end = last_moment(_printed(panel)[1])
                lasts[panel.device] = max(lasts.get(panel.device, 0), end)
    for cell, cell_panels in zip(page.cells, panels, strict=True):
        if "picture" in cell.node.metadata:
            try:
                cell_panels = [
                    # What other code gave may have been meant for another picture, or for none.
                    panel
                    if panel.earlier
                    else _drawn(cell, panel, failed, lasts.get(panel.device, 0))
                    for panel in cell_panels
                ]
            except NoPicture as problem:
                failures.append(Failure(cell.line, str(problem)))
        page_panels.append(cell_panels)
    return page_panels, tuple(failures)


def _printed(panel: Panel) -> tuple[Any, str | None]:
    """Return the output that holds the data of a panel, and their text."""
    results = (o for o in reversed(panel.visible) if o.output_type == "execute_result")
    data = next(results, None)
    return data, data["data"].get("text/plain") if data else None


def _drawn(cell: Cell, panel: Panel, failed: bool, last: float) -> Panel:
    if panel.outputs is None:
        return panel
    kind, caption = (str(cell.node.metadata.get(name, "")) for name in ("picture", "caption"))
    if not caption:
        raise NoPicture(f"the picture '{kind}' needs ':caption:', one sentence on what it shows")
    data, printed = _printed(panel)
    if data is None and failed:
        return panel
    html_of = _figure(kind, picture(kind, printed, last), caption, printed or "")
    content = {"text/plain": printed, "text/html": html_of}
    output = nbformat.v4.new_output("display_data", content)
    shown = [output if o is data else copy.deepcopy(o) for o in panel.visible]
    return dataclasses.replace(panel, shown=shown)


def _figure(kind: str, drawing: str, caption: str, printed: str) -> str:
    """Return a picture with its caption, and the data folded beneath."""
    return (
        f'<figure class="picture picture-{html.escape(kind)}">{drawing}'
        f"<figcaption>{html.escape(caption)}"
        "<details><summary>The data of this picture</summary>"
        f"<pre>{html.escape(printed)}</pre></details></figcaption></figure>"
    )
