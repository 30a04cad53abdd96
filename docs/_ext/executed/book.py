"""The book that is built: its options and features, and what is known of its pages."""

import dataclasses
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

import nbformat
from sphinx.environment import BuildEnvironment

from . import files
from .hooks import Conclusion, Feature, kinds
from .options import Options
from .panels import Panel
from .run.outcome import Failure
from .source.pages import Page
from .source.snippets import Library
from .store.output_format import RunMetadata
from .store.recordings import Recordings
from .store.states import State

Made = TypeVar("Made")


@dataclasses.dataclass(frozen=True)
class Inputs:
    """What a page was made from: all that decides whether it is read again.

    modules: the snippet modules that it reaches, with their digests.
    packages, environment: what its outputs depend on besides, where it was executed.
    device: the device whose outputs come first; benchmark: whether the page measures.
    files: the digests of its recordings, and of files of features.
    named_files: the digests of the files in its own folder that its code names.
    """

    modules: Mapping[str, str] = dataclasses.field(default_factory=dict)
    packages: tuple[str, ...] = ()
    environment: str = ""
    device: str = ""
    benchmark: bool = False
    files: Mapping[str, str] = dataclasses.field(default_factory=dict)
    named_files: Mapping[pathlib.Path, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What came of a page: all that pages ask.

    facts: those of its run.
    failures: why it is red; incomplete: whether some cell was executed nowhere.
    states: how its recordings stand; recorded: the facts of those that can be read.
    lent: whether some of what it shows of its own device was recorded.
    only: whether it is executed on no other device; command: the one by which alone it is.
    brings: the modules that it imports from beside it.
    conclusions: those of the features, by their names.
    """

    facts: RunMetadata | None = None
    failures: tuple[Failure, ...] = ()
    incomplete: bool = False
    states: Mapping[str, State] = dataclasses.field(default_factory=dict)
    recorded: Mapping[str, RunMetadata] = dataclasses.field(default_factory=dict)
    lent: bool = False
    only: bool = False
    command: str = ""
    brings: tuple[str, ...] = ()
    conclusions: Mapping[str, Conclusion] = dataclasses.field(default_factory=dict)

    def concluded(self, feature: str) -> Any:
        """Return what a feature concluded of the page; None where it concluded nothing."""
        conclusion = self.conclusions.get(feature)
        return conclusion.data if conclusion else None


@dataclasses.dataclass(frozen=True)
class BuiltPage:
    """A page with code as the last build left it."""

    inputs: Inputs
    outcome: Outcome


@dataclasses.dataclass(frozen=True)
class ShownPage:
    """A page that is about to be read: its notebook, and the panels by the numbers of cells."""

    notebook: nbformat.NotebookNode
    panels: Mapping[int, Sequence[Panel]]


class Book:
    """One build of a book; of the last one it takes over what is known of the pages.

    home: the device whose outputs come first. devices: all that there may be. shown: those
    between which readers choose; shown_before is what the last build showed. texts: the digests of
    the files of all pages as they were read.
    """

    def __init__(
        self,
        options: Options,
        features: Sequence[Feature],
        relative_uri: Callable[[str, str], str],
        former: "Book | None" = None,
    ) -> None:
        """Take the options and the features, and find the devices of the site.

        `relative_uri` returns the address of a page as another links to it.
        """
        self.options, self.features, self.relative_uri = options, tuple(features), relative_uri
        self.library = Library.of(options)
        self.recordings = Recordings(options.folder("recordings"), kinds(features))
        recorded = self.recordings.devices()
        home = options.device
        if options.recorded:
            home = next((d for d in [home, *options.devices] if d in recorded), home)
        self.home = home
        self.devices = list(dict.fromkeys([home, *options.devices, *recorded]))
        self.shown = [device for device in self.devices if device == home or device in recorded]
        self.pages: dict[str, BuiltPage] = former.pages if former else {}
        self.texts: dict[str, str] = former.texts if former else {}
        self.shown_before: list[str] = former.shown_before if former else []
        self.shown_pages: dict[str, ShownPage] = {}
        # The pages that were executed in this build.
        self.fresh: set[str] = set()
        # Whether any page was read or is gone.
        self.changed = False
        self._failed_before = any(page.outcome.failures for page in self.pages.values())
        self._before = {feature.name: self.concluded(feature.name) for feature in features}
        paths = {name: path for feature in features for name, path in feature.files().items()}
        self._files = {name: files.digest(path) for name, path in paths.items()}
        self._made: dict[Callable[[Book], Any], Any] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Return what the next build takes over."""
        return {name: getattr(self, name) for name in ("pages", "texts", "shown_before")}

    @property
    def partial(self) -> bool:
        """Whether some page failed, or has a cell that was executed nowhere."""
        outcomes = (page.outcome for page in self.pages.values())
        return any(outcome.failures or outcome.incomplete for outcome in outcomes)

    def concluded(self, feature: str) -> dict[str, Any]:
        """Return what a feature concluded of the pages that have not failed, by their names."""
        conclusions = {}
        for docname in sorted(self.pages):
            outcome = self.pages[docname].outcome
            if not outcome.failures and (data := outcome.concluded(feature)) is not None:
                conclusions[docname] = data
        return conclusions

    def concluded_otherwise(self) -> list[str]:
        """Return the features that conclude something else than in the last build.

        All do once the last page is mended: what is missing is excused as long as one fails.
        """
        failing = any(page.outcome.failures for page in self.pages.values())
        mended = self._failed_before and not failing
        return [name for name, was in self._before.items() if mended or self.concluded(name) != was]

    def once(self, make: Callable[["Book"], Made]) -> Made:
        """Return what a function makes of the book whose pages are all known; it is called once."""
        if make not in self._made:
            self._made[make] = make(self)
        return cast(Made, self._made[make])

    def executes(self, page: Page) -> bool:
        """Say whether a page is executed here; if not, it is shown from recordings.

        A page for the CPU is executed on the CPU of every machine.
        """
        here = page.device in (None, "cpu", self.options.device)
        return here and not self.options.recorded and not page.record_command

    def digests(self, docname: str) -> dict[str, str]:
        """Return the digests of what was recorded of a page, and of files of features."""
        paths = {device: self.recordings.path(device, docname) for device in self.devices}
        recorded = {device: files.digest(path) for device, path in paths.items()}
        return {name: digest for name, digest in {**recorded, **self._files}.items() if digest}


def book_of(env: BuildEnvironment) -> Book:
    """Return the book of a build."""
    return cast(Any, env).book  # type: ignore[no-any-return]
