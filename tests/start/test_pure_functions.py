import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from snippets.start import pure_functions


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    jax.clear_caches()
    monkeypatch.setattr(pure_functions, "SCALE", 2.0)
    monkeypatch.setattr(pure_functions, "CALLS", [])


def test_jit_keeps_the_global_it_was_traced_with(monkeypatch):
    x = jnp.array([1.0, 2.0])
    assert pure_functions.scaled(x).tolist() == [2, 4]
    monkeypatch.setattr(pure_functions, "SCALE", 10.0)
    assert pure_functions.scaled(x).tolist() == [2, 4]
    assert pure_functions.scaled(jnp.ones(3)).tolist() == [10, 10, 10]


def test_torch_reads_the_global_at_every_call(monkeypatch):
    compiled = pure_functions.compile_torch(pure_functions.scaled_torch)
    x = torch.ones(2)
    assert pure_functions.scaled_torch(x).tolist() == compiled(x).tolist() == [2, 2]
    monkeypatch.setattr(pure_functions, "SCALE", 10.0)
    assert pure_functions.scaled_torch(x).tolist() == compiled(x).tolist() == [10, 10]


def test_tensorflow_keeps_the_global_it_was_traced_with(monkeypatch):
    x = tf.ones(2)
    assert pure_functions.scaled_tensorflow(x).numpy().tolist() == [2, 2]
    monkeypatch.setattr(pure_functions, "SCALE", 10.0)
    assert pure_functions.scaled_tensorflow(x).numpy().tolist() == [2, 2]


# Eighths, because the processor may take the smallest of all floats for zero.
@given(*2 * [st.integers(-800, 800).map(lambda number: number / 8)])
@settings(deadline=None)
def test_scaled_by_follows_its_argument(x, scale):
    assert pure_functions.scaled_by(x, scale) == np.float32(x) * np.float32(scale)


def test_a_side_effect_happens_once_per_trace():
    assert [int(pure_functions.square_and_log(x)) for x in (1, 2, 3)] == [1, 4, 9]
    assert len(pure_functions.CALLS) == 1
    pure_functions.square_and_log(jnp.ones(3))
    assert len(pure_functions.CALLS) == 2


def test_a_count_that_is_passed_is_right():
    calls = 0
    for x in (1, 2, 3):
        square, calls = pure_functions.square_and_count(x, calls)
        assert square == x * x
    assert calls == 3


def test_numpy_noise_is_frozen_and_jax_noise_follows_its_key():
    x = jnp.zeros(4)
    assert (pure_functions.add_noise_numpy(x) == pure_functions.add_noise_numpy(x)).all()
    first, second = jax.random.split(jax.random.key(0))
    assert (pure_functions.add_noise(first, x) != pure_functions.add_noise(second, x)).all()
    assert (pure_functions.add_noise(first, x) == pure_functions.add_noise(first, x)).all()


def test_a_leaked_value_cannot_be_used(raises_declared):
    raises_declared(pure_functions.use_leaked_value, jnp.arange(3.0))


def test_the_value_can_be_returned_instead():
    total, y = pure_functions.double_and_sum(jnp.arange(3.0))
    assert total == 6
    assert y.tolist() == [0, 2, 4]


@given(st.integers(-5, 5))
@settings(deadline=None)
def test_a_local_list_is_harmless(x):
    assert pure_functions.powers(x).tolist() == [1, x, x**2, x**3]
    assert pure_functions.powers(x).tolist() == [1, x, x**2, x**3]


def test_debug_print_prints_at_every_call(capfd):
    for x in (3, 4):
        assert pure_functions.square_and_print(x) == x * x
    jax.effects_barrier()
    assert capfd.readouterr().out == "x is 3\nx is 4\n"
