"""All options of a book, in one table: Sphinx reads them from conf.py, and so do the commands."""

import dataclasses
import os
import pathlib
import re
import runpy
from collections.abc import Mapping
from typing import Any, Self

import jsonschema

from .frameworks import Framework, registered
from .names import nearest
from .typed_json import validator

PREFIX = "book_"


class OptionError(Exception):
    """conf.py sets an option that there is not, or to a value that it cannot have."""


KINDS = {
    "string": "a text",
    "array": "a list",
    "boolean": "True or False",
    "object": "a dictionary",
    "integer": "a whole number",
    "number": "a number",
}
TEXT: dict[str, Any] = {"type": "string"}
TEXTS: dict[str, Any] = {"type": "array", "items": TEXT}
SWITCH: dict[str, Any] = {"type": "boolean"}
COUNT: dict[str, Any] = {"type": "integer", "minimum": 1}
SECONDS: dict[str, Any] = {"type": "number", "exclusiveMinimum": 0, "format": "finite"}


def _by_name(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "propertyNames": TEXT, "additionalProperties": schema}


def _keyed(required: str, /, **schemas: dict[str, Any]) -> dict[str, Any]:
    closed = {"additionalProperties": False, "required": required.split()}
    return {"type": "object", "properties": schemas, **closed}


COLOURS = _keyed("light dark", light=TEXT, dark=TEXT)
FRAMEWORK = _keyed(
    "",
    modules=TEXTS,
    packages=TEXTS,
    words=TEXTS,
    device=TEXT,
    environment=_by_name(_by_name(TEXT)),
    shared=_by_name(TEXT),
    before=TEXTS,
    required=SWITCH,
    optional=SWITCH,
    forkable=SWITCH,
    label=TEXT,
    colour=COLOURS,
)
# What keys there are, `programs.targets` says.
TARGET: dict[str, Any] = {"type": "object"}
SOURCE = _keyed("title author url", title=TEXT, author=TEXT, url=TEXT)
CARD = _keyed("measurements title", measurements=TEXT, title=TEXT)
VERSIONS = _keyed(
    "package recorded supported prelude recordings command",
    package=TEXT,
    recorded=TEXTS,
    supported=TEXTS,
    without=TEXTS,
    prelude=TEXT,
    recordings=TEXT,
    earlier=TEXT,
    command=TEXT,
)


def _option(
    default: Any, schema: dict[str, Any], rebuild: str = "", kinds: tuple[type, ...] = ()
) -> Any:
    """Declare an option; `rebuild` is "env" where a change means reading every page again."""
    facts = {"schema": schema, "rebuild": rebuild, "kinds": kinds}
    if callable(default):
        return dataclasses.field(default_factory=default, metadata=facts)
    return dataclasses.field(default=default, metadata=facts)


def _device() -> str:
    return os.environ.get("BOOK_DEVICE") or "cpu"


@dataclasses.dataclass(frozen=True)
class Options:
    """The options, each called `book_<name>` in conf.py. Folders are relative to that file.

    pages, snippets: folders of the pages and of the modules that pages show.
    modules: modules of `snippets` that pages import from a file beside them, in place of having
        their code in cells, {chapter.topic: name to import}.
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
    preview: measure with few samples, for a first look; nothing of it is recorded.
    preview_prelude: a file of code that is executed in a preview before pages that measure.
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

    pages: str = _option("docs", TEXT)
    snippets: str = _option("snippets", TEXT, "env")
    modules: Mapping[str, str] = _option(dict, _by_name(TEXT), "env")
    cache: str = _option("_cache", TEXT)
    recordings: str = _option("docs/_recorded", TEXT, "env")
    programs: str = _option("docs/_recorded/compiled", TEXT, "env")
    device: str = _option(_device, TEXT, "env")
    devices: Mapping[str, str] = _option(lambda: {"cpu": "CPU"}, _by_name(TEXT), "env")
    frameworks: Mapping[str, Any] = _option(dict, _by_name(FRAMEWORK), "env")
    variables: tuple[str, ...] = _option((), TEXTS, "", (tuple, list))
    recorded: bool = _option(False, SWITCH, "env")
    leave_out: bool = _option(False, SWITCH, "env")
    cell_timeout: float = _option(120.0, SECONDS, "", (int, float))
    page_timeout: float = _option(300.0, SECONDS, "", (int, float))
    output_limit: int = _option(100_000, COUNT, "env")
    measurements: str = _option("", TEXT, "env")
    processes: int = _option(1, COUNT)
    preview: bool = _option(False, SWITCH, "env")
    preview_prelude: str = _option("", TEXT, "env")
    sources: Mapping[str, Mapping[str, str]] = _option(dict, _by_name(SOURCE), "env")
    targets: Mapping[str, Any] = _option(dict, _by_name(TARGET), "env")
    light: str = _option("", TEXT, "html")
    card: Mapping[str, str] = _option(dict, CARD, "html")
    markdown: bool = _option(False, SWITCH, "html")
    search: bool = _option(False, SWITCH)
    record_command: str = _option("python -m _ext.commands.record", TEXT, "env")
    compile_command: str = _option("python -m _ext.commands.compile", TEXT, "env")
    versions: Mapping[str, Any] = _option(dict, VERSIONS, "env")
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
        if not (self.preview and benchmark and self.preview_prelude):
            return self.prelude
        return f"{self.prelude}\n{self.folder('preview_prelude').read_text('utf8')}"

    def folder(self, name: str) -> pathlib.Path:
        """Return the path of one of the folders, such as `snippets`."""
        return self.root / str(getattr(self, name))

    @property
    def home(self) -> str:
        """The device whose outputs a book shows first, where none is executed."""
        return next(iter(self.devices), self.device)

    @property
    def registry(self) -> tuple[Framework, ...]:
        """The frameworks, in the order of conf.py."""
        return registered(self.frameworks)

    def label(self, device: str) -> str:
        """Return the name of a device as readers see it."""
        return self.devices.get(device, device)

    def framework_label(self, name: str) -> str:
        """Return the name of a framework as readers know it."""
        return next((each.label for each in self.registry if each.name == name), name)


def check(values: Mapping[str, Any], conf: pathlib.Path) -> None:
    """Compare the options among `values` with what they may be; raises OptionError."""
    table = {PREFIX + field.name: field for field in Options.table()}
    defaults = Options()
    for name in (name for name in values if name.startswith(PREFIX)):
        if name not in table:
            hint = nearest(name, table)
            raise OptionError(f"{_place(name, conf)}there is no option {name}{hint}")
        default = getattr(defaults, table[name].name)
        if type(values[name]) is type(default) and values[name] == default:
            continue
        found = validator(table[name].metadata["schema"]).iter_errors(values[name])
        if error := jsonschema.exceptions.best_match(found):
            part = "".join(f"[{key!r}]" for key in error.absolute_path)
            raise OptionError(f"{_place(name, conf)}{name}{part} {_problem(error)}")


def _problem(error: jsonschema.ValidationError) -> str:
    """Return what is wrong with a value, and what is expected."""
    rule: Any = error.validator_value
    value: Any = error.instance
    schema: Any = error.schema
    if error.validator == "additionalProperties":
        known = schema["properties"]
        unknown = next(key for key in value if key not in known)
        return f"has no key {unknown!r}{nearest(str(unknown), known)}"
    if error.validator == "required":
        lacking = [key for key in rule if key not in value]
        return f"lacks {', '.join(lacking)}; it needs {', '.join(rule)}"
    expected = {
        "type": KINDS.get(str(rule)),
        "minimum": f"{rule} or more",
        "exclusiveMinimum": f"more than {rule}",
        "format": f"a {rule} number",
    }
    return f"is {value!r}, and must be {expected[str(error.validator)]}"


def _place(name: str, conf: pathlib.Path) -> str:
    """Return where conf.py sets an option last, as `conf.py:12: `."""
    lines = conf.read_text("utf8").splitlines() if conf.exists() else []
    found = [n for n, text in enumerate(lines, 1) if re.match(rf"\s*{name}\b", text)]
    return f"{conf}:{found[-1]}: " if found else f"{conf}: "
