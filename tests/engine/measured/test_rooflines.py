"""A roofline is the highest bandwidth and rate that were measured, with what was reached."""

import dataclasses
import re
import xml.etree.ElementTree as ET

import pytest

from executed.options import Options
from measured.charts import roofline
from measured.rooflines import Costs, by_pattern, reached, roofs
from measured.schema import Measurement
from tests.engine import records

COSTS = Costs(by_pattern("a/copy=2 a/pass/*=2 a/product=3"), by_pattern("a/pass/some=4"))


def measured(name, seconds, shape, framework="jax", kind="GPU", work=None, many=None):
    many = {"throughput": [many]} if many else {}
    fields = {"device_kind": kind, "shape": [shape], "work": work}
    return Measurement.from_plain(records.measured(name, [seconds], framework, many, **fields))


PRODUCT = measured("a/product", 1e-3, [100, 100], work=2e6)
COPIES = [
    measured("a/copy", 1e-3, [1000]),
    measured("a/copy", 3e-3, [1000], "torch", many=5e-4),
    measured("a/copy", 1e-6, [1000], "numpy", kind="cpu"),
]


def test_roofs_are_the_highest_on_the_device_that_computes():
    limits = roofs([], [PRODUCT], COPIES, COSTS)
    assert limits.bandwidth == pytest.approx(2 * 4 * 1000 / 5e-4)
    assert limits.rates == {"float32": pytest.approx(2e9)}
    assert limits.at(1, "float32") == limits.bandwidth
    assert limits.at(1e9, "float32") == limits.rates["float32"]


def test_no_point_that_computes_lies_above_its_roof():
    faster = measured("a/pass/fast", 1e-3, [1000, 1000], work=5e6)
    other_dtype = dataclasses.replace(faster, dtype="bfloat16", work=9e9)
    limits = roofs([faster, other_dtype], [PRODUCT], COPIES, COSTS)
    assert limits.rates == {"float32": pytest.approx(5e9)}
    elsewhere = dataclasses.replace(faster, processor="another processor")
    limits_here = roofs([elsewhere], [PRODUCT], COPIES, COSTS)
    assert limits_here.rates == {"float32": pytest.approx(2e9)}
    assert roofs([PRODUCT], [PRODUCT], COPIES, COSTS).rates == {"float32": pytest.approx(2e9)}
    assert roofs([], [PRODUCT, faster], COPIES, COSTS) == limits


def test_a_point_above_a_roof_with_all_its_range_is_told():
    limits = roofs([], [PRODUCT], COPIES, COSTS)
    cached = measured("a/pass/some", 1e-9, [1000])
    slow = measured("a/pass/some", 1e-3, [1000])
    fast, below = reached(map(COSTS.with_work, [cached, slow]), limits, COSTS)
    assert fast.is_above() and not below.is_above()


def test_the_point_that_a_roof_goes_through_is_not_above_it():
    costs = Costs(by_pattern("a/add=3"), by_pattern("a/add=1"))
    for tenths in range(1, 100):
        fastest = costs.with_work(measured("a/add", tenths / 1e4, [1000]))
        (point,) = reached([fastest], roofs([], [PRODUCT], [fastest], costs), costs)
        assert not point.is_above()


def test_there_is_no_roofline_without_both_roofs():
    assert roofs(COPIES, [], COPIES, COSTS) is None
    assert roofs([], COPIES, COPIES, COSTS) is None
    assert roofs([PRODUCT], [PRODUCT], [], COSTS) is None
    assert roofs([PRODUCT], [PRODUCT], COPIES, Costs({}, {})) is None


def points_below(limits):
    """Return what a matmul, and an operation whose work is declared, reached."""
    points = [PRODUCT, measured("a/pass/some", 1e-3, [10, 10]), *COPIES]
    return reached(map(COSTS.with_work, points), limits, COSTS)


def test_a_point_takes_its_work_from_its_record_or_from_what_is_declared():
    product, other = points_below(roofs([], [PRODUCT], COPIES, COSTS))
    assert product.intensity == pytest.approx(2e6 / (3 * 4 * 100 * 100))
    assert product.rate == product.roof == pytest.approx(2e9) or product.rate > product.roof
    assert (other.intensity, other.rate) == (pytest.approx(0.5), pytest.approx(4 * 100 / 1e-3))


def test_a_drawing_has_the_roofs_and_unconnected_points():
    limits = roofs([], [PRODUCT], COPIES, COSTS)
    options = Options(frameworks={"jax": {"label": "JAX"}})
    svg = roofline(points_below(limits), limits, options, "Roofs")
    assert "float32: 2 GFLOP/s" in svg
    assert svg.count('class="point"') == 2
    assert re.findall(r'class="point-name"[^>]*>([^<]+)<', svg) == ["some", "product"]
    series = re.search(r'<g class="series".*', svg)[0]
    assert "<line" not in series


def test_roofs_reach_beyond_their_bends_wherever_the_points_are():
    limits = roofs([], [PRODUCT, dataclasses.replace(PRODUCT, dtype="bfloat16")], COPIES, COSTS)
    limits = limits._replace(rates=limits.rates | {"bfloat16": 2 * limits.rates["float32"]})
    (point,) = reached([COSTS.with_work(measured("a/pass/some", 1e-3, [10, 10]))], limits, COSTS)
    root = ET.fromstring(roofline([point], limits, Options(), "Roofs"))
    ceilings = [each for each in root.iter() if each.get("class") == "ceiling"]
    lines = [
        [(float(e.get("x1")[:-1]), float(e.get("x2")[:-1])) for e in each] for each in ceilings
    ]
    # The flat part of each, and the line of memory once.
    assert sorted(map(len, lines)) == [1, 2]
    assert all(end - start > 5 for each in lines for start, end in each)
    names = [each for each in root.iter() if each.get("class") == "roof"]
    bends = sorted(each[-1][0] for each in lines)
    assert sorted(float(each.get("x")[:-1]) for each in names) == bends
    assert len({each.get("y") for each in names}) == 2


def test_each_framework_has_a_mark_and_is_in_the_legend():
    limits = roofs([], [PRODUCT], COPIES, COSTS)
    points = [dataclasses.replace(PRODUCT, framework=name) for name in ("jax", "torch")]
    svg = roofline(reached(points, limits, COSTS), limits, Options(), "Roofs")
    legend = re.search(r'<text class="legend".*?</text>', svg)[0]
    assert re.findall(r">([^<]+)</tspan>", legend) == ["● jax ", "■ torch "]
    assert svg.count('class="bar"') == svg.count('class="bar square"') == 1
    assert 'class="name' not in svg


@pytest.mark.parametrize("text", ["a/*", "a/*=", "a/*=two"])
def test_what_names_no_number_for_a_pattern_is_refused(text):
    with pytest.raises(ValueError):
        by_pattern(text)
