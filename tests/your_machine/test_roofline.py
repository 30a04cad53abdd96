"""The least time of an operation, and the costs that the page declares for the book's."""

import pytest

from snippets.your_machine import roofline
from tests.book.pages import roofline as declared


@pytest.mark.parametrize("operation, arrays", [("copy", 2), ("elementwise", 2), ("sum", 1)])
def test_what_is_read_and_written_once_takes_its_bytes(operation, arrays):
    memory, arithmetic = roofline.least_time(operation, 1000, "float32", 4e9, 1e12)
    assert memory == pytest.approx(arrays * 1e-6)
    assert arithmetic <= 1e-9


def test_a_matmul_moves_three_matrices_and_sums_its_terms():
    assert roofline.OPERATIONS["product"](512, 4) == (2 * 512**3, 3 * 4 * 512**2)
    memory, arithmetic = roofline.least_time("product", 100, "bfloat16", 6e4, 2e6)
    assert (memory, arithmetic) == (pytest.approx(1), pytest.approx(1))


def test_what_limits_is_said(capsys):
    roofline.print_least_times({"copy": 10**6, "product": 4096}, "float32", 100e9, 1000e9)
    assert capsys.readouterr().out.splitlines() == [
        "copy            1,000,000    0.080 ms, by memory",
        "product             4,096  137.439 ms, by arithmetic",
    ]


def test_the_page_declares_what_the_ceilings_declare():
    here, there = declared("your_machine/roofline"), declared("benchmarks/ceilings")
    assert (here.moved, here.computed) == (there.moved, there.computed)
    for name in ("copy", "softmax", "softmax_new", "layer_norm", "chain_new", "eager_chain"):
        of_pass = f"ceilings/pass/{name}"
        assert here.declared(of_pass) == there.declared(of_pass), name
    assert here.declared("matmul/size/512") == there.declared("ceilings/dense/large") == (3, None)
