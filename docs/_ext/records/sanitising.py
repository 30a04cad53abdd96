"""Outputs that go to other machines or come from them: cleaned when written, checked when read."""

import copy
import getpass
import json
import pathlib
import re
import socket
from collections.abc import Iterable

from nbformat import NotebookNode

from ..measurements.schema import Schema
from . import markup
from .markup import Refused
from .outputs import change_texts, joined, record, scrubbed

LARGEST_OUTPUT = 400_000
TEXTS = ("text/plain", "text/html", "image/svg+xml")
KINDS = (*TEXTS, "image/png")
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
            change_texts(output, without_names, TEXTS)
        html = output.get("data", {}).get("text/html", "")
        found.append(accepted(output, schema))
        if gone := markup.lost(html):
            raise Refused(
                f"holds HTML that would lose {gone[0]}; records/markup.py lists what is kept"
            )
    return found


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
    if "metadata" in output:
        output["metadata"] = {}
    printed = [output[name] for name in ("text", "ename", "evalue") if name in output]
    for text in (*printed, *output.get("traceback", ())):
        _check_text(text)
    measured = record(output, schema)
    if schema and measured is not None:
        if problem := schema.problem(measured):
            raise Refused(f"holds a measurement that is none ({problem})")
        if "text/plain" not in output["data"]:
            raise Refused("holds a measurement without its text")
        _check_text(json.dumps(measured, ensure_ascii=False))
    for kind, value in output.get("data", {}).items():
        if schema and kind == schema.media_type:
            continue
        if kind not in KINDS:
            raise Refused(f"holds {kind}, which is not accepted")
        _check_text(value)
        if kind == "text/html":
            output["data"][kind] = markup.cleaned(value)
    return output


def _check_text(text: str) -> None:
    if found := CONTROL.search(text):
        line = text.count("\n", 0, found.start()) + 1
        code = f"U+{ord(found[0]):04X}"
        raise Refused(f"holds the control character {code} in line {line} of a text")
