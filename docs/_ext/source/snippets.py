"""Read the modules of `snippets/` without importing them, and cut code out of them."""

import ast
import dataclasses
import difflib
import hashlib
import pathlib

PACKAGE = "snippets"


class SnippetError(Exception):
    """A snippet cannot be shown; the message says why and what to do."""


@dataclasses.dataclass(frozen=True)
class Definition:
    """One top-level function, class or constant: where it is, its code, the names it uses."""

    module: str
    name: str
    source: str
    uses: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class ExpectedError:
    """An error that a snippet declares: the type as it is written, and a part of the message."""

    snippet: str
    type: str
    fragment: str


@dataclasses.dataclass(frozen=True)
class Excerpt:
    """What a cell needs to run: import lines, and definitions in the order to run them."""

    imports: tuple[str, ...]
    definitions: tuple[Definition, ...]


def names_used(tree):
    """Return the names that a piece of code reads, in the order of their first use."""
    names = [
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    ]
    return tuple(dict.fromkeys(names))


class Module:
    """One file of `snippets/`, parsed."""

    def __init__(self, name, path):
        """Parse the file at `path`; raises SnippetError where it cannot be a snippet module."""
        self.name = name
        self.path = path
        text = path.read_text("utf8")
        self.imports = {}
        self.borrowed = {}
        self.definitions = {}
        self.expected_errors = {}
        self.imported_modules = []
        try:
            tree = ast.parse(text)
        except SyntaxError as error:
            raise SnippetError(f"{path}:{error.lineno}: {error.msg}") from None
        lines = text.splitlines()
        for node in tree.body:
            self._read(node, lines)

    def _read(self, node, lines):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == PACKAGE:
                    self._refuse_import(node)
                bound = alias.asname or alias.name.split(".")[0]
                line = ast.unparse(ast.Import(names=[alias]))
                # 'import a.b' and 'import a.c' both bind 'a'.
                known = [] if alias.asname else self.imports.get(bound, "").splitlines()
                self.imports[bound] = "\n".join(dict.fromkeys([*known, line]))
        elif isinstance(node, ast.ImportFrom):
            self._read_import_from(node)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            first = min([node.lineno, *(line.lineno for line in node.decorator_list)])
            self._define(node.name, node, lines[first - 1 : node.end_lineno])
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if name == "EXPECTED_ERRORS":
                self._read_expected_errors(node.value)
            else:
                self._define(name, node, lines[node.lineno - 1 : node.end_lineno])

    def _read_import_from(self, node):
        if (node.module or "").split(".")[0] != PACKAGE and not node.level:
            for alias in node.names:
                line = ast.unparse(ast.ImportFrom(node.module, [alias], 0))
                self.imports[alias.asname or alias.name] = line
            return
        if (
            node.level
            or node.module == PACKAGE
            or any(alias.asname or alias.name == "*" for alias in node.names)
        ):
            self._refuse_import(node)
        self.imported_modules.append(node.module.removeprefix(PACKAGE + "."))
        for alias in node.names:
            self.borrowed[alias.name] = self.imported_modules[-1]

    def _refuse_import(self, node):
        raise SnippetError(
            f"{self.path}:{node.lineno}: '{ast.unparse(node)}' cannot be shown on a page; write "
            f"'from {PACKAGE}.<chapter>.<module> import <name>' without 'as'"
        )

    def _define(self, name, node, lines):
        uses = tuple(used for used in names_used(node) if used != name)
        self.definitions[name] = Definition(self.name, name, "\n".join(lines), uses)

    def _read_expected_errors(self, value):
        try:
            for key, pair in zip(value.keys, value.values, strict=True):
                error, fragment = pair.elts
                declared = ExpectedError(key.value, ast.unparse(error), ast.literal_eval(fragment))
                self.expected_errors[key.value] = declared
        except (AttributeError, ValueError):
            raise SnippetError(
                f"{self.path}:{value.lineno}: EXPECTED_ERRORS must be a dict that maps the name "
                "of a snippet to a pair (exception type, part of its message)"
            ) from None


class Library:
    """All modules below one `snippets/` folder, each parsed at most once."""

    def __init__(self, root):
        """Take the folder; nothing is read before it is asked for."""
        self.root = pathlib.Path(root)
        self._modules = {}
        self._digests = {}

    def path(self, name):
        """Return the file of the module called `name` ('chapter.topic'), which may not exist."""
        return self.root.joinpath(*name.split(".")).with_suffix(".py")

    def digest(self, name):
        """Return the SHA-256 of a module's source, or None where there is no file."""
        if name not in self._digests:
            path = self.path(name)
            source = path.read_bytes() if path.is_file() else None
            self._digests[name] = hashlib.sha256(source).hexdigest() if source is not None else None
        return self._digests[name]

    def module(self, name):
        """Return the module called `name` ('chapter.topic'), or None where there is no file."""
        if name not in self._modules:
            path = self.path(name)
            self._modules[name] = Module(name, path) if path.is_file() else None
        return self._modules[name]

    def find(self, written, chapter=""):
        """Find the definition that a page calls `written`.

        `written` is 'topic.name' within the page's own chapter, or
        'chapter.topic.name'. Raises SnippetError, with the nearest names, where
        there is none.
        """
        module_name, _, name = written.rpartition(".")
        for prefix in dict.fromkeys((chapter + "." if chapter else "", "")):
            module = self.module(prefix + module_name) if module_name else None
            if module and name in module.definitions:
                return module.definitions[name]
        near = difflib.get_close_matches(written, self.names(chapter), n=3, cutoff=0.4)
        hint = f"; the nearest names are {', '.join(near)}" if near else ""
        raise SnippetError(f"there is no snippet '{written}'{hint}")

    def names(self, chapter=""):
        """Return the names of all snippets as a page of `chapter` would write them."""
        found = []
        for path in sorted(self.root.rglob("*.py")):
            dotted = ".".join(path.relative_to(self.root).with_suffix("").parts)
            if path.name == "__init__.py":
                continue
            for name in self.module(dotted).definitions:
                found.append(f"{dotted}.{name}".removeprefix(chapter + "." if chapter else ""))
        return found

    def expected_error(self, definition):
        """Return the error that the definition's module declares for it, or None."""
        return self.module(definition.module).expected_errors.get(definition.name)

    def excerpt(self, wanted, page_lines=""):
        """Collect what `wanted` definitions and the page's own lines need to run.

        Definitions come in an order in which they can be run, each after
        everything it uses; imports are those that any of the code reads.
        """
        ordered, imports = {}, {}
        for definition in wanted:
            self._collect(definition, ordered, imports)
        modules = [self.module(module) for module in dict.fromkeys(d.module for d in wanted)]
        for name in names_used(ast.parse(page_lines)) if page_lines.strip() else ():
            for module in modules:
                if name in module.imports:
                    imports.setdefault((module.name, name), module.imports[name])
                    break
                if name in module.definitions or name in module.borrowed:
                    self._collect(self._resolve(module, name), ordered, imports)
                    break
        as_in_module = sorted(
            imports, key=lambda key: list(self.module(key[0]).imports).index(key[1])
        )
        lines = dict.fromkeys(imports[key] for key in as_in_module)
        return Excerpt(tuple(lines), tuple(ordered.values()))

    def _collect(self, definition, ordered, imports, above=()):
        key = (definition.module, definition.name)
        if key in ordered or key in above:
            return
        module = self.module(definition.module)
        for name in definition.uses:
            if name in module.imports:
                imports.setdefault((module.name, name), module.imports[name])
            elif name in module.definitions or name in module.borrowed:
                self._collect(self._resolve(module, name), ordered, imports, (*above, key))
        ordered[key] = definition

    def _resolve(self, module, name):
        if name in module.definitions:
            return module.definitions[name]
        lender = module.borrowed[name]
        if self.module(lender) is None or (
            name not in self.module(lender).definitions and name not in self.module(lender).borrowed
        ):
            raise SnippetError(f"{module.path}: there is no '{name}' in {PACKAGE}.{lender}")
        return self._resolve(self.module(lender), name)

    def reached(self, names):
        """Return {module name: digest} of the modules `names` and all that they import."""
        digests, waiting = {}, list(names)
        while waiting:
            name = waiting.pop()
            module = self.module(name)
            if name not in digests and module is not None:
                digests[name] = self.digest(name)
                waiting += module.imported_modules
        return digests
