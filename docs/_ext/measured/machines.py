"""Other machines: the files of what readers measured on theirs.

The folder `book_machines` holds files of the command, reviewed and committed as recordings are. A
file is called what pages call its machine, `AMD_Zen_5.json`. Besides its records it says, as
`code`, which slice of a page each of them measured: once the page measures something else, they
count no more. A record counts beside one of the book's device of the same kind, of equal shapes.
"""

import dataclasses
import itertools
import json
import pathlib
from collections.abc import Mapping
from typing import Any, Self

from .schema import Measurement, Schema, parts, single

# The fewest processes of a record; the range of fewer says little.
FEWEST = 5


class MachineError(Exception):
    """A file cannot be a machine of the book."""


@dataclasses.dataclass(frozen=True)
class Machine:
    """What was measured on a machine: `measurements`, and of which `code` each record is."""

    name: str
    processor: str
    date: str
    measurements: tuple[Measurement, ...]
    code: Mapping[str, str]

    @classmethod
    def load(cls, path: pathlib.Path, schema: Schema) -> Self:
        """Read a file; raises MachineError."""
        try:
            file = json.loads(path.read_text("utf8"))
        except (OSError, ValueError) as error:
            raise MachineError(f"{path}: {error}") from None
        if said := problems(file, schema):
            raise MachineError(f"{path}: {'; '.join(said)}")
        name, found = path.stem.replace("_", " "), itertools.chain(*map(single, file["records"]))
        measurements = (Measurement.from_plain(plain | {"device": name}) for plain in found)
        code = file.get("code", {})
        return cls(name, file["machine"], file["date"][:10], tuple(measurements), code)


def problems(file: Any, schema: Schema) -> list[str]:
    """Say what keeps the content of a file from being a machine of the book."""
    if problem := schema.file_problem(file):
        return [problem]
    said = list[str]()
    for record in file["records"]:
        name = record.get("name") if isinstance(record, dict) else record
        if problem := schema.problem(record):
            said.append(f"{name}: {problem}")
            continue
        measured = parts(record)
        processes = list(itertools.chain(*(part["processes"] for part in measured)))
        if any(process["disturbed"] for process in processes):
            said.append(f"{name}: other programs kept a core busy; measure it again")
        if min(len(part["processes"]) for part in measured) < FEWEST:
            said.append(f"{name}: fewer than {FEWEST} processes; use --processes {FEWEST}")
        if record["method"] != schema.method:
            said.append(f"{name}: by method {record['method']}, and the book's is {schema.method}")
        if name not in file.get("code", {}):
            said.append(f"{name}: 'code' does not say what it measured")
    return said
