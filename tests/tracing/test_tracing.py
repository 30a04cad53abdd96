import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from snippets.tracing import tracing

X = np.arange(12.0).reshape(3, 4)
Y = np.arange(4.0)
PRODUCT = (X + 1) @ (Y + 1)


@pytest.fixture(autouse=True)
def nothing_traced():
    """Start every test as a new process would: no function traced yet."""
    jax.clear_caches()


def test_prints_tracers_once_and_is_silent_the_second_time(capfd):
    first = tracing.shifted_product(X, Y)
    assert capfd.readouterr().out.splitlines() == [
        "x is JitTracer(float32[3,4])",
        "y is JitTracer(float32[4])",
        "the result is JitTracer(float32[3])",
    ]
    second = tracing.shifted_product(X, Y)
    assert capfd.readouterr().out == ""
    np.testing.assert_array_equal(first, PRODUCT)
    np.testing.assert_array_equal(second, PRODUCT)


def test_new_values_of_the_same_shape_are_not_traced(capfd):
    tracing.shifted_product(X, Y)
    capfd.readouterr()
    np.testing.assert_array_equal(tracing.shifted_product(2 * X, Y), (2 * X + 1) @ (Y + 1))
    assert capfd.readouterr().out == ""


def test_float64_becomes_float32_unless_x64_is_on(capfd):
    assert X.dtype == np.float64
    assert tracing.shifted_product(X, Y).dtype == jnp.float32
    with jax.enable_x64(True):
        assert tracing.shifted_product(X, Y).dtype == jnp.float64
    lines = capfd.readouterr().out.splitlines()
    assert lines[0] == "x is JitTracer(float32[3,4])"
    assert lines[3] == "x is JitTracer(float64[3,4])"


def test_a_tracer_knows_its_type_and_counts_as_an_array(capfd):
    np.testing.assert_array_equal(tracing.describe(X), X)
    assert capfd.readouterr().out.splitlines() == [
        "shape: (3, 4)",
        "dtype: float32",
        "axes: 2",
        "entries: 12",
        "is a jax.Array: True",
        "is a tracer: True",
    ]


def test_a_tracer_has_no_value(raises_declared):
    raises_declared(tracing.ask_for_value, 2.0)


def test_a_tracer_is_nothing_for_numpy(raises_declared):
    raises_declared(tracing.hand_to_numpy, 2.0)


def test_debug_print_shows_the_values_at_every_run(capfd):
    for x in (X, X, 2 * X):
        result = tracing.shown_product(x, Y)
        jax.effects_barrier()
        np.testing.assert_array_equal(result, (x + 1) @ (Y + 1))
    lines = capfd.readouterr().out.splitlines()
    assert lines == ["the result is [ 30.  70. 110.]"] * 2 + ["the result is [ 50. 130. 210.]"]


def test_a_global_is_frozen_until_a_new_shape_comes(monkeypatch):
    np.testing.assert_array_equal(tracing.scaled(np.ones(2)), [2, 2])
    monkeypatch.setitem(tracing.SETTINGS, "factor", 10.0)
    np.testing.assert_array_equal(tracing.scaled(np.ones(2)), [2, 2])
    np.testing.assert_array_equal(tracing.scaled(np.ones(3)), [10, 10, 10])


def test_torch_follows_a_global_and_tensorflow_does_not(monkeypatch):
    assert tracing.scaled_torch(torch.ones(2)).tolist() == [2, 2]
    assert tracing.scaled_tensorflow(tf.ones(2)).numpy().tolist() == [2, 2]
    monkeypatch.setitem(tracing.SETTINGS, "factor", 10.0)
    assert tracing.scaled_torch(torch.ones(2)).tolist() == [10, 10]
    assert tracing.scaled_tensorflow(tf.ones(2)).numpy().tolist() == [2, 2]


@settings(deadline=None)
@given(st.lists(st.integers(-50, 50), min_size=1, max_size=4), st.integers(-50, 50))
def test_an_argument_is_never_frozen(x, factor):
    x = np.array(x, np.float32)
    np.testing.assert_array_equal(tracing.scaled_by(x, float(factor)), x * factor)


def test_a_numpy_random_number_is_frozen():
    drawn = {float(tracing.frozen_noise(0.0)) for _ in range(5)}
    assert len(drawn) == 1


def test_a_key_gives_fresh_noise():
    keys = jax.random.split(jax.random.key(0), 5)
    assert len({float(tracing.fresh_noise(key, 0.0)) for key in keys}) == 5
    np.testing.assert_allclose(
        tracing.fresh_noise(keys[0], 3.0), 3.0 + jax.random.normal(keys[0]), rtol=1e-6
    )


def test_tensorflow_prints_once_and_shows_values_with_its_own_print(capfd):
    x, y = tf.constant(X), tf.constant(Y)
    for _ in range(2):
        np.testing.assert_array_equal(tracing.tensorflow_product(x, y), PRODUCT)
    lines = capfd.readouterr().out.splitlines()
    assert lines[0].startswith("x is Tensor(") and "shape=(3, 4)" in lines[0]
    assert lines[1:] == ["the result is [30 70 110]"] * 2


def test_torch_compile_keeps_python_prints(capfd):
    x, y = torch.tensor(X), torch.tensor(Y)
    for _ in range(2):
        np.testing.assert_array_equal(tracing.torch_product(x, y), PRODUCT)
    lines = capfd.readouterr().out.splitlines()
    assert len(lines) == 2 and lines[0] == lines[1]
    assert lines[0].startswith("the result is tensor([ 30.,  70., 110.]")
