"""Measures on your machine what the book JAX, Measured measured on its own."""

import argparse
import datetime
import difflib
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import time

from . import cells, results, surroundings
from .table import table

CHOSEN = 10
PROCESSES = 3
LIMIT = 600
SHORT = 8000
STOPPED = 130
SKIPPED = ("timer", "__future__")


class Left(Exception):
    """What cannot be measured here; the message says why."""


def say(text=""):
    """Tell the one who waits; standard output is for results."""
    print(text, file=sys.stderr, flush=True)


def absent(sources):
    """Return the modules that cells import and that are not installed."""
    names = cells.modules_in(sources) - set(SKIPPED)
    return {name for name in names if importlib.util.find_spec(name) is None}


def prepared(measurement):
    """Return the cells to run here and what they go without; raises Left."""
    lacking = absent(measurement["cells"])
    sources = cells.without(measurement["cells"], lacking)
    if not cells.measuring(sources[-1]):
        raise Left(f"it needs {' or '.join(sorted(lacking))}")
    return sources, lacking


def in_a_process(sources, left_out):
    """Return the records of cells from a fresh process; raises Left.

    What raises when it is called for the first time is added to `left_out`, and the
    others are measured without it.
    """
    found = results.book()
    places = [os.environ.get("PYTHONPATH"), os.path.dirname(os.path.dirname(__file__))]
    environment = found["environment"] | os.environ
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, places))
    command = [sys.executable, "-P", "-m", f"{__package__}.process"]
    while True:
        question = {
            "cells": sources,
            "left_out": [list(each) for each in left_out],
            "before": found["before"],
        }
        try:
            process = subprocess.run(
                command,
                input=json.dumps(question),
                capture_output=True,
                timeout=LIMIT,
                env=environment,
                encoding="utf8",
                errors="replace",
            )
        except subprocess.TimeoutExpired:
            raise Left(f"it took longer than {LIMIT} seconds") from None
        if process.returncode:
            last = (process.stderr.strip().splitlines() or ["it said nothing"])[-1]
            raise Left(f"its process ended with status {process.returncode}: {last}")
        answer = json.loads(process.stdout)
        if "failed" not in answer:
            break
        name, key, reason = answer["failed"]
        left_out[name, key] = reason
    if not answer.get("records"):
        raise Left(answer.get("reason", "nothing was left to measure"))
    return answer["records"]


def listed():
    """Print what can be measured, and what of it here."""
    for number, measurement in enumerate(results.book()["measurements"]):
        mark = "*" if number < CHOSEN else " "
        print(f"{mark} {measurement['name']:16} {measurement['question']}")
        try:
            lacking = prepared(measurement)[1]
            note = f"without {', '.join(sorted(lacking))}" if lacking else ""
        except Left as left:
            note = f"not here: {left}"
        if note:
            print(f"{'':19}{note}")
    print(f"\n* what `run` measures if it is not told what. Pages: {pages()}")
    return 0


def pages():
    """Return the names of the pages whose cells are run."""
    found = results.book()["measurements"]
    return ", ".join(sorted({each["page"] for each in found}))


def chosen(names):
    """Return the measurements of these names, or ten; SystemExit for unknown ones."""
    known = {each["name"]: each for each in results.book()["measurements"]}
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, 3) or ["jax-measured list"]
            say(f"there is no measurement {name!r}; see {', '.join(near)}")
            raise SystemExit(2)
    return [known[name] for name in names or list(known)[:CHOSEN]]


class Run:
    """What a run has measured so far, kept in a file, and what it could not measure."""

    def __init__(self, path):
        """Take the path of the file."""
        self.path, self.records = path, {}
        self.left, self.left_out = {}, {}

    def keep(self, name, records):
        """Add the records of a process, and write all that there is."""
        for number, record in enumerate(map(results.reduced, records)):
            former = self.records.get((name, number))
            self.records[name, number] = results.joined(former, record)
        results.write(self.path, results.content(list(self.records.values())))

    def measure(self, measurements, processes):
        """Measure all of them in a process each, then all of them again."""
        jobs, took = {}, []
        for each in measurements:
            try:
                jobs[each["name"]], lacking = prepared(each)
                if lacking:
                    self.left[each["name"]] = f"without {', '.join(sorted(lacking))}"
            except Left as left:
                self.left[each["name"]] = f"not measured: {left}"
        for turn in range(1, processes + 1):
            for name, sources in list(jobs.items()):
                start, rest = time.monotonic(), ""
                if took:
                    count = (processes - turn + 1) * len(jobs) - list(jobs).index(name)
                    rest = f", about {statistics.mean(took) * count:.0f} s left"
                say(f"{name}, process {turn} of {processes}{rest}")
                try:
                    self.keep(name, in_a_process(sources, self.left_out))
                except Left as left:
                    self.left[name] = f"not measured in process {turn} or later: {left}"
                    del jobs[name]
                took.append(time.monotonic() - start)

    def told(self):
        """Return in lines what was not measured, and why."""
        lines = [f"{name}: {reason}" for name, reason in self.left.items()]
        parts = self.left_out.items()
        return lines + [
            f"{name}/{key}: not measured: {why}" for (name, key), why in parts
        ]


def run(names, processes, path):
    """Measure, print the table and keep the file; return the exit status."""
    measurements, status = chosen(names), 0
    now = datetime.datetime.now()
    path = path or f"jax-measured-{now:%Y-%m-%d-%H%M%S}.json"
    if os.path.exists(path) or not os.access(os.path.dirname(path) or ".", os.W_OK):
        say(f"{path} is there already, or cannot be written; choose another by --out")
        return 2
    for warning in surroundings.warnings():
        say(f"warning: {warning}")
    current = Run(path)
    try:
        current.measure(measurements, processes)
    except KeyboardInterrupt:
        say("stopped: what was measured before is kept")
        status = STOPPED
    for line in current.told():
        say(line)
    if not current.records:
        say("nothing was measured")
        return status or 1
    found = results.content(list(current.records.values()))
    print("\n".join(table(found)))
    say(f"\nkept in {path}")
    line = results.line(found)
    if len(line) <= SHORT:
        say("the same in one line, for the page Your machine:")
        print(f"\n{line}")
    else:
        say(f"the same in one line: jax-measured show --line {path}")
    return status


def show(sources, as_line):
    """Print the table of each file, or the file as a line; return the exit status."""
    status = 0
    for source in sources:
        try:
            found = results.read(source)
        except results.Refused as refused:
            line = source.startswith(results.LINE)
            say(f"{'the line' if line else source}: {refused}")
            status = 2
            continue
        print(results.line(found) if as_line else "\n".join([*table(found), ""]))
    return status


def at_least(text):
    """Return a number of processes; ValueError for fewer than a range needs."""
    if int(text) < PROCESSES:
        raise ValueError
    return int(text)


def main(arguments=None):
    """Do what the words of a command line ask for; return the exit status."""
    parser = argparse.ArgumentParser(prog="jax-measured", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="what can be measured, and what of it here")
    running = commands.add_parser("run", help="measure, and compare with the book")
    running.add_argument("names", nargs="*", help="of the list; ten if none is named")
    running.add_argument(
        "--processes",
        type=at_least,
        default=PROCESSES,
        help=f"how many for each, {PROCESSES} or more",
    )
    running.add_argument("--out", help="the file to write")
    showing = commands.add_parser("show", help="print the table of files again")
    showing.add_argument("files", nargs="+", help="files, or results in one line")
    showing.add_argument("--line", action="store_true", help="as one line instead")
    given = parser.parse_args(arguments)
    if given.command == "list":
        return listed()
    if given.command == "run":
        return run(given.names, given.processes, given.out)
    return show(given.files, given.line)
