"""The committed records of this chapter's functions."""

import pathlib

import pytest

from compiled import program_files as store
from executed.options import Options

RECORDS = Options.from_file(pathlib.Path(__file__).parents[2] / "conf.py").folder("programs")


@pytest.fixture(scope="session")
def recorded():
    """Return the function that reads the record of a function, such as `fusion.selu`."""
    return lambda name: store.read(RECORDS / f"compiled.{name}.json")
