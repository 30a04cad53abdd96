"""Clean the outputs of a page when they leave its run, and prepare them for being shown."""

import copy
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import nbformat
from nbformat import NotebookNode

from .output_kinds import OutputKind

CELL_FILE = re.compile(r"/[^\s:'\"()]*/ipykernel_\d+/\d+\.py")
# Where packages lie, and the standard library.
INSTALLED = re.compile(r"/[^\s:'\"()]+/(?:(?:site|dist)-packages|lib(?:32|64)?/python3\.\d+t?)/")
WORK_FOLDER = re.compile(r"/[^\s:'\"()]*/book-\w+(?:/work)?")
# What native libraries log at import: information and warnings in glog's format, and the line
# that announces them. Lines of errors (E) and fatal errors (F) stay.
NATIVE_LOG = re.compile(
    r"^(?:[IW]\d{4} [\d:. ]+\S+:\d+\] .*|WARNING: All log messages before absl::Init.*)\n?",
    re.MULTILINE,
)
# When and in which thread a native library logged an error.
LOGGED = re.compile(r"^([EF])\d{4} [\d:.]+ +\d+ (?=\S+:\d+\] )", re.MULTILINE)
# The number that Python's `id` gives an object, after the name of its type.
NUMBERED = re.compile(r"(<[A-Za-z_][\w.]*) \d{12,20}(?=>)")
# What Python's own reprs print of objects, `<... at 0x7f...>`. No object lies at an address below
# 64 KiB.
ADDRESS = re.compile(r"(?<= at )0x0*[1-9a-fA-F][0-9a-fA-F]{4,15}(?=[>:;,]| )")
# Data for other programs, such as widgets, which a page without a kernel does not show.
DATA = re.compile(r"application/vnd\..+\+json")
# What moves to another place: bars of progress beneath each other go up.
UP = "\x1b[A"
MOVES = re.compile(r"(\r|\n|\x1b\[A)")
# What is taken for text, besides what is printed.
TEXTS = ("text/plain", "text/html", "image/svg+xml")


def kind_of(output: NotebookNode, kinds: Iterable[OutputKind]) -> OutputKind | None:
    """Return the kind of its own that an output is of, if it is of one."""
    data = output.get("data", {})
    return next((kind for kind in kinds if kind.media_type in data), None)


def content(output: NotebookNode, kind: OutputKind) -> Any:
    """Return the data of an output of a kind, which may be any JSON."""
    return output["data"][kind.media_type]


def error(outputs: Iterable[NotebookNode]) -> NotebookNode | None:
    """Return the error among a cell's outputs, if it ended with one."""
    return next((output for output in outputs if output.output_type == "error"), None)


def printed(shown: Iterable[NotebookNode]) -> str:
    """Return all text that a cell printed."""
    texts = []
    for output in shown:
        if output.output_type == "stream":
            texts.append(output.text)
        elif output.output_type == "error":
            texts.append(f"{output.ename}: {output.evalue}")
        else:
            texts.append(str(output.get("data", {}).get("text/plain", "")))
    return "\n".join(texts)


def presentable(
    outputs: Iterable[NotebookNode], kinds: Sequence[OutputKind] = ()
) -> list[NotebookNode]:
    """Return the outputs as the page shows them.

    Outputs of a kind of its own become lines of text, which make one block with those of a stream;
    what is also the value of the cell is shown once. The lines are what the kind says, where its
    data is what it must be, else the text that came with it.
    """
    shown: list[NotebookNode] = []
    seen: list[tuple[str, Any]] = []
    for output in copy.deepcopy(list(outputs)):
        if kind := kind_of(output, kinds):
            data = content(output, kind)
            if (kind.media_type, data) in seen:
                continue
            seen.append((kind.media_type, data))
            good = kind.problem(data) is None
            text = kind.text(data) if good else output["data"].get("text/plain", "")
            output = nbformat.v4.new_output("stream", text=text + "\n")
        elif "text/plain" in output.get("data", {}):
            data = {kind: value for kind, value in output.data.items() if not DATA.fullmatch(kind)}
            output["data"] = NotebookNode(data)
        shown.append(output)
    return with_whole_streams(shown)


def cleaned(outputs: Iterable[NotebookNode]) -> list[NotebookNode]:
    """Return outputs as they leave a run: nothing in their texts names a place of this machine."""
    clean = with_whole_streams(outputs)
    for output in clean:
        change_texts(output, scrubbed, TEXTS)
    return clean


def with_whole_streams(outputs: Iterable[NotebookNode]) -> list[NotebookNode]:
    """Return outputs with streams in one piece, and without what native libraries log.

    Of a line that was written several times over, as bars of progress are, the last text stays.
    """
    merged: list[NotebookNode] = []
    for output in outputs:
        if output.output_type == "stream":
            if output.name == "stderr":
                output["text"] = LOGGED.sub(r"\1… ", NATIVE_LOG.sub("", output.text))
            if not output.text:
                continue
            if merged and merged[-1].output_type == "stream" and merged[-1].name == output.name:
                merged[-1]["text"] += output.text
                continue
        merged.append(output)
    for output in merged:
        if output.output_type == "stream":
            output["text"] = _as_left(output.text)
    return merged


def _as_left(text: str) -> str:
    """Return what a terminal would be left with of lines that are written again and again."""
    lines, row, anew = [""], 0, False
    for part in MOVES.split(text):
        if part == "\r":
            anew = True
        elif part in ("\n", UP):
            row = max(row + (1 if part == "\n" else -1), 0)
            anew = row < len(lines)
            lines += [] if anew else [""]
        elif part:
            lines[row] = part if anew else lines[row] + part
            anew = False
    return "\n".join(lines)


def change_texts(output: NotebookNode, change: Callable[[str], str], kinds: Iterable[str]) -> None:
    """Change the texts of an output: of a stream, of an error, of these kinds of data."""
    for part, names in ((output, ("text", "evalue")), (output.get("data", {}), kinds)):
        for name in names:
            if isinstance(part.get(name), str):
                part[name] = change(part[name])
    if "traceback" in output:
        output["traceback"] = [change(line) for line in output.traceback]


def scrubbed(text: str) -> str:
    """Take the places and addresses of the machine that ran the code out of a text."""
    text = CELL_FILE.sub("this page", text)
    text = INSTALLED.sub("", text)
    text = WORK_FOLDER.sub(".", text)
    text = NUMBERED.sub(r"\1 …", text)
    return ADDRESS.sub("0x…", text)
