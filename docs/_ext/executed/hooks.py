"""What an extension adds to the core: an output kind, what it concludes of a page, what it shows.

Besides these three hooks a feature says small things of itself: which options and tags of cells are
its own (`cell_options`, `folded_outputs`), how its part of a page becomes Markdown and a notebook
(`not_in_markdown`, `once_in_tabs`, `prose`), which files of its own pages depend on (`files`), how
it records pages (`add_arguments`, `records`, `record`), and what else it has recorded (`listed`).

An extension beside the core may have two modules that the core looks for: `feature`, whose
`FEATURE` is its class of Feature, and `options`, whose `OPTIONS` is a table of its own options. The
core calls the features in the order of conf.py.
"""

from __future__ import annotations

import argparse
import dataclasses
import pathlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .options import declared
from .store.output_kinds import OutputKind

if TYPE_CHECKING:
    from .options import Options
    from .panels import Panel
    from .run.outcome import Failure
    from .run.recorder import Recorder
    from .source.pages import Page
    from .store.device_outputs import DeviceResult


class FeatureError(Exception):
    """An extension cannot work with the options of conf.py."""


@dataclasses.dataclass(frozen=True)
class Conclusion:
    """What a feature concludes of a page, kept with it from one build to the next.

    data: what the feature wants to know of the page later, plain enough to be pickled.
    failures: why the page is red.
    remarks: what the page on recordings says of a device besides, such as "10 processes".
    processors: what the feature calls the processor of a device.
    """

    data: Any = None
    failures: tuple[Failure, ...] = ()
    remarks: Mapping[str, str] = dataclasses.field(default_factory=dict)
    processors: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class PageResults:
    """A page, its results on each device, the build's device first, and whether it failed."""

    page: Page
    results: Sequence[DeviceResult]
    failed: bool


class Feature:
    """What one extension adds. Each of its parts may be left as it is here.

    name: under which its conclusions are kept.
    kind: an output kind of its own.
    cell_options: options that code cells have because of it.
    folded_outputs: tags of cells whose outputs are folded, {tag: what the fold calls them}.
    not_in_markdown: CSS selectors of what it shows on pages, and not in their Markdown.
    once_in_tabs: CSS selectors of what Markdown has once where all tabs have the same.
    """

    name = ""
    kind: OutputKind | None = None
    cell_options: tuple[str, ...] = ()
    folded_outputs: Mapping[str, str] = {}
    not_in_markdown: tuple[str, ...] = ()
    once_in_tabs: tuple[str, ...] = ()

    def __init__(self, options: Options) -> None:
        """Take the options of the book; raises FeatureError."""
        self.options = options
        # Those of all features, once all are there.
        self.kinds: tuple[OutputKind, ...] = ()

    def files(self) -> dict[str, pathlib.Path]:
        """Return files, by names of their own, which make all pages be read again if changed."""
        return {}

    def conclude(self, taken: PageResults) -> Conclusion:
        """Conclude what there is to conclude of a page."""
        return Conclusion()

    def show(
        self, taken: PageResults, panels: Sequence[list[Panel]]
    ) -> tuple[Sequence[list[Panel]], tuple[Failure, ...]]:
        """Return the panels of each cell with what this adds to them, and what it could not add."""
        return panels, ()

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add what the command that records may be told of pages that this `records`."""

    def records(self, page: Page) -> bool:
        """Say whether this records a page in its own way."""
        return False

    def record(
        self, pages: Sequence[Page], recorder: Recorder, arguments: argparse.Namespace
    ) -> None:
        """Record pages, with the arguments of the command."""

    def prose(self, cell: Any) -> str:
        """Return what a notebook says before a cell, in HTML, given its node of selectolax."""
        return ""

    def listed(self, pages: Sequence[Page]) -> dict[str, str]:
        """Return what else is recorded, by its name, and how it stands: 'current', or why not."""
        return {}


def features(options: Options) -> tuple[Feature, ...]:
    """Return the features of the extensions that conf.py lists; raises FeatureError."""
    loaded = tuple(feature(options) for feature in declared(options.extensions, "feature"))
    for feature in loaded:
        feature.kinds = kinds(loaded)
    return loaded


def kinds(loaded: Sequence[Feature]) -> tuple[OutputKind, ...]:
    """Return the output kinds of features."""
    return tuple(feature.kind for feature in loaded if feature.kind is not None)
