"""Turn the text of a page into the notebook that is executed, shown and downloaded."""

import collections
import dataclasses
import hashlib
import json
import os
import pathlib
import re
from collections.abc import Collection, Mapping
from typing import Any

import nbformat
import yaml

from ..names import is_misspelt, nearest
from .expansion import Expansion
from .expansion import PageError as PageError
from .snippets import ExpectedError, Library, split_lines

KERNEL = {"name": "python3", "display_name": "Python 3"}
CELL_AT = re.compile(r"^\w+ cell \d+ at line (\d+)")
HEAD = ("benchmark", "device", "recorded")
LANGUAGE = {"name": "python", "pygments_lexer": "ipython3", "file_extension": ".py"}


def digest(value: Any) -> str:
    """Return a SHA-256 over plain data."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


@dataclasses.dataclass(frozen=True)
class Cell:
    """A code cell of a page, ready to be executed.

    `key` is a hash of its code and of the error that it must raise; the second of two equal
    cells has one of its own. `line` is where it begins in the page's file, counted from 1.
    `node` is the cell in the page's notebook.
    """

    key: str
    source: str
    line: int
    expected: ExpectedError | None
    node: nbformat.NotebookNode

    @property
    def framework(self) -> str:
        """The name of the framework whose cell it is, empty where the page says none."""
        return str(self.node.metadata.get("framework", ""))

    @property
    def has_helpers(self) -> bool:
        """Whether it only holds what the next cell needs."""
        return bool(self.node.metadata.get("helpers"))


@dataclasses.dataclass(frozen=True)
class Page:
    """A page ready to be executed; it is not changed by being executed or shown.

    `modules` maps each snippet module that it reaches to the digest of its source. `files` are
    the modules that it imports from beside it, {name: text}. A `benchmark` page is executed alone.
    A page with a `device` is executed on that one only. No build executes a page that names the
    command by which it is `recorded`, such as `nox -s years --`.
    """

    docname: str
    notebook: nbformat.NotebookNode
    cells: tuple[Cell, ...]
    modules: Mapping[str, str]
    benchmark: bool = False
    device: str | None = None
    recorded: str = ""
    files: Mapping[str, str] = dataclasses.field(default_factory=dict)


def read_page(
    docname: str,
    path: str | os.PathLike[str],
    library: Library,
    devices: Collection[str] = (),
    frameworks: Collection[str] = (),
    cell_options: Collection[str] = (),
) -> Page | None:
    """Read the page at `path` and expand its snippet cells; None where it has no code.

    `devices` are the names that its head may give, and `frameworks` those that cells may give;
    without any they may give all. `cell_options` are further options of cells. Raises PageError
    for text that cannot be read or a snippet that does not exist.
    """
    text = _text(path)
    if "{code-cell}" not in text or not text.startswith("---"):
        return None
    head, body, below_head = _split(text)
    options, notebook = _parsed(head, body)
    if not any(cell.cell_type == "code" for cell in notebook.cells):
        return None
    written = split_lines(text)
    benchmark, device, recorded = _execution(options, devices)
    expansion = Expansion(docname, library, cell_options)
    cells, lines, code = [], [], []
    seen: collections.Counter[str] = collections.Counter()
    for cell, line in zip(notebook.cells, notebook.metadata["source_map"], strict=True):
        if cell.cell_type != "code":
            # MyST-NB counts the lines of prose from 0, those of cells from 1, and it takes
            # the blank lines away that come first.
            line = max(line, below_head)
            while not written[line].strip():
                line += 1
            cells.append(cell)
            lines.append(line + 1)
            continue
        _check_framework(cell, line, frameworks)
        for new in expansion.cells(cell, line):
            cells.append(new.node)
            lines.append(line)
            key = _key(new.node.source, new.expected, seen)
            code.append(Cell(key, new.node.source, line, new.expected, new.node))
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    notebook.metadata = nbformat.from_dict(options)
    notebook.cells = cells
    notebook.metadata["source_map"] = lines
    notebook.metadata["kernelspec"] = dict(KERNEL)
    notebook.metadata["language_info"] = dict(LANGUAGE)
    brought = {name: module for module, name in library.brought.items()}
    names = sorted(brought.keys() & expansion.imported)
    modules = library.reached([*expansion.modules, *(brought[name] for name in names)])
    files = {name: library.file(name) for name in names}
    return Page(
        docname,
        notebook,
        tuple(code),
        dict(sorted(modules.items())),
        benchmark,
        device,
        recorded,
        files,
    )


def _text(path: str | os.PathLike[str]) -> str:
    content = pathlib.Path(path).read_bytes()
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        message = f"the page cannot be read: {error}; save it as text in UTF-8"
        raise PageError(line, message) from None


def _parsed(head: str, body: str) -> tuple[dict[str, Any], nbformat.NotebookNode]:
    """Return what the head of a page says, and the page as a notebook."""
    # Takes a while to import, and a build that reads no page does without.
    from jupytext.myst import MystMetadataParsingError, myst_to_notebook

    try:
        options = yaml.safe_load(head) or {}
        notebook = myst_to_notebook(body, add_source_map=True)
    except yaml.YAMLError as error:
        raise PageError(1, f"the head of the page cannot be read: {error}") from None
    except MystMetadataParsingError as error:
        place = CELL_AT.search(str(error))
        hint = "a value that has a colon in it is written in quotes"
        if str(error).startswith("Markdown"):
            hint = "behind +++ stands nothing, or a dictionary in JSON"
        raise PageError(int(place[1]) if place else 1, f"{error}; {hint}") from None
    except nbformat.ValidationError as error:
        lines = split_lines(body)
        numbers = (n for n, line in enumerate(lines, 1) if line.endswith(f": {error.instance}"))
        line = next(numbers, 1)
        raise PageError(line, f"'{lines[line - 1]}' cannot be: {error.message}") from None
    if not isinstance(options, dict):
        raise PageError(1, "the head of the page is not a list of names with values")
    return options, notebook


def _execution(options: dict[str, Any], devices: Collection[str]) -> tuple[bool, str | None, str]:
    """Take what decides how a page is executed out of its head."""
    for name in map(str, options):
        if is_misspelt(name, HEAD):
            hint = nearest(name.lower(), HEAD)
            raise PageError(1, f"the head of a page has no '{name}'{hint}")
    benchmark, device = options.pop("benchmark", False), options.pop("device", None)
    if not isinstance(benchmark, bool):
        raise PageError(1, f"'benchmark: {benchmark}' in the head must be true or false")
    if device is not None and devices and device not in devices:
        hint = nearest(str(device), devices)
        raise PageError(1, f"there is no device '{device}', which the head names{hint}")
    return benchmark, device, str(options.pop("recorded", ""))


def _check_framework(cell: nbformat.NotebookNode, line: int, frameworks: Collection[str]) -> None:
    """Refuse a framework that is unknown."""
    name = cell.metadata.get("framework")
    if name is not None and frameworks and name not in frameworks:
        hint = nearest(str(name), frameworks)
        raise PageError(line, f"there is no framework '{name}'{hint}")


def _key(source: str, expected: ExpectedError | None, seen: collections.Counter[str]) -> str:
    error = [expected.type, expected.fragment] if expected else None
    key = digest([source, error])[:16]
    seen[key] += 1
    return key if seen[key] == 1 else f"{key}-{seen[key]}"


def _split(text: str) -> tuple[str, str, int]:
    """Return the head of a page, its body at the same lines as before, and where it begins."""
    lines = split_lines(text)
    end = next((n for n, line in enumerate(lines[1:], 1) if line.rstrip() == "---"), 0)
    return "\n".join(lines[1:end]), "\n".join([""] * (end + 1) + lines[end + 1 :]), end + 1
