import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from snippets.benchmarks import elementwise, race

CONVERT = {"jax": jnp.asarray, "torch": torch.tensor, "tensorflow": tf.constant}


@pytest.fixture
def numbers():
    return elementwise.uniform(1000)


@pytest.fixture
def arrays(numbers):
    return {name: convert(numbers) for name, convert in CONVERT.items()}


def test_numbers_are_float32_and_stay_in_range(numbers):
    assert numbers.dtype == np.float32
    assert np.abs(numbers).max() <= 1
    assert np.abs(elementwise.exact_chain(numbers, 32)).max() <= 2


@pytest.mark.parametrize(("length", "result"), [(0, 4), (1, 3), (2, 3.5), (3, 2.625), (4, 3.125)])
def test_products_and_sums_take_turns(length, result):
    assert elementwise.chain(4.0, length) == result


@pytest.mark.parametrize("length", [1, 2, 7, 32])
def test_every_contender_computes_the_chain(arrays, numbers, length):
    contenders = elementwise.chains(arrays, length)
    contenders["xla@tensorflow"] = elementwise.chain_in_xla(arrays["tensorflow"], length)
    assert len(contenders) == 5
    exact = elementwise.exact_chain(numbers, length)
    for key, function in contenders.items():
        assert race.largest_difference(function(), exact) < 1e-6, key


@settings(deadline=None, max_examples=20)
@given(st.floats(-1, 1, width=32), st.integers(0, 32))
def test_the_chain_in_float32_is_near_the_one_in_float64(x, length):
    x = np.float32(x)
    got = elementwise.chain(x, length)
    assert got == pytest.approx(elementwise.exact_chain(x, length), abs=1e-6)


def test_without_the_other_frameworks_jax_races_alone(arrays):
    assert list(elementwise.chains({"jax": arrays["jax"]}, 2)) == ["jit@jax", "eager@jax"]


@pytest.mark.parametrize("length", [1, 8, 32])
def test_compiled_it_is_one_kernel_that_moves_two_arrays(length):
    x = jnp.asarray(elementwise.uniform(2**20))
    whole = functools.partial(elementwise.chain, length=length)
    assert elementwise.kernels(whole, x) == 1
    assert jax.jit(whole).lower(x).compile().cost_analysis()["flops"] == length * x.size
    assert elementwise.arrays_moved(whole, x) == 2


def test_a_sum_reads_an_array_and_writes_none():
    assert elementwise.arrays_moved(jnp.sum, jnp.ones(2**16)) == 1


def test_every_chain_of_tanh_is_the_exact_one(numbers):
    exact = elementwise.exact_tanhs(numbers)
    for function, name in (
        (elementwise.tanhs, "jax"),
        (jax.jit(elementwise.tanhs), "jax"),
        (elementwise.tanhs_in_a_loop, "jax"),
        (elementwise.tanhs_torch, "torch"),
        (elementwise.tanhs_tensorflow, "tensorflow"),
    ):
        assert race.largest_difference(function(CONVERT[name](numbers)), exact) < 1e-6


def test_tanh_eight_times_by_hand():
    x = 0.5
    for _ in range(8):
        x = np.tanh(x)
    assert elementwise.exact_tanhs(np.float64(0.5)) == x


def test_plain_tanhs_are_one_kernel():
    assert elementwise.kernels(elementwise.tanhs, jnp.ones(2**20)) == 1
