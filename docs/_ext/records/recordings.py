"""Recordings: what pages printed on one device, kept as notebooks without code.

They may come from anybody's machine. So what is written is cleaned, what is read is
checked, and a file that cannot be read says why without harming anything else.
"""

import collections
import dataclasses
import os
import pathlib

import nbformat

from . import sanitising as foreign
from .identity import digest

LARGEST_FILE = 4_000_000
FACTS = {
    "command": str,
    "device": str,
    "device_kind": str,
    "executed": str,
    "page": str,
    "processor": str,
    "seconds": (int, float),
    "threads": int,
    "versions": dict,
}
OPTIONAL_FACTS = {"driver": str, "memory": str}
NOT_FACTS = ("skipped", "modules")


class RecordingError(Exception):
    """A recording cannot be read; the message says why."""


@dataclasses.dataclass(frozen=True)
class RecordedCell:
    """The outputs of one cell, or the framework without which it could not be executed."""

    outputs: list
    skipped: str | None


@dataclasses.dataclass(frozen=True)
class Recording:
    """What one page printed on one device: facts, and cells by the key of their code."""

    facts: dict
    cells: dict
    modules: dict

    def cell(self, key):
        """Return the recorded cell whose code has this key, or None."""
        return self.cells.get(key)

    def changes(self, page):
        """Say what has changed in the page since, as texts; none where the recording is current."""
        keys = cell_keys(page)
        if list(self.cells) == keys:
            return []
        new = [n for n, key in enumerate(keys, 1) if key not in self.cells]
        gone = [key for key in self.cells if key not in keys]
        found = []
        if new:
            found.append(f"new or edited: cell {', '.join(map(str, new))}")
        if gone:
            found.append(f"{len(gone)} recorded cell{'s are' if len(gone) > 1 else ' is'} gone")
        changed = [n for n, key in self.modules.items() if page.modules.get(n) not in (key, None)]
        if changed and found:
            found.append("changed since: " + ", ".join(f"snippets {name}" for name in changed))
        return found or ["the cells have changed places"]


def cell_keys(page):
    """Return a key for the code of each cell; the second of two equal cells gets one of its own."""
    keys, seen = [], collections.Counter()
    for cell in page.code_cells:
        key = digest([cell.source, cell.metadata.get("expected_error")])[:16]
        seen[key] += 1
        keys.append(key if seen[key] == 1 else f"{key}-{seen[key]}")
    return keys


def path_of(root, device, docname):
    """Return the file in which a page's recording on a device is kept."""
    return pathlib.Path(root, device, f"{docname}.ipynb")


def write(root, page, facts, schema=None):
    """Record an executed page. The former recording is replaced at once, or not at all."""
    kept = {key: value for key, value in facts.items() if key not in NOT_FACTS}
    known = {
        "command": f"nox -s record -- {page.docname}",
        "modules": page.modules,
        "page": page.docname,
    }
    notebook = nbformat.v4.new_notebook(metadata={"recording": kept | known})
    notebook.nbformat_minor = 5
    skipped = facts.get("skipped", {})
    for position, (cell, key) in enumerate(zip(page.code_cells, cell_keys(page), strict=True)):
        outputs = foreign.recordable(cell.outputs, schema)
        recorded = nbformat.v4.new_code_cell("", id=key, outputs=outputs)
        if str(position) in skipped:
            recorded.metadata["skipped"] = skipped[str(position)]
        notebook.cells.append(recorded)
    text = nbformat.writes(notebook) + "\n"
    path = path_of(root, facts["device"], page.docname)
    _parse(text, facts["device"], page.docname, schema)
    path.parent.mkdir(parents=True, exist_ok=True)
    half_written = path.with_suffix(f".{os.getpid()}")
    half_written.write_text(text, "utf8")
    half_written.replace(path)
    return path


def read(root, device, docname, schema=None):
    """Return the Recording of a page, or None where there is none; raises RecordingError."""
    path = path_of(root, device, docname)
    try:
        with path.open(encoding="utf8") as file:
            text = file.read(LARGEST_FILE + 1)
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise RecordingError(str(error)) from None
    return _parse(text, device, docname, schema)


def _parse(text, device, docname, schema):
    if len(text) > LARGEST_FILE:
        raise RecordingError(f"it is larger than {LARGEST_FILE} characters")
    if any(line.startswith(("<<<<<<< ", ">>>>>>> ")) for line in text.splitlines()):
        raise RecordingError("it has the marks of a merge conflict")
    try:
        notebook = nbformat.reads(text, as_version=4)
        nbformat.validate(notebook)
        nbformat.writes(notebook).encode("utf8")
        facts = dict(notebook.metadata["recording"])
        modules = dict(facts.pop("modules"))
    except Exception as error:
        # Any content must end here: the file is from elsewhere, and nbformat raises what it likes.
        first = str(error).strip().splitlines() or [""]
        raise RecordingError(f"it is no recording ({type(error).__name__}: {first[0]})") from None
    for name, kind in (FACTS | OPTIONAL_FACTS).items():
        if name in {*FACTS, *facts} and not isinstance(facts.get(name), kind):
            raise RecordingError(f"its fact '{name}' is missing or of the wrong type")
    if facts["page"] != docname:
        raise RecordingError(f"it is a recording of the page {facts['page']}")
    if facts["device"] != device:
        raise RecordingError(f"it is a recording of the device {facts['device']}")
    cells = {}
    for number, cell in enumerate(notebook.cells, 1):
        if cell.cell_type != "code" or cell.source or "id" not in cell:
            raise RecordingError(f"its cell {number} is not an output without code")
        try:
            accepted = [foreign.accepted(output, schema) for output in cell.outputs]
        except foreign.Refused as error:
            raise RecordingError(f"its cell {number} {error}") from None
        skipped = cell.metadata.get("skipped")
        cells[cell.id] = RecordedCell(accepted, None if skipped is None else str(skipped))
    return Recording(facts, cells, modules)


def devices(root):
    """Return the names of the devices of which there are recordings."""
    root = pathlib.Path(root)
    if not root.is_dir():
        return []
    return sorted(
        path.name for path in root.iterdir() if path.is_dir() and any(path.rglob("*.ipynb"))
    )


def recorded_pages(root, device):
    """Return the names of the pages of which a device has a file."""
    folder = pathlib.Path(root, device)
    return sorted(
        path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.ipynb")
    )


@dataclasses.dataclass(frozen=True)
class State:
    """Whether a recording can be trusted: current, stale, missing or unreadable, and why."""

    word: str
    reasons: tuple = ()
    recording: Recording | None = None

    @property
    def red(self):
        """Whether a strict build must fail."""
        return self.word in ("stale", "unreadable")

    def __str__(self):
        """Say the state and its reasons in words."""
        return self.word + (f": {'; '.join(self.reasons)}" if self.reasons else "")


def state(root, device, docname, page, schema=None):
    """Return the State of a page's recording on a device; `page` is None where it has no code."""
    try:
        recording = read(root, device, docname, schema)
    except RecordingError as error:
        return State("unreadable", (str(error),))
    if recording is None:
        return State("missing")
    if page is None:
        return State("stale", ("the page is gone, or has no code any more",))
    if page.device not in (None, device):
        return State("stale", (f"the page is now executed on {page.device} only",))
    changes = tuple(recording.changes(page))
    return State("stale" if changes else "current", changes, recording)
