"""All options of a book, in one table: Sphinx reads them from conf.py, and so do the commands."""

import dataclasses
import math
import os
import pathlib
import re
import runpy
from collections.abc import Mapping
from typing import Annotated, Any, Self

from .frameworks import Colour, Framework
from .names import nearest
from .typed_json import LEAST_1, Mismatch, Rule, typed

PREFIX = "book_"


class OptionError(Exception):
    """conf.py sets an option that there is not, or to a value that it cannot have."""


Count = Annotated[int, LEAST_1]
Seconds = Annotated[float, Rule(lambda value: 0 < value < math.inf, "a finite number, more than 0")]


@dataclasses.dataclass(frozen=True)
class Source:
    """A source that pages quote."""

    title: str
    author: str
    url: str


@dataclasses.dataclass(frozen=True)
class Target:
    """A device that programs are compiled for.

    platform: what JAX calls its kind: `cpu`, `cuda` or `tpu`.
    label: what readers call it; by default its short name.
    topology: JAX's name for a square of them, such as `v5e:{side}x{side}`.
    figures: a file with the figures of a GPU, a GpuTargetConfigProto as text.
    chips: on how many of them a step for many devices is compiled.
    packages: the distributions whose versions a record names.
    environment: variables that the compiler must find when it starts.
    """

    platform: str
    label: str = ""
    topology: str = ""
    figures: str = ""
    chips: tuple[Count, ...] = ()
    packages: tuple[str, ...] = ()
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class OtherVersions:
    """The versions of a package on which pages are recorded besides; see `commands.versions`.

    recorded: all of them, the oldest first; supported: those on which every page must go well.
    without: patterns of pages that need more than the package.
    prelude: a file of code that is executed first on versions that are not supported.
    recordings: the folder of what was recorded. command: what messages tell people to run.
    earlier: a file with what versions said that are not recorded; see `site.errors`.
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


def _option(default: Any, rebuild: str = "") -> Any:
    """Declare an option; `rebuild` is "env" where a change means reading every page again."""
    facts = {"rebuild": rebuild}
    if callable(default):
        return dataclasses.field(default_factory=default, metadata=facts)
    return dataclasses.field(default=default, metadata=facts)


def _device() -> str:
    return os.environ.get("BOOK_DEVICE") or "cpu"


@dataclasses.dataclass(frozen=True)
class Options:
    """The options, each called `book_<name>` in conf.py. Folders are relative to that file.

    pages, snippets: folders of the pages and of the modules that pages show. What lies below the
        pages in a folder whose name starts with `_` is no page.
    modules: modules of `snippets` that pages import from a file beside them, in place of having
        their code in cells, {chapter.topic: name to import}.
    cache, recordings, programs: folders of cached outputs, of recordings, of compiled programs.
    device: short name of the device to execute on, such as `cpu`; from BOOK_DEVICE.
    devices: labels of the devices that readers choose between, {short name: label}.
    frameworks: what pages may use, {name: facts}; see `frameworks.Framework`.
    variables: environment variables that pages may read, as patterns such as `JAX_*`.
    recorded: show recordings and execute nothing.
    leave_out: leave out the cells that need a framework which is not installed.
    cell_timeout, page_timeout: limits in seconds, of a cell in whole ones.
    output_limit: characters of a cell's output that its page shows.
    measurements: the JSON schema of a measurement; without it no output is one.
    preview: measure with few samples, for a first look; nothing of it is recorded.
    preview_prelude: a file of code that is executed in a preview before each page.
    sources: sources that may be quoted, {key: {title, author, url}}.
    targets: devices that programs are compiled for, {short name: facts}; see `Target`.
    light: whether pages of sphinx-book-theme load only what they use of it.
    card: the picture that goes with a link to a page, as a path in the site; 1200 by 630 pixels.
    markdown: write each page in Markdown too, and a list of them.
    skill: patterns of pages that make an Agent Skill, with their Markdown; see `site.skill`.
    search: make an index for Pagefind.
    notebooks: where on GitHub the notebooks of the site lie, such as
        `https://github.com/NAME/BOOK/blob/BRANCH`; empty where they lie nowhere.
    record_command, compile_command: what messages tell people to run.
    versions: the versions of a package on which pages are recorded besides; see `OtherVersions`.

    Three are no matter of conf.py: `root`, the folder of that file; `any_outcome`, which keeps
    what cells come to, be it what they declare or not; and `prelude`, code for each kernel before
    the first cell.
    """

    pages: str = _option("docs")
    snippets: str = _option("snippets", "env")
    modules: Mapping[str, str] = _option(dict, "env")
    cache: str = _option("_cache")
    recordings: str = _option("docs/_recorded", "env")
    programs: str = _option("docs/_recorded/compiled", "env")
    device: str = _option(_device, "env")
    devices: Mapping[str, str] = _option(lambda: {"cpu": "CPU"}, "env")
    frameworks: Mapping[str, Framework] = _option(dict, "env")
    variables: tuple[str, ...] = _option(())
    recorded: bool = _option(False, "env")
    leave_out: bool = _option(False, "env")
    cell_timeout: Count = _option(120)
    page_timeout: Seconds = _option(300.0)
    output_limit: Count = _option(100_000, "env")
    measurements: str = _option("", "env")
    preview: bool = _option(False, "env")
    preview_prelude: str = _option("", "env")
    sources: Mapping[str, Source] = _option(dict, "env")
    targets: Mapping[str, Target] = _option(dict, "env")
    light: bool = _option(False, "html")
    card: str = _option("", "html")
    markdown: bool = _option(False, "html")
    skill: tuple[str, ...] = _option((), "html")
    search: bool = _option(False)
    notebooks: str = _option("", "html")
    record_command: str = _option("python -m executed.commands.record", "env")
    compile_command: str = _option("python -m _compile", "env")
    versions: OtherVersions = _option(NO_VERSIONS, "env")
    root: pathlib.Path = dataclasses.field(default=pathlib.Path())
    any_outcome: bool = dataclasses.field(default=False)
    prelude: str = dataclasses.field(default="")

    def __post_init__(self) -> None:
        """Turn what conf.py writes as dictionaries and lists into what the types say."""
        for field in self.table():
            object.__setattr__(self, field.name, typed(field.type, getattr(self, field.name)))

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

    @property
    def before(self) -> str:
        """The code that is executed before each page."""
        if not (self.preview and self.preview_prelude):
            return self.prelude
        return f"{self.prelude}\n{self.folder('preview_prelude').read_text('utf8')}"

    def folder(self, name: str) -> pathlib.Path:
        """Return the path of one of the folders, such as `snippets`."""
        return self.root / str(getattr(self, name))

    @property
    def page_files(self) -> dict[str, pathlib.Path]:
        """The files of all pages by their names, but for folders whose name starts with _."""
        found, folder = {}, self.folder("pages")
        for path in sorted(folder.rglob("*.md")):
            parts = path.relative_to(folder).with_suffix("").parts
            if not any(part.startswith("_") for part in parts):
                found["/".join(parts)] = path
        return found

    @property
    def home(self) -> str:
        """The device whose outputs a book shows first, where none is executed."""
        return next(iter(self.devices), self.device)

    @property
    def registry(self) -> tuple[Framework, ...]:
        """The frameworks, in the order of conf.py."""
        return tuple(each.named(name) for name, each in self.frameworks.items())

    @property
    def compile_targets(self) -> dict[str, Target]:
        """The targets with their labels, and their files as paths from here."""
        return {
            name: dataclasses.replace(
                each,
                label=each.label or name,
                figures=str(self.root / each.figures) if each.figures else "",
            )
            for name, each in self.targets.items()
        }

    def label(self, device: str) -> str:
        """Return the name of a device as readers see it."""
        return self.devices.get(device, device)

    def framework_label(self, name: str) -> str:
        """Return the name of a framework as readers know it."""
        return self.frameworks.get(name, Framework()).label or name

    def colour(self, framework: str) -> Colour | None:
        """Return the colour of a framework in charts, if it has one."""
        return self.frameworks.get(framework, Framework()).colour


def check(values: Mapping[str, Any], conf: pathlib.Path) -> None:
    """Compare the options among `values` with what they may be; raises OptionError."""
    table = {PREFIX + field.name: field for field in Options.table()}
    for name in (name for name in values if name.startswith(PREFIX)):
        if name not in table:
            hint = nearest(name, table)
            raise OptionError(f"{_place(name, conf)}there is no option {name}{hint}")
        try:
            typed(table[name].type, values[name])
        except Mismatch as error:
            raise OptionError(f"{_place(name, conf)}{name}{error}") from None


def _place(name: str, conf: pathlib.Path) -> str:
    """Return where conf.py sets an option last, as `conf.py:12: `."""
    lines = conf.read_text("utf8").splitlines() if conf.exists() else []
    found = [n for n, text in enumerate(lines, 1) if re.match(rf"\s*{name}\b", text)]
    return f"{conf}:{found[-1]}: " if found else f"{conf}: "
