"""Outputs that go to other machines or come from them: cleaned when written, checked when read."""

import copy
import getpass
import pathlib
import re
import socket
from collections.abc import Iterable, Sequence

from nbformat import NotebookNode

from .output_kinds import OutputKind
from .outputs import TEXTS, change_texts, content, kind_of

MEDIA_TYPES = (*TEXTS, "image/png")


class Refused(Exception):
    """An output is of a kind that is not recorded; the message says why."""


def recordable(
    outputs: Iterable[NotebookNode], kinds: Sequence[OutputKind] = ()
) -> list[NotebookNode]:
    """Return the outputs as they are recorded: without names of this machine and its user.

    What is not accepted from elsewhere raises Refused here already.
    """
    private = _private()

    def without_names(text: str) -> str:
        for pattern, instead in private:
            text = pattern.sub(instead, text)
        return text

    recorded = []
    for output in copy.deepcopy(list(outputs)):
        if output.output_type == "execute_result":
            output["execution_count"] = None
        if kind_of(output, kinds) is None:
            # What is of a kind of its own has fields of its own.
            change_texts(output, without_names, TEXTS)
        recorded.append(accepted(output, kinds))
    return recorded


# Folders in which users have a folder of their name.
OF_USERS = "home|Users|users|scratch|work|data|mnt|nfs|gpfs|lustre|projects?|tmp|media"


def _private() -> list[tuple[re.Pattern[str], str]]:
    """Return patterns that match names of this machine and its user, with their replacements.

    A name alone can be any word, such as `jax` or `gpu`; so it counts only in places where users
    and machines are named.
    """
    host = socket.gethostname()
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        # A container may know no user of this number.
        user = "root"
    patterns = []
    # No word: names with a domain, of containers and of virtual machines.
    if "." in host or (re.search(r"\d", host) and len(host) >= 10):
        patterns.append((rf"(?<![\w.-]){re.escape(host)}(?![\w-])", "host"))
    # This one is nobody.
    if user != "root":
        home, name = re.escape(str(pathlib.Path.home())), re.escape(user)
        patterns += [
            (rf"(?<![\w./~-]){home}(?![\w-])", "~"),
            (rf"(?<=/)((?:{OF_USERS})/){name}(?![\w.-])", r"\1user"),
            (rf"(?<![\w./-]){name}@(?:{re.escape(host.partition('.')[0])}|host)\b", "user@host"),
        ]
    return [(re.compile(pattern), instead) for pattern, instead in patterns]


def accepted(output: NotebookNode, kinds: Sequence[OutputKind] = ()) -> NotebookNode:
    """Return an output from elsewhere fit to be shown; raises Refused for what is not known.

    So is what its own kind does not know.
    """
    if "metadata" in output:
        output["metadata"] = {}
    kind = kind_of(output, kinds)
    if kind is not None and (problem := kind.problem(content(output, kind))):
        raise Refused(f"holds {problem}")
    for media_type in output.get("data", {}):
        if kind is not None and media_type == kind.media_type:
            continue
        if media_type not in MEDIA_TYPES:
            raise Refused(f"holds {media_type}, which is not accepted")
    return output
