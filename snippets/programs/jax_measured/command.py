"""Measures on your machine what the book JAX, Measured measured on its own."""

import argparse
import ast
import codecs
import contextlib
import datetime
import difflib
import errno
import importlib.util
import itertools
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from . import (
    cells,
    paging,
    practising,
    probing,
    reporting,
    results,
    starting,
    surroundings,
    timer,
)
from .table import comparisons, notes, orders_of, table

# What is measured where nothing is named: two to three minutes on two cores.
CHOSEN = 10
# With fewer nothing could be said of how processes differ.
PROCESSES = 3
# Seconds for one measurement in one process.
LIMIT = 600
# Characters that fit into a terminal, and behind the # of an address.
SHORT = 8000
# They need not be installed.
SKIPPED = ("timer", "__future__")
# What a terminal of few letters shows in place of others.
PLAIN = {
    "µ": "u",
    "×": "x",
    "–": "-",
    "†": "*",
    "‡": "**",
    "✓": "+",
    "✗": "-",
    "…": "...",
}


class Left(Exception):
    """What cannot be measured here; the message says why."""


def say(text="", end="\n"):
    """Tell the one who waits; standard output is for results.

    On a terminal it takes the place of what was said with another end.
    """
    again = "\r\x1b[K" if sys.stderr.isatty() else ""
    print(f"{again}{text}", end=end, file=sys.stderr, flush=True)


def plainly(error):
    """Return what is written in place of a letter that the terminal lacks, for `codecs`."""
    letters = error.object[error.start : error.end]
    return "".join(PLAIN.get(each, "?") for each in letters), error.end


def absent(sources):
    """Return the modules that cells import and that are not installed, or do not work."""
    names = cells.modules_in(sources) - set(SKIPPED)
    lost = {name for name in names if importlib.util.find_spec(name) is None}
    return lost | (names & broken(names.intersection(timer.FRAMEWORKS)).keys())


def broken(names=timer.FRAMEWORKS):
    """Return {framework: why it cannot be used} of those that are installed."""
    found = probing.answers(names)
    return {name: reason for name, (reason, _) in found.items() if reason}


def notices():
    """Return in lines which frameworks cannot be used, and what is to be said of the others."""
    lines = [f"{name} is left out: {why}" for name, why in broken(()).items()]
    said = (notice for _, notice in probing.answers(()).values())
    return [*lines, *filter(None, said)]


def prepared(measurement):
    """Return the cells to run here and what they go without; raises Left."""
    lacking = absent(measurement["cells"])
    sources = cells.without(measurement["cells"], lacking)
    empty = cells.never_filled(sources)
    measuring = map(ast.unparse, cells.measuring(sources[-1]))
    left = set(measurement["frameworks"]) - lacking
    if not left or all(cells.used(each) & empty for each in measuring):
        raise Left(f"it needs {' or '.join(sorted(lacking))}")
    return sources, lacking


def processes_of(jobs):
    """Return measurements in lists, each for one process; `jobs` are their cells.

    A page may set something for its whole process, such as the precision of matmuls.
    So another follows it only if that sets all of it, too: then no page runs under
    settings that are not its own. Those that import less come first.
    """
    lists, settings = [], {name: cells.sets(of) for name, of in jobs.items()}
    weight = {
        name: (len(settings[name]), len(cells.modules_in(jobs[name])))
        for name in jobs
    }
    for name in sorted(jobs, key=weight.get):
        for names in lists:
            if settings[names[-1]] <= settings[name]:
                names.append(name)
                break
        else:
            lists.append([name])
    return lists


def close(pipe):
    """Close a pipe that perhaps nobody reads any more."""
    with contextlib.suppress(OSError):
        pipe.close()


def answers(sources, left_out):
    """Yield what a fresh process answers to each list of cells; raises Left.

    After an answer without records it has ended.
    """
    found = results.book()
    places = [
        os.environ.get("PYTHONPATH"),
        os.path.dirname(os.path.dirname(__file__)),
    ]
    environment = found["environment"] | os.environ
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, places))
    question = {
        "measurements": sources,
        "left_out": [list(each) for each in left_out],
        "before": found["before"],
    }
    with contextlib.ExitStack() as end:
        errors = end.enter_context(tempfile.TemporaryFile())
        folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        # A process that finds what another has compiled has no first call.
        environment["TORCHINDUCTOR_CACHE_DIR"] = end.enter_context(folder)
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", f"{__package__}.process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environment,
            encoding="utf8",
        )
        end.enter_context(process)
        end.callback(process.kill)
        # Its input stays open: where it ends, this process has ended, whatever ended it.
        end.callback(close, process.stdin)
        with contextlib.suppress(OSError):
            print(json.dumps(question), file=process.stdin, flush=True)
        for _ in sources:
            late = threading.Timer(LIMIT, process.kill)
            # An interrupt may come while it starts; then nobody cancels it.
            late.daemon = True
            late.start()
            try:
                line = process.stdout.readline()
                if not late.is_alive():
                    raise Left(f"it took longer than {LIMIT} seconds")
            finally:
                late.cancel()
            if not line:
                status = process.wait()
                errors.seek(0)
                last = (
                    errors.read()
                    .decode("utf8", "replace")
                    .strip()
                    .splitlines()
                )
                said = (last or ["it said nothing"])[-1]
                raise Left(f"its process ended with status {status}: {said}")
            yield json.loads(line)


def default():
    """Return the first ten measurements that can be made here."""
    # All at once, as each takes a while.
    probing.answers(timer.FRAMEWORKS)
    return list(
        itertools.islice(filter(is_possible, offered().values()), CHOSEN)
    )


def offered():
    """Return all measurements by their names."""
    return {each["name"]: each for each in results.book()["measurements"]}


def is_possible(measurement):
    """Say whether any of a measurement can be made here."""
    with contextlib.suppress(Left):
        return bool(prepared(measurement))
    return False


def listed():
    """Print what can be measured, and what of it here."""
    say("looking which frameworks work here")
    first = default()
    for name, measurement in offered().items():
        mark = "*" if measurement in first else " "
        print(f"{mark} {name:16} {measurement['question']}")
        try:
            lacking = prepared(measurement)[1]
            note = f"without {', '.join(sorted(lacking))}" if lacking else ""
        except Left as left:
            note = f"not here: {left}"
        if note:
            print(f"{'':19}{note}")
    print(f"\n* what `run` measures if it is not told what. Pages: {pages()}")
    for line in notices():
        print(line)
    return 0


def pages():
    """Return the names of the pages whose cells are run."""
    return ", ".join(sorted({each["page"] for each in offered().values()}))


def chosen(names):
    """Return the measurements of these names, `all`, or ten; SystemExit for unknown ones."""
    known = offered()
    if names == ["all"]:
        return list(known.values())
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, 3) or [
                "jax-measured list"
            ]
            say(f"there is no measurement {name!r}; see {', '.join(near)}")
            raise SystemExit(2)
    return [known[name] for name in names] or default()


class Run:
    """What a run has measured so far, kept in a file, and what it could not measure."""

    def __init__(self, path, measurements, processes):
        """Take the path of the file, what to measure, and how often."""
        self.path, self.processes = path, processes
        self.jobs, self.records, self.left, self.left_out = {}, {}, {}, {}
        for each in measurements:
            name = each["name"]
            try:
                self.jobs[name], lacking = prepared(each)
                if lacking:
                    self.left[name] = f"without {', '.join(sorted(lacking))}"
            except Left as left:
                self.left[name] = f"not measured: {left}"
        self.order = list(self.jobs)
        self.took = {name: [] for name in self.jobs}
        self.unkept = None

    def content(self):
        """Return what the file holds, in the order in which it was asked for."""
        ordered = sorted(
            self.records, key=lambda key: self.order.index(key[0])
        )
        return results.content([self.records[key] for key in ordered])

    def keep(self, name, records):
        """Add the records of a process, and write all that there is."""
        for number, record in enumerate(map(results.reduced, records)):
            former = self.records.get((name, number))
            self.records[name, number] = results.joined(former, record)
        self.write()

    def write(self, found=None):
        """Write all that there is, or this; a disk that is full does not end the run."""
        try:
            results.write(self.path, found or self.content())
            self.unkept = None
        except OSError as error:
            if not self.unkept:
                say(f"{self.path} cannot be written: {error.strerror}")
            self.unkept = error.strerror

    def measure(self):
        """Measure all once, in as few processes as can be, then all again in others."""
        for _ in range(self.processes):
            for names in processes_of(self.jobs):
                while names:
                    names = self.in_a_process(names)

    def in_a_process(self, names):
        """Measure one after the other; return what is left for another process.

        What raises when it is called for the first time is left out from then on, and
        the others are measured without it.
        """
        coming = answers([self.jobs[name] for name in names], self.left_out)
        with contextlib.closing(coming):
            for number, name in enumerate(names):
                self.announce(name)
                start = time.monotonic()
                try:
                    found = next(coming)
                except Left as left:
                    found = {"reason": str(left)}
                if "failed" in found:
                    of, key, reason = found["failed"]
                    self.left_out[of, key] = reason
                    return names[number:]
                self.took[name].append(time.monotonic() - start)
                if found.get("records"):
                    self.keep(name, found["records"])
                    continue
                self.give_up(
                    name, found.get("reason", "nothing was left to measure")
                )
                if "reason" in found:
                    return names[number + 1 :]
        return []

    def give_up(self, name, reason):
        """Measure something no more, and remember why."""
        turn = len(self.took[name])
        self.left[name] = f"not measured in process {turn} or later: {reason}"
        del self.jobs[name]

    def announce(self, name):
        """Say what is measured next, and how much is left; on a terminal all in one line."""
        known = [each for took in self.took.values() for each in took]
        mine = {each: self.took[each] for each in self.jobs}
        left = {each: self.processes - len(own) for each, own in mine.items()}
        rest = ""
        if known:
            seconds = sum(
                left[each] * statistics.mean(own or known)
                for each, own in mine.items()
            )
            rest = f", about {seconds:.0f} s left"
        turn, done = len(self.took[name]) + 1, len(known) + 1
        of = f"{done} of {len(known) + sum(left.values())}"
        say(
            f"{of}: {name}, process {turn} of {self.processes}{rest}",
            end="" if sys.stderr.isatty() else "\n",
        )

    def told(self):
        """Return in lines what was not measured, and why."""
        lines = [f"{name}: {reason}" for name, reason in self.left.items()]
        parts = self.left_out.items()
        return lines + [
            f"{name}/{key}: not measured: {why}" for (name, key), why in parts
        ]


def run(names, processes, path):
    """Measure, print the table and keep the file; return the exit status."""
    measurements, now = chosen(names), datetime.datetime.now()
    path = path or f"jax-measured-{now:%Y-%m-%d-%H%M%S}.json"
    try:
        results.reserve(path)
    except results.Refused as refused:
        say(f"{path}: {refused}; choose another by --out")
        return 2
    try:
        current = Run(path, measurements, processes)
        for warning in [*surroundings.warnings(), *notices()]:
            say(f"warning: {warning}")
        return measured(current)
    finally:
        results.release(path)


def measured(current):
    """Let a run measure, and print and keep what it found; return the exit status."""
    status = 0
    try:
        current.measure()
    except KeyboardInterrupt:
        say("stopped: what was measured before is kept")
        status = reporting.STOPPED
    say(end="")
    for line in current.told():
        say(line)
    if not current.records:
        say("nothing was measured")
        return status or 1
    found = current.content()
    try:
        print("\n".join(table(found, results.book())))
    finally:
        found = results.complete(found)
        current.write(found)
        if not current.unkept:
            say(f"\nkept in {current.path}")
    line = results.line(found)
    if current.unkept:
        say(
            f"\nnot kept in {current.path}: {current.unkept}. All of it in one line:"
        )
        print(f"\n{line}")
        return status or 1
    if len(line) <= SHORT:
        say("the same in one line, for the page Your machine:")
        print(f"\n{line}")
    else:
        say(f"the same in one line: jax-measured show --line {current.path}")
    return status


def as_page(found):
    """Return results as a page: what it says of them, and the tables."""
    shown = results.complete(found)["shown"]
    fastest = [
        (*work.split(": ", 1), text)
        for work, (text, _) in shown["fastest"].items()
    ]
    answers = [(key, text) for key, (text, _) in shown["answers"].items()]
    roofs = (shown["roofs"] or {}).get("texts", [])
    return paging.page(
        f"JAX, Measured, on {found['machine']}",
        paging.paragraphs([shown["about"]]),
        paging.section(
            "What is fastest here?",
            paging.table(("work", "measured as", "fastest"), fastest),
        ),
        paging.section(
            "What is the most that this machine reaches?",
            paging.table(("limit", "here"), roofs),
        ),
        *(
            paging.section(
                head[0], paging.table(["function", *head[1:]], rows)
            )
            for head, *rows in comparisons(found, results.book())
        ),
        paging.section(
            "What does the book compare?",
            paging.table(("the book asks", "here"), answers),
        ),
        paging.paragraphs(orders_of(found, results.book())),
        paging.paragraphs(notes(found, results.book())),
    )


def show(sources, as_line, page=None):
    """Print the table of each file, or the file as a line, or write it as a page.

    Return the exit status.
    """
    status = 0
    if page and len(sources) > 1:
        say("a page shows one file: name one, or leave out --html")
        return 2
    for source in sources:
        try:
            found = results.read(source)
        except results.Refused as refused:
            line = source.startswith(results.LINE)
            say(f"{'the line' if line else source}: {refused}")
            status = 2
            continue
        if page:
            try:
                pathlib.Path(page).write_text(as_page(found), "utf8")
            except OSError as error:
                say(f"{page} cannot be written: {error.strerror}")
                status = 2
            continue
        print(
            results.line(results.complete(found))
            if as_line
            else "\n".join([*table(found, results.book()), ""])
        )
    return status


def at_least(text):
    """Return a number of processes; ArgumentTypeError for fewer than a range needs."""
    if not text.isdecimal() or int(text) < PROCESSES:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no number of processes from {PROCESSES} on: fewer have no range"
        )
    return int(text)


def positive(text):
    """Return a number of devices; ArgumentTypeError for none."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no number of devices from 1 on"
        )
    return int(text)


def main(arguments=None):
    """Do what the words of a command line ask for; return the exit status."""
    codecs.register_error("plainly", plainly)
    with contextlib.suppress(AttributeError):
        sys.stdout.reconfigure(errors="plainly")
    try:
        status = done(arguments)
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        say("stopped before anything was measured")
        return reporting.STOPPED
    except OSError as error:
        # Nobody reads on, as with `| head`, or there is no room.
        if error.errno not in (errno.EPIPE, errno.ENOSPC):
            raise
        if error.errno != errno.EPIPE:
            say(f"the output cannot be written: {error.strerror}")
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 1


def done(arguments):
    """Do what the words of a command line ask for; return the exit status."""
    parser = argparse.ArgumentParser(prog="jax-measured", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser(
        "list", help="what can be measured, and what of it here"
    )
    running = commands.add_parser(
        "run", help="measure, and compare with the book"
    )
    running.add_argument(
        "names", nargs="*", help="of the list, or all; ten if none is named"
    )
    running.add_argument(
        "--processes",
        type=at_least,
        default=PROCESSES,
        help=f"how many for each, {PROCESSES} or more",
    )
    running.add_argument("--out", help="the file to write")
    showing = commands.add_parser(
        "show", help="print the table of files again"
    )
    showing.add_argument(
        "files", nargs="+", help="files, or results in one line"
    )
    showing.add_argument(
        "--line", action="store_true", help="as one line instead"
    )
    showing.add_argument(
        "--html", metavar="FILE", help="as a page instead, in this file"
    )
    practised = commands.add_parser(
        "practice", help="the exercises of the lessons, checked as you save"
    )
    practised.add_argument(
        "folder", nargs="?", default="jax-exercises", help="where they are"
    )
    practised.add_argument(
        "--once", action="store_true", help="check all of them, and end"
    )
    practised.add_argument(
        "--lesson",
        help="this one alone, by its number or the name of its file",
    )
    solving = commands.add_parser("solution", help="print a solution")
    solving.add_argument("name", help="of an exercise")
    starts = commands.add_parser(
        "new", help="write a project that trains a model"
    )
    starts.add_argument(
        "folder", help="its name, or a folder that ends with its name"
    )
    starts.add_argument("--model", required=True, choices=starting.MODELS)
    starts.add_argument(
        "--devices",
        type=positive,
        default=1,
        help="virtual devices on a CPU, 1 unless you say another number",
    )
    watching = commands.add_parser(
        "watch", help="run a program, and say what costs it time, by its lines"
    )
    watching.add_argument(
        "--json", action="store_true", help="as one line of JSON, the last"
    )
    watching.add_argument(
        "--html", metavar="FILE", help="also as a page, in this file"
    )
    watching.add_argument(
        "--book",
        default=results.book()["address"],
        help="the address of the book's front page",
    )
    watching.add_argument(
        "-m",
        action="store_true",
        dest="module",
        help="the program is a module",
    )
    watching.add_argument(
        "program", nargs=argparse.REMAINDER, help="and its own arguments"
    )
    given = parser.parse_args(arguments)
    if given.command == "watch":
        return reporting.watch(
            given.program, given.module, given.json, given.html, given.book
        )
    if given.command == "new":
        return starting.write(given.folder, given.model, given.devices)
    if given.command == "practice":
        return practising.practise(given.folder, given.once, given.lesson)
    if given.command == "solution":
        return practising.solution(given.name)
    if given.command == "list":
        return listed()
    if given.command == "run":
        return run(given.names, given.processes, given.out)
    return show(given.files, given.line, given.html)
