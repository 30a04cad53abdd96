import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
import torch

from snippets.benchmarks import race, recurrent

ARRAYS = recurrent.draw(9)
WAYS = {
    "python_loop": (recurrent.python_loop, jnp.asarray),
    "python_loop in jit": (jax.jit(recurrent.python_loop), jnp.asarray),
    "scan": (jax.jit(recurrent.scan), jnp.asarray),
    "scan, unrolled": (functools.partial(recurrent.scan, unroll=4), jnp.asarray),
    "scan, inputs first": (recurrent.scan_inputs_first, jnp.asarray),
    "torch": (recurrent.torch_loop, torch.tensor),
    "torch.nn.RNN": (recurrent.torch_rnn(*map(torch.tensor, ARRAYS[1:])), torch.tensor),
    "tensorflow": (recurrent.tensorflow_loop, tf.constant),
    "tf.scan": (tf.function(recurrent.tensorflow_scan), tf.constant),
    "tf.scan, xla": (tf.function(recurrent.tensorflow_scan, jit_compile=True), tf.constant),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_gives_all_states(way):
    function, convert = WAYS[way]
    found = function(*map(convert, ARRAYS))
    exact = recurrent.exact_states(*ARRAYS)
    assert found.shape == exact.shape == (9, recurrent.BATCH, recurrent.WIDTH)
    assert race.largest_difference(found, exact) < 2e-6


def test_the_exact_states_are_those_of_the_formula():
    xs, w, u = (np.full(shape, 0.5, np.float32) for shape in ((2, 1, 1), (1, 1), (1, 1)))
    first = np.tanh(0.25)
    states = recurrent.exact_states(xs, w, u)
    assert states.dtype == np.float64
    np.testing.assert_allclose(states.ravel(), [first, np.tanh(first / 2 + 0.25)])


def test_the_exact_states_are_computed_in_float64_throughout():
    in_float64 = recurrent.exact_states(*(array.astype(np.float64) for array in ARRAYS))
    np.testing.assert_array_equal(recurrent.exact_states(*ARRAYS), in_float64)


def test_torchs_own_loop_learns_nothing():
    assert not WAYS["torch.nn.RNN"][0](torch.tensor(ARRAYS[0])).requires_grad


def test_ways_are_compared_on_the_same_numbers():
    bound = race.bound(WAYS, *recurrent.draw(9))
    assert list(bound) == list(WAYS)
    exact = recurrent.exact_states(*ARRAYS)
    for function in bound.values():
        assert race.largest_difference(function(), exact) < 2e-6


def test_numbers_are_float32_and_states_stay_in_range():
    assert {array.dtype for array in ARRAYS} == {np.dtype(np.float32)}
    assert np.abs(recurrent.exact_states(*recurrent.draw(256))[-1]).mean() < 0.9


def test_the_weights_are_the_same_for_every_length():
    for one, other in zip(recurrent.draw(1)[1:], recurrent.draw(7)[1:], strict=True):
        np.testing.assert_array_equal(one, other)


def test_only_the_unrolled_program_grows_with_the_length():
    short, long = (recurrent.operations(recurrent.scan, length) for length in (4, 40))
    assert short == long > 0
    short, long = (recurrent.operations(recurrent.python_loop, length) for length in (4, 40))
    assert 8 * short < long < 12 * short
