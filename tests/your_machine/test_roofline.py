"""The least time of an operation, and the costs that the page declares for the book's."""

import re

import pytest

from measured.rooflines import Costs, by_pattern
from snippets.your_machine import roofline
from tests.book import pages


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


def test_the_form_says_the_costs_of_the_snippet():
    form = pages.paths()["your_machine/roofline"].read_text("utf8")
    costs = re.findall(
        r'<option value="(\w+)" data-operations="(\d) (\d)" data-numbers="(\d) (\d)">', form
    )
    widths = dict(re.findall(r'<option data-bytes="(\d)">(\w+)</option>', form))
    assert {name: int(width) for width, name in widths.items()} == roofline.BYTES
    assert {name for name, *_ in costs} == roofline.OPERATIONS.keys()
    for name, *numbers in costs:
        times, power, arrays, size = map(int, numbers)
        for n in (1, 7, 10**9):
            for width in roofline.BYTES.values():
                cost = roofline.OPERATIONS[name](n, width)
                assert cost == (times * n**power, width * arrays * n**size)


def declared(name):
    """Return the options of the roofline of a page, and the costs that they declare."""
    text = pages.paths()[name].read_text("utf8")
    chart = re.search(r"^:x: intensity\n(.*?)^$", text, re.M | re.S)[1]
    options = dict(re.findall(r"^:(\w+): (.*)$", chart, re.M))
    return options, Costs(by_pattern(options["arrays"]), by_pattern(options["operations"]))


def test_the_page_declares_what_the_ceilings_declare():
    here, costs = declared("your_machine/roofline")
    there, ceilings = declared("benchmarks/ceilings")
    assert all(here[option] == there[option] for option in ("ceiling", "bandwidth"))
    for name in ("softmax", "softmax_new", "layer_norm", "chain_new", "eager_chain"):
        of_pass = f"ceilings/pass/{name}"
        assert costs.declared(of_pass) == ceilings.declared(of_pass), name
    for name in here["bandwidth"].split():
        assert costs.declared(name)[0] == ceilings.declared(name)[0], name
    assert costs.declared("matmul/size/512") == ceilings.declared("ceilings/dense/large")
    assert costs.declared("matmul/size/512") == (3, None)
