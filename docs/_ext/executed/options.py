"""The options of a book: Sphinx reads them from conf.py, and so do the commands.

Those of the core are `Options`; an extension beside it has a table of its own, its `OPTIONS`.
"""

import dataclasses
import fnmatch
import importlib
import math
import os
import pathlib
import re
import runpy
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Self, TypeVar

from .frameworks import Colour, Framework
from .names import nearest
from .typed_json import LEAST_1, Mismatch, Rule, typed

PREFIX = "book_"
PAGES = (".ipynb", ".rst", ".md")


class OptionError(Exception):
    """conf.py sets an option that there is not, or to a value that it cannot have."""

    def __init__(self, name: str, problem: str) -> None:
        """Take the name of the option as conf.py has it, and the words."""
        super().__init__(problem)
        self.name = name


Count = Annotated[int, LEAST_1]
Seconds = Annotated[float, Rule(lambda value: 0 < value < math.inf, "a finite number, more than 0")]
Variable = Annotated[str, Rule(re.compile(r"[\w*?![\]-]+").fullmatch, "a name or a pattern")]


def option(
    default: Any, rebuild: str = "", pages: Callable[[Any], Iterable[str]] = lambda value: ()
) -> Any:
    """Declare an option; `rebuild` is "env" where a change means reading every page again.

    `pages` gives the patterns among its value that each must match the name of a page.
    """
    facts = {"rebuild": rebuild, "pages": pages}
    if callable(default):
        return dataclasses.field(default_factory=default, metadata=facts)
    return dataclasses.field(default=default, metadata=facts)


def _device() -> str:
    return os.environ.get("BOOK_DEVICE") or "cpu"


@dataclasses.dataclass(frozen=True)
class Table:
    """A table of options; the fields that `option` declares may be set in conf.py."""

    def __post_init__(self) -> None:
        """Turn what conf.py writes as dictionaries and lists into what the types say."""
        for field in self.fields():
            try:
                value = typed(field.type, getattr(self, field.name))
            except Mismatch as error:
                name = PREFIX + field.name
                raise OptionError(name, f"{name}{error}") from None
            object.__setattr__(self, field.name, value)

    @classmethod
    def fields(cls) -> list[dataclasses.Field[Any]]:
        """Return the options that conf.py may set."""
        return [field for field in dataclasses.fields(cls) if field.metadata]

    @classmethod
    def among(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return those of its options that are among `values`, under their own names."""
        names = {field.name: PREFIX + field.name for field in cls.fields()}
        return {name: values[long] for name, long in names.items() if long in values}


T = TypeVar("T", bound=Table)


@dataclasses.dataclass(frozen=True)
class Options(Table):
    """The options, each called `book_<name>` in conf.py. Folders are relative to that file.

    pages, snippets: folders of the pages and of the modules that pages show. What lies below the
        pages in a folder whose name starts with `_` or `.` is no page.
    modules: modules of `snippets` that pages import from a file beside them, in place of having
        their code in cells, {chapter.topic: name to import}.
    cache, recordings: folders of cached outputs and of recordings.
    device: short name of the device to execute on, such as `cpu`; from BOOK_DEVICE.
    devices: labels of the devices that readers choose between, {short name: label}.
    frameworks: what pages may use, {name: facts}; see `frameworks.Framework`.
    variables: environment variables that pages may read, as patterns such as `JAX_*`.
    recorded: show recordings and execute nothing.
    leave_out: leave out the cells that need a framework which is not installed.
    cell_timeout, page_timeout: limits in seconds, of a cell in whole ones.
    output_limit: characters of a cell's output that its page shows.
    preview: measure with few samples, for a first look; nothing of it is recorded.
    preview_prelude: a file of code that is executed in a preview before each page.
    notebooks: where on GitHub the notebooks of the site lie, such as
        `https://github.com/NAME/BOOK/blob/BRANCH`; empty where they lie nowhere.
    record_command: what messages tell people to run.

    Others are no matter of conf.py: `root`, the folder of that file; `any_outcome`, which keeps
    what cells come to, be it what they declare or not; `prelude`, code for each kernel before the
    first cell; what is `excluded` by Sphinx's exclude_patterns; and of the `extensions` that
    conf.py lists those of this engine, with the tables of their own options.
    """

    pages: str = option("docs")
    snippets: str = option("snippets", "env")
    modules: Mapping[str, str] = option(dict, "env")
    cache: str = option("_cache")
    recordings: str = option("docs/_recorded", "env")
    device: str = option(_device, "env")
    devices: Mapping[str, str] = option(lambda: {"cpu": "CPU"}, "env")
    frameworks: Mapping[str, Framework] = option(dict, "env")
    variables: tuple[Variable, ...] = option(())
    recorded: bool = option(False, "env")
    leave_out: bool = option(False, "env")
    cell_timeout: Count = option(120)
    page_timeout: Seconds = option(300.0)
    output_limit: Count = option(100_000, "env")
    preview: bool = option(False, "env")
    preview_prelude: str = option("", "env")
    notebooks: str = option("", "html")
    record_command: str = option("python -m executed.commands.record", "env")
    root: pathlib.Path = dataclasses.field(default=pathlib.Path())
    any_outcome: bool = dataclasses.field(default=False)
    prelude: str = dataclasses.field(default="")
    excluded: tuple[str, ...] = ()
    extensions: tuple[str, ...] = ()
    tables: Mapping[type[Table], Table] = dataclasses.field(default_factory=dict)

    @classmethod
    def from_values(cls, values: Mapping[str, Any], root: str | os.PathLike[str]) -> Self:
        """Return the options among `values`, a mapping such as the names that conf.py defines."""
        extensions = own_extensions(values.get("extensions", ()))
        tables = {kind: kind(**kind.among(values)) for kind in declared(extensions, "options")}
        own = cls.among(values) | {"excluded": tuple(values.get("exclude_patterns", ()))}
        return cls(**own, root=pathlib.Path(root), extensions=extensions, tables=tables)

    @staticmethod
    def from_file(conf: str | os.PathLike[str] = "conf.py") -> "Options":
        """Return the options that a conf.py sets, for commands; leaves with what is wrong there."""
        path = pathlib.Path(conf)
        try:
            return read(runpy.run_path(str(path)) if path.exists() else {}, path)
        except OptionError as error:
            raise SystemExit(str(error)) from None

    def of(self, kind: type[T]) -> T:
        """Return the options of an extension, by their table."""
        table = self.tables.get(kind)
        return table if isinstance(table, kind) else kind()

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
        """The files of all pages by their names, but for those below a `_folder` or `.folder`."""
        paths, folder = {}, self.folder("pages")
        for path in sorted(path for kind in PAGES for path in folder.rglob(f"*{kind}")):
            name = path.relative_to(folder)
            above = [str(each) for each in (name, *name.parents)]
            left_out = any(fnmatch.filter(above, pattern) for pattern in self.excluded)
            if not left_out and not any(part.startswith(("_", ".")) for part in name.parts):
                paths[name.with_suffix("").as_posix()] = path
        return paths

    @property
    def home(self) -> str:
        """The device whose outputs a book shows first, where none is executed."""
        return next(iter(self.devices), self.device)

    @property
    def registry(self) -> tuple[Framework, ...]:
        """The frameworks, in the order of conf.py."""
        return tuple(entry.named(name) for name, entry in self.frameworks.items())

    def label(self, device: str) -> str:
        """Return the name of a device as readers see it."""
        return self.devices.get(device, device)

    def framework_label(self, name: str) -> str:
        """Return the name of a framework as readers know it."""
        return self.frameworks.get(name, Framework()).label or name

    def colour(self, framework: str) -> Colour | None:
        """Return the colour of a framework in charts, if it has one."""
        return self.frameworks.get(framework, Framework()).colour


FOLDER = pathlib.Path(__file__).parents[1]


def own_extensions(listed: Iterable[str]) -> tuple[str, ...]:
    """Return those of the extensions of a conf.py that lie beside the core."""
    return tuple(name for name in listed if (FOLDER / name / "__init__.py").is_file())


def declared(extensions: Iterable[str], module: str) -> list[Any]:
    """Return what extensions beside the core declare in a module, such as OPTIONS in `options`."""
    others = (name for name in extensions if name != __package__)
    there = [name for name in others if (FOLDER / name / f"{module}.py").is_file()]
    modules = [importlib.import_module(f"{name}.{module}") for name in there]
    return [getattr(each, module.upper()) for each in modules]


def read(values: Mapping[str, Any], conf: pathlib.Path) -> Options:
    """Return the options among `values`; raises OptionError, which says where in conf.py."""
    extensions = own_extensions(values.get("extensions", ()))
    tables: list[type[Table]] = [Options, *declared(extensions, "options")]
    names = [PREFIX + field.name for table in tables for field in table.fields()]
    try:
        for name in (name for name in values if name.startswith(PREFIX)):
            if name not in names:
                raise OptionError(name, f"there is no option {name}{nearest(name, names)}")
        options = Options.from_values(values, conf.parent)
        _refuse_unmatched(options)
        return options
    except OptionError as error:
        raise OptionError(error.name, f"{_place(error.name, conf)}{error}") from None


def _refuse_unmatched(options: Options) -> None:
    """Refuse what names a file, a module or pages that are not there."""
    for name in ("pages", "snippets", "preview_prelude"):
        value = getattr(options, name)
        if value != getattr(Options, name) and not options.folder(name).exists():
            raise OptionError(PREFIX + name, f"{PREFIX}{name}: there is no {value}")
    for module in options.modules:
        if not options.folder("snippets").joinpath(*module.split(".")).with_suffix(".py").exists():
            problem = f"there is no module '{module}' in {options.snippets}"
            raise OptionError("book_modules", f"book_modules: {problem}")
    for table in options.tables.values():
        for field in table.fields():
            for pattern in field.metadata["pages"](getattr(table, field.name)):
                if not fnmatch.filter(options.page_files, pattern):
                    name, hint = PREFIX + field.name, nearest(pattern, options.page_files)
                    raise OptionError(name, f"{name}: no page matches '{pattern}'{hint}")


def _place(name: str, conf: pathlib.Path) -> str:
    """Return where conf.py sets an option last, as `conf.py:12: `."""
    lines = conf.read_text("utf8").splitlines() if conf.exists() else []
    numbers = [n for n, text in enumerate(lines, 1) if re.match(rf"\s*{name}\b", text)]
    return f"{conf}:{numbers[-1]}: " if numbers else f"{conf}: "
