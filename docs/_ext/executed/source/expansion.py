"""Put the code of snippets into the cells of a page, each name with one meaning."""

import contextlib
import dataclasses
from collections.abc import Collection, Iterable

import nbformat

from ..names import is_misspelt, nearest
from .code import bound_names, import_lines, imports, join_code, names_used, parsed
from .snippets import Definition, ExpectedError, Import, Library, SnippetError, chapter_of

IMPORT = ("import ", "from ")
OWN = "what the page's own lines make of it"
# A tag of MyST-NB: the cell raises, be it what it may.
RAISES = "raises-exception"
HELPERS = "Show the helpers used below"
# Tags of MyST-NB that keep the code of a cell from a reader's first look.
HIDING_TAGS = frozenset(("hide-input", "hide-cell", "remove-input", "remove-cell"))

TAGS = (
    *(*sorted(HIDING_TAGS), "hide-output", "remove-output", "remove-stdout", "remove-stderr"),
    *("remove_input", "remove_output", "remove_cell", "scroll-output", "output_scroll"),
    *("full-width", "margin", "popout", RAISES, "skip-execution"),
)
OPTIONS = (*("snippet", "folded", "raises", "framework", "tags"),)


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


class Expansion:
    """Expands the cells of one page in order, knowing what the earlier ones defined."""

    def __init__(self, docname: str, library: Library, cell_options: Collection[str] = ()) -> None:
        """Take the page's name, the snippets, and options of cells besides its own."""
        self.options = (*OPTIONS, *cell_options)
        self.chapter = chapter_of(docname)
        self.library = library
        self.meanings: dict[str, str] = {}
        # Names that code of snippets reads, and what to say of others that change their meaning.
        self.relied_on: set[str] = set()
        self.modules: list[str] = []
        # The imports that have run, and those of them that a reader has seen.
        self.run_imports: set[str] = set()
        self.seen_imports: set[str] = set()
        self.imported: set[str] = set()
        # Helpers that no visible cell has used, {name: what is said of their fold}.
        self.unnamed: dict[str, nbformat.NotebookNode] = {}

    def cells(self, cell: nbformat.NotebookNode, line: int) -> list[Expanded]:
        """Return the cell as it is executed, after a cell of helpers where it needs some."""
        tags = list(cell.metadata.get("tags", []))
        self._check_names([*cell.metadata], tags, line)
        written, helper_names = (
            str(cell.metadata.pop(option, "")).replace(",", " ").split()
            for option in ("snippet", "folded")
        )
        own = self._declared(cell, tags, line)
        cell["outputs"] = []
        hidden = not HIDING_TAGS.isdisjoint(tags)
        if not written and not helper_names:
            self._note_own(cell.source, line)
            self._note_imports(cell.source, hidden)
            return [self._expanded(cell, tags, [own] if own else [], line)]
        try:
            wanted = [self.library.find(name, self.chapter) for name in written]
            folded = [self.library.find(name, self.chapter) for name in helper_names]
            named = [*wanted, *folded]
            excerpt = self.library.excerpt(wanted, folded, cell.source)
            errors = [error for error in map(self.library.expected_error, named) if error]
        except SnippetError as error:
            raise PageError(line, str(error)) from None
        except SyntaxError as error:
            message = f"{error.msg} in line {error.lineno} of the cell"
            raise PageError(line, message) from None
        if own:
            errors.append(own)
        reached = (*excerpt.definitions, *excerpt.borrowed)
        self.modules += [definition.module for definition in reached]
        bound = bound_names(cell.source)
        helpers = [
            d
            for d in excerpt.definitions
            if d not in wanted and not self._is_defined(d) and not self._is_replaced(d, bound)
        ]
        shown = [d for d in excerpt.definitions if d in wanted]
        sources = {helper.name: helper.source for helper in helpers}
        code = [*(d.source for d in shown), *([cell.source] if cell.source.strip() else [])]
        for imported in _read_by(excerpt.imports, [*sources.values(), *code]):
            for name, meaning in import_lines(imported.lines).items():
                self._note(name, meaning, line)
        for definition in excerpt.definitions:
            if not self._is_replaced(definition, bound):
                self._note(definition.name, self._origin(definition), line)
        self._note_own(cell.source, line)
        before = [self._folded(excerpt.imports, sources, cell)] if sources else []
        own_lines = cell.source
        cell["source"] = self._code_of(excerpt.imports, code, hidden, {d.name for d in folded})
        self._note_imports(own_lines, hidden)
        return [*before, self._expanded(cell, tags, errors, line)]

    @staticmethod
    def _declared(
        cell: nbformat.NotebookNode, tags: Collection[str], line: int
    ) -> ExpectedError | None:
        """Take the error that a cell declares by itself out of its options."""
        if "raises" not in cell.metadata:
            return ExpectedError("", "", "") if RAISES in tags else None
        declared = str(cell.metadata.pop("raises") or "").strip()
        if not declared:
            raise PageError(
                line, "':raises:' is empty; it needs 'TypeOfTheError part of its message'"
            )
        return ExpectedError("", *[*declared.split(None, 1), ""][:2])

    def _check_names(self, options: Iterable[str], tags: Iterable[str], line: int) -> None:
        """Refuse misspelt options and tags; those of other programs remain."""
        for name in options:
            if is_misspelt(name, self.options):
                hint = nearest(name.lower(), self.options)
                raise PageError(line, f"a code cell has no option '{name}'{hint}")
        for tag in tags:
            if is_misspelt(tag, TAGS):
                raise PageError(line, f"there is no tag '{tag}'{nearest(tag.lower(), TAGS)}")

    def _folded(
        self, imports: Iterable[Import], sources: dict[str, str], cell: nbformat.NotebookNode
    ) -> Expanded:
        """Return the cell of the helpers that another cell needs, which stands beside that one."""
        code = self._code_of(imports, [*sources.values()], hidden=True)
        folded = nbformat.v4.new_code_cell(code)
        prompts = {"code_prompt_show": HELPERS, "code_prompt_hide": "Hide the helpers"}
        facts = {"tags": ["hide-input"], "mystnb": prompts, "helpers": True}
        facts |= {"framework": cell.metadata["framework"]} if "framework" in cell.metadata else {}
        folded["metadata"] = nbformat.from_dict(facts)
        self.unnamed |= dict.fromkeys(sources, folded.metadata.mystnb)
        return Expanded(folded)

    def _code_of(
        self,
        imports: Iterable[Import],
        sources: list[str],
        hidden: bool,
        named: Collection[str] = (),
    ) -> str:
        """Return the imports that are new here, and the sources.

        What is imported is what the sources read, and what the page has `named`. What only a
        folded cell has imported is not new to Python, but to the reader.
        """
        imported = self.run_imports if hidden else self.seen_imports
        # 'import a.b' and 'import a.c' of two modules may share lines.
        lines = dict.fromkeys(
            line for item in _read_by(imports, sources, named) for line in item.lines.splitlines()
        )
        new = "\n".join(line for line in lines if line not in imported)
        self._note_imports(new, hidden)
        return join_code([new, *sources])

    def _note_imports(self, source: str, hidden: bool) -> None:
        """Note what a cell imports."""
        lines = [line for _, line in imports(parsed(source))]
        self.run_imports.update(lines)
        self.seen_imports.update([] if hidden else lines)
        self.imported.update(line.split()[1] for line in lines)

    def _expanded(
        self, cell: nbformat.NotebookNode, tags: list[str], errors: list[ExpectedError], line: int
    ) -> Expanded:
        with contextlib.suppress(SyntaxError):
            for name in names_used(cell.source) if HIDING_TAGS.isdisjoint(tags) else ():
                if fold := self.unnamed.pop(name, None):
                    mark = "," if ":" in fold.code_prompt_show else ":"
                    fold.code_prompt_show += f"{mark} {name}"
        if len(errors) > 1:
            both = " and ".join(error.snippet or "the cell" for error in errors)
            raise PageError(line, f"{both} each declare an error; give each a cell of its own")
        if errors:
            # So that the notebook that readers download runs to its end.
            cell.metadata["tags"] = [*dict.fromkeys([*tags, RAISES])]
        return Expanded(cell, errors[0] if errors else None)

    def _note_own(self, source: str, line: int) -> None:
        """Note what the page's own lines bind, in full view of the reader.

        They may bind anew what no snippet has imported, a snippet's constant too. A cell with a
        snippet that uses the name must then bind it as well.
        """
        imported = import_lines(source)
        for name in bound_names(source):
            meaning = imported.get(name, OWN)
            is_import = name in imported or self.meanings.get(name, "").startswith(IMPORT)
            if is_import and name in self.relied_on:
                self._note(name, meaning, line)
            self.meanings[name] = meaning

    def _note(self, name: str, meaning: str, line: int) -> None:
        """Note what a name that a snippet reads stands for; from here on it may not change."""
        self.relied_on.add(name)
        if (former := self.meanings.setdefault(name, meaning)) != meaning:
            raise PageError(
                line,
                f"the name '{name}' would stand for two things on this page: {former}, then "
                f"{meaning}. What ran before would use the new one; rename one of them",
            )

    def _origin(self, definition: Definition) -> str:
        if definition.module in self.library.brought:
            return self.library.line(definition)
        return f"{definition.name} of {self.library.path(definition.module)}"

    def _is_defined(self, definition: Definition) -> bool:
        return self.meanings.get(definition.name) == self._origin(definition)

    def _is_replaced(self, definition: Definition, bound: set[str]) -> bool:
        return self.meanings.get(definition.name) == OWN and definition.name in bound


def _read_by(
    imports: Iterable[Import], sources: list[str], named: Collection[str] = ()
) -> list[Import]:
    """Keep the imports that bind a name which the sources read, or that is `named`."""
    read = frozenset(named).union(*map(names_used, sources))
    return [item for item in imports if item.name in read]
