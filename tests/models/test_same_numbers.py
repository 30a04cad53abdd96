"""What changes bits: held where it follows from JAX, not from a machine."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from snippets.models import optimizers, same_numbers, steps
from snippets.programs.launcher import launch

TRAINING, _ = steps.digits()
DATA = steps.batches(*TRAINING, epochs=1)
PARAMS = steps.init_mlp(jax.random.key(0))


def test_compared_says_how_far_apart_two_trees_are():
    x = {"a": np.array([1.0, -4.0]), "b": np.zeros(3)}
    assert same_numbers.compared(x, {**x}) == "the same bits"
    assert same_numbers.compared(x, {**x, "a": np.array([1.0, -4.2])}) == "differ by 5e-02"


def test_a_program_gives_the_same_bits_again():
    ways = [jax.jit(same_numbers.gradient), jax.jit(lambda *a: same_numbers.gradient(*a))]
    first = ways[0](PARAMS, DATA[0])
    assert all(
        same_numbers.compared(first, way(PARAMS, DATA[0])) == "the same bits" for way in ways
    )
    once = functools.partial(launch, same_numbers.gradient_program, 1, 1)
    texts = {once(variables=lambda *numbers: {})[0].text for _ in "ab"}
    assert len(texts) == 1 and int(texts.pop()) > 0


@pytest.mark.parametrize(
    "way",
    [
        same_numbers.gradient,
        same_numbers.in_halves,
        same_numbers.each_alone,
        same_numbers.backwards,
        same_numbers.sharded,
    ],
)
def test_ways_that_are_equal_on_paper_are_nearly_equal(way):
    first, other = same_numbers.gradient(PARAMS, DATA[0]), way(PARAMS, DATA[0])
    assert steps.largest_difference(first, other) < 1e-5


def test_a_difference_in_one_bit_stays_through_training():
    optimizer = optax.adam(1e-3)
    loss = steps.cross_entropy(steps.stateless(steps.mlp))
    step = steps.make_step(steps.gradient_of(loss), optimizer)
    other = jax.tree.map(jnp.copy, PARAMS)
    kernel = other[0]["kernel"]
    other[0]["kernel"] = kernel.at[20, 0].set(jnp.nextafter(kernel[20, 0], jnp.inf))
    start = PARAMS, other, optimizer.init(PARAMS)
    found = same_numbers.distances(step, *start, DATA * 2, (1, 2 * len(DATA)))
    first, last = (float(text.split()[-1]) for text in found.values())
    assert min(first, last) > 0
    same = same_numbers.distances(step, PARAMS, PARAMS, start[2], DATA[:2], (2,))
    assert same == {2: "the same bits"}


def test_pytorchs_gradient_of_one_thread_is_the_same_again():
    module = optimizers.torch_mlp(PARAMS)
    one, again = (same_numbers.torch_gradient(module, DATA[0], 1) for _ in range(2))
    np.testing.assert_array_equal(one, again)
    expected = same_numbers.gradient(PARAMS, DATA[0])[0]["kernel"]
    np.testing.assert_allclose(one.T, expected, atol=1e-6)
