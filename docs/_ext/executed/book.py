"""What the build knows of a page that is executed, from one build to the next."""

import dataclasses
from typing import Any

from sphinx.application import Sphinx
from sphinx.config import Config

from errors.outcomes import DeclaredError
from errors.version_files import Versions
from measured import published as measurements

from . import files
from .options import PREFIX, Options
from .run.schedule import Failure
from .source.pages import Page
from .store.output_format import RunMetadata
from .store.recordings import Recordings
from .store.states import State


@dataclasses.dataclass
class PageState:
    """What came of a page: on what it ran, what it measured, why it is red.

    `modules`, `packages` and `environment` are what its outputs depend on besides its own text, and
    `benchmark` says whether it measures.
    `home` is the device whose outputs come first, `only` whether the page is executed on no
    other. `recorded` are the facts of its recordings, `files` the digests of their files.
    `outdated` are the name, framework and device of each measurement of which the code is another
    today. `errors` are those that its cells declare, with what came.
    `incomplete` says whether some cell was executed nowhere.
    `brings` are the modules that it imports from beside it, and `command` is the one by which
    alone it is executed.
    """

    modules: dict[str, str] = dataclasses.field(default_factory=dict)
    packages: tuple[str, ...] = ()
    benchmark: bool = False
    environment: str = ""
    home: str = ""
    only: bool = False
    facts: RunMetadata | None = None
    missing: dict[str, str] = dataclasses.field(default_factory=dict)
    records: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    outdated: list[tuple[str, str, str]] = dataclasses.field(default_factory=list)
    failures: tuple[Failure, ...] = ()
    fresh: bool = False
    states: dict[str, State] = dataclasses.field(default_factory=dict)
    recorded: dict[str, RunMetadata] = dataclasses.field(default_factory=dict)
    files: dict[str, str] = dataclasses.field(default_factory=dict)
    errors: tuple[DeclaredError, ...] = ()
    incomplete: bool = False
    brings: tuple[str, ...] = ()
    command: str = ""


def values(config: Config) -> dict[str, Any]:
    """Return the values of the options as Sphinx has them, those of its command line included."""
    names = [PREFIX + field.name for field in Options.table()]
    return {name: config[name] for name in names if name in config}


class Book:
    """The book that is built: its options, its recordings, and its pages' states."""

    def __init__(self, app: Sphinx) -> None:
        """Read the options, and find the devices of the site."""
        self.options = Options.from_values(values(app.config), app.confdir)
        self.schema = measurements.schema(app.config)
        self.recordings = Recordings(self.options.folder("recordings"), self.schema)
        self.versions = Versions(self.options)
        # A new recording of a version is rare, and has all pages read again.
        self.version_digests = {
            name: files.digest(self.versions.path(name)) for name in self.versions.names
        }
        found = self.recordings.devices()
        home = self.options.device
        if self.options.recorded:
            home = next((d for d in [home, *self.options.devices] if d in found), home)
        self.home = home
        self.devices = list(dict.fromkeys([home, *self.options.devices, *found]))
        # What readers can choose between: where this site is built, and what was recorded.
        self.shown = [device for device in self.devices if device == home or device in found]

    def executes(self, page: Page) -> bool:
        """Say whether a page is executed here; if not, it is shown from recordings.

        A page for the CPU is executed on the CPU of every machine.
        """
        here = page.device in (None, "cpu", self.options.device)
        return here and not self.options.recorded and not page.recorded

    def recording_digests(self, docname: str) -> dict[str, str]:
        """Return the digests of what was recorded of a page, by device and by version."""
        paths = {device: self.recordings.path(device, docname) for device in self.devices}
        of_devices = {device: files.digest(path) for device, path in paths.items()}
        return {name: of for name, of in {**of_devices, **self.version_digests}.items() if of}
