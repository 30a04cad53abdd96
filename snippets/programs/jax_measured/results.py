"""The file of results: what it holds, its form in one line, and what is refused.

`measurement.schema.json` says what a file and its records hold. Of each process a record
keeps the median of its samples. `code` says which code of the book each record measured:
{name: digest}. `shown` is what pages of the book show of it, computed by the book's own code.
"""

import base64
import contextlib
import datetime
import functools
import json
import os
import pathlib
import re
import statistics
import zlib

import fastjsonschema

from . import timer
from .engine.measured import reader
from .engine.measured.schema import Measurement, Schema, parts, single
from .table import reference

FORMAT = "jax-measured"
VERSION = 1
LINE = "jm1."
# Bytes; a line of a few kilobytes can be one that unpacks to gigabytes.
LARGEST = 4_000_000
CLOCKS = "latency", "throughput"
# Within these limits a file can be believed, whoever has made it: seconds of a call, operations a
# second, and how many times as long one call of many takes as one alone.
SHORTEST, LONGEST = 1e-9, 3600.0
MOST_OPERATIONS = 1e17
TOGETHER = 3
# How many times as long a call takes as the first at most.
FIRST = 100


class Refused(Exception):
    """What is given is not to be used; the message says why."""


@functools.cache
def book():
    """Return what the book recorded, and what its pages run."""
    text = pathlib.Path(__file__).with_name("book.json").read_text("utf8")
    return json.loads(text)


@functools.cache
def schema():
    """Return the rules for a record and a file."""
    return Schema.load(
        pathlib.Path(__file__).with_name("measurement.schema.json")
    )


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


def complete(found):
    """Return results with what pages of the book show of them."""
    names = "roles", "works", "rooflines", "numbers", "labels"
    known = reader.Book(**{name: book()[name] for name in names})
    return found | {"shown": reader.shown(found, known)}


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
        found = json.loads(
            unpacked(text) if text.startswith(LINE) else text,
            parse_constant=float_of,
        )
        check(found)
    except (ValueError, RecursionError):
        raise Refused("it is no JSON, or cut short") from None
    return found


def float_of(name):
    """Refuse what JSON does not know: NaN and Infinity."""
    raise ValueError(name)


def number_of(version):
    """Return a version as numbers that can be compared; raises Refused."""
    rules = schema().rules["$defs"]["file"]["properties"]["book"]
    if not isinstance(version, str) or not re.search(
        rules["pattern"], version
    ):
        raise Refused("it does not say of which version of the book it is")
    return [int(part) for part in version.split(".")]


def check(found):
    """Raise Refused for what is no file of results, or contradicts itself."""
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise Refused("it is no file of jax-measured")
    version = found.get("version")
    is_other = isinstance(version, bool) or version != VERSION
    if is_other or number_of(found.get("book")) > number_of(book()["book"]):
        raise Refused(
            "it is of a newer book: install the newer jax-measured to read it"
        )
    validate(schema().check_file, found, "it")
    for number, record in enumerate(found["records"], 1):
        validate(schema().check_record, record, f"record {number}")
    for wrong in contradictions(found["records"]):
        raise Refused(wrong)


def validate(rules, value, called):
    """Raise Refused, in words, for a value that the rules do not allow."""
    try:
        rules(value)
    except fastjsonschema.JsonSchemaValueException as error:
        path = [int(at) + 1 if at.isdecimal() else at for at in error.path[1:]]
        if called == "it" and path[:1] == ["records"] and path[1:]:
            path = [f"record {path[1]}", *path[2:]]
        place = ", ".join(
            map(str, [called, *path] if called != "it" else path)
        )
        raise Refused(f"{place or called} {told(error)}") from None


def told(error):
    """Say what the schema does not allow of a value."""
    value = error.value
    if error.rule == "required":
        missing = [key for key in error.rule_definition if key not in value]
        return f"does not say its {missing[0]}"
    if error.rule == "additionalProperties":
        more = value.keys() - error.definition["properties"].keys()
        return f"says something unknown, {ascii(sorted(more)[0])[:40]}"
    if error.rule in ("minItems", "maxItems", "maxProperties"):
        return f"has {len(value)} entries"
    return "is not what a record has there"


def contradictions(records):
    """Yield how records that follow the schema contradict themselves."""
    seen = set()
    for record in records:
        of = [Measurement.from_plain(each) for each in single(record)]
        rounds = [
            [len(each.latency) for each in part.processes] for part in of
        ]
        if {record["method"], *(each.method for each in of)} != {
            schema().method
        }:
            yield f"{record['name']} was measured by another method than the book's"
        if len(set(map(len, rounds))) > 1:
            yield f"what {record['name']} compares is not of the same processes"
        elif rounds.count(rounds[0]) < len(rounds):
            yield f"what {record['name']} compares is not of the same rounds"
        for each in of:
            if each.reference in seen:
                yield f"it holds {each.reference} twice"
            seen.add(each.reference)
            if not f"{each.name}/".startswith(f"{record['name']}/"):
                yield f"{each.reference} is no part of {record['name']}"
            yield from impossible(each)


def impossible(of):
    """Yield what cannot be of the times of a measurement."""
    called = of.reference
    for process in of.processes:
        latency = process.number("latency")
        each = process.number("throughput") or latency
        if not SHORTEST <= min(latency, each) <= max(latency, each) <= LONGEST:
            yield f"the time of {called} is none that a call can take"
        if each > TOGETHER * latency:
            yield f"of {called} one call of many takes longer than one alone"
        if process.first_call and process.first_call < latency / FIRST:
            yield f"of {called} the first call is shorter than all others"
        if (of.work or 0) / each > MOST_OPERATIONS:
            yield f"{called} does more operations a second than any machine"
