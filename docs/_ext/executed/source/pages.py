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

from .. import files
from ..names import is_misspelt, nearest
from .expansion import Expansion
from .expansion import PageError as PageError
from .snippets import ExpectedError, Library, split_lines

KERNEL = {"name": "python3", "display_name": "Python 3"}
CELL_AT = re.compile(r"^\w+ cell \d+ at line (\d+)")
HEAD = ("benchmark", "device", "recorded")
# Directives whose content is no Markdown.
LITERAL = {"code-block", "code", "sourcecode", "code-cell", "raw-cell", "raw", "eval-rst", "math"}
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
    the modules that it imports from its own folder, {name: text}. `named_files` are the files in
    that folder that its code names, {path: digest}. A `benchmark` page is executed alone. A page
    with a `device` is executed on that one only. No build executes a page that names the
    `record_command` by which it is recorded, such as `nox -s years --`.
    """

    docname: str
    notebook: nbformat.NotebookNode
    cells: tuple[Cell, ...]
    modules: Mapping[str, str]
    benchmark: bool = False
    device: str | None = None
    record_command: str = ""
    files: Mapping[str, str] = dataclasses.field(default_factory=dict)
    named_files: Mapping[pathlib.Path, str] = dataclasses.field(default_factory=dict)


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
    text, below_head = _text(path), 0
    if pathlib.Path(path).suffix == ".ipynb":
        options, notebook = _notebook(text)
    elif "{code-cell}" in text:
        head, body, below_head = _split(text)
        _refuse_nested(body)
        options, notebook = _parsed(head, body)
    else:
        return None
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
            skipped = "skip-execution" in new.node.metadata.get("tags", ())
            source = "" if skipped else new.node.source
            key = _key(source, new.expected, seen)
            code.append(Cell(key, source, line, new.expected, new.node))
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
    return Page(
        docname,
        notebook,
        tuple(code),
        dict(sorted(modules.items())),
        benchmark,
        device,
        recorded,
        {name: library.file(name) for name in names},
        _named_files(pathlib.Path(path).parent, "\n".join(cell.source for cell in code)),
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


def _notebook(text: str) -> tuple[dict[str, Any], nbformat.NotebookNode]:
    """Return what a notebook says of itself, and it, without what it printed elsewhere."""
    try:
        notebook = nbformat.reads(text, as_version=4)
    except Exception as error:
        # nbformat raises what it likes.
        problem = str(error).partition("\n")[0][:300]
        raise PageError(1, f"the notebook cannot be read: {problem}") from None
    lines = enumerate(split_lines(text), 1)
    places = [n for n, line in lines for _ in range(line.count('"cell_type":'))]
    options = {name: value for name, value in notebook.metadata.items() if name != "widgets"}
    # Those of prose are counted from 0.
    notebook.metadata["source_map"] = [
        place - (cell.cell_type != "code")
        for place, cell in zip([*places, *[1] * len(notebook.cells)], notebook.cells, strict=False)
    ]
    notebook.nbformat_minor = 5
    return options, notebook


def _refuse_nested(body: str, above: int = 0, within: str = "") -> None:
    """Refuse cells inside of directives: no notebook holds them, and a page would lose them."""
    # Imported here, as in `_parsed`.
    from markdown_it import MarkdownIt
    from mdit_py_plugins.colon_fence import colon_fence_plugin

    for token in MarkdownIt("commonmark").use(colon_fence_plugin).parse(body):
        name = token.info.strip()[1:].partition("}")[0] if "{" in token.info else ""
        line = above + (token.map or [0])[0] + 1
        if name == "code-cell" and (within or token.markup.startswith(":")):
            raise PageError(
                line,
                f"a code cell stands between backticks, and not inside of {within or 'colons'}: "
                "end that before it. Tabs are cells beside each other, each with ':framework:'",
            )
        if name and name not in LITERAL:
            _refuse_nested(token.content, line, f"{{{name}}}")


def _named_files(folder: pathlib.Path, code: str) -> dict[pathlib.Path, str]:
    """Return what lies in the folder of a page and its code names, {path: digest}.

    So is what modules among these name. The code of a page finds nothing else there.
    """
    found: dict[pathlib.Path, str] = {}
    waiting = [code]
    while waiting:
        text = waiting.pop()
        for path in sorted(folder.iterdir()):
            end = r"[/\"']" if path.is_dir() else r"(?![\w.])"
            named = rf"(?<![\w.]){re.escape(path.name)}{end}"
            if path.is_dir() or path.suffix == ".py":
                named += rf"|^\s*(?:from|import)\b.*\b{re.escape(path.stem)}\b"
            if path not in found and re.search(named, text, re.MULTILINE):
                found[path] = files.tree_digest(path)
                waiting += [path.read_text("utf8", "replace")] if path.suffix == ".py" else []
    return found


def _execution(options: dict[str, Any], devices: Collection[str]) -> tuple[bool, str | None, str]:
    """Take what decides how a page is executed out of its head."""
    for name in map(str, options):
        if is_misspelt(name, HEAD):
            hint = nearest(name.lower(), HEAD)
            raise PageError(1, f"the head of a page has no '{name}'{hint}")
    kernel = options.get("kernelspec")
    names = [kernel.get(key) for key in ("language", "name")] if isinstance(kernel, dict) else []
    language = str(next(filter(None, names), "python"))
    if not language.lower().startswith(("py", "ipy", "conda")):
        raise PageError(
            1,
            f"its kernelspec says {language}, and only Python is executed: add 'language: python' "
            "if it is, else show its code in plain blocks, or leave the page out by "
            "exclude_patterns of conf.py",
        )
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
    if not text.startswith("---"):
        return "", text, 0
    end = next((n for n, line in enumerate(lines[1:], 1) if line.rstrip() == "---"), 0)
    return "\n".join(lines[1:end]), "\n".join([""] * (end + 1) + lines[end + 1 :]), end + 1
