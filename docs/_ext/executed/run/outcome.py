"""What came of executing a page: outputs, or why it is red."""

import dataclasses

from ..source.pages import Page
from ..store.output_format import PageOutputs


@dataclasses.dataclass(frozen=True)
class Failure:
    """Why a page is red: the line of its file, and what happened there."""

    line: int
    message: str


@dataclasses.dataclass(frozen=True)
class Result:
    """What a page gave: outputs, why it is red, and whether it was executed just now."""

    page: Page
    outputs: PageOutputs
    failures: tuple[Failure, ...] = ()
    fresh: bool = False
