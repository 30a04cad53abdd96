"""The options of measurements."""

import dataclasses
from collections.abc import Mapping

from drawing.peaks import Peaks
from executed.options import Table, option


@dataclasses.dataclass(frozen=True)
class Source:
    """A source that pages quote."""

    title: str
    author: str
    url: str


@dataclasses.dataclass(frozen=True)
class MeasuredOptions(Table):
    """The options of this extension, each called `book_<name>` in conf.py.

    measurements: the JSON schema of a measurement, a file; without it no output is one.
    sources: sources that may be quoted, {key: {title, author, url}}.
    peaks: what is published of devices, {what frameworks call it: peaks}; see `Peaks`.
    machines: a folder of what was measured on other machines; see `machines`.
    releases: a folder of what was measured with several versions; see `releases`.
    """

    measurements: str = option("", "env")
    machines: str = option("", "env")
    releases: str = option("", "env")
    sources: Mapping[str, Source] = option(dict, "env")
    peaks: Mapping[str, Peaks] = option(dict, "env")


OPTIONS = MeasuredOptions
