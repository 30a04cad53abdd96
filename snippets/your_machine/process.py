"""One process that measures: runs cells, and answers with the records of the last one.

Its question comes as JSON on standard input; the answer goes to standard output.
"""

import contextlib
import importlib
import json
import linecache
import os
import sys
import types

from . import timer


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
    """Return what was raised, in a line: its type and the last line of its message."""
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[-1].strip()}"[:300]


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
                key for key, function in kept.items() if function is raised.function
            ]
            raise Failed(name, keys[0], reason_of(raised.__cause__)) from raised

    return careful


def run(cells, left_out):
    """Run cells one after the other, as a page does; return the records of the last."""
    records = []
    timer.Timed = Careful
    timer.compare = comparing(timer.compare, left_out)
    sys.modules["timer"] = timer
    page = sys.modules["__main__"] = types.ModuleType("__main__")
    timer.display = lambda result: records.append(result.record())
    for number, cell in enumerate(cells, 1):
        records.clear()
        name = f"<cell {number}>"
        linecache.cache[name] = len(cell), None, cell.splitlines(keepends=True), name
        exec(compile(cell, name, "exec"), page.__dict__)
    return records


def answer(question):
    """Return the records of a question's cells, or what failed and why."""
    for name in question["before"]:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    try:
        return {"records": run(question["cells"], question["left_out"])}
    except Failed as failed:
        return {"failed": failed.args}
    except Raised as raised:
        return {"reason": reason_of(raised.__cause__)}
    except Exception as error:
        return {"reason": reason_of(error)}


def main():
    """Answer the question, with all that cells print sent elsewhere."""
    question = json.load(sys.stdin)
    with os.fdopen(os.dup(1), "w", encoding="utf8") as out:
        os.dup2(2, 1)
        json.dump(answer(question), out)


if __name__ == "__main__":
    main()
