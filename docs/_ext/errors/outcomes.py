"""What declared errors came to: where the site is built, and with other versions of a package."""

import dataclasses
from collections.abc import Mapping

from executed.source.pages import Cell, Page
from executed.store.output_format import PageOutputs

from .version_files import Text, text_of

# What is raised where a version lacks a name that a cell uses before it comes to its error.
MISSING_NAMES = {"AttributeError", "ImportError", "ModuleNotFoundError", "NameError"}


@dataclasses.dataclass(frozen=True)
class DeclaredError:
    """An error that a cell of a page must raise: its type, and a fragment of its message.

    `here` is what came where the site is built, None where nothing is known. `versions` maps
    those versions with which the cell was executed to what came there, in their order. `code` is
    that of the cell, with the snippets that it shows.
    """

    page: str
    line: int
    type: str
    fragment: str
    here: Text | None
    versions: Mapping[str, Text]
    code: str


def declared_errors(
    page: Page, here: PageOutputs | None, versions: Mapping[str, Mapping[str, Text]]
) -> tuple[DeclaredError, ...]:
    """Return the errors that the cells of a page declare by type, with what they came to."""
    errors = []
    for cell in page.cells:
        if cell.expected is None or not cell.expected.type:
            continue
        kind = cell.expected.type.rpartition(".")[2]
        texts = {name: page_texts.get(cell.key) for name, page_texts in versions.items()}
        errors.append(
            DeclaredError(
                page=page.docname,
                line=cell.line,
                type=kind,
                fragment=cell.expected.fragment,
                here=_outcome(cell, here),
                versions={
                    name: text
                    for name, text in texts.items()
                    if text and not text.missing and text.type not in MISSING_NAMES - {kind}
                },
                code=cell.source,
            )
        )
    return tuple(errors)


def _outcome(cell: Cell, outputs: PageOutputs | None) -> Text | None:
    cell_outputs = outputs.cell(cell.key) if outputs else None
    if cell_outputs is None or cell_outputs.missing or cell_outputs.standing:
        return None
    return text_of("", cell, cell_outputs)
