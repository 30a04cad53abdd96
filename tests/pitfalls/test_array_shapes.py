import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snippets.pitfalls import array_shapes

shapes = st.lists(st.integers(0, 4), max_size=4).map(tuple)


def numbered(shape):
    return np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)


def test_a_jax_array_is_no_shape_under_jit(raises_declared):
    raises_declared(array_shapes.flatten_by_jnp, jnp.ones((2, 3)))
    raises_declared(array_shapes.flatten_by_np_prod_of_jnp, jnp.ones((2, 3)))
    assert array_shapes.flatten_by_jnp.__wrapped__(jnp.ones((2, 3))).shape == (6,)


@given(shapes)
@settings(deadline=None, max_examples=20)
def test_every_fix_equals_numpy(shape):
    x = numbered(shape)
    expected = x.ravel().tolist()
    for fix in (
        array_shapes.flatten_by_math_prod,
        array_shapes.flatten_by_size,
        array_shapes.flatten,
    ):
        assert fix(x).tolist() == expected
    if shape:
        assert array_shapes.flatten_by_np_prod(x).tolist() == expected


@given(shapes.filter(len))
@settings(deadline=None, max_examples=20)
def test_flatten_rows_equals_numpy(shape):
    x = numbered(shape)
    rows = array_shapes.flatten_rows(x)
    assert rows.shape == (shape[0], np.prod(shape[1:], dtype=int))
    assert rows.ravel().tolist() == x.ravel().tolist()


def test_minus_one_is_undefined_beside_a_zero():
    with pytest.raises((ValueError, ZeroDivisionError)):
        jnp.ones((0, 3, 4)).reshape(0, -1)
    assert array_shapes.flatten_rows(jnp.ones((0, 3, 4))).shape == (0, 12)


def test_np_prod_of_no_axes_is_a_float(raises_declared):
    assert type(np.prod(())) is np.float64
    raises_declared(array_shapes.flatten_by_np_prod, jnp.float32(3))


def test_zeros(raises_declared):
    raises_declared(array_shapes.zeros_traced, 3)
    assert array_shapes.zeros(3).tolist() == [0, 0, 0]
    assert array_shapes.zeros_for(jnp.ones((4, 2))).tolist() == [0, 0, 0, 0]


@given(st.lists(st.integers(0, 5), min_size=1, max_size=8))
@settings(deadline=None, max_examples=40)
def test_one_hot(labels):
    classes = max(labels) + 1
    expected = np.eye(classes)[labels].tolist()
    assert array_shapes.one_hot(jnp.array(labels), classes).tolist() == expected


def test_one_hot_needs_its_number_of_classes(raises_declared):
    raises_declared(array_shapes.one_hot_of_data, jnp.array([0, 2]))
