"""The pages of the book, which tests of one process read once."""

import functools
import pathlib
import re

from executed.options import Options
from executed.source.pages import read_page
from executed.source.snippets import Library
from measured.rooflines import Costs, by_pattern

ROOT = pathlib.Path(__file__).parents[2]
OPTIONS = Options.from_file(ROOT / "conf.py")
LIBRARY = Library.of(OPTIONS)


@functools.cache
def paths():
    """Return {page: path} of all pages."""
    return OPTIONS.page_files


@functools.cache
def page(name):
    """Return a page of the book as it is executed, or None where it has no code."""
    return read_page(name, paths()[name], LIBRARY)


def with_exercises(name, chapter="learn"):
    """Return the page that has the exercises of a module, by its name and its chapter."""
    elsewhere = {
        "ten_minutes": "start/ten_minutes",
        "building": "project/steps",
        "project": "project/generation",
    }
    return elsewhere.get(name, f"{chapter}/{name}")


def costs(name):
    """Return what a page declares its operations to move and to do, for its roofline."""
    text = paths()[name].read_text("utf8")
    options = (re.search(rf"^:{option}: (.+)$", text, re.M) for option in Costs._fields)
    return Costs(*(by_pattern(found[1]) for found in options))
