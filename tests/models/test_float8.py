"""Float8 matmuls and random rounding, against float64 and the formats' own numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snippets.models import float8
from snippets.models.steps import cross_entropy, init_mlp, mlp, stateless

A = jax.random.normal(jax.random.key(0), (64, 96))
B = 0.02 * jax.random.normal(jax.random.key(1), (96, 32))
FORMATS = pytest.mark.parametrize("dtype", [float8.E4M3, float8.E5M2])


def test_what_the_page_says_of_overflow():
    beyond = jnp.array([448.0, 500.0, -1e6, jnp.inf])
    np.testing.assert_array_equal(
        np.float32(beyond.astype(float8.E4M3)), [448, np.nan, np.nan, np.nan]
    )
    wider = np.float32(beyond.astype(float8.E5M2))
    np.testing.assert_array_equal(wider[1:], [512, -np.inf, np.inf])
    a = jnp.ones((2, 2), float8.E4M3)
    assert jnp.dot(a, a).dtype == float8.E4M3
    with pytest.raises(jax.dtypes.TypePromotionError):
        a + a.astype(float8.E5M2)


@FORMATS
def test_float8_is_the_nearest_of_numpy_and_clipped(dtype):
    x = jnp.concatenate([A.ravel() * 100, jnp.array([1e9, -1e9, 0.0])])
    found = float8.to_float8(x, dtype, jnp.float32(0.5))
    largest = float(jnp.finfo(dtype).max)
    expected = np.clip(np.array(x) / 0.5, -largest, largest).astype(dtype)
    np.testing.assert_array_equal(np.float32(found), np.float32(expected))
    assert np.isnan(np.float32(float8.to_float8(jnp.array([jnp.nan]), dtype, 1.0)))


@FORMATS
@pytest.mark.parametrize("size", [1e-20, 1e-4, 1.0, 1e4, 1e20])
def test_the_scale_uses_the_whole_range(dtype, size):
    scale = float8.scale_of(size * A, dtype)
    found = np.float32(float8.to_float8(size * A, dtype, scale))
    assert np.abs(found).max() == jnp.finfo(dtype).max
    rows = float8.scale_of(size * A, dtype, 1)
    assert rows.shape == (64, 1)
    assert float8.scale_of(jnp.zeros((3, 2)), dtype) == 1


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_errors_of_scaled_matmuls_are_those_of_three_mantissa_bits(size):
    a = size * A
    for axes in (None, None), (1, 0):
        found = jax.jit(float8.matmul_8, static_argnames="axes")(a, B, axes=axes)
        assert found.dtype == jnp.float32
        assert 0.005 < float8.error(found, a, B) < 0.1
    both = float8.E5M2, float8.E5M2
    assert 0.005 < float8.error(float8.matmul_8(a, B, both), a, B) < 0.2
    assert float8.error(a @ B, a, B) < 1e-5


def test_exact_numbers_stay_exact():
    whole = jnp.round(A).clip(-3, 3), jnp.round(50 * B).clip(-3, 3)
    scaled = float8.matmul_8(*(x.at[0, 0].set(7) for x in whole))
    expected = np.float64(whole[0].at[0, 0].set(7)) @ np.float64(whole[1].at[0, 0].set(7))
    # 7 becomes 448, so every whole number up to 7 is a float8.
    np.testing.assert_allclose(scaled, expected, rtol=1e-6)


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_microscaling_is_that_of_jax(size):
    a = (size * A).at[0, 0].set(1e6 * size)
    found = float8.matmul_mx(a, B)
    assert float8.error(found[1:], a[1:], B) < 0.05
    np.testing.assert_array_equal(float8.matmul_mx(8 * a, B), 8 * found)
    if jax.__version_info__ >= (0, 11):  # JAX 0.10 has it on GPUs only
        ways = [jax.nn.get_scaled_dot_general_config("mxfp8")] * 3
        expected = jax.nn.scaled_dot_general(
            a, B, dimension_numbers=(((1,), (0,)), ((), ())), configs=ways
        )
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * abs(expected).max())


def test_microscaling_needs_whole_blocks():
    with pytest.raises(ValueError, match="k is 96, no multiple of 64"):
        float8.matmul_mx(A, B, block=64)


def test_an_outlier_needs_scales_for_rows():
    outlier = A.at[0, 0].set(1e6)
    errors = [
        float8.error(float8.matmul_8(outlier, B, axes=axes)[1:], outlier[1:], B)
        for axes in ((None, None), (1, 0))
    ]
    assert errors[0] > 0.5
    assert errors[1] < 0.1


@pytest.mark.parametrize("of_gradient", [float8.E5M2, float8.E4M3])
@pytest.mark.parametrize("weight", [1.0, 1e-6])
def test_gradients_of_the_linear_layer(of_gradient, weight):
    if not hasattr(float8.linear_8, "fwd") or float8.linear_8.fwd is None:
        float8.linear_8.defvjp(float8.linear_8_forward, float8.linear_8_backward)

    def loss(matmul):
        return lambda a, b: weight * jnp.sum(jnp.sin(matmul(a, b)))

    found = jax.jit(jax.grad(loss(lambda a, b: float8.linear_8(a, b, of_gradient)), (0, 1)))(A, B)
    expected = jax.grad(loss(jnp.dot), (0, 1))(A, B)
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == jnp.float32
        # The largest errors are some steps of two or three mantissa bits.
        assert abs(one - other).max() < 0.2 * abs(other).max()


def test_small_gradients_without_a_scale_are_lost():
    grads = jax.grad(lambda b: 1e-6 * jnp.sum(jnp.sin(float8.unscaled_8(A, b))))(B)
    assert (grads == 0).all()


def test_the_network_is_the_books():
    params, x = init_mlp(jax.random.key(0)), jnp.ones((3, 64))
    np.testing.assert_allclose(float8.mlp_of(jnp.dot)(params, x), mlp(params, x), rtol=1e-6)
    loss, batch = cross_entropy(stateless(mlp)), (x, jnp.arange(3))
    total, (count, _) = float8.weighted(loss, 0.5)(params, {}, batch)
    np.testing.assert_allclose(total, 0.5 * loss(params, {}, batch)[0], rtol=1e-6)
    assert count == 3


def test_the_history_forgets():
    history = jnp.array([9.0, 1.0, 2.0])
    np.testing.assert_array_equal(float8.remembered(history, jnp.array([-4.0, 3.0])), [1, 2, 4])


SHORT = [float8.E4M3, float8.E5M2, jnp.float16, jnp.bfloat16]


@pytest.mark.parametrize("dtype", SHORT)
def test_rounding_by_chance_is_unbiased(dtype):
    info = jnp.finfo(dtype)
    smallest = float(info.smallest_subnormal) if info.bits == 8 else 1e-5
    numbers = [1.03, -1.03, 0.0, -7.77, 0.3 * smallest, 2.6 * smallest, 0.99 * float(info.max)]
    x = jnp.array(numbers, jnp.float32)
    keys = jax.random.split(jax.random.key(0), 4000)
    rounded = jax.vmap(lambda key: float8.rounded_by_chance(x, dtype, key))(keys)
    assert rounded.dtype == dtype
    found = np.float64(rounded.astype(jnp.float32))
    for number, some in zip(np.float64(x), found.T, strict=True):
        values = np.unique(some)
        # Two neighbours in the format, with the number between them.
        assert len(values) <= 2
        assert values[0] <= number <= values[-1]
        apart = values[-1] - values[0]
        assert abs(some.mean() - number) <= 4 * apart / np.sqrt(len(some))


@pytest.mark.parametrize("dtype", SHORT)
def test_numbers_of_the_format_stay(dtype):
    bits = jnp.finfo(dtype).bits
    of_bits = {8: jnp.uint8, 16: jnp.uint16}[bits]
    every = jnp.arange(2**bits).astype(of_bits).view(dtype)
    # JAX compares numbers this small as zero, NumPy doesn't.
    wide = np.asarray(every.astype(jnp.float32))
    kept = np.isfinite(wide) & ((np.abs(wide) > 2.0**-100) | (wide == 0))
    if bits == 8:
        kept = np.isfinite(wide)
    found = float8.rounded_by_chance(wide, dtype, jax.random.key(0))
    np.testing.assert_array_equal(np.float32(found)[kept], np.float32(every)[kept])


@FORMATS
def test_beyond_the_range_it_is_the_largest(dtype):
    x = jnp.array([1e9, -1e9, jnp.inf, jnp.nan])
    found = np.float32(float8.rounded_by_chance(x, dtype, jax.random.key(0)))
    largest = float(jnp.finfo(dtype).max)
    np.testing.assert_array_equal(found, [largest, -largest, largest, np.nan])


def test_a_sum_stops_or_is_right_on_average():
    assert float8.counted_in(float8.E4M3, lambda x, n: x, 4000) == 0.25
    keys = jax.random.split(jax.random.key(0), 64)

    def by_chance(key):
        def add(x, n):
            return float8.rounded_by_chance(x, float8.E4M3, jax.random.fold_in(key, n))

        return float8.counted_in(float8.E4M3, add, 4000)

    sums = np.float64(jax.vmap(by_chance)(keys).astype(jnp.float32))
    assert abs(sums.mean() - 40) < 4 * sums.std() / 8


@FORMATS
def test_the_scale_of_tiny_numbers_is_not_zero(dtype):
    for largest in 1e-34, 1e-37, 1e-40:
        x = jnp.array([[largest, 0.0], [0.0, 1.0]])
        for axis in None, 1:
            scale = float8.scale_of(x, dtype, axis)
            assert (scale > 0).all()
            assert jnp.isfinite(float8.to_float8(x, dtype, scale).astype(jnp.float32)).all()
    tiny = jnp.zeros((4, 32)).at[0, 0].set(1e-37)
    assert jnp.isfinite(float8.matmul_8(tiny, tiny.T)).all()
    assert jnp.isfinite(float8.matmul_mx(tiny, tiny.T)).all()


@pytest.mark.parametrize("axes", [(0, 1), (0, 0), (1, 1), (None, 1)])
def test_scales_along_other_axes_are_refused(axes):
    with pytest.raises(ValueError, match="1 for a, 0 for b, or None"):
        float8.matmul_8(jnp.ones((4, 4)), jnp.ones((4, 4)), axes=axes)


@pytest.mark.parametrize("dtypes", [("bfloat16", "float32"), ("float32", "bfloat16")])
def test_gradients_have_the_dtypes_of_the_arguments(dtypes):
    if not hasattr(float8.linear_8, "fwd") or float8.linear_8.fwd is None:
        float8.linear_8.defvjp(float8.linear_8_forward, float8.linear_8_backward)
    args = A.astype(dtypes[0]), B.astype(dtypes[1])
    grads = jax.grad(lambda a, b: jnp.sum(float8.linear_8(a, b)), (0, 1))(*args)
    assert [g.dtype for g in grads] == [*dtypes]


@pytest.mark.parametrize("kind", ["Explicit", "Auto"])
@pytest.mark.parametrize("sizes", [(1, 1), (2, 4), (8, 1)], ids=str)
def test_gradients_of_the_linear_layer_on_a_mesh(kind, sizes):
    if not hasattr(float8.linear_8, "fwd") or float8.linear_8.fwd is None:
        float8.linear_8.defvjp(float8.linear_8_forward, float8.linear_8_backward)
    kinds = (jax.sharding.AxisType[kind],) * 2
    mesh = jax.make_mesh(sizes, ("data", "model"), kinds)
    gradient = jax.grad(lambda a, b: jnp.sum(jnp.sin(float8.linear_8(a, b))), (0, 1))
    expected = jax.jit(gradient)(A, B)
    for columns in jax.P(), jax.P(None, "model"):
        with jax.set_mesh(mesh):
            args = jax.device_put((A, B), (jax.P("data"), columns))
            found = jax.jit(gradient)(*args)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4 * abs(other).max())
