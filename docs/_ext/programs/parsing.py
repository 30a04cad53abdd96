"""Turn the text of a record into a typed value, or say at which place it is none.

Only its first fault is looked for.
"""

import functools
import json
import re

from .. import typed_json
from .records import ProgramRecord, Record, ScaleRecord


class RecordError(Exception):
    """A record cannot be used; the message says what is wrong with it."""


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is no number")


@functools.lru_cache(maxsize=64)
def parse(text: str, scaled: bool) -> Record:
    """Return the record that a text holds, `scaled` for many devices; raises RecordError."""
    if mark := re.search(r"^(<{7}|>{7}) ", text, re.MULTILINE):
        line = text.count("\n", 0, mark.start()) + 1
        raise RecordError(f"line {line} is a mark of a merge conflict")
    try:
        data = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise RecordError(f"it is no JSON: {error}") from None
    kind = ScaleRecord if scaled else ProgramRecord
    try:
        record: Record = typed_json.typed(kind, data)
    except typed_json.Mismatch as error:
        raise RecordError(f"record{error}") from None
    if isinstance(record, ProgramRecord) and record.contradiction:
        raise RecordError(record.contradiction)
    return record


def written(record: Record) -> str:
    """Return the text of a record as it is kept, the same for the same record."""
    return (
        json.dumps(typed_json.untyped(record), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    )
