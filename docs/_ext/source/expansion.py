"""Put the code of snippets into the cells of a page, each name with one meaning."""

import ast
import contextlib
import dataclasses
import functools
import itertools
import re
from collections.abc import Collection, Iterable, Iterator

import nbformat

from ..names import is_misspelt, nearest
from .snippets import (
    Definition,
    ExpectedError,
    Import,
    Library,
    SnippetError,
    split_lines,
)
from .syntax import symbol_tables

OWN = "what the page's own lines make of it"
HELPERS = "Show the helpers used below"
# Tags of MyST-NB that keep the code of a cell from a reader's first look.
UNSEEN = frozenset(("hide-input", "hide-cell", "remove-input", "remove-cell"))

TAGS = (
    *(*sorted(UNSEEN), "hide-output", "remove-output", "remove-stdout", "remove-stderr"),
    *("remove_input", "remove_output", "remove_cell", "scroll-output", "output_scroll"),
    *("full-width", "margin", "popout", "raises-exception", "skip-execution"),
)
OPTIONS = (
    *("snippet", "folded", "raises", "framework", "tags"),
    *("picture", "caption", "anchors", "by-version"),
)
LANGUAGES = ("", "python", "python3", "py", "ipython", "ipython3")
NAME = re.compile(r":?([^\s:#'\"][^:]*):(?:\s|$)")


class PageError(Exception):
    """A page cannot become a notebook; `line` is where in its file."""

    def __init__(self, line: int, message: str) -> None:
        """Take the line, counted from 1, and the message."""
        super().__init__(message)
        self.line = line


@dataclasses.dataclass(frozen=True)
class Expanded:
    """A code cell as it is executed, and the error that it must raise, if any."""

    node: nbformat.NotebookNode
    expected: ExpectedError | None = None


def bound_names(source: str) -> set[str]:
    """Return the names that code binds at its top level; none where it has an error.

    Its functions may bind some of them, once they are called.
    """
    try:
        top, *within = symbol_tables(source)
    except SyntaxError:
        return set()
    changed = (s for table in within for s in table.get_symbols() if s.is_declared_global())
    symbols = (*top.get_symbols(), *changed)
    return {s.get_name() for s in symbols if s.is_assigned() or s.is_imported()}


def import_lines(source: str) -> dict[str, str]:
    """Return {name: line} of what code imports at its top level, as if written one by one."""
    found: dict[str, str] = {}
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return found
    for node in _at_top(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                # 'import a.b' and 'import a.c' both bind 'a', to the same.
                line = ast.Import([alias if alias.asname else ast.alias(alias.name.split(".")[0])])
                found[alias.asname or alias.name.split(".")[0]] = ast.unparse(line)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                line_from = ast.ImportFrom(node.module, [alias], node.level)
                found[alias.asname or alias.name] = ast.unparse(line_from)
    return found


def _at_top(tree: ast.Module) -> Iterator[ast.stmt]:
    """Return the statements of code, and those in its blocks that bind names of the same place."""
    waiting: list[ast.AST] = [*reversed(tree.body)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.stmt):
            yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.expr)):
            waiting += reversed([*ast.iter_child_nodes(node)])


def lines_of_imports(source: str) -> list[str]:
    """Return the imports at the top level of code, a line for each name."""
    found: list[str] = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.Import):
            found += [ast.unparse(ast.Import([alias])) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parts = [ast.ImportFrom(node.module, [alias], node.level) for alias in node.names]
            found += map(ast.unparse, parts)
    return found


class Expansion:
    """Expands the cells of one page in order, knowing what the earlier ones defined."""

    def __init__(self, docname: str, library: Library, lines: list[str]) -> None:
        """Take the page's name, the snippets, and the lines of its file."""
        self.lines = lines
        self.chapter = docname.rpartition("/")[0].replace("/", ".")
        self.library = library
        self.meanings: dict[str, str] = {}
        self.modules: list[str] = []
        self.candidates: set[str] = set()
        # The imports that have run, and those of them that a reader has seen.
        self.made: set[str] = set()
        self.seen: set[str] = set()
        self.imported: set[str] = set()

    def cells(self, cell: nbformat.NotebookNode, line: int) -> list[Expanded]:
        """Return the cell as it is executed, after a cell of helpers where it needs some."""
        tags = list(cell.metadata.get("tags", []))
        self._check_names(tags, line)
        if "raises-exception" in tags:
            raise PageError(
                line,
                "the tag raises-exception would accept any error; declare the error with "
                "':raises: TypeOfTheError part of its message', or in EXPECTED_ERRORS of the "
                "snippet's module",
            )
        written, beside = (
            str(cell.metadata.pop(option, "")).replace(",", " ").split()
            for option in ("snippet", "folded")
        )
        own = self._declared(cell, line)
        cell["outputs"] = []
        unseen = not UNSEEN.isdisjoint(tags)
        if not written and not beside:
            self._note_own(cell.source, line)
            self._note_imports(cell.source, unseen)
            return [self._expanded(cell, tags, [own] if own else [], line)]
        try:
            for name in (*written, *beside):
                self.candidates.update(self._looked_through(name))
            wanted = [self.library.find(name, self.chapter) for name in written]
            folded = [self.library.find(name, self.chapter) for name in beside]
            named = [*wanted, *folded]
            excerpt = self.library.excerpt(wanted, folded, cell.source)
            errors = [error for error in map(self.library.expected_error, named) if error]
        except SnippetError as error:
            raise PageError(line, str(error)) from None
        except SyntaxError as error:
            first = self._first_line(cell, line)
            raise PageError(first + (error.lineno or 1) - 1, f"{error.msg} in the cell") from None
        if own:
            errors.append(own)
        found_in = (*excerpt.definitions, *excerpt.borrowed)
        self.modules += [definition.module for definition in found_in]
        bound = bound_names(cell.source)
        helpers = [
            d
            for d in excerpt.definitions
            if d not in wanted and not self._is_defined(d) and not self._is_replaced(d, bound)
        ]
        shown = [d for d in excerpt.definitions if d in wanted]
        sources = [definition.source for definition in helpers]
        code = [*(d.source for d in shown), *([cell.source] if cell.source.strip() else [])]
        for found in _read_by(excerpt.imports, [*sources, *code]):
            for name, meaning in import_lines(found.lines).items():
                self._note(name, meaning, line)
        for definition in excerpt.definitions:
            if not self._is_replaced(definition, bound):
                self._note(definition.name, self._origin(definition), line)
        self._note_own(cell.source, line)
        before = [self._folded(excerpt.imports, sources, cell)] if helpers else []
        own_lines = cell.source
        cell["source"] = self._joined(excerpt.imports, code, unseen, {each.name for each in folded})
        self._note_imports(own_lines, unseen)
        return [*before, self._expanded(cell, tags, errors, line)]

    @staticmethod
    def _declared(cell: nbformat.NotebookNode, line: int) -> ExpectedError | None:
        """Take the error that a cell declares by itself out of its options."""
        if "raises" not in cell.metadata:
            return None
        declared = str(cell.metadata.pop("raises") or "").strip()
        if not declared:
            raise PageError(
                line, "':raises:' is empty; it needs 'TypeOfTheError part of its message'"
            )
        return ExpectedError("", *[*declared.split(None, 1), ""][:2])

    def _check_names(self, tags: list[str], fence: int) -> None:
        """Refuse another language, misspelt options and tags, and an option that stands twice."""
        where: dict[str, int] = {}
        language = self.lines[fence - 1].partition("}")[2].strip()
        if language not in LANGUAGES:
            raise PageError(
                fence,
                f"the cell is in '{language}', and cells are executed as Python; other code "
                "stands in a block that is only shown, without braces",
            )
        for number, text in self._options(fence):
            if not (found := NAME.match(text)):
                continue
            name = found[1].strip()
            if is_misspelt(name, OPTIONS):
                hint = nearest(name.lower(), OPTIONS)
                raise PageError(number, f"a code cell has no option '{name}'{hint}")
            if name in where:
                raise PageError(number, f"the cell has the option '{name}' twice; join the two")
            where[name] = number
        for tag in tags:
            if is_misspelt(tag, TAGS):
                hint = nearest(tag.lower(), TAGS)
                raise PageError(where.get("tags", fence), f"there is no tag '{tag}'{hint}")

    def _options(self, fence: int) -> Iterable[tuple[int, str]]:
        """Return the lines of a cell's options, each with its number, counted from 1."""
        indent = len(self.lines[fence - 1]) - len(self.lines[fence - 1].lstrip())
        below = ((n, self.lines[n - 1][indent:]) for n in range(fence + 1, len(self.lines) + 1))
        first = next(below, (0, ""))
        if first[1].startswith("---"):
            return itertools.takewhile(lambda each: not each[1].startswith("---"), below)
        return itertools.takewhile(
            lambda each: each[1].startswith(":"), itertools.chain([first], below)
        )

    def _folded(
        self, imports: Iterable[Import], sources: list[str], cell: nbformat.NotebookNode
    ) -> Expanded:
        """Return the cell of the helpers that another cell needs, which stands beside that one."""
        folded = nbformat.v4.new_code_cell(self._joined(imports, sources, unseen=True))
        kept = {"framework": cell.metadata["framework"]} if "framework" in cell.metadata else {}
        folded["metadata"] = nbformat.from_dict(
            {"tags": ["hide-input"], "mystnb": {"code_prompt_show": HELPERS}, **kept}
        )
        return Expanded(folded)

    def _joined(
        self,
        imports: Iterable[Import],
        sources: list[str],
        unseen: bool,
        named: Collection[str] = (),
    ) -> str:
        """Return the imports that are new here, and the sources.

        What is imported is what the sources read, and what the page has `named`. What only a
        folded cell has imported is not new to Python, but to the reader.
        """
        known = self.made if unseen else self.seen
        # 'import a.b' and 'import a.c' of two modules may share lines.
        lines = dict.fromkeys(
            line for found in _read_by(imports, sources, named) for line in found.lines.splitlines()
        )
        new = "\n".join(line for line in lines if line not in known)
        self._note_imports(new, unseen)
        return "\n\n\n".join([*([new] if new else []), *sources])

    def _note_imports(self, source: str, unseen: bool) -> None:
        """Note what a cell imports."""
        with contextlib.suppress(SyntaxError):
            found = lines_of_imports(source)
            self.made.update(found)
            self.seen.update([] if unseen else found)
            self.imported.update(line.split()[1] for line in found)

    @staticmethod
    def _expanded(
        cell: nbformat.NotebookNode, tags: list[str], errors: list[ExpectedError], line: int
    ) -> Expanded:
        if len(errors) > 1:
            both = " and ".join(error.snippet or "the cell" for error in errors)
            raise PageError(line, f"{both} each declare an error; give each a cell of its own")
        if errors:
            # So that the notebook that readers download runs to its end.
            cell.metadata["tags"] = [*tags, "raises-exception"]
        return Expanded(cell, errors[0] if errors else None)

    def _note_own(self, source: str, line: int) -> None:
        """Note what the page's own lines bind, in full view of the reader.

        They may bind anew what is no import, a snippet's constant too. A cell with a snippet that
        uses the name must then bind it as well.
        """
        imported = import_lines(source)
        for name in bound_names(source):
            known = self.meanings.get(name, "")
            if name in imported or known.startswith(("import ", "from ")):
                self._note(name, imported.get(name, OWN), line)
            else:
                self.meanings[name] = OWN

    def _note(self, name: str, meaning: str, line: int) -> None:
        """Note what a name stands for from here on; it may not change on a page."""
        known = self.meanings.setdefault(name, meaning)
        if known != meaning:
            raise PageError(
                line,
                f"the name '{name}' would stand for two things on this page: {known}, then "
                f"{meaning}. What ran before would use the new one; rename one of them",
            )

    def _origin(self, definition: Definition) -> str:
        if definition.module in self.library.brought:
            return self.library.line(definition)
        return f"{definition.name} of {self.library.path(definition.module)}"

    def _looked_through(self, written: str) -> Iterator[str]:
        """Yield the modules that are looked through for a name, up to the one that has it."""
        for candidate in self.library.candidates(written, self.chapter):
            yield candidate
            module = self.library.module(candidate)
            if module and written.rpartition(".")[2] in module.definitions:
                return

    def _is_defined(self, definition: Definition) -> bool:
        return self.meanings.get(definition.name) == self._origin(definition)

    def _is_replaced(self, definition: Definition, bound: set[str]) -> bool:
        return self.meanings.get(definition.name) == OWN and definition.name in bound

    def _first_line(self, cell: nbformat.NotebookNode, fence: int) -> int:
        """Return the line, counted from 1, at which the code of a cell starts, below options."""
        code = split_lines(cell.source)
        found = range(fence, len(self.lines))
        return 1 + next((i for i in found if self.lines[i : i + len(code)] == code), fence)


def _read_by(
    imports: Iterable[Import], sources: list[str], named: Collection[str] = ()
) -> list[Import]:
    """Keep the imports that bind a name which the sources read, or that is `named`."""
    read = frozenset(named).union(*map(_names, sources))
    return [found for found in imports if found.name in read]


# The timer, for one, is among the sources of most cells that measure.
@functools.lru_cache(maxsize=10_000)
def _names(source: str) -> frozenset[str]:
    return frozenset(node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name))
