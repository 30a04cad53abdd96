"""Pallas kernels against their formulas, interpreted and as a TPU would run them."""

import functools
import logging

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.pallas import tpu as pltpu

from snippets.compiled import kernels

X = jax.random.normal(jax.random.key(0), (256, 128))
MODES = [True, pltpu.InterpretParams()]


@pytest.fixture(params=MODES, ids=["plain", "tpu"])
def interpret(request):
    return request.param


def close(found, expected, tolerance=1e-5):
    np.testing.assert_allclose(
        np.float32(found), np.float32(expected), rtol=tolerance, atol=tolerance
    )


def test_softmax(interpret):
    close(kernels.softmax(X, 64, interpret), jax.nn.softmax(X))


def test_rms_norm(interpret):
    scale = jnp.linspace(0.5, 2, 128)
    expected = X / np.sqrt(np.mean(X**2, axis=-1, keepdims=True) + 1e-6) * scale
    close(kernels.rms_norm(X, scale, 64, interpret), expected)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_matmul_of_tiles_that_differ(interpret, dtype):
    a = X.astype(dtype)
    b = jax.random.normal(jax.random.key(1), (128, 192), dtype)
    exact = np.float64(a) @ np.float64(b)
    # One step of bfloat16 is 2**-8.
    close(kernels.matmul(a, b, 64, interpret), exact, 1e-4 if dtype == "float32" else 2**-7)


def test_a_matmul_is_as_exact_as_its_result_can_be(interpret):
    a, b = jax.random.normal(jax.random.key(1), (2, 512, 512), jnp.bfloat16)
    exact = jnp.dot(a, b, preferred_element_type=jnp.float32)
    found = kernels.matmul(a, b, 128, interpret)
    rounded = exact.astype(jnp.bfloat16)
    assert jnp.abs(found - exact).max() == jnp.abs(rounded - exact).max()


def test_attention_with_scores_of_any_size(interpret):
    query, key, value = 4 * jax.random.normal(jax.random.key(2), (3, 2, 128, 64))
    expected = kernels.plain_attention(query, key, value)
    close(kernels.attention(query, key, value, 64, interpret), expected, 1e-4)


def test_the_gradient_of_softmax():
    softmax = jax.custom_vjp(kernels.softmax_with_gradient.fun)
    softmax.defvjp(kernels.softmax_forward, kernels.softmax_backward)
    weights = jax.random.normal(jax.random.key(3), X.shape)
    found = jax.grad(lambda x: jnp.sum(weights * softmax(x)))
    expected = jax.grad(lambda x: jnp.sum(weights * jax.nn.softmax(x)))
    close(found(X), expected(X))


def test_rows_that_fill_no_block_are_refused():
    with pytest.raises(ValueError, match="100 rows do not divide 256"):
        kernels.softmax(X, 100, True)


def test_the_gradient_of_a_reference():
    arrays = jax.random.normal(jax.random.key(2), (3, 1, 64, 32))
    kernel = functools.partial(kernels.attention, tile=32, interpret=True)
    call = kernels.with_gradient_of(kernels.plain_attention, kernel)
    for number in range(3):
        found = jax.grad(lambda *qkv: jnp.sum(jnp.sin(call(*qkv))), number)(*arrays)
        plain = jax.grad(lambda *qkv: jnp.sum(jnp.sin(kernels.plain_attention(*qkv))), number)
        close(found, plain(*arrays), 1e-4)


def test_gradients_are_of_the_sum_of_squares_for_each_array():
    a, b = jnp.array([1.0, 2.0]), jnp.array([3.0, -1.0])
    found = kernels.gradients(jnp.multiply, a, b)
    for each, expected in zip(found, (2 * a * b**2, 2 * a**2 * b), strict=True):
        close(each, expected)


def test_a_kernel_has_no_gradient_of_its_own(raises_declared):
    raises_declared(kernels.without_a_rule, jnp.ones((128, 128)))


def test_a_race_is_found_where_two_cores_share_a_sum_and_nowhere_else():
    two = pltpu.InterpretParams(num_cores_or_threads=2, detect_races=True)
    close(kernels.row_sums(X, "arbitrary", two, 64)[0], X.sum(0), 1e-4)
    assert not kernels.races(lambda: kernels.row_sums(X, "arbitrary", two, 64))
    assert kernels.races(lambda: kernels.row_sums(X, "parallel", two, 64))
    # The state that an error leaves behind is gone.
    assert not kernels.races(lambda: kernels.row_sums(X, "arbitrary", two, 64))


def test_another_error_is_raised_on():
    def fails(error):
        raise error

    with pytest.raises(ValueError, match="nothing to do with it"):
        kernels.races(lambda: fails(ValueError("nothing to do with it")))
    with pytest.raises(jax.errors.JaxRuntimeError, match="Traceback"):
        kernels.races(lambda: fails(jax.errors.JaxRuntimeError("Traceback: out of memory")))
    assert logging.root.manager.disable == logging.NOTSET


def test_bytes_by_hand():
    # Two by two by two tiles of 4 by 4 float32: A is read twice, and so is B.
    assert kernels.matmul_bytes(8, 4, itemsize=4) == (8 + 8 + 4) * 64
    assert kernels.matmul_bytes(8, 8, itemsize=4) == 3 * 8 * 8 * 4
    # A block that stays is moved once.
    assert kernels.bytes_moved((5,), [(lambda i: 0, 10), (lambda i: i, 1)]) == 15


@pytest.mark.parametrize(
    ("name", "rows"), [("narrow_softmax", 200), ("large_softmax", 200), ("sorted_rows", 256)]
)
def test_what_a_compiler_refuses_is_right_interpreted(name, rows):
    x = jax.random.normal(jax.random.key(4), (rows, 128))
    with pltpu.force_tpu_interpret_mode():
        found = getattr(kernels, name)(x)
    close(found, jnp.sort(x, axis=-1) if name == "sorted_rows" else jax.nn.softmax(x))
