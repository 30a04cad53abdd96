"""A roofline is the highest bandwidth and rate that were measured, with what was reached."""

import dataclasses
import re

import pytest

from executed.options import Options
from measured.rooflines import Cost, Plan, PlanProblem, Roofs, drawing, reached
from measured.schema import Measurement

PLAN = Plan.read(
    """
    [moved]
    "a/copy" = 2
    [computed]
    float32 = ["a/product"]
    [points]
    "a/pass/*" = { arrays = 2, operations = 4 }
    "a/product" = { arrays = 3 }
    """
)


def measured(name, seconds, shape, framework="jax", kind="GPU", work=None, many=None):
    process = {
        "date": "2026-01-02T03:04:05+00:00",
        "first_call": None,
        "calls": 1,
        "latency": [seconds],
        "cores": None,
        "disturbed": False,
    } | ({"throughput": [many]} if many else {})
    return Measurement.from_plain(
        {
            "name": name,
            "framework": framework,
            "device_kind": kind,
            "processor": "A processor",
            "shape": [shape],
            "dtype": "float32",
            "precision": "highest",
            "work": work,
            "error": None,
            "versions": {},
            "settings": {},
            "processes": [process],
        }
    )


PRODUCT = measured("a/product", 1e-3, [100, 100], work=2e6)
COPIES = [
    measured("a/copy", 1e-3, [1000]),
    measured("a/copy", 3e-3, [1000], "torch", many=5e-4),
    measured("a/copy", 1e-6, [1000], "numpy", kind="cpu"),
]


def test_roofs_are_the_highest_on_the_device_that_computes():
    roofs = Roofs.of([PRODUCT, *COPIES], PLAN)
    assert roofs.moved == pytest.approx(2 * 4 * 1000 / 5e-4)
    assert roofs.computed == {"float32": pytest.approx(2e9)}
    assert roofs.at(1, "float32") == roofs.moved
    assert roofs.at(1e9, "float32") == roofs.computed["float32"]
    assert roofs.at(1, "bfloat16") is None


def test_no_point_that_computes_lies_above_its_roof():
    faster = measured("a/pass/fast", 1e-3, [1000, 1000], work=5e6)
    other_dtype = dataclasses.replace(faster, dtype="bfloat16", work=9e9)
    found = [PRODUCT, faster, other_dtype, *COPIES]
    roofs = Roofs.of(found, PLAN)
    assert roofs.computed == {"float32": pytest.approx(5e9)}
    plan = PLAN._replace(points={"a/product": Cost(3)})
    assert Roofs.of(found, plan).computed == {"float32": pytest.approx(2e9)}
    both = plan._replace(computed={"float32": ["a/product", "a/pass/fast"]})
    assert Roofs.of([PRODUCT, faster, *COPIES], both).computed == roofs.computed


def test_there_is_no_roofline_without_both_roofs():
    assert Roofs.of(COPIES, PLAN) is None
    assert Roofs.of([PRODUCT], PLAN) is None


def test_a_point_takes_its_work_from_its_record_or_from_what_is_declared():
    roofs = Roofs.of([PRODUCT, *COPIES], PLAN)
    some = measured("a/pass/some", 1e-3, [10, 10])
    product, other = reached([PRODUCT, some, *COPIES], PLAN, roofs)
    assert product.intensity == pytest.approx(2e6 / (3 * 4 * 100 * 100))
    assert product.rate == product.roof == pytest.approx(2e9) or product.rate > product.roof
    assert (other.intensity, other.rate) == (pytest.approx(0.5), pytest.approx(4 * 100 / 1e-3))


def test_a_drawing_has_the_roofs_and_unconnected_points():
    roofs = Roofs.of([PRODUCT, *COPIES], PLAN)
    points = reached([PRODUCT, measured("a/pass/some", 1e-3, [10, 10])], PLAN, roofs)
    svg = drawing(points, roofs, Options(frameworks={"jax": {"label": "JAX"}}), "Roofs")
    assert "float32: 2 GFLOP/s" in svg
    assert svg.count('class="point"') == 2
    series = re.search(r'<g class="series".*', svg)[0]
    assert "<line" not in series


@pytest.mark.parametrize("text", ["moved = 1", "[moved]\n[computed]\n[points]\nx = 1", "moved ="])
def test_what_declares_no_roofline_is_an_error(text):
    with pytest.raises(PlanProblem):
        Plan.read(text)
