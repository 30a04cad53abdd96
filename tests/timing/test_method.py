"""What the page on the method says that no record has, none has."""

import json
import pathlib

import pytest

DOCS = pathlib.Path(__file__).parents[2] / "docs"
SAID = "the *throughput*, isn't recorded yet"


def records(value):
    """Yield the records of measurements in a notebook."""
    if isinstance(value, dict):
        if {"latency", "first_call"} <= value.keys():
            yield value
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from records(each)


@pytest.mark.parametrize("path", sorted((DOCS / "_recorded").glob("gpu-*")), ids=lambda p: p.name)
def test_no_gpu_has_a_throughput_while_the_method_says_so(path):
    notebooks = (json.loads(each.read_text("utf8")) for each in path.rglob("*.ipynb"))
    found = [record for notebook in notebooks for record in records(notebook)]
    assert len(found) > 100
    if SAID in (DOCS / "method.md").read_text("utf8"):
        assert not any(record.get("throughput") for record in found)
