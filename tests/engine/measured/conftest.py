"""A small book of many records, and files of readers who measured the same."""

import pytest

from tests.engine.measured import readers_book
from tests.engine.measured.readers_book import compared, file_of


@pytest.fixture(scope="module")
def book(lasting):
    """Build the small book."""
    return readers_book.built(lasting)


@pytest.fixture(scope="module")
def whole(book):
    """Return a file of all measurements of charts but comparisons."""
    return file_of(book, [each for each in book.records() if each["page"] == "a/charts"])


@pytest.fixture(scope="module")
def turns(book):
    """Return a file of all comparisons of the book but those of frameworks."""
    return compared(book, "duel/")
