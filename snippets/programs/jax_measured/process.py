"""One process that measures: runs cells of pages, and answers with what they recorded.

Its question comes as JSON on standard input; the answers go to standard output, a line
for each measurement as soon as it is made.
"""

import contextlib
import gc
import importlib
import json
import linecache
import os
import sys
import threading
import traceback
import types

from . import surroundings, timer


class Raised(Exception):
    """A function that raised when it was called for the first time."""

    def __init__(self, function):
        """Take the function."""
        super().__init__()
        self.function = function


class Failed(Exception):
    """What cannot take part in a comparison: the comparison, the key, and why not."""


class Careful(timer.Timed):
    """What the timer makes of a function, and says which one raised."""

    def __init__(self, function, *args):
        """Call the function for the first time."""
        try:
            super().__init__(function, *args)
        except Exception as error:
            raise Raised(function) from error


def reason_of(error):
    """Return what was raised, in a line: its type, and the last line of its message or code."""
    lines = str(error).strip().splitlines()
    if not lines:
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.line or "" for frame in frames]
    return f"{type(error).__name__}: {(lines or [''])[-1].strip()}"[:300]


def comparing(compare, left_out):
    """Return a `compare` that names what raises, and leaves out what is said to."""

    def careful(name, alternatives, *args, **options):
        kept = {
            key: function
            for key, function in alternatives.items()
            if [name, key] not in left_out
        }
        if not kept:
            return None
        try:
            return compare(name, kept, *args, **options)
        except Raised as raised:
            keys = [
                key
                for key, function in kept.items()
                if function is raised.function
            ]
            raise Failed(
                name, keys[0], reason_of(raised.__cause__)
            ) from raised

    return careful


def run(cells):
    """Run cells one after the other, as a page does; return the records of the last."""
    records = []
    page = sys.modules["__main__"] = types.ModuleType("__main__")
    timer.display = lambda result: records.append(result.record())
    for number, cell in enumerate(cells, 1):
        records.clear()
        name = f"<cell {number}>"
        linecache.cache[name] = (
            len(cell),
            None,
            cell.splitlines(keepends=True),
            name,
        )
        exec(compile(cell, name, "exec"), page.__dict__)
    page.__dict__.clear()
    gc.collect()
    return records


def compile_something_first(cells):
    """Have torch.compile compile a program that does not count, as pages do.

    The first of a process also imports the compiler. A cell of a page that does so may
    not be among those that a measurement needs.
    """
    if any("torch.compile" in cell for cell in cells):
        with contextlib.suppress(Exception):
            torch = importlib.import_module("torch")
            torch.compile(torch.sin)(torch.ones(3))


def answer(cells):
    """Return the records of a measurement's cells, or what failed and why."""
    compile_something_first(cells)
    try:
        return {"records": run(cells)}
    except Failed as failed:
        return {"failed": failed.args}
    except Raised as raised:
        return {"reason": reason_of(raised.__cause__)}
    except Exception as error:
        return {"reason": reason_of(error)}


def end_with(pipe):
    """End when a pipe does: nobody waits for an answer any more."""
    while os.read(pipe, 1000):
        pass
    os._exit(1)


def main():
    """Answer the question, with all that cells print sent elsewhere.

    After a measurement that fails nobody knows in which state the process is, so it is
    the last one.
    """
    question = json.loads(sys.stdin.readline())
    threading.Thread(target=end_with, args=[os.dup(0)], daemon=True).start()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for name in question["before"]:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    timer.Timed = Careful
    settings = timer.settings
    timer.settings = lambda *asked: settings(*asked) | surroundings.switched()
    timer.compare = comparing(timer.compare, question["left_out"])
    sys.modules["timer"] = timer
    with os.fdopen(os.dup(1), "w", encoding="utf8") as out:
        os.dup2(2, 1)
        for cells in question["measurements"]:
            found = answer(cells)
            print(json.dumps(found), file=out, flush=True)
            if "records" not in found:
                break


if __name__ == "__main__":
    main()
