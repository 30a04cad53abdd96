"""What several pages measure agrees, and a part never takes longer than the whole."""

import functools
import itertools
import json
import pathlib

import pytest

from measured.schema import Measurement, Schema, single

ROOT = pathlib.Path(__file__).parents[2]
RECORDED = ROOT / "docs" / "_recorded"
SCHEMA = Schema.load(ROOT / "snippets" / "programs" / "measurement.schema.json")
# How far apart the ranges of two pages may be: pages differ in what their process did before.
BESIDE = 1.15
# A range of fewer processes says nothing.
FEWEST = 3

# The same operation of the same library on arrays of the same size and dtype.
SAME = [
    ("matmul/size/64@jax", "float64/product/64/float32@jax"),
    ("matmul/size/64@torch", "float64/product/64/float32@torch"),
    ("matmul/size/64@tensorflow", "float64/product/64/float32@tensorflow"),
    ("matmul/size/1024@jax", "float64/product/1024/float32@jax", "matmul/precision/full@jax"),
    ("matmul/size/1024@torch", "float64/product/1024/float32@torch"),
    ("matmul/size/1024@tensorflow", "float64/product/1024/float32@tensorflow"),
    ("timer/example@jax", "timer/again@jax", "dispatch/1000/result@jax"),
    ("gallery/blocked@jax", "dispatch/result@jax"),
    ("gallery/unblocked@jax", "dispatch/returns@jax"),
    ("gallery/jit_once@jax", "selu/small/jit@jax"),
    ("small_calls/size/4/jit@jax", "small_calls/one/jit@jax"),
]
# The first is a part of what the second does.
PARTS = [
    ("ten_minutes/rates/32/vmap@jax", "ten_minutes/rates/32/loop@jax"),
    ("ten_minutes/rates/256/vmap@jax", "ten_minutes/rates/256/loop@jax"),
    ("transfers/smooth/1000/device@jax", "transfers/smooth/1000/numpy@jax"),
    ("transfers/square/1024/device@jax", "transfers/square/1024/numpy@jax"),
    ("elementwise/chain/1/jit@jax", "elementwise/chain/32/jit@jax"),
    ("matmul/size/64@jax", "matmul/size/1024@jax"),
    ("dispatch/returns@jax", "dispatch/result@jax"),
]
DEVICES = sorted(path.name for path in RECORDED.iterdir() if (path / "benchmarks").is_dir())


@functools.cache
def measured(device):
    """Return what was measured on a device, by what pages call it."""
    found = {}
    for path in (RECORDED / device).rglob("*.ipynb"):
        cells = json.loads(path.read_text("utf8"))["cells"]
        for output in (each for cell in cells for each in cell["outputs"]):
            if record := output.get("data", {}).get(SCHEMA.media_type):
                known = [Measurement.from_plain(each) for each in single(record)]
                found |= {each.reference: each for each in known}
    return found


def ends(device, reference):
    """Return the fastest and the slowest process, in seconds; None where they are too few."""
    of = measured(device).get(reference)
    numbers = of.of_processes("latency") if of else ()
    return (min(numbers), max(numbers)) if len(numbers) >= FEWEST else None


def circumstances(device, reference):
    """Return the processor and the versions that a measurement is of."""
    measurement = measured(device)[reference]
    return measurement.processor, measurement.versions


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("names", SAME, ids=lambda names: names[0])
def test_pages_agree_on_the_same_work(names, device):
    known = {name: found for name in names if (found := ends(device, name))}
    for (one, (low, high)), (other, (least, most)) in itertools.combinations(known.items(), 2):
        # A number belongs to its machine and its versions.
        if circumstances(device, one) != circumstances(device, other):
            continue
        apart = max(low / most, least / high)
        assert apart <= BESIDE, f"{one} and {other} are {apart:.2f}× apart on {device}"


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("part", "whole"), PARTS, ids=lambda name: name)
def test_a_part_takes_no_longer_than_the_whole(part, whole, device):
    below, above = ends(device, part), ends(device, whole)
    if below and above:
        assert below[0] <= above[1] * BESIDE, f"{part} takes longer than {whole} on {device}"


@pytest.mark.parametrize("names", [*SAME, *PARTS], ids=lambda names: names[0])
def test_what_is_compared_is_measured(names):
    assert set(names) <= measured("cpu").keys()
