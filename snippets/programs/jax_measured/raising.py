"""What the book knows of an exception: an entry of its list of errors, or the field that looks further."""

from __future__ import annotations

import dis
import json
import os
import pathlib
import re
import sys
import types
import urllib.parse
from collections.abc import Iterator

from .watching import Place, ours

HERE = pathlib.Path(__file__).parent
# The field of the list reads what follows, and says who raises it and where it is documented.
FIELD = "pitfalls/index.html#error-finder="
# What JAX notes where it has taken frames out of a traceback, and how Python names what is JAX's.
REMOVED = "JAX has removed its internal frames"
OF_JAX = re.compile("'jax|Tracer")
# Packages of which the list has a few messages, and knows no others.
OTHERS = {"torch", "tensorflow"}
# What Python and NumPy say of much that is not JAX's.
GENERAL = (
    "TypeError: unhashable type",
    "ValueError: setting an array element",
)
LONGEST = 200


def shown(error: BaseException) -> None:
    """Show an exception of the program as Python does, without the frames of this command."""
    trace = next(traces(error), None)
    sys.excepthook(type(error), error.with_traceback(trace), trace)


def traces(error: BaseException) -> Iterator[types.TracebackType]:
    """Return the entries of a traceback, from the first of the program on."""
    trace = error.__traceback__
    ours_first = ("<frozen runpy", str(HERE))
    while trace and trace.tb_frame.f_code.co_filename.startswith(ours_first):
        trace = trace.tb_next
    while trace:
        yield trace
        trace = trace.tb_next


def answer(error: BaseException) -> tuple[Place | None, str, str] | None:
    """Return the reader's last line, what the book says, and the page; None for other errors.

    An entry is named where the type fits, and the message begins as that of the entry.
    """
    known = json.loads((HERE / "errors.json").read_text("utf8"))
    at, packages, calls = None, set(), False
    for trace in traces(error):
        code = trace.tb_frame.f_code
        if ours(code.co_filename):
            at, packages = (code.co_filename, trace.tb_lineno), set()
            step = trace.tb_lasti
            while not code.co_code[step]:  # Python 3.11 counts room behind it.
                step -= 2
            calls = "CALL" in dis.opname[code.co_code[step]]
        inside = re.split(r"(?:site|dist)-packages[\\/]", code.co_filename)
        packages.add(inside[-1].partition(os.sep)[0])
    text = str(error)
    of_jax = packages.intersection(known["packages"]) or OF_JAX.search(text)
    noted = REMOVED in "".join(getattr(error, "__notes__", ()))
    # What the reader raises while JAX traces is the reader's, though JAX has been between.
    theirs = of_jax or (noted and calls)
    kinds = {each.__name__ for each in type(error).__mro__}
    said = " ".join(text.replace("`", "").split())
    found = [
        (title, words, page)
        for kind, pattern, title, words, page in known["entries"]
        if kind in kinds
        and (theirs or not title.startswith(GENERAL))
        and re.match(pattern, said, re.IGNORECASE)
    ]
    if found and (theirs or calls or packages & OTHERS):
        title, words, page = max(found, key=lambda entry: len(entry[0]))
        return at, f"{title}: {words}", page
    name = type(error).__name__
    first = f"{name}: {text.strip().partition(chr(10))[0]}"[:LONGEST]
    page = FIELD + urllib.parse.quote(first, safe="")
    words = f"{name}: no entry of the book begins so; its list says who raises this, and where that is documented"
    return (at, words, page) if theirs else None
