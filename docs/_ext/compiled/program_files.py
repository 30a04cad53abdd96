"""The files of records: read, written, and compared with the functions that they belong to."""

import contextlib
import dataclasses
import functools
import pathlib
import sys
from collections.abc import Mapping

from executed import files, typed_json
from executed.options import Target
from executed.store.states import State

from .declared import Program
from .programs import ProgramRecord, Record, ScaleRecord

MOST_BYTES = 400_000


def read(path: pathlib.Path) -> Record:
    """Return the record in a file; raises files.Unusable, or FileNotFoundError."""
    return parse(files.read(path), path.name.endswith(".scale.json"))


@functools.lru_cache(maxsize=64)
def parse(text: str, scaled: bool) -> Record:
    """Return the record that a text holds, `scaled` for many devices; raises files.Unusable."""
    record: Record = typed_json.parse(ScaleRecord if scaled else ProgramRecord, text)
    return record


def written(record: Record) -> str:
    """Return the text of a record as it is kept, the same for the same record."""
    return typed_json.written(typed_json.untyped(record))


def keep(path: pathlib.Path, record: Record) -> bool:
    """Write a record, unless the one that is there differs in nothing but its date.

    Return whether it was written. Raises files.Unusable for one that is too large for a page, or
    that names a folder of this machine.
    """
    text = written(record)
    folders = str(pathlib.Path.cwd()), str(pathlib.Path.home()), sys.prefix
    if found := [folder for folder in folders if len(folder) > 3 and folder in text]:
        raise files.Unusable(f"it would hold {', '.join(found)}")
    if len(text.encode()) > MOST_BYTES:
        raise files.Unusable(f"it would be larger than {MOST_BYTES} bytes")
    with contextlib.suppress(OSError, files.Unusable):
        if dataclasses.replace(read(path), date=record.date) == record:
            return False
    files.write(path, text)
    return True


def state(
    folder: pathlib.Path, program: Program, targets: Mapping[str, Target]
) -> tuple[Record | None, State]:
    """Return the record of a program, None where there is none to use, and its State."""
    try:
        record = read(folder / program.file)
    except FileNotFoundError:
        return None, State("missing")
    except files.Unusable as error:
        return None, State("unreadable", (str(error),))
    if unknown := [name for name in record.compiled_for if name not in targets]:
        return None, State("unreadable", (f"it is of the unknown device '{unknown[0]}'",))
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


def lacking(record: Record, program: Program, targets: Mapping[str, Target]) -> list[str]:
    """Return the targets that a record should have and has not."""
    if not isinstance(record, ScaleRecord):
        return [name for name in targets if name not in record.compiled_for]
    present = {(run.case, run.target, run.chips) for run in record.runs}
    return [
        name
        for name, target in targets.items()
        if any((case, name, n) not in present for case in program.arguments for n in target.chips)
    ]
