"""Outputs that go to other machines or come from them: cleaned when written, checked when read."""

import copy
import getpass
import pathlib
import re
import socket
from collections.abc import Iterable

from nbformat import NotebookNode

from measured.schema import Schema

from .outputs import change_texts, joined, record, scrubbed

TEXTS = ("text/plain", "text/html", "image/svg+xml")
KINDS = (*TEXTS, "image/png")
# What earlier recorders put before the ids in HTML.
PREFIX = re.compile(r'(?<= id=")out-[0-9a-f]{10}-')


class Refused(Exception):
    """An output is of a kind that is not recorded; the message says why."""


def recordable(outputs: Iterable[NotebookNode], schema: Schema | None = None) -> list[NotebookNode]:
    """Return the outputs as they are recorded: cleaned, and without what says nothing.

    Names of this machine and of who used it are taken out too. What is not accepted from
    elsewhere raises Refused here already.
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
        found.append(accepted(output, schema))
    return found


# Folders in which users have a folder of their name.
OF_USERS = "home|Users|users|scratch|work|data|mnt|nfs|gpfs|lustre|projects?|tmp|media"


def _private() -> list[tuple[re.Pattern[str], str]]:
    """Return patterns of what names this machine and its user, with what is said instead.

    A name alone can be any word, such as `jax` or `gpu`; so it counts only in places where users
    and machines are named.
    """
    host = socket.gethostname()
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        # A container may know no user of this number.
        user = "root"
    found = []
    # No word: names with a domain, of containers and of virtual machines.
    if "." in host or (re.search(r"\d", host) and len(host) >= 10):
        found.append((rf"(?<![\w.-]){re.escape(host)}(?![\w-])", "host"))
    # This one is nobody.
    if user != "root":
        home, name = re.escape(str(pathlib.Path.home())), re.escape(user)
        found += [
            (rf"(?<![\w./~-]){home}(?![\w-])", "~"),
            (rf"(?<=/)((?:{OF_USERS})/){name}(?![\w.-])", r"\1user"),
            (rf"(?<![\w./-]){name}@(?:{re.escape(host.partition('.')[0])}|host)\b", "user@host"),
        ]
    return [(re.compile(pattern), instead) for pattern, instead in found]


def accepted(output: NotebookNode, schema: Schema | None = None) -> NotebookNode:
    """Return an output from elsewhere fit to be shown; raises Refused for what is not known.

    What is no measurement by the schema is refused too; without one, so are all records.
    """
    if "metadata" in output:
        output["metadata"] = {}
    measured = record(output, schema)
    if schema and measured is not None:
        if problem := schema.problem(measured):
            raise Refused(f"holds a measurement that is none ({problem})")
    for kind, value in output.get("data", {}).items():
        if schema and kind == schema.media_type:
            continue
        if kind not in KINDS:
            raise Refused(f"holds {kind}, which is not accepted")
        if kind == "text/html":
            output["data"][kind] = PREFIX.sub("", value)
    return output
