"""The cost of a step on several chips: formulas by hand, and against programs."""

import jax
import jax.numpy as jnp
import pytest

from snippets.training import cost
from snippets.training.cost import CHIPS, Size

SMALL = Size(layers=2, width=64, hidden=256, tokens=128)


def test_operations_are_those_that_the_compiler_counts():
    x = jnp.ones((SMALL.tokens, SMALL.width))
    program = jax.jit(jax.grad(cost.loss)).lower(cost.first_params(SMALL), x).compile()
    # The first block needs no gradient of its input, and elementwise operations are not in it.
    assert 0.8 < program.cost_analysis()["flops"] / SMALL.flops < 1.1


def test_bytes_by_hand():
    one = Size(layers=1, width=2, hidden=3, tokens=5)
    assert one.parameters == 12
    assert cost.sent("data", one, 2, itemsize=4) == 12 * 4
    assert cost.sent("fsdp", one, 2, itemsize=4) == 1.5 * 12 * 4
    # Two all-reduces of 5 tokens of width 2.
    assert cost.sent("tensor", one, 2, itemsize=4) == 2 * 5 * 2 * 4
    assert all(cost.sent(way, one, 1) == 0 for way in cost.LAYOUTS)


@pytest.mark.parametrize("way", ["data", "tensor"])
def test_a_program_sends_what_the_formula_says(way):
    auto = (jax.sharding.AxisType.Auto,)
    mesh = jax.make_mesh((8,), ("chips",), auto, devices=jax.devices("cpu"))
    found = cost.sent_by(cost.compiled(way, SMALL, mesh), chips=8)
    expected = cost.sent(way, SMALL, 8, itemsize=4)
    if way == "tensor":
        # The first block's input needs no gradient.
        expected *= (2 * SMALL.layers - 1) / (2 * SMALL.layers)
    assert found == pytest.approx(expected, rel=0.02)


def test_with_few_tokens_a_program_sends_less_than_the_formula_for_fsdp():
    auto = (jax.sharding.AxisType.Auto,)
    mesh = jax.make_mesh((8,), ("chips",), auto, devices=jax.devices("cpu"))
    ratios = []
    for tokens in 64, 1024:
        size = Size(layers=4, width=128, hidden=512, tokens=tokens)
        found = cost.sent_by(cost.compiled("fsdp", size, mesh), chips=8)
        ratios.append(found / cost.sent("fsdp", size, 8, itemsize=4))
    assert ratios[0] < 0.9 and ratios[1] == pytest.approx(1, rel=0.02)


def test_at_the_limit_both_times_are_equal():
    chip, chips = CHIPS["H200"], 10**6
    for way in "data", "fsdp":
        tokens = cost.fewest_tokens(way, chip) * chips
        arithmetic, communication = cost.seconds(way, Size(1, 64, 256, tokens), chips, chip)
        assert arithmetic == pytest.approx(communication, rel=1e-5)
        assert cost.fewest_tokens(way, chip, itemsize=4) == 2 * cost.fewest_tokens(way, chip)
    chips = cost.most_chips(256, chip)
    arithmetic, communication = cost.seconds("tensor", SMALL, chips, chip)
    # The formula is for many chips, of which each sends twice its array.
    assert arithmetic == pytest.approx(communication * chips / (chips - 1), rel=1e-5)


def test_mfu_is_one_at_the_least_possible_time():
    chip = CHIPS["TPU v5e"]
    arithmetic, _ = cost.seconds("data", SMALL, 4, chip)
    assert cost.mfu(SMALL, arithmetic, 4, chip) == pytest.approx(1)
    assert cost.mfu(SMALL, 4 * arithmetic, 4, chip) == pytest.approx(0.25)
