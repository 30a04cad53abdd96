"""Read the modules of `snippets/` without importing them, and cut code out of them."""

import ast
import dataclasses
import hashlib
import io
import os
import pathlib
from collections.abc import Iterable, Mapping
from typing import Self

from ..names import nearest
from ..options import Options
from .code import imports, join_code, names_used


class SnippetError(Exception):
    """A snippet cannot be shown; the message says why and what to do."""


def chapter_of(docname: str) -> str:
    """Return the chapter of a page, as snippets are named in it."""
    return docname.rpartition("/")[0].replace("/", ".")


def split_lines(text: str) -> list[str]:
    """Return the lines of a text as Python counts them; str.splitlines would find more."""
    return [line.rstrip("\n") for line in io.StringIO(text, None)]


@dataclasses.dataclass(frozen=True)
class Definition:
    """One top-level function, class or constant: where it is, its code, the names it uses."""

    module: str
    name: str
    source: str
    uses: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class ExpectedError:
    """An error that a cell must raise: its type as it is written, and a part of its message.

    `snippet` is the one that declares it, empty where the cell itself does.
    """

    snippet: str
    type: str
    fragment: str


@dataclasses.dataclass(frozen=True)
class Import:
    """A name that a module imports, and the lines that bind it."""

    name: str
    lines: str


@dataclasses.dataclass(frozen=True)
class Excerpt:
    """What a cell needs to run: imports, and definitions in the order to run them.

    `borrowed` are definitions that it imports from files beside the page.
    """

    imports: tuple[Import, ...]
    definitions: tuple[Definition, ...]
    borrowed: tuple[Definition, ...] = ()

    @property
    def code(self) -> str:
        """All of it, as code that runs by itself."""
        lines = dict.fromkeys(line for each in self.imports for line in each.lines.splitlines())
        return join_code(["\n".join(lines), *(each.source for each in self.definitions)])


class Module:
    """One file of `snippets/`, parsed."""

    def __init__(self, package: str, name: str, path: pathlib.Path, text: str) -> None:
        """Parse the text of a file; raises SnippetError where it cannot be a snippet module."""
        self.package = package
        self.name = name
        self.path = path
        self.imports: dict[str, str] = {}
        self.borrowed: dict[str, str] = {}
        self.definitions: dict[str, Definition] = {}
        self.expected_errors: dict[str, ExpectedError] = {}
        self.imported_modules: list[str] = []
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError) as error:
            place = f"{path}:{getattr(error, 'lineno', None) or 1}"
            raise SnippetError(f"{place}: {getattr(error, 'msg', error)}") from None
        for bound, line in imports(tree):
            # 'import a.b' and 'import a.c' both bind 'a'.
            self.imports[bound] = "\n".join([*self.imports.get(bound, "").splitlines(), line])
        lines = split_lines(text)
        for node in tree.body:
            self._read(node, lines)

    def _read(self, node: ast.stmt, lines: list[str]) -> None:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(self.package + "."):
            module = (node.module or "").removeprefix(self.package + ".")
            self.imported_modules.append(module)
            for alias in node.names:
                del self.imports[alias.asname or alias.name]
                self.borrowed[alias.name] = module
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            first = min([node.lineno, *(line.lineno for line in node.decorator_list)])
            self._define(node.name, lines[first - 1 : node.end_lineno])
        elif isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if ast.unparse(target) == "EXPECTED_ERRORS":
                self._read_expected_errors(node.value)
            elif isinstance(target, ast.Name):
                self._define(target.id, lines[node.lineno - 1 : node.end_lineno])

    def _define(self, name: str, lines: list[str]) -> None:
        source = "\n".join(lines)
        uses = tuple(used for used in names_used(source) if used != name)
        self.definitions[name] = Definition(self.name, name, source, uses)

    def _read_expected_errors(self, value: ast.expr) -> None:
        try:
            for key, pair in zip(value.keys, value.values, strict=True):  # type: ignore[attr-defined]
                error, fragment = pair.elts
                declared = ExpectedError(key.value, ast.unparse(error), ast.literal_eval(fragment))
                self.expected_errors[key.value] = declared
        except (AttributeError, ValueError):
            raise SnippetError(
                f"{self.path}:{value.lineno}: EXPECTED_ERRORS must be a dict that maps the name "
                "of a snippet to a pair (exception type, part of its message)"
            ) from None


class Library:
    """All modules below one folder of snippets, each read at most once.

    The name of the folder is the name of the package, as modules import each other. `brought`
    are the modules that pages import from a file beside them: {'chapter.topic': name to import}.
    """

    def __init__(
        self, root: str | os.PathLike[str], brought: Mapping[str, str] | None = None
    ) -> None:
        """Take the folder; nothing is read before it is asked for."""
        self.root = pathlib.Path(root)
        self.package = self.root.name
        self.brought = dict(brought or {})
        self._texts: dict[str, str | None] = {}
        self._modules: dict[str, Module | None] = {}

    @classmethod
    def of(cls, options: Options) -> Self:
        """Return the snippets of a book."""
        return cls(options.folder("snippets"), options.modules)

    def path(self, name: str) -> pathlib.Path:
        """Return the file of the module called `name` ('chapter.topic'), which may not exist."""
        return self.root.joinpath(*name.split(".")).with_suffix(".py")

    def _text(self, name: str) -> str | None:
        if name not in self._texts:
            path = self.path(name)
            # Of bytes that are no text, what stands for them is no Python.
            text = path.read_text("utf8", "replace") if path.is_file() else None
            self._texts[name] = text
        return self._texts[name]

    def digest(self, name: str) -> str:
        """Return the SHA-256 of a module's source, empty where there is no file."""
        text = self._text(name)
        return "" if text is None else hashlib.sha256(text.encode()).hexdigest()

    def module(self, name: str) -> Module | None:
        """Return the module called `name` ('chapter.topic'), or None where there is no file."""
        if name not in self._modules:
            text = self._text(name)
            module = None if text is None else Module(self.package, name, self.path(name), text)
            self._modules[name] = module
        return self._modules[name]

    def _known(self, name: str) -> Module:
        module = self.module(name)
        if module is None:
            raise SnippetError(f"there is no module {self.path(name)}")
        return module

    def find(self, written: str, chapter: str = "") -> Definition:
        """Find the definition that a page calls `written`.

        `written` is 'topic.name' within the page's own chapter, or
        'chapter.topic.name'. Raises SnippetError, with the nearest names, where
        there is none.
        """
        topic, _, name = written.rpartition(".")
        for candidate in (f"{chapter}.{topic}", topic) if topic else ():
            module = self.module(candidate.removeprefix("."))
            if module and name in module.definitions:
                return module.definitions[name]
        hint = nearest(written, self.names(chapter))
        raise SnippetError(f"there is no snippet '{written}'{hint}")

    def names(self, chapter: str = "") -> list[str]:
        """Return the names of all snippets as a page of `chapter` would write them."""
        names = []
        for path in sorted(self.root.rglob("*.py")):
            dotted = ".".join(path.relative_to(self.root).with_suffix("").parts)
            module = None if path.name == "__init__.py" else self.module(dotted)
            for name in module.definitions if module else ():
                names.append(f"{dotted}.{name}".removeprefix(chapter + "." if chapter else ""))
        return names

    def expected_error(self, definition: Definition) -> ExpectedError | None:
        """Return the error that the definition's module declares for it, or None."""
        return self._known(definition.module).expected_errors.get(definition.name)

    def file(self, name: str) -> str:
        """Return the text of a module that pages import by `name` from a file beside them."""
        module = next(key for key, value in self.brought.items() if value == name)
        return self._text(module) or ""

    def line(self, definition: Definition) -> str:
        """Return how a page imports a definition of a module that it brings along."""
        return f"from {self.brought[definition.module]} import {definition.name}"

    def excerpt(
        self, shown: Iterable[Definition], helpers: Iterable[Definition] = (), page_lines: str = ""
    ) -> Excerpt:
        """Collect what definitions, `shown` or `beside` them, and the page's own lines need.

        Definitions come in an order in which they can be run, each after everything it
        uses; imports are those that any of the code reads. What is not shown of a module that
        pages bring along is imported.
        """
        shown = list(shown)
        wanted = [*shown, *helpers]
        begun: set[Definition] = set()
        ordered: list[Definition] = []
        imported: dict[tuple[str, str], str] = {}

        def is_borrowed(definition: Definition) -> bool:
            return definition.module in self.brought and definition not in shown

        def collect(definition: Definition) -> None:
            if definition not in begun:
                begun.add(definition)
                if not is_borrowed(definition):
                    for name in definition.uses:
                        use(self._known(definition.module), name)
                ordered.append(definition)

        def use(module: Module, name: str) -> bool:
            if name in module.imports:
                imported[module.name, name] = module.imports[name]
            elif name in module.definitions or name in module.borrowed:
                collect(self._resolve(module, name))
            else:
                return False
            return True

        for definition in wanted:
            collect(definition)
        modules = [self._known(module) for module in dict.fromkeys(d.module for d in wanted)]
        for name in names_used(page_lines):
            any(use(module, name) for module in modules)
        borrowed = [d for d in ordered if is_borrowed(d)]
        as_in_module = sorted(
            imported, key=lambda key: list(self._known(key[0]).imports).index(key[1])
        )
        imports = dict.fromkeys(Import(key[1], imported[key]) for key in as_in_module)
        imports |= dict.fromkeys(Import(d.name, self.line(d)) for d in borrowed)
        definitions = [d for d in ordered if d not in borrowed]
        return Excerpt(tuple(imports), tuple(definitions), tuple(borrowed))

    def _resolve(self, module: Module, name: str) -> Definition:
        if name in module.definitions:
            return module.definitions[name]
        lender = self.module(module.borrowed[name])
        if lender is None or name not in lender.definitions:
            source = f"{self.package}.{module.borrowed[name]}"
            raise SnippetError(f"{module.path}: there is no '{name}' in {source}")
        return lender.definitions[name]

    def reached(self, names: Iterable[str]) -> dict[str, str]:
        """Return {module name: digest} of the modules `names` and all that they import."""
        digests: dict[str, str] = {}
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            module = self.module(name)
            if name not in digests and module is not None:
                digests[name] = self.digest(name)
                waiting += module.imported_modules
        return digests
