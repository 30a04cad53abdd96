"""Damaged files of the command, and what it says of each; of texts also what the site says."""

import copy
import json

NAMES = ("pair/one", "pair/two")


def process(seconds=1e-3, **others):
    known = {"date": "2026-01-02T03:04:05+00:00", "first_call": 0.1, "calls": 1}
    return known | {"latency": [seconds], "cores": 1.0, "disturbed": False} | others


def measurement(name):
    known = {"version": 3, "method": 2, "name": name, "framework": "jax", "device_kind": "cpu"}
    known |= {"processor": "a core", "shape": [[3]], "dtype": "float32", "precision": "default"}
    known |= {"work": 1e6, "error": None, "versions": {"jax": "1.2.3"}, "settings": {}}
    return known | {"processes": [process() for _ in range(3)]}


def whole():
    """Return a file with nothing wrong: one comparison of two, in three processes."""
    record = {"version": 3, "method": 2, "name": "pair"}
    record["alternatives"] = [measurement(name) for name in NAMES]
    known = {"format": "jax-measured", "version": 1, "book": "1.0.0", "machine": "a machine"}
    return known | {"date": "2026-01-03T03:04:05+00:00", "records": [record]}


def put(*path, to):
    """Return what puts a value at a path of keys; `...` takes out what is there."""

    def damaged(file):
        *above, last = path
        for key in above:
            file = file[key]
        if to is ...:
            del file[last]
        else:
            file[last] = to(file[last]) if callable(to) else to

    return damaged


RECORD = "records", 0
FIRST = *RECORD, "alternatives", 0
PROCESS = *FIRST, "processes", 0
DATE = "records", 0, "alternatives", 0, "processes", 0, "date"
# What is done to the file, and a part of what the command says of it.
EDITS = {
    "another format": (put("format", to="asv"), "no file of jax-measured"),
    "no format": (put("format", to=...), "no file of jax-measured"),
    "a newer form": (put("version", to=2), "newer book"),
    "no form": (put("version", to=...), "newer book"),
    "a form that is true": (put("version", to=True), "newer book"),
    "a newer book": (put("book", to="99.0"), "newer book"),
    "no book": (put("book", to=...), "which version"),
    "a book of words": (put("book", to="latest"), "which version"),
    "a book that is a number": (put("book", to=1), "which version"),
    "no machine": (put("machine", to=""), "machine"),
    "a machine of several lines": (put("machine", to="a\nb"), "machine"),
    "no date": (put("date", to="yesterday"), "date"),
    "a day without its time": (put("date", to="2026-01-03"), "date"),
    "a year far away": (put("date", to="2999-01-03T03:04:05+00:00"), "date"),
    "more than a file has": (put("__proto__", to={}), "unknown"),
    "no records": (put("records", to=[]), "records has 0 entries"),
    "too many records": (put("records", to=lambda of: of * 1001), "1001"),
    "records that are none": (put("records", to=[1]), "record 1 is not what"),
    "another method": (put(*RECORD, "method", to=1), "another method"),
    "another method in part": (put(*FIRST, "method", to=1), "another method"),
    "a newer record": (put(*RECORD, "version", to=4), "record 1, version"),
    "an older record": (put(*RECORD, "version", to=2), "record 1, version"),
    "no name": (put(*FIRST, "name", to=...), "does not say its name"),
    "a name with blanks": (put(*FIRST, "name", to="x 0"), "name"),
    "a name that is code": (put(*FIRST, "name", to="a`b"), "name"),
    "a name of another": (put(*FIRST, "name", to="<b>x</b>"), "no part of pair"),
    "a framework with blanks": (put(*FIRST, "framework", to="a b"), "framework"),
    "something unknown": (put(*FIRST, "html", to="<b>"), "unknown"),
    "no comparison": (put(*RECORD, "alternatives", to=[]), "has 0 entries"),
    "no processes": (put(*FIRST, "processes", to=[]), "has 0 entries"),
    "fewer processes": (put(*FIRST, "processes", to=lambda of: of[1:]), "same processes"),
    "other rounds": (put(*PROCESS, "latency", to=[1e-3] * 2), "same rounds"),
    "two of a name": (put("records", to=lambda of: of * 2), "twice"),
    "no latency": (put(*PROCESS, "latency", to=...), "latency"),
    "a latency of none": (put(*PROCESS, "latency", to=[]), "latency"),
    "a time that is a text": (put(*PROCESS, "latency", to=["1 ms"]), "latency"),
    "a time that is true": (put(*PROCESS, "latency", to=[True]), "latency"),
    "a time of zero": (put(*PROCESS, "latency", to=[0]), "latency"),
    "a negative time": (put(*PROCESS, "latency", to=[-1e-3]), "latency"),
    "a time of no call": (put(*PROCESS, "latency", to=[1e-11]), "none that a call can take"),
    "one time of days": (put(*PROCESS, "latency", to=[1e6]), "none that a call can take"),
    "many slower than one": (put(*PROCESS, "throughput", to=[1.0]), "one call of many"),
    "a first call too short": (put(*PROCESS, "first_call", to=1e-9), "first call"),
    "no first call": (put(*PROCESS, "first_call", to="soon"), "first_call"),
    "an endless number": (put(*PROCESS, "calls", to=10**400), "calls"),
    "no moment": (put(*DATE, to="now"), "date"),
    "a shape in words": (put(*FIRST, "shape", to="3×3"), "shape"),
    "versions that are none": (put(*FIRST, "versions", to={"jax": 1}), "versions"),
    "a work below zero": (put(*FIRST, "work", to=-1), "work"),
    "too much work": (put(*FIRST, "work", to=1e29), "more operations"),
}  # fmt: skip
TEXTS = {
    "cut off": (json.dumps(whole())[:-200], "no JSON", "not JSON, or it is cut off"),
    "a text": ("hello", "no JSON", "not JSON"),
    "a number": ("12", "no file of jax-measured", "no file of the command"),
    "null": ("null", "no file of jax-measured", "no file of the command"),
    "a list": ("[]", "no file of jax-measured", "no file of the command"),
    "a notebook": ('{"cells": []}', "no file of jax-measured", "no file of the command"),
    "no number": (json.dumps(whole()).replace("0.001", "NaN"), "no JSON", "not JSON"),
    "what is too large": (" " + "1" * 4_000_100, "too large", "too large"),
    "a line cut short": ("jm1.AAAA", "cut short", "damaged or cut off"),
    "a line of other letters": ("jm1.%%%", "cut short", "damaged or cut off"),
}
# What nobody need refuse.
FINE = {
    "as it is": json.dumps(whole()),
    "from an editor that marks its files": "\ufeff" + json.dumps(whole()),
    "whole numbers with a point": json.dumps(whole()).replace('"calls": 1', '"calls": 1.0'),
}


def edited(kind):
    """Return the file, damaged so."""
    file = copy.deepcopy(whole())
    EDITS[kind][0](file)
    return file
