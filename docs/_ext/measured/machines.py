"""Other machines: the files of what readers measured on theirs.

The folder `book_machines` holds files of the command, reviewed and committed as recordings are. A
file is called what pages call its machine, `AMD_Zen_5.json`. Besides its records it says, as
`code`, which slice of a page each of them measured: once the page measures something else, they
count no more. A record counts beside one of the book's device of the same kind, of equal shapes. Of
a record, the processes count that no other program disturbed, and there are five of them at least.
"""

import dataclasses
import itertools
import json
import pathlib
from collections.abc import Mapping
from typing import Any, Self

from .schema import Measurement, Schema, only, parts, single

# The fewest processes of a record; the range of fewer says little. The file of a release may be one
# of several turns.
FEWEST, FEWEST_IN_A_TURN = 5, 1


class MachineError(Exception):
    """A file cannot be a machine of the book."""


@dataclasses.dataclass(frozen=True)
class Machine:
    """What was measured on a machine: `measurements`, and the `code` that each record measured."""

    name: str
    processor: str
    date: str
    measurements: tuple[Measurement, ...]
    code: Mapping[str, str]

    @classmethod
    def load(cls, path: pathlib.Path, schema: Schema, fewest: int = FEWEST) -> Self:
        """Read a file, whose records have so many processes at least; raises MachineError."""
        try:
            file = json.loads(path.read_text("utf8"))
        except (OSError, ValueError) as error:
            raise MachineError(f"{path}: {error}") from None
        if said := problems(file, schema, fewest):
            raise MachineError(f"{path}: {'; '.join(said)}")
        name = path.stem.replace("_", " ")
        found = itertools.chain(*(single(calm(record)) for record in file["records"]))
        measurements = (Measurement.from_plain(plain | {"device": name}) for plain in found)
        code = file.get("code", {})
        return cls(name, file["machine"], file["date"][:10], tuple(measurements), code)


def problems(file: Any, schema: Schema, fewest: int = FEWEST) -> list[str]:
    """Say what keeps the content of a file from being a machine of the book.

    Records have so many processes at least.
    """
    if problem := schema.file_problem(file):
        return [problem]
    said = list[str]()
    for record in file["records"]:
        name = record.get("name") if isinstance(record, dict) else record
        if problem := schema.problem(record):
            said.append(f"{name}: {problem}")
            continue
        if _fewest(record) < fewest:
            said.append(f"{name}: fewer than {fewest} processes; use --processes {fewest}")
        elif _fewest(calm(record)) < fewest:
            said.append(f"{name}: other programs kept a core busy; measure it again")
        if record["method"] != schema.method:
            said.append(f"{name}: by method {record['method']}, and the book's is {schema.method}")
        if name not in file.get("code", {}):
            said.append(f"{name}: 'code' does not say what it measured")
    return said


def calm(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record without the processes in which other programs disturbed a part of it."""
    lists = [[process["disturbed"] for process in part["processes"]] for part in parts(record)]
    return only(record, [not any(flags) for flags in zip(*lists, strict=False)])


def _fewest(record: Mapping[str, Any]) -> int:
    return min(len(part["processes"]) for part in parts(record))
