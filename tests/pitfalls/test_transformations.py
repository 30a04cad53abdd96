from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snippets.pitfalls import transformations


def test_an_argument_without_an_axis_is_not_mapped(raises_declared):
    xs = jnp.arange(3.0)
    raises_declared(transformations.scale_each, xs, 2.0)
    assert transformations.scale_each(xs, xs).tolist() == [0, 1, 4]
    assert transformations.scale_each_alike(xs, 2.0).tolist() == [0, 2, 4]
    with pytest.raises(ValueError, match="along axis 2, which implies that its rank"):
        jax.vmap(jnp.sum, in_axes=2)(jnp.ones((2, 3)))


def test_entries_for_a_dictionary_have_its_keys(raises_declared):
    params = {"w": jnp.arange(3.0), "b": 0.5}
    error = raises_declared(transformations.predict_each, params, 10.0)
    assert (
        str(error).split("symmetric difference on key sets is\n")[1].split()[0].strip("[']") == "b"
    )
    assert transformations.predict_each_w(params, 10.0).tolist() == [0.5, 10.5, 20.5]
    with pytest.raises(ValueError, match="must be a tree prefix"):
        jax.vmap(lambda p: p[0], in_axes=([0, None],))((jnp.ones(3), 1.0))


def test_an_argument_with_a_name_is_mapped_over_its_first_axis():
    xs, d = jnp.eye(2), jnp.array([[1.0, 2.0], [3.0, 4.0]])
    project = transformations.project
    for in_axes in (0, (0,)):
        by_name = jax.vmap(project, in_axes=in_axes)(xs, directions=d)
        assert by_name.tolist() == [1, 4]
    expected = [project(x, d).tolist() for x in xs]
    assert jax.vmap(project, in_axes=(0, None))(xs, d).tolist() == expected
    assert jax.vmap(partial(project, directions=d))(xs).tolist() == expected
    with pytest.raises(ValueError, match="inconsistent sizes"):
        jax.vmap(project)(xs, directions=jnp.ones((3, 2)))


def test_results_that_differ_are_not_combined(raises_declared):
    raises_declared(transformations.mean_square, jnp.arange(3.0))


@given(st.lists(st.integers(-9, 9), min_size=3, max_size=3))
@settings(deadline=None, max_examples=10)
def test_mean_squares(numbers):
    xs = jnp.array(numbers, float)
    expected = pytest.approx(np.mean(np.square(numbers)), rel=1e-5)
    assert transformations.mean_square_after(xs) == expected
    assert transformations.mean_square_inside(xs) == expected


def test_without_a_mapped_argument_there_is_no_size(raises_declared):
    raises_declared(transformations.three_copies, 3.0)
    assert jax.vmap(jnp.square, in_axes=None, axis_size=3)(3.0).tolist() == [9, 9, 9]


def test_the_body_of_scan_returns_a_pair(raises_declared):
    raises_declared(transformations.running_total, jnp.arange(4.0))
    last, totals = transformations.running_totals(jnp.arange(4.0))
    assert last == 6
    assert totals.tolist() == [0, 1, 3, 6]


@pytest.mark.parametrize(
    ("start", "xs"),
    [
        (jnp.zeros(2, int), jnp.ones((3, 2))),
        (jnp.int32(0), jnp.ones(3)),
        (jnp.zeros(2, jnp.bfloat16), jnp.ones((3, 2))),
        (0.0, jnp.ones((3, 2))),
    ],
    ids=["integers", "one integer", "bfloat16", "shape"],
)
def test_a_carry_keeps_its_type(raises_declared, start, xs):
    raises_declared(transformations.total_from, start, xs)
    assert transformations.total_like(xs).tolist() == np.sum(xs, axis=0).tolist()


def test_a_python_number_adapts():
    total = transformations.total_from(0, jnp.arange(4.0))
    assert total == 6
    assert total.dtype == jnp.float32


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.int32, jnp.float32])
def test_a_carry_that_is_converted_back(dtype):
    total = transformations.total_in_dtype_of(jnp.zeros(2, dtype), jnp.ones((3, 2)))
    assert total.dtype == dtype
    assert total.tolist() == [3, 3]


@pytest.mark.parametrize("count", [1, 4])
def test_a_carry_cannot_grow(raises_declared, count):
    raises_declared(transformations.evens_appended, count)


def test_what_goes_into_a_loop_comes_out(raises_declared):
    error = raises_declared(transformations.fibonacci, 5)
    assert str(error).startswith("scan body")
    assert "loop_carry[1]" in str(error)
    with pytest.raises(TypeError, match="while_loop body function"):
        jax.jit(transformations.fibonacci)(5)
    with pytest.raises(TypeError, match="NoneType"):
        jax.lax.fori_loop(0, 5, lambda _, total: None, 0)


def test_scan_goes_along_each_array_of_a_list():
    pair = [jnp.ones(3), jnp.ones(3)]
    assert transformations.steps_of(pair) == 3
    assert transformations.steps_of(jnp.stack(pair)) == 2
    with pytest.raises(ValueError, match="scan got values with different leading axis sizes"):
        transformations.steps_of([jnp.ones(3), jnp.ones(2)])
    with pytest.raises(ValueError, match="scan got value with no leading axis to scan over"):
        transformations.steps_of([1.0, 2.0])
    assert transformations.steps_of(jnp.array([1.0, 2.0])) == 2


def test_a_loop_has_one_condition(raises_declared):
    raises_declared(transformations.halve_all, jnp.array([8.0, 1.0]))
    xs = jnp.array([8.0, 1.0])
    halved = jax.lax.while_loop(lambda xs: (xs > 1).any(), lambda xs: xs / 2, xs)
    assert halved.tolist() == [1, 0.125]


def test_branches_return_the_same_structure(raises_declared):
    raises_declared(transformations.root_or_nothing, 4.0)
    assert transformations.root_or_nan(4.0) == 2
    assert jnp.isnan(transformations.root_or_nan(-4.0))


def test_a_condition_is_one_value(raises_declared):
    raises_declared(transformations.root_where_positive, jnp.array([4.0, -4.0]))
    raises_declared(transformations.root_where_positive, jnp.array([4.0]))


def test_branches_are_passed_not_called(raises_declared):
    raises_declared(transformations.root_called, 4.0)
    assert transformations.root_passed(4.0) == 2
    assert transformations.root_passed(-4.0) == 0
    with pytest.raises(TypeError, match="takes 0 positional arguments but 1 was given"):
        jax.lax.cond(True, jnp.sqrt, lambda: 0.0, 4.0)
