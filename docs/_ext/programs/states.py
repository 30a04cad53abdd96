"""The files of records: read, written, and compared with the functions that they belong to."""

import contextlib
import dataclasses
import getpass
import pathlib
import socket
import sys
from collections.abc import Iterable, Mapping

from .. import files
from ..options import Target
from ..records.states import State
from .declared import Program
from .parsing import RecordError, parse, written
from .records import ProgramRecord, Record, ScaleRecord

MOST_BYTES = 400_000


def read(path: pathlib.Path) -> Record:
    """Return the record in a file, checked; raises RecordError, or FileNotFoundError."""
    try:
        return parse(files.read(path, MOST_BYTES), path.name.endswith(".scale.json"))
    except files.Unusable as error:
        raise RecordError(str(error)) from None


def keep(path: pathlib.Path, record: Record) -> bool:
    """Write a record, unless the one that is there differs in nothing but its date.

    Return whether it was written. Raises RecordError for one that could not be read again or
    that tells of this machine.
    """
    text = written(record)
    if found := leaks(text):
        raise RecordError(f"it would hold {', '.join(found)}")
    if len(text.encode()) > MOST_BYTES:
        raise RecordError(f"it would be larger than {MOST_BYTES} bytes")
    parse(text, isinstance(record, ScaleRecord))
    with contextlib.suppress(OSError, RecordError):
        if same(path, record):
            return False
    files.write(path, text)
    return True


def same(path: pathlib.Path, record: Record) -> bool:
    """Say whether the record in a file differs from a new one in nothing but its date."""
    return dataclasses.replace(read(path), date=record.date) == record


def leaks(text: str) -> list[str]:
    """Return what in a text tells of this machine: folders, the names of the user and the host.

    A name counts as one in a path or an address only: a host may be called as an operation is.
    """
    host = socket.gethostname()
    private = [
        str(pathlib.Path.cwd()),
        str(pathlib.Path.home()),
        sys.prefix,
        f"//{host}",
        f"@{host}:",
    ]
    with contextlib.suppress(KeyError, OSError):
        private.append(f"/{getpass.getuser()}/")
    return sorted({word for word in private if len(word) > 3 and word in text})


def state(
    folder: pathlib.Path, program: Program, targets: Mapping[str, Target]
) -> tuple[Record | None, State]:
    """Return the record of a program, None where there is none to use, and its State."""
    try:
        record = read(folder / program.file)
    except FileNotFoundError:
        return None, State("missing")
    except RecordError as error:
        return None, State("unreadable", (str(error),))
    if record.function != program.name:
        return None, State("unreadable", (f"it is of {record.function}",))
    if unknown := [name for name in _targets(record) if name not in targets]:
        return None, State("unreadable", (f"it is of the unknown device {unknown[0]!a}",))
    changed = []
    if record.source != program.key:
        changed.append("the source changed")
    if record.arguments != program.arguments:
        changed.append("the arguments changed")
    if changed:
        return record, State("earlier code", tuple(changed))
    if names := lacking(record, program, targets):
        labels = ", ".join(targets[name].label for name in names)
        return record, State("missing", (f"not compiled for {labels}",))
    return record, State("current")


def _targets(record: Record) -> list[str]:
    if isinstance(record, ScaleRecord):
        return [run.target for run in record.runs]
    return list(record.targets) if isinstance(record, ProgramRecord) else []


def lacking(record: Record, program: Program, targets: Mapping[str, Target]) -> list[str]:
    """Return the targets that a record should have and has not."""
    if not isinstance(record, ScaleRecord):
        return [name for name in targets if name not in _targets(record)]
    present = {(run.case, run.target, run.chips) for run in record.runs}
    return [
        name
        for name, target in targets.items()
        if any((case, name, n) not in present for case in program.arguments for n in target.chips)
    ]


def left_over(folder: pathlib.Path, programs: Iterable[str]) -> list[pathlib.Path]:
    """Return the files of records that no page asks for; `programs` are the names of files."""
    return sorted(path for path in folder.glob("*.json") if path.name not in set(programs))
