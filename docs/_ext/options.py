"""All options of a book, in one table: Sphinx reads them from conf.py, and so do the commands."""

import dataclasses
import os
import pathlib
import re
import runpy
from collections.abc import Mapping
from typing import Any, Self

from .frameworks import Framework, registered
from .names import nearest

PREFIX = "book_"


class OptionError(Exception):
    """conf.py sets an option that there is not, or to a value that it cannot have."""


def _option(default: Any, rebuild: str = "", kinds: tuple[type, ...] = ()) -> Any:
    """Declare an option; `rebuild` is "env" where a change means reading every page again."""
    facts = {"rebuild": rebuild, "kinds": kinds}
    if callable(default):
        return dataclasses.field(default_factory=default, metadata=facts)
    return dataclasses.field(default=default, metadata=facts)


def _device() -> str:
    return os.environ.get("BOOK_DEVICE") or "cpu"


@dataclasses.dataclass(frozen=True)
class Options:
    """The options, each called `book_<name>` in conf.py. Folders are relative to that file.

    pages, snippets: folders of the pages and of the modules that pages show.
    cache, recordings, programs: folders of cached outputs, of recordings, of compiled programs.
    device: short name of the device to execute on, such as `cpu`; from BOOK_DEVICE.
    devices: labels of the devices that readers choose between, {short name: label}.
    frameworks: what pages may use, {name: facts}; see `frameworks.Framework`.
    variables: environment variables that pages may read, as patterns such as `JAX_*`.
    recorded: show recordings and execute nothing.
    leave_out: leave out the cells that need a framework which is not installed.
    cell_timeout, page_timeout: limits in seconds.
    output_limit: characters of a cell's output that its page shows.
    measurements: the JSON schema of a measurement; without it no output is one.
    processes: in how many processes a page that measures is executed.
    trial: only try whether pages work: those that measure run beside others, as all pages do.
    trial_prelude: a file of code that is executed in a trial before pages that measure.
    sources: sources that may be quoted, {key: {title, author, url}}.
    targets: devices that programs are compiled for, {short name: facts}; see
        `programs.targets.Target`.
    light: digest of the theme that pages are made light for; without it they load what it has.
    card: the measurements that the picture of the site shows, {measurements: patterns, title}.
    markdown: write each page in Markdown too, and a list of them.
    search: make an index for Pagefind.
    record_command, compile_command: what messages tell people to run.
    versions: the versions of a package on which pages are recorded besides, {package, recorded,
        supported, prelude, recordings, command, earlier}; see `commands.versions`, and
        `site.errors` for the last.

    Three are no matter of conf.py: `root`, the folder of that file; `any_outcome`, which keeps
    what cells come to, be it what they declare or not; and `prelude`, code for each kernel before
    the first cell.
    """

    pages: str = _option("docs")
    snippets: str = _option("snippets", "env")
    cache: str = _option("_cache")
    recordings: str = _option("docs/_recorded", "env")
    programs: str = _option("docs/_recorded/compiled", "env")
    device: str = _option(_device, "env")
    devices: Mapping[str, str] = _option(lambda: {"cpu": "CPU"}, "env")
    frameworks: Mapping[str, Any] = _option(dict, "env")
    variables: tuple[str, ...] = _option((), "", (tuple, list))
    recorded: bool = _option(False, "env")
    leave_out: bool = _option(False, "env")
    cell_timeout: float = _option(120.0, "", (int, float))
    page_timeout: float = _option(300.0, "", (int, float))
    output_limit: int = _option(100_000, "env")
    measurements: str = _option("", "env")
    processes: int = _option(1)
    trial: bool = _option(False, "env")
    trial_prelude: str = _option("", "env")
    sources: Mapping[str, Mapping[str, str]] = _option(dict, "env")
    targets: Mapping[str, Any] = _option(dict, "env")
    light: str = _option("", "html")
    card: Mapping[str, str] = _option(dict, "html")
    markdown: bool = _option(False, "html")
    search: bool = _option(False)
    record_command: str = _option("python -m _ext.commands.record", "env")
    compile_command: str = _option("python -m _ext.commands.compile", "env")
    versions: Mapping[str, Any] = _option(dict, "env")
    root: pathlib.Path = dataclasses.field(default=pathlib.Path())
    any_outcome: bool = dataclasses.field(default=False)
    prelude: str = dataclasses.field(default="")

    @classmethod
    def table(cls) -> list[dataclasses.Field[Any]]:
        """Return the options that conf.py may set."""
        return [field for field in dataclasses.fields(cls) if field.metadata]

    @classmethod
    def from_values(cls, values: Mapping[str, Any], root: str | os.PathLike[str]) -> Self:
        """Return the options among `values`, a mapping such as the names that conf.py defines."""
        known = {f.name: values[PREFIX + f.name] for f in cls.table() if PREFIX + f.name in values}
        return cls(**known, root=pathlib.Path(root))

    @classmethod
    def from_file(cls, conf: str | os.PathLike[str] = "conf.py") -> Self:
        """Return the options that a conf.py sets, for commands; leaves with what is wrong there."""
        path = pathlib.Path(conf)
        values = runpy.run_path(str(path)) if path.exists() else {}
        try:
            check(values, path)
        except OptionError as error:
            raise SystemExit(str(error)) from None
        return cls.from_values(values, path.parent)

    def before(self, benchmark: bool) -> str:
        """Return the code that is executed before a page, which measures if `benchmark`."""
        if not (self.trial and benchmark and self.trial_prelude):
            return self.prelude
        return f"{self.prelude}\n{self.folder('trial_prelude').read_text('utf8')}"

    def folder(self, name: str) -> pathlib.Path:
        """Return the path of one of the folders, such as `snippets`."""
        return self.root / getattr(self, name)

    @property
    def registry(self) -> tuple[Framework, ...]:
        """The frameworks, in the order of conf.py."""
        return registered(self.frameworks)

    def label(self, device: str) -> str:
        """Return the name of a device as readers see it."""
        return self.devices.get(device, device)


def check(values: Mapping[str, Any], conf: pathlib.Path) -> None:
    """Compare the options among `values` with what they may be; raises OptionError."""
    known = [PREFIX + field.name for field in Options.table()]
    for name in values:
        if name.startswith(PREFIX) and name not in known:
            raise OptionError(
                f"{_place(name, conf)}there is no option {name}{nearest(name, known)}"
            )


def _place(name: str, conf: pathlib.Path) -> str:
    """Return where conf.py sets an option last, as `conf.py:12: `."""
    lines = conf.read_text("utf8").splitlines() if conf.exists() else []
    found = [n for n, text in enumerate(lines, 1) if re.match(rf"\s*{name}\b", text)]
    return f"{conf}:{found[-1]}: " if found else f"{conf}: "
