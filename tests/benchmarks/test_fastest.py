"""The table of what is fastest: it has all that the book compares, and the fastest of each."""

import collections
import fnmatch
import json
import math
import pathlib
import re
import statistics

import pytest

from measured.fastest import Work, best
from measured.schema import Measurement, single

DOCS = pathlib.Path(__file__).parents[2] / "docs"
KIND = "application/vnd.jax-measured.record+json"
# Comparisons of several frameworks that are in no row, and why.
EXCEPTIONS = {
    "dispatch": "when a call returns against when its result exists",
    "small_calls/size*": "one small operation over sizes: the row of four elements has the answer",
    "gallery": "a gallery of wrong timings",
    "selu/allocator": "two settings of the system's allocator",
    "selu/ready": "the SELU of a library, on one device alone",
    "transfers/between": "from one framework to another and back",
    "matmul/host": "where a result is left",
    "matmul/precision": "float32 at several precisions; its bfloat16 has a row",
    "decoding/length": "a length that is new, and has to be compiled; one that is known has a row",
    "ceilings/pass": "what the roof allows; two of its functions have a row",
    "ceilings/dense": "what the roof allows; two of its layers have a row",
    "ceilings/product": "the roof; both dtypes have a row",
    "ceilings/triad": "both of its kinds have a row",
    "float64/*": "float64 against float32; the rows have float64",
    "claims/*": "statements of documentation, on what that chose",
    "busy/*": "one machine calm and busy",
}


def works(page):
    """Return the works that the tables of a page declare."""
    text = (DOCS / f"{page}.md").read_text("utf8")
    tables = re.findall(r"^```\{measurement-fastest\}\n(.*?)^```$", text, re.M | re.S)
    return [Work.from_line(line) for table in tables for line in table.splitlines()]


WORKS = works("benchmarks/fastest")


def records(value):
    """Yield the records in a notebook."""
    if isinstance(value, dict):
        if KIND in value:
            yield value[KIND]
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from records(each)


def read():
    """Return all measurements of all devices."""
    found = []
    for path in sorted(DOCS.glob("_recorded/*/*/*.ipynb")):
        device, chapter, name = path.relative_to(DOCS / "_recorded").with_suffix("").parts
        for record in records(json.loads(path.read_text("utf8"))):
            place = {"page": f"{chapter}/{name}", "device": device}
            found += [Measurement.from_plain(each | place) for each in single(record)]
    return found


def contests(measured):
    """Return {comparison: its names} of those in which several frameworks take part."""
    found = collections.defaultdict(list)
    for each in measured:
        found[each.comparison].append(each)
    return {
        comparison: {each.name for each in group}
        for comparison, group in found.items()
        if comparison and len({each.framework for each in group}) > 1
    }


MEASURED = read()
CONTESTS = contests(MEASURED)


def of(work, device):
    return [each for each in MEASURED if work.counts(each.name) and each.device == device]


@pytest.mark.parametrize("comparison", sorted(CONTESTS))
def test_what_frameworks_are_compared_in_is_in_the_table_or_there_is_a_reason(comparison):
    besides = set().union(*(work.besides for work in WORKS))
    out = {
        name
        for name in CONTESTS[comparison]
        if name not in besides and not any(work.counts(name) for work in WORKS)
    }
    excepted = any(fnmatch.fnmatchcase(comparison, pattern) for pattern in EXCEPTIONS)
    assert excepted or not out, f"no row of benchmarks/fastest has {', '.join(sorted(out))}"


@pytest.mark.parametrize("pattern", EXCEPTIONS)
def test_no_exception_is_of_nothing(pattern):
    begins = pattern.rstrip("*")
    pages = (path.read_text("utf8") for path in DOCS.glob("*/*.md"))
    assert fnmatch.filter(CONTESTS, pattern) or any(f"`{begins}" in page for page in pages)


@pytest.mark.parametrize("work", WORKS, ids=lambda work: work.words)
@pytest.mark.parametrize("device", ["cpu", "gpu-h200"])
def test_what_is_called_fastest_is_the_fastest_of_all_records_of_the_work(work, device):
    times = collections.defaultdict(list)
    for each in of(work, device):
        medians = [statistics.median(process.latency) for process in each.processes]
        times[each.framework].append(statistics.median(medians))
    expected = sorted((min(seconds), framework) for framework, seconds in times.items())
    found = [(each.latency, each.framework) for each in best(of(work, device))]
    assert found == expected


@pytest.mark.parametrize("work", WORKS, ids=lambda work: work.words)
def test_a_row_is_of_one_size(work):
    sizes = {
        (max(map(math.prod, each.shape)), each.device if "H200" in work.words else "")
        for each in MEASURED
        if work.counts(each.name) and each.shape
    }
    assert len(sizes) <= 1 or len(sizes) == len({device for _, device in sizes}), sizes


@pytest.mark.parametrize("work", works("benchmarks/when_not"), ids=lambda work: work.words)
def test_other_pages_count_no_other_entries(work):
    assert any((work.entries, work.besides) == (each.entries, each.besides) for each in WORKS)
