"""Outputs that go to other machines or come from them: cleaned when written, checked when read."""

import copy
import getpass
import json
import pathlib
import re
import socket
from collections.abc import Callable, Iterable
from typing import Any

from nbformat import NotebookNode

from ..measurements.schema import Schema
from . import markup
from .markup import DRAWING, TEXT, Refused
from .outputs import change_texts, joined, png_size, record, scrubbed

LARGEST_OUTPUT = 400_000
LARGEST_PICTURE = 10_000
# Control characters but line breaks, tabs and the sequences that set colours; and those that
# change the direction of writing.
CONTROL = re.compile(
    "[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
    r"|\x1b(?!\[[\d;]{0,30}m)"
)


def recordable(outputs: Iterable[NotebookNode], schema: Schema | None = None) -> list[NotebookNode]:
    """Return the outputs as they are recorded: cleaned, and without what says nothing.

    Names of this machine and of who used it are taken out too. What is not accepted from
    elsewhere, or would be shown otherwise once it is cleaned, raises Refused here already.
    """
    private = _private()

    def without_names(text: str) -> str:
        text = scrubbed(text)
        for pattern, instead in private:
            text = pattern.sub(instead, text)
        return text

    found = []
    for output in joined(copy.deepcopy(list(outputs))):
        if output.output_type == "execute_result":
            output["execution_count"] = None
        if record(output, schema) is None:
            # A measurement has fields of its own.
            change_texts(output, without_names, ("text/plain", *MARKUP))
        for kind, value in output.get("data", {}).items():
            if kind in MARKUP:
                _check_markup(kind, value)
        found.append(accepted(output, schema))
    return found


def _check_markup(kind: str, value: str) -> None:
    """Raise Refused for markup that would be shown otherwise once it is cleaned."""
    try:
        gone = markup.lost(_text(value), MARKUP[kind])
    except RecursionError:
        raise Refused("holds a style with too many brackets within each other") from None
    if gone:
        raise Refused(f"holds {kind} that would lose {gone}, which is not accepted from elsewhere")


# Folders in which users have a folder of their name.
OF_USERS = "home|Users|users|scratch|work|data|mnt|nfs|gpfs|lustre|projects?|tmp|media"


def _private() -> list[tuple[re.Pattern[str], str]]:
    """Return patterns of what names this machine and its user, with what is said instead.

    A name alone can be any word, such as `jax` or `gpu`; so it counts only in places where users
    and machines are named.
    """
    home = str(pathlib.Path.home())
    host = socket.gethostname()
    short = host.partition(".")[0]
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = ""

    def said(words: str) -> str:
        return rf"(?<![\w.-])((?i:{words})[\"']?\s*[:=]\s*[\"']?)"

    found = []
    # These name nobody.
    if len(home) > 1 and home != "/root":
        found.append((rf"(?<![\w./~-]){re.escape(home)}(?![\w-])", "~"))
    if "." in host and host != "localhost.localdomain":
        found.append((rf"(?<![\w.-]){re.escape(host)}(?![\w-])", "host"))
    if short not in ("", "localhost"):
        name, local = re.escape(short), "local|lan|internal|localdomain|home"
        found += [
            (rf"{said('hostname|host|node|nodename')}{name}(?![\w-])", r"\1host"),
            (rf"(?<=://){name}(?=[:/.]|$)", "host"),
            (rf"(?<![\w.-]){name}(?=\.(?:[\w-]+\.)*(?:{local})\b)", "host"),
        ]
        if re.search(r"\d", short) and len(short) >= 10:
            # No word: the names of containers and of virtual machines.
            found.append((rf"(?<![\w.-]){name}(?![\w-])", "host"))
    if user and user != "root":
        name = re.escape(user)
        found += [
            (rf"(?<=/)((?:{OF_USERS})/){name}(?![\w.-])", r"\1user"),
            (rf"(\\Users\\){name}(?![\w.-])", r"\1user"),
            (rf"{said('user|login|logname|username')}{name}(?![\w.-])", r"\1user"),
            (rf"(?<![\w./-]){name}@{re.escape(short)}(?![\w-])", "user@host"),
            (rf"(?<![\w./-]){name}@(?=host\b|[\w-]+\.[\w.-]+)", "user@"),
        ]
    return [(re.compile(pattern), instead) for pattern, instead in found]


def accepted(output: NotebookNode, schema: Schema | None = None) -> NotebookNode:
    """Return an output from elsewhere fit to be shown; raises Refused for what is not known.

    What is no measurement by the schema is refused too; without one, so are all records.
    """
    try:
        size = len(json.dumps(output, allow_nan=False))
    except ValueError:
        raise Refused("holds a number that is none") from None
    if size > LARGEST_OUTPUT:
        raise Refused(f"is larger than {LARGEST_OUTPUT} characters")
    if output.output_type not in ("stream", "error", "display_data", "execute_result"):
        raise Refused(f"is of the unknown type {output.output_type}")
    if output.output_type == "stream" and output.get("name") not in ("stdout", "stderr"):
        raise Refused(f"is of the unknown stream {output.get('name')}")
    if "metadata" in output:
        output["metadata"] = {}
    needed = {"stream": ("text",), "error": ("ename", "evalue")}.get(output.output_type, ())
    for name in needed:
        _text(output.get(name))
    for line in output.get("traceback", []):
        _text(line)
    measured = record(output, schema)
    if schema and measured is not None:
        if problem := schema.problem(measured):
            raise Refused(f"holds a measurement that is none ({problem})")
        if "text/plain" not in output["data"]:
            raise Refused("holds a measurement without its text")
    for kind, value in output.get("data", {}).items():
        if schema and kind == schema.media_type:
            continue
        if kind not in CHECKS:
            raise Refused(f"holds {kind}, which is not accepted")
        output["data"][kind] = CHECKS[kind](value)
    return output


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise Refused("holds a text that is none")
    found = CONTROL.search(value)
    if found:
        line = value.count("\n", 0, found.start()) + 1
        code = f"U+{ord(found[0]):04X}"
        raise Refused(f"holds the control character {code} in line {line} of a text")
    return value


def _png(value: Any) -> str:
    size = png_size(_text(value))
    if size is None:
        raise Refused("holds a PNG image that is none, or a damaged one")
    if max(size) > LARGEST_PICTURE:
        raise Refused(f"holds an image of more than {LARGEST_PICTURE} pixels on a side")
    return value


def _markup(kind: str) -> Callable[[Any], str]:
    def sanitised(value: Any) -> str:
        try:
            found = _text(markup.cleaned(_text(value), MARKUP[kind]))
        except RecursionError:
            raise Refused("holds a style with too many brackets within each other") from None
        if kind == "image/svg+xml":
            markup.check_drawing(found)
        return found

    return sanitised


MARKUP = {"text/html": TEXT | DRAWING, "image/svg+xml": DRAWING}
CHECKS: dict[str, Callable[[Any], Any]] = {
    "text/plain": _text,
    **{kind: _markup(kind) for kind in MARKUP},
    "image/png": _png,
}
