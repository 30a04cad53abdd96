import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
import torch

from snippets.benchmarks import race, small_calls

X = small_calls.numbers(5)
FIXED_POINT = 0.7390851332151607


@pytest.mark.parametrize(
    ("function", "convert"),
    [
        (jax.jit(jnp.cos), jnp.asarray),
        (jnp.cos, jnp.asarray),
        (small_calls.cosine_torch, torch.tensor),
        (tf.function(tf.cos), tf.constant),
        (np.cos, np.asarray),
    ],
)
def test_every_cosine_is_exact(function, convert):
    bound = race.bound({"one": (function, convert)}, small_calls.numbers(300))
    exact = np.cos(small_calls.numbers(300).astype(np.float64))
    assert race.largest_difference(bound["one"](), exact) < 1e-6


def test_numbers_are_float32_from_0_to_1():
    assert X.dtype == np.float32
    np.testing.assert_array_equal(X, [0, 0.25, 0.5, 0.75, 1])


@pytest.mark.parametrize("count", [1, 4, 16])
def test_arguments_are_added_up_however_they_are_passed(count):
    expected = 1 + count * X
    tree = small_calls.nested(X, count)
    assert len(jax.tree.leaves(tree)) == count
    for found in (
        jax.jit(small_calls.add_up)(*[X] * count),
        jax.jit(small_calls.add_up_leaves)(tree),
        jax.jit(small_calls.add_up_rows)(jnp.stack([X] * count)),
        small_calls.add_up(*[torch.tensor(X)] * count),
        tf.function(small_calls.add_up)(*[tf.constant(X)] * count),
    ):
        np.testing.assert_allclose(np.asarray(found), expected)


def test_a_scaler_traces_once_for_each_object():
    half = small_calls.Scaler(0.5)
    np.testing.assert_array_equal(half.scale(X), X / 2)
    np.testing.assert_array_equal(small_calls.Scaler(3.0).scale(X), 3 * X)
    np.testing.assert_array_equal(small_calls.scale(X, 0.5), X / 2)
    half.factor = 7.0
    np.testing.assert_array_equal(half.scale(X), X / 2)


def test_a_hundred_steps_are_the_same_in_one_call_and_in_a_row():
    for found in (
        small_calls.in_one_call(jnp.asarray(X)),
        small_calls.in_one_graph(tf.constant(X)),
        small_calls.in_a_row(jnp.cos, jnp.asarray(X)),
        small_calls.in_a_row(torch.cos, torch.tensor(X)),
        small_calls.in_a_row(tf.cos, tf.constant(X)),
    ):
        assert race.largest_difference(found, np.full(5, FIXED_POINT)) < 1e-6
    counted = []
    small_calls.in_a_row(lambda x: counted.append(x) or x, X)
    assert len(counted) == 100


def test_the_cosine_is_taken_a_hundred_times_in_one_call():
    assert "length=100" in str(jax.make_jaxpr(small_calls.in_one_call)(X))


def test_rows_are_taken_one_by_one():
    rows = np.arange(6.0).reshape(3, 2)
    found = small_calls.one_by_one(lambda row: row.sum(), rows)
    assert found == [1.0, 5.0, 9.0]


def test_the_smallest_size_is_all_call():
    shares = small_calls.call_share({1000: 4e-6, 4: 1e-6, 16: 0.9e-6})
    assert shares == {4: 1.0, 16: 1.0, 1000: 0.25}
    assert list(shares) == [4, 16, 1000]


@pytest.mark.parametrize(
    ("share", "size"), [(0.1, 1000), (0.01, 10_000), (0.001, None), (1.0, None), (0.05, 2000)]
)
def test_the_size_of_a_share_lies_between_the_sizes_measured(share, size):
    shares = {10: 1.0, 1000: 0.1, 10_000: 0.01}
    assert small_calls.size_of_share(shares, share) == size
