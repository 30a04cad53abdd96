"""The committed records of this chapter's functions."""

import pathlib

import pytest

from compiled import program_files as store
from compiled.options import programs_folder
from executed.options import Options

RECORDS = programs_folder(Options.from_file(pathlib.Path(__file__).parents[2] / "conf.py"))


@pytest.fixture(scope="session")
def recorded():
    """Return the function that reads the record of a function, such as `fusion.selu`."""
    return lambda name: store.read(RECORDS / f"compiled.{name}.json")
