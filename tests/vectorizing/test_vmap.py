import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snippets.vectorizing import vmap

X = jnp.arange(5)
W = jnp.array([2.0, 3.0, 4.0])
XS = jnp.stack([X, 10 * X])
WS = jnp.stack([W, W + 1])
THREE = jnp.stack([W, W + 1, W + 2])


def correlate_rows(xs, ws):
    """Slide row by row with NumPy."""
    return np.stack([np.correlate(x, w, "valid") for x, w in zip(xs, ws, strict=True)])


def test_the_values_of_the_example():
    result = vmap.convolve(X, W)
    assert result.tolist() == [11, 20, 29]
    assert result.dtype == jnp.float32


def test_the_batch_of_the_course():
    batched = jax.vmap(vmap.convolve)
    xs, ws = jnp.stack([X, X]), jnp.stack([W, W])
    for function in (batched, jax.jit(batched), jax.vmap(jax.jit(vmap.convolve))):
        assert function(xs, ws).tolist() == [[11, 20, 29], [11, 20, 29]]


def numbers(least, most):
    """Draw lists of a few lengths only, because each length is compiled anew."""
    lengths = st.sampled_from([1, 2, 5])
    one = st.floats(least, most, width=32)
    return lengths.flatmap(lambda n: st.lists(one, min_size=n, max_size=n))


@st.composite
def batches(draw):
    count, size, width = draw(st.sampled_from([(1, 1, 1), (1, 6, 2), (3, 4, 1), (4, 5, 5)]))
    numbers = np.random.default_rng(draw(st.integers(0, 99)))
    whole = numbers.integers(-9, 9, (count, size)), numbers.integers(-9, 9, (count, width))
    return tuple(array.astype(np.float32) for array in whole)


@given(batches())
@settings(deadline=None, max_examples=30)
def test_a_batch_is_what_a_loop_gives(batch):
    xs, ws = batch
    expected = correlate_rows(xs, ws)
    np.testing.assert_array_equal(jax.vmap(vmap.convolve)(xs, ws), expected)
    np.testing.assert_array_equal(vmap.convolve_pairs(xs, ws), expected)
    np.testing.assert_array_equal(jax.vmap(vmap.convolve, out_axes=1)(xs, ws), expected.T)
    shared = jax.vmap(vmap.convolve, in_axes=(1, None))(xs.T, ws[0])
    np.testing.assert_array_equal(shared, correlate_rows(xs, [ws[0]] * len(xs)))


def test_the_weights_alone_are_mapped():
    result = jax.vmap(vmap.convolve, in_axes=(None, 0))(X, WS)
    np.testing.assert_array_equal(result, correlate_rows([X, X], WS))


def test_the_body_runs_once_and_sees_one_example():
    assert vmap.seen_by_the_body(XS, WS) == [((5,), True)]
    assert vmap.seen_by_the_body(jnp.ones((7, 4)), jnp.ones((7, 2))) == [((4,), True)]


def test_a_dot_product_becomes_a_dot_product_of_a_batch():
    assert vmap.operations(jnp.dot, W, W) == ["dot_general"]
    assert vmap.operations(jax.vmap(jnp.dot), WS, WS) == ["dot_general"]
    one = jax.make_jaxpr(jnp.dot)(W, W).eqns
    many = jax.make_jaxpr(jax.vmap(jnp.dot))(WS, WS).eqns
    assert one[0].params["dimension_numbers"][1] == ((), ())
    assert many[0].params["dimension_numbers"][1] == ((0,), (0,))


def test_the_number_of_operations_does_not_grow_with_the_batch():
    batched = jax.vmap(vmap.convolve)
    one = vmap.operations(vmap.convolve, X, W)
    two = vmap.operations(batched, XS, WS)
    thousand = vmap.operations(batched, jnp.ones((1000, 5)), jnp.ones((1000, 3)))
    assert one.count("dot_general") == 3
    assert two == thousand == [*one, "transpose"]


def test_in_axes_of_a_tree():
    params = {"w": jnp.arange(10.0).reshape(2, 5), "b": jnp.array([0.5, -0.5])}
    expected = np.asarray(XS) @ np.asarray(params["w"]).T + np.asarray(params["b"])
    np.testing.assert_allclose(jax.vmap(vmap.layer, in_axes=(None, 0))(params, XS), expected)

    stacked = params | {"w": jnp.stack([params["w"], -params["w"]])}
    result = jax.vmap(vmap.layer, in_axes=({"w": 0, "b": None}, None))(stacked, X)
    once = np.asarray(params["w"]) @ np.asarray(X)
    np.testing.assert_allclose(result, np.stack([once, -once]) + np.asarray(params["b"]))


def test_keywords_are_mapped_whatever_in_axes_says(raises_declared):
    raises_declared(vmap.convolve_each, XS, W)
    by_position = jax.vmap(vmap.convolve, in_axes=(0, None))(XS, W)
    np.testing.assert_array_equal(by_position, correlate_rows(XS, [W, W]))
    by_name = jax.vmap(vmap.convolve, in_axes=(0,))(XS, w=WS)
    np.testing.assert_array_equal(by_name, correlate_rows(XS, WS))


def test_all_pairs():
    result = vmap.all_pairs(XS, THREE)
    assert result.shape == (2, 3, 3)
    for i, x in enumerate(XS):
        for j, w in enumerate(THREE):
            np.testing.assert_array_equal(result[i, j], np.correlate(x, w, "valid"))


def test_jit_of_vmap_is_one_program_and_vmap_of_jit_is_not():
    outside, inside = jax.jit(jax.vmap(vmap.convolve)), jax.vmap(jax.jit(vmap.convolve))
    np.testing.assert_array_equal(outside(XS, WS), inside(XS, WS))
    assert vmap.operations(outside, XS, WS) == ["jit"]
    assert vmap.operations(inside, XS, WS) == ["jit", "transpose"]


def test_vmap_alone_traces_in_each_call():
    traces = []

    def noted(x, w):
        traces.append(1)
        return vmap.convolve(x, w)

    for _ in range(3):
        jax.vmap(noted)(XS, WS)
    assert len(traces) == 3
    compiled = jax.jit(jax.vmap(noted))
    for _ in range(3):
        compiled(XS, WS)
    assert len(traces) == 4


def test_unequal_sizes_raise(raises_declared):
    error = raises_declared(vmap.convolve_pairs, XS, THREE)
    assert "size 2" in str(error)
    assert "size 3" in str(error)


def test_a_python_branch_raises():
    with pytest.raises(jax.errors.TracerBoolConversionError):
        jax.vmap(lambda x: x if x > 0 else -x)(X)


@given(numbers(-9, 9))
@settings(deadline=None)
def test_a_branch_gives_each_example_its_own(numbers):
    x = np.float32(numbers)
    result = jax.vmap(vmap.sine_or_double)(x, x > 0)
    np.testing.assert_allclose(result, np.where(x > 0, np.sin(x), 2 * x), rtol=1e-5, atol=1e-6)


def test_a_mapped_condition_becomes_a_selection_and_a_shared_one_stays():
    numbers = jnp.array([1.0, -1.0, 2.0])
    mapped = vmap.operations(jax.vmap(vmap.sine_or_double), numbers, numbers > 0)
    assert "cond" not in mapped
    assert {"sin", "mul", "select_n"} <= set(mapped)
    assert mapped[-1] == "select_n"
    shared = jax.vmap(vmap.sine_or_double, in_axes=(0, None))
    assert vmap.operations(shared, numbers, True)[-1] == "cond"
    np.testing.assert_allclose(shared(numbers, False), 2 * numbers)


@given(numbers(0, 1e6))
@settings(deadline=None)
def test_a_loop_ends_for_each_example_by_itself(numbers):
    left, count = jax.vmap(vmap.halvings)(np.float32(numbers))
    for x, rest, halved in zip(np.float32(numbers), left, count, strict=True):
        expected = 0
        while x > 1:
            x, expected = x / np.float32(2), expected + 1
        assert (rest, halved) == (x, expected)


def test_a_loop_stays_a_loop():
    assert "while" in vmap.operations(jax.vmap(vmap.halvings), jnp.ones(3))


def test_a_named_axis_shows_the_other_examples():
    x = jnp.array([1.0, 2.0, 6.0])
    assert jax.vmap(vmap.center, axis_name="batch")(x).tolist() == [-2, -1, 3]
    total = jax.vmap(lambda x: jax.lax.psum(x, "batch"), axis_name="batch")(x)
    assert total.tolist() == [9, 9, 9]


def test_without_the_name_there_is_no_axis(raises_declared):
    raises_declared(vmap.center_without_name, jnp.ones(3))
