"""The least time of an operation, and the costs that the page declares for the book's."""

import pathlib
import re

import numpy as np
import pytest
from _ext.measurements.rooflines import Plan

from snippets.benchmarks import ceilings
from snippets.your_machine import roofline

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "your_machine" / "roofline.md"
PLAN = Plan.read(
    re.search(r"^```{roofline}.*?\n(.*?)^```$", PAGE.read_text("utf8"), re.MULTILINE | re.DOTALL)[1]
)


@pytest.mark.parametrize("operation, arrays", [("copy", 2), ("elementwise", 2), ("sum", 1)])
def test_what_is_read_and_written_once_takes_its_bytes(operation, arrays):
    memory, arithmetic = roofline.least_time(operation, 1000, "float32", 4e9, 1e12)
    assert memory == pytest.approx(arrays * 1e-6)
    assert arithmetic <= 1e-9


def test_a_product_moves_three_matrices_and_adds_up_its_products():
    assert roofline.OPERATIONS["product"](512, 4) == tuple(ceilings.cost_of_product(512))
    memory, arithmetic = roofline.least_time("product", 100, "bfloat16", 6e4, 2e6)
    assert (memory, arithmetic) == (pytest.approx(1), pytest.approx(1))


def test_what_limits_is_said(capsys):
    roofline.print_least_times({"copy": 10**6, "product": 4096}, "float32", 100e9, 1000e9)
    assert capsys.readouterr().out.splitlines() == [
        "copy            1,000,000    0.080 ms, by memory",
        "product             4,096  137.439 ms, by arithmetic",
    ]


def test_the_page_declares_the_arrays_that_the_kernels_move():
    moved = {name.removeprefix("ceilings/"): arrays for name, arrays in PLAN.moved.items()}
    assert moved == ceilings.ARRAYS


def test_the_page_declares_the_costs_of_the_ceilings():
    x = np.zeros((64, 1024), np.float32)
    costs = ceilings.costs(x, small=64, large=128, length=256)
    for name in ("softmax", "softmax_new", "layer_norm", "chain_new", "eager_chain"):
        declared = PLAN.declared(f"ceilings/pass/{name}")
        cost = costs[name.removesuffix("_new")]
        assert (declared.operations * x.size, declared.arrays * x.nbytes) == tuple(cost)
    assert PLAN.declared("ceilings/pass/copy") is None
    product = PLAN.declared("matmul/size/512")
    assert (product.arrays, product.operations) == (3, None)
