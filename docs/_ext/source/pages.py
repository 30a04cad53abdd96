"""Turn the text of a page into the notebook that is executed, shown and downloaded."""

import ast
import dataclasses
import pathlib

import nbformat
import yaml
from jupytext.myst import MystMetadataParsingError, myst_to_notebook

from .snippets import SnippetError

HELPERS = "Show the helpers used below"
KERNEL = {"name": "python3", "display_name": "Python 3"}
LANGUAGE = {"name": "python", "pygments_lexer": "ipython3", "file_extension": ".py"}


class PageError(Exception):
    """A page cannot become a notebook; `line` is where in its file."""

    def __init__(self, line, message):
        """Take the line, counted from 1, and the message."""
        super().__init__(message)
        self.line = line


@dataclasses.dataclass
class Page:
    """A page ready to be executed.

    `notebook` holds the expanded cells. `modules` maps each snippet module that
    the page reaches to the digest of its source. `benchmark` pages are executed
    alone. A page with a `device` is executed on that one only, wherever it is.
    """

    docname: str
    notebook: nbformat.NotebookNode
    modules: dict
    benchmark: bool
    device: str | None = None

    @property
    def code_cells(self):
        """The cells that are executed, in order."""
        return [cell for cell in self.notebook.cells if cell.cell_type == "code"]

    def line(self, cell):
        """Return the line of the page's file, counted from 1, at which a cell starts."""
        position = next(i for i, other in enumerate(self.notebook.cells) if other is cell)
        return self.notebook.metadata["source_map"][position]


def find_pages(folder):
    """Return {name: path} of all pages below `folder`, but for folders whose name starts with _."""
    folder = pathlib.Path(folder)
    found = {}
    for path in sorted(folder.rglob("*.md")):
        parts = path.relative_to(folder).with_suffix("").parts
        if not any(part.startswith("_") for part in parts):
            found["/".join(parts)] = path
    return found


def read_page(docname, path, library):
    """Read the page at `path` and expand its snippet cells; None where it has no code.

    Raises PageError for text that cannot be read or a snippet that does not exist.
    """
    text = pathlib.Path(path).read_text("utf8")
    if "{code-cell}" not in text or not text.startswith("---"):
        return None
    head, body, below_head = _split(text)
    try:
        options = yaml.safe_load(head) or {}
        notebook = myst_to_notebook(body, add_source_map=True)
    except yaml.YAMLError as error:
        raise PageError(1, f"the head of the page cannot be read: {error}") from None
    except MystMetadataParsingError as error:
        raise PageError(1, str(error)) from None
    if not any(cell.cell_type == "code" for cell in notebook.cells):
        return None
    written = text.splitlines()
    expansion = _Expansion(docname, library, written)
    cells, lines = [], []
    for cell, line in zip(notebook.cells, notebook.metadata["source_map"], strict=True):
        if cell.cell_type != "code":
            # MyST-NB counts the lines of prose from 0, those of cells from 1, and it takes
            # the blank lines away that come first.
            line = max(line, below_head)
            line = next(n for n, text in enumerate(written[line:], line + 1) if text.strip())
        new = expansion.cells(cell, line) if cell.cell_type == "code" else [cell]
        cells += new
        lines += [line] * len(new)
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    benchmark, device = bool(options.pop("benchmark", False)), options.pop("device", None)
    notebook.metadata = nbformat.from_dict(options)
    notebook.cells = cells
    notebook.metadata["source_map"] = lines
    notebook.metadata["kernelspec"] = dict(KERNEL)
    notebook.metadata["language_info"] = dict(LANGUAGE)
    return Page(docname, notebook, library.reached(expansion.modules), benchmark, device)


def _split(text):
    """Return the YAML head of a page, its body at the same lines as before, and where it begins."""
    lines = text.splitlines()
    end = next((n for n, line in enumerate(lines[1:], 1) if line.rstrip() == "---"), 0)
    return "\n".join(lines[1:end]), "\n".join([""] * (end + 1) + lines[end + 1 :]), end + 1


class _Expansion:
    """Expands the cells of one page in order, knowing what the earlier ones defined."""

    def __init__(self, docname, library, lines):
        self.lines = lines
        self.chapter = docname.rpartition("/")[0].replace("/", ".")
        self.library = library
        self.defined = {}
        self.modules = []

    def cells(self, cell, line):
        """Return the cell as it is executed, after a cell of helpers where it needs some."""
        tags = list(cell.metadata.get("tags", []))
        if "raises-exception" in tags:
            raise PageError(
                line,
                "the tag raises-exception would accept any error; declare the error in "
                "EXPECTED_ERRORS of the snippet's module instead",
            )
        written = str(cell.metadata.pop("snippet", "")).replace(",", " ").split()
        cell["outputs"] = []
        if not written:
            return [cell]
        try:
            wanted = [self.library.find(name, self.chapter) for name in written]
            excerpt = self.library.excerpt(wanted, cell.source)
            errors = [error for error in map(self.library.expected_error, wanted) if error]
        except SnippetError as error:
            raise PageError(line, str(error)) from None
        except SyntaxError as error:
            first = self._first_line(cell, line)
            raise PageError(first + error.lineno - 1, f"{error.msg} in the cell") from None
        if len(errors) > 1:
            both = " and ".join(error.snippet for error in errors)
            raise PageError(line, f"{both} each declare an error; give each a cell of its own")

        self.modules += [definition.module for definition in excerpt.definitions]
        helpers = [d for d in excerpt.definitions if d not in wanted and not self._is_defined(d)]
        shown = [d for d in excerpt.definitions if d in wanted]
        for definition in (*helpers, *shown):
            self.defined[definition.name] = definition.module
        code = [*(d.source for d in shown), *([cell.source] if cell.source.strip() else [])]
        cell["source"] = _join(_imports_for(excerpt.imports, code), code)
        if errors:
            cell.metadata["tags"] = [*tags, "raises-exception"]
            cell.metadata["expected_error"] = dataclasses.asdict(errors[0])
        if not helpers:
            return [cell]
        sources = [definition.source for definition in helpers]
        folded = nbformat.v4.new_code_cell(_join(_imports_for(excerpt.imports, sources), sources))
        folded["metadata"] = nbformat.from_dict(
            {"tags": ["hide-input"], "mystnb": {"code_prompt_show": HELPERS}}
        )
        return [folded, cell]

    def _first_line(self, cell, fence):
        """Return the line, counted from 1, at which the code of a cell starts, below options."""
        code = cell.source.splitlines()
        found = range(fence, len(self.lines))
        return 1 + next((i for i in found if self.lines[i : i + len(code)] == code), fence)

    def _is_defined(self, definition):
        return self.defined.get(definition.name) == definition.module


def _imports_for(imports, sources):
    """Keep the imports that bind a name which the sources read."""
    read = {
        node.id for node in ast.walk(ast.parse("\n".join(sources))) if isinstance(node, ast.Name)
    }

    def bound(line):
        alias = ast.parse(line).body[0].names[0]
        return alias.asname or alias.name.split(".")[0]

    return [line for line in imports if bound(line) in read]


def _join(imports, sources):
    return "\n\n\n".join([*(["\n".join(imports)] if imports else []), *sources])
