"""The walks of NumPy and Numba are those of JAX, up to chance."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snippets.benchmarks import walks
from snippets.vectorizing.simulations import refilled


def walks_by_blocks(count, level, limit):
    key = jax.random.key(1)
    return np.asarray(refilled(key, count, 50, level, limit, walks.next_block)[0])


WAYS = [walks_by_blocks, walks.walks_in_numpy, walks.walks_in_numba]


@pytest.mark.parametrize("walk", WAYS)
def test_the_lengths_are_distributed_as_in_jax(walk):
    count, level, limit = 4000, 5.0, 100
    expected, _ = refilled(jax.random.key(0), count, 50, level, limit)
    lengths = walk(count, level, limit)
    assert lengths.min() >= 1 and lengths.max() == limit
    # Five standard errors of a difference of two means.
    tolerance = 5 * np.sqrt(2 / count)
    spread = float(jnp.std(expected.astype(float)))
    assert abs(lengths.mean() - float(expected.mean())) < tolerance * spread
    assert abs((lengths == limit).mean() - float((expected == limit).mean())) < tolerance


@pytest.mark.parametrize("walk", WAYS)
def test_a_walk_that_cannot_leave_takes_the_limit(walk):
    np.testing.assert_array_equal(walk(7, 1e9, 12), 12)


def test_walks_by_blocks_end_at_the_first_number_outside():
    key, level = jax.random.key(2), 3.0
    lengths, _ = refilled(key, 20, 6, level, 100, walks.next_block)
    for path, length in enumerate(lengths.tolist()):
        steps = range(0, 112, walks.BLOCK)
        drawn = jnp.concatenate([walks.moves(key, path, step) for step in steps])
        outside = jnp.abs(jnp.cumsum(drawn)) >= level
        assert length == min(int(outside.argmax()) + 1 if outside.any() else 100, 100)
