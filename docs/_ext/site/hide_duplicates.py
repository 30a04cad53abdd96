"""Fold what a page shows a second time: the lines of measurements that it draws or tabulates."""

import fnmatch
import re
from collections.abc import Iterable

import nbformat

from ..measurements.schema import Schema, single
from ..records import outputs
from ..records.device_outputs import DeviceResult
from ..source.pages import Page

RAW = "Show the raw measurements"
DRAWN = re.compile(r"^(?:`{3,}|:{3,})\{(?:measurements|measurement-chart)\} (.+)$", re.MULTILINE)
ROW = re.compile(r"^\|.*\|[ ]*$", re.MULTILINE)
NAMED = re.compile(r"([^\s`|@]+)@\w")


def shown_elsewhere(page: Page) -> list[str]:
    """Return the measurements that a page puts into charts and tables, as patterns of names."""
    found: list[str] = []
    for cell in page.notebook.cells:
        if cell.cell_type == "markdown":
            found += [name for names in DRAWN.findall(cell.source) for name in names.split()]
            found += [name for row in ROW.findall(cell.source) for name in NAMED.findall(row)]
    return found


def folded(page: Page, editions: Iterable[DeviceResult], schema: Schema | None) -> set[str]:
    """Return the keys of the cells that print nothing but measurements shown elsewhere."""
    patterns, editions = shown_elsewhere(page), list(editions)
    found = set()
    for cell in page.cells:
        made = [e.outputs.cell(cell.key) for e in editions if e.outputs]
        printed = [one for each in made if each for one in each.outputs]
        if (
            printed
            and cell.prediction is None
            and all(_is_shown(output, patterns, schema) for output in printed)
        ):
            found.add(cell.key)
    return found


def _is_shown(
    output: nbformat.NotebookNode, patterns: Iterable[str], schema: Schema | None
) -> bool:
    record = outputs.record(output, schema)
    if not record or schema is None or schema.problem(record):
        return False
    names = [each["name"] for each in single(record)]
    return all(any(fnmatch.fnmatchcase(name, each) for each in patterns) for name in names)


def fold(cell: nbformat.NotebookNode) -> None:
    """Fold the outputs of a cell behind words that say what they are."""
    cell.metadata["tags"] = [*cell.metadata.get("tags", []), "hide-output"]
    prompts = {"code_prompt_show": RAW, "code_prompt_hide": RAW.replace("Show", "Hide")}
    cell.metadata["mystnb"] = {**prompts, **cell.metadata.get("mystnb", {})}
