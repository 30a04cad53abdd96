"""The files of records: read, and compared with the functions that they belong to."""

import functools
import pathlib
from collections.abc import Mapping

from executed import files, typed_json
from executed.store.states import Standing, State

from .declared import Program
from .options import Target
from .programs import ProgramRecord, ScaleRecord

Record = ProgramRecord | ScaleRecord


def read(path: pathlib.Path) -> Record:
    """Return the record in a file; raises files.Unusable, or FileNotFoundError."""
    return parse(files.read(path), path.name.endswith(".scale.json"))


@functools.lru_cache(maxsize=64)
def parse(text: str, scaled: bool) -> Record:
    """Return the record that a text holds, `scaled` for many devices; raises files.Unusable."""
    record: Record = typed_json.parse(ScaleRecord if scaled else ProgramRecord, text)
    return record


def state(
    folder: pathlib.Path, program: Program, targets: Mapping[str, Target]
) -> tuple[Record | None, State]:
    """Return the record of a program, None where there is none to use, and its State."""
    try:
        record = read(folder / program.file)
    except FileNotFoundError:
        return None, State(Standing.MISSING)
    except files.Unusable as error:
        return None, State(Standing.UNREADABLE, (str(error),))
    if isinstance(record, ScaleRecord):
        compiled_for = [run.target for run in record.runs]
    else:
        compiled_for = [*record.targets, *record.refused]
    if unknown := [name for name in compiled_for if name not in targets]:
        return None, State(Standing.UNREADABLE, (f"it is of the unknown device '{unknown[0]}'",))
    asked = {"source": program.key, "arguments": program.arguments}
    if changed := [name for name, value in asked.items() if getattr(record, name) != value]:
        return record, State(Standing.EARLIER, tuple(f"the {name} changed" for name in changed))
    if names := lacking(record, program, targets):
        labels = ", ".join(targets[name].label for name in names)
        return record, State(Standing.MISSING, (f"not compiled for {labels}",))
    return record, State(Standing.CURRENT)


def lacking(record: Record, program: Program, targets: Mapping[str, Target]) -> list[str]:
    """Return the targets that a record should have and has not."""
    if not isinstance(record, ScaleRecord):
        return [name for name in targets if name not in {*record.targets, *record.refused}]
    present = {(run.case, run.target, run.chips) for run in record.runs}
    return [
        name
        for name, target in targets.items()
        if any(
            (title, name, n) not in present
            for title, case in program.cases.items()
            for n in case.numbers(name, target.chips)
        )
    ]
