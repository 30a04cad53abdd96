"""The file of results: what it holds, its form in one line, and what is refused.

A file is {"format", "version", "book", "machine", "date", "records", "code"}, where a
record is one of `measurement.schema.json`; of each process it keeps the median of its
samples. `code` says which code of the book each record measured: {name: digest}.
"""

import base64
import contextlib
import datetime
import functools
import json
import math
import os
import re
import statistics
import zlib

from . import timer
from .table import parts, reference

FORMAT = "jax-measured"
VERSION = 1
LINE = "jm1."
# Bytes; a line of a few kilobytes can be one that unpacks to gigabytes.
LARGEST = 4_000_000
MOST_RECORDS = 1000
KEYS = {"format", "version", "book", "machine", "date", "records", "code"}
CODE = {
    "type": "object",
    "additionalProperties": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
}
CLOCKS = "latency", "throughput"
# Within these limits a file can be believed, whoever has made it: seconds of a call, operations a
# second, and how many times as long one call of many takes as one alone.
SHORTEST, LONGEST = 1e-9, 3600.0
MOST_OPERATIONS = 1e17
TOGETHER = 3
# How many times as long a call takes as the first at most.
FIRST = 100
MOMENT = re.compile(
    r"20\d\d-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)", re.ASCII
)
TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}


class Refused(Exception):
    """What is given is not to be used; the message says why."""


@functools.cache
def book():
    """Return what the book recorded, and what its pages run."""
    folder = os.path.dirname(__file__)
    with open(os.path.join(folder, "book.json"), encoding="utf8") as file:
        return json.load(file)


@functools.cache
def schema():
    """Return the rules for a record."""
    folder = os.path.dirname(__file__)
    with open(
        os.path.join(folder, "measurement.schema.json"), encoding="utf8"
    ) as file:
        return json.load(file)


def reduced(record):
    """Return a record with the median of each process' samples in place of them."""
    for part in parts(record):
        for process in part["processes"]:
            for clock in CLOCKS:
                if clock in process:
                    process[clock] = [statistics.median(process[clock])]
    return record


def joined(former, new):
    """Return a record with the processes of another, of what both have measured."""
    if former is None:
        return new
    more = {reference(part): part["processes"] for part in parts(new)}
    kept = [part for part in parts(former) if reference(part) in more]
    for part in kept:
        part["processes"] = part["processes"] + more[reference(part)]
    return (
        former | {"alternatives": kept} if "alternatives" in former else former
    )


def content(records):
    """Return what a file of these records holds."""
    kinds = {
        part["device_kind"] for record in records for part in parts(record)
    }
    machine = ", ".join([timer.processor_name(), *sorted(kinds - {"cpu"})])
    return {
        "format": FORMAT,
        "version": VERSION,
        "book": book()["book"],
        "machine": machine,
        "date": datetime.datetime.now(datetime.UTC).isoformat("T", "seconds"),
        "records": records,
        "code": {
            record["name"]: book()["code"][record["name"]]
            for record in records
            if record["name"] in book()["code"]
        },
    }


def reserve(path):
    """Begin a file of results that no other run can have; raises Refused."""
    if os.path.lexists(path):
        raise Refused("it is there already")
    try:
        os.close(os.open(f"{path}.part", os.O_CREAT | os.O_EXCL, 0o666))
    except FileExistsError:
        raise Refused(
            f"another run writes it, or was killed and left {path}.part"
        ) from None
    except OSError as error:
        raise Refused(f"it cannot be written: {error.strerror}") from None


def release(path):
    """Remove what a run has begun and not written."""
    with contextlib.suppress(OSError):
        os.remove(f"{path}.part")


def write(path, found):
    """Write a file of results; what was there is replaced at once, or not at all."""
    with open(f"{path}.part", "w", encoding="utf8") as file:
        json.dump(found, file, ensure_ascii=False, separators=(",", ":"))
    os.replace(f"{path}.part", path)


def line(found):
    """Return results as one line, for a field or behind the # of an address."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    text = json.dumps(found, ensure_ascii=False, separators=(",", ":"))
    packed = packer.compress(text.encode()) + packer.flush()
    return LINE + base64.urlsafe_b64encode(packed).decode().rstrip("=")


def unpacked(text):
    """Return the JSON that a line holds; raises Refused."""
    packed = text.removeprefix(LINE)
    unpacker = zlib.decompressobj(-15)
    try:
        if not re.fullmatch(r"[\w-]*", packed, re.ASCII):
            raise ValueError
        found = unpacker.decompress(
            base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4)),
            LARGEST,
        )
        if not unpacker.eof:
            raise ValueError
        return found.decode()
    except (ValueError, zlib.error):
        raise Refused("it is cut short or was changed: copy it anew") from None


def read(source):
    """Return the results of a file, or of a line itself; raises Refused."""
    text = source
    if not source.startswith(LINE):
        try:
            # Some editors mark a file as UTF-8.
            with open(source, encoding="utf-8-sig") as file:
                text = file.read(LARGEST + 1)
        except OSError as error:
            raise Refused(error.strerror or "it cannot be read") from None
        except UnicodeDecodeError:
            raise Refused("it is no text") from None
    if len(text) > LARGEST:
        raise Refused("it is too large")
    text = text.strip()
    try:
        found = json.loads(unpacked(text) if text.startswith(LINE) else text)
        check(found)
    except (ValueError, RecursionError):
        raise Refused("it is no JSON, or cut short") from None
    return found


def number_of(version):
    """Return a version as numbers that can be compared; raises Refused."""
    pattern = r"\d{1,6}(\.\d{1,6}){0,3}"
    if not isinstance(version, str) or not re.fullmatch(
        pattern, version, re.ASCII
    ):
        raise Refused("it does not say of which version of the book it is")
    return [int(part) for part in version.split(".")]


def check(found):
    """Raise Refused for what is no file of results, or contradicts itself."""
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise Refused("it is no file of jax-measured")
    is_other = problem(found.get("version"), {"const": VERSION}, "version")
    if is_other or number_of(found.get("book")) > number_of(book()["book"]):
        raise Refused(
            "it is of a newer book: install the newer jax-measured to read it"
        )
    text, moment = (
        schema()["$defs"]["said"],
        {"type": "string", "format": "date-time"},
    )
    for name, rule in (("machine", text), ("date", moment)):
        if wrong := problem(found.get(name), rule, name):
            raise Refused(wrong)
    # Files of before lack it.
    if wrong := problem(found.get("code", {}), CODE, "code"):
        raise Refused(wrong)
    if more := [*(found.keys() - KEYS)]:
        raise Refused(f"it says something unknown, {ascii(more[0])[:40]}")
    records = found.get("records")
    if not isinstance(records, list) or not records:
        raise Refused("it holds no records")
    if len(records) > MOST_RECORDS:
        raise Refused(f"it holds {len(records)} records")
    for number, record in enumerate(records, 1):
        several = isinstance(record, dict) and "alternatives" in record
        rule = schema()["$defs"]["comparison" if several else "measurement"]
        if wrong := problem(record, rule, f"record {number}"):
            raise Refused(wrong)
    for wrong in contradictions(records):
        raise Refused(wrong)


def problem(value, rule, place):
    """Return how a value breaks a rule of the schema, in words, or None."""
    if "$ref" in rule:
        rule = schema()["$defs"][rule["$ref"].rpartition("/")[2]]
    if "anyOf" in rule:
        found = [problem(value, each, place) for each in rule["anyOf"]]
        return None if None in found else found[0]
    wrong = f"{place} is not what a record has there"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if "const" in rule and (isinstance(value, bool) or value != rule["const"]):
        return wrong
    kinds = rule.get("type", [])
    kinds = [
        TYPES[kind] for kind in ([kinds] if isinstance(kinds, str) else kinds)
    ]
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if kinds and not any(isinstance(value, kind) for kind in kinds):
        return wrong
    if isinstance(value, bool) and bool not in kinds and kinds:
        return wrong
    if is_number:
        low, high = (
            rule.get("minimum", -math.inf),
            rule.get("maximum", math.inf),
        )
        return (
            None if low <= value <= high and abs(value) < math.inf else wrong
        )
    if isinstance(value, str):
        return None if fits(value, rule) else wrong
    if isinstance(value, (list, dict)):
        return problem_within(value, rule, place) or None
    return None


def fits(text, rule):
    """Say whether a text follows a rule."""
    if rule.get("format") == "date-time":
        try:
            datetime.datetime.fromisoformat(text)
        except ValueError:
            return False
        if not MOMENT.fullmatch(text):
            return False
    length = (
        rule.get("minLength", 0)
        <= len(text)
        <= rule.get("maxLength", math.inf)
    )
    return length and re.search(rule.get("pattern", ""), text) is not None


def problem_within(value, rule, place):
    """Return what breaks a rule in a list or a dictionary, in words, or None."""
    least = rule.get("minItems", 0)
    most = rule.get("maxItems", rule.get("maxProperties", math.inf))
    if not least <= len(value) <= most:
        return f"{place} has {len(value)} entries"
    if isinstance(value, list):
        pairs = [
            (f"{place}, {n}", each, rule["items"])
            for n, each in enumerate(value, 1)
        ]
    else:
        if missing := [
            name for name in rule.get("required", []) if name not in value
        ]:
            return f"{place} does not say its {missing[0]}"
        known, others = (
            rule.get("properties", {}),
            rule.get("additionalProperties"),
        )
        if extra := [
            name for name in value if name not in known and not others
        ]:
            return f"{place} says something unknown, {ascii(extra[0])[:40]}"
        pairs = [
            (f"{place}, {n}", of, known.get(n, others))
            for n, of in value.items()
        ]
    return next(
        filter(None, (problem(of, each, at) for at, of, each in pairs)), None
    )


def contradictions(records):
    """Yield how records that follow the schema contradict themselves."""
    seen = set()
    for record in records:
        if {part["method"] for part in [record, *parts(record)]} != {
            schema()["method"]
        }:
            yield f"{record['name']} was measured by another method than the book's"
        turns = [rounds(part) for part in parts(record)]
        if len(set(map(len, turns))) > 1:
            yield f"what {record['name']} compares is not of the same processes"
        elif turns.count(turns[0]) < len(turns):
            yield f"what {record['name']} compares is not of the same rounds"
        for part in parts(record):
            called = reference(part)
            if called in seen:
                yield f"it holds {called} twice"
            seen.add(called)
            if part is not record and not f"{part['name']}/".startswith(
                f"{record['name']}/"
            ):
                yield f"{called} is no part of {record['name']}"
            for process in part["processes"]:
                yield from impossible(called, process, part["work"] or 0)


def rounds(part):
    """Return of how many rounds each process of a measurement is."""
    return [len(process["latency"]) for process in part["processes"]]


def impossible(called, process, work):
    """Yield what cannot be of the times of one process."""
    latency = statistics.median(process["latency"])
    each = statistics.median(process.get("throughput") or [latency])
    first = process["first_call"]
    if not (SHORTEST <= latency <= LONGEST and SHORTEST <= each <= LONGEST):
        yield f"the time of {called} is none that a call can take"
    if each > TOGETHER * latency:
        yield f"of {called} one call of many takes longer than one alone"
    if first is not None and first < latency / FIRST:
        yield f"of {called} the first call is shorter than all others"
    if work / each > MOST_OPERATIONS:
        yield f"{called} does more operations a second than any machine"
