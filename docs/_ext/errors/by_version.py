"""Below what a cell prints: what other versions of a package print in its place.

A cell asks for it with `:by-version: true`. Outputs are compared line by line.
"""

import dataclasses
import html
import itertools
from collections.abc import Iterable, Mapping

import nbformat

from executed.options import Options
from executed.panels import Panel
from executed.source.pages import Page
from executed.store import outputs
from executed.store.output_format import CellOutputs, PageOutputs

from .options import ErrorOptions
from .version_files import OPTION, Text


def with_versions(
    page: Page,
    panels: Iterable[list[Panel]],
    here: PageOutputs | None,
    versions: Mapping[str, Mapping[str, Text]],
    options: Options,
) -> list[list[Panel]]:
    """Add what `versions` printed to the first panel of each cell that asks for it."""
    page_panels = []
    for cell, cell_panels in zip(page.cells, panels, strict=True):
        own = here.cell(cell.key) if here else None
        if own and not own.standing and cell.node.metadata.get(OPTION):
            texts = {name: page_texts.get(cell.key) for name, page_texts in versions.items()}
            executed = {name: one for name, one in texts.items() if one and not one.missing}
            first, *others = cell_panels
            if executed and first.outputs is not None:
                text = _compared(own, executed, options)
                shown = nbformat.v4.new_output("display_data", {"text/html": text})
                cell_panels = [dataclasses.replace(first, shown=[*first.visible, shown]), *others]
        page_panels.append(cell_panels)
    return page_panels


def _compared(own: CellOutputs, texts: Mapping[str, Text], options: Options) -> str:
    here = outputs.printed(own.outputs).splitlines()
    parts = []
    for lines, group in itertools.groupby(texts, lambda name: texts[name].printed.splitlines()):
        if lines != here:
            other = [line for line in lines if line not in here] or lines
            text = html.escape("\n".join(other))
            parts.append(f"<p>{span(list(group), options)}</p><pre>{text}</pre>")
    if not parts:
        return f'<p class="by-version">The same with {span(list(texts), options)}.</p>'
    summary = f"<summary>Where other versions of {label(options)} print something else</summary>"
    return f'<details class="by-version">{summary}{"".join(parts)}</details>'


def label(options: Options) -> str:
    """Return the readers' name of the package whose versions are recorded."""
    return options.framework_label(options.of(ErrorOptions).versions.package)


def span(editions: list[str], options: Options) -> str:
    """Name versions in a row, such as `JAX 0.4.31 to 0.6.2`, by the names of their recordings."""
    package = options.of(ErrorOptions).versions.package
    first, last = (editions[end].removeprefix(f"{package}-") for end in (0, -1))
    return f"{label(options)} {first}" + (f" to {last}" if last != first else "")
