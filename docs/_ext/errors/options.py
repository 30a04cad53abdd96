"""The options of errors and of other versions."""

import dataclasses

from executed.options import Table, option


@dataclasses.dataclass(frozen=True)
class OtherVersions:
    """The versions of a package on which pages are recorded besides; see `record_versions`.

    recorded: all of them, the oldest first; supported: those on which every page must go well.
    without: patterns of pages that need more than the package.
    prelude: a file of code that is executed first on versions that are not supported.
    recordings: the folder of what was recorded. command: what messages tell people to run.
    earlier: a file with what versions said that are not recorded; see `listing`.
    """

    package: str
    recorded: tuple[str, ...]
    supported: tuple[str, ...]
    prelude: str
    recordings: str
    command: str
    without: tuple[str, ...] = ()
    earlier: str = ""


NO_VERSIONS = OtherVersions("", (), (), "", "", "")


@dataclasses.dataclass(frozen=True)
class ErrorOptions(Table):
    """The options of this extension, each called `book_<name>` in conf.py.

    versions: the versions of a package on which pages are recorded besides; see `OtherVersions`.
    """

    versions: OtherVersions = option(NO_VERSIONS, "env", pages=lambda value: value.without)


OPTIONS = ErrorOptions
