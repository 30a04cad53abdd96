import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snippets.pitfalls import conversions

ASKS = "Abstract tracer value encountered"
AMBIGUOUS = "The truth value of an array with more than one element is ambiguous"


def test_a_tracer_is_no_int(raises_declared):
    raises_declared(conversions.whole_minutes_by_int, 150.0)


@pytest.mark.parametrize(
    "ask", [int, float, complex, lambda x: x.item(), lambda x: x.tolist(), math.sqrt, math.floor]
)
def test_other_ways_to_ask_for_the_value(ask):
    with pytest.raises(jax.errors.ConcretizationTypeError, match=ASKS):
        jax.jit(ask)(2.0)


@pytest.mark.parametrize("seconds", [150.0, 59.0, 60.0, 0.0, -61.0])
def test_astype_truncates_as_int_does(seconds):
    minutes = conversions.whole_minutes(seconds)
    assert minutes == int(seconds / 60)
    assert minutes.dtype == jnp.int32


@pytest.mark.parametrize("convert", [int, float])
def test_only_an_array_without_axes_is_a_number(convert):
    with pytest.raises(TypeError, match="Only scalar arrays can be converted"):
        convert(jnp.ones(1))
    assert jnp.ones((1, 1)).item() == convert(jnp.ones(1)[0]) == 1


def test_arrays_have_no_method_numpy():
    with pytest.raises(AttributeError, match="no attribute 'numpy'"):
        jnp.ones(1).numpy()
    assert type(np.asarray(jnp.ones(1))) is np.ndarray


def test_item_loses_a_share_of_the_gradient_without_an_error():
    assert conversions.square_by_item(jnp.float32(3)) == 9
    assert jax.grad(conversions.square_by_item)(3.0) == 3
    assert jax.grad(lambda x: x * int(x))(3.0) == 3
    assert jax.grad(lambda x: x * jax.lax.stop_gradient(x))(3.0) == 3
    assert jax.grad(jax.jit(lambda x: x * jax.lax.stop_gradient(x)))(3.0) == 3
    for refused in (float, math.sqrt):
        with pytest.raises(jax.errors.ConcretizationTypeError):
            jax.grad(lambda x, refused=refused: x * refused(x))(3.0)
    with pytest.raises(jax.errors.ConcretizationTypeError):
        jax.grad(jax.jit(conversions.square_by_item))(3.0)


def test_lengths(raises_declared):
    raises_declared(conversions.norm_by_math, jnp.array([3.0, 4.0]))


@pytest.mark.parametrize("reduce", [np.sum, np.mean, np.max])
def test_numpy_functions_that_call_a_method(reduce):
    assert jax.jit(lambda x: reduce(x))(jnp.array([2.0, 2.0])) == reduce([2.0, 2.0])


@pytest.mark.parametrize("compute", [np.sqrt, np.linalg.norm, np.asarray])
def test_numpy_functions_that_need_values(compute):
    with pytest.raises(jax.errors.TracerArrayConversionError):
        jax.jit(lambda x: compute(x))(jnp.ones(2))


def test_extremes(raises_declared):
    x = jnp.array([3.0, 1.0, 2.0])
    raises_declared(conversions.extremes_by_numpy, x)
    assert conversions.extremes(x).tolist() == [1, 3]


def test_a_list_needs_an_integer(raises_declared):
    raises_declared(conversions.rate_from_list, 1)
    with pytest.raises(jax.errors.TracerIntegerConversionError):
        jax.jit(range)(3)
    with pytest.raises(jax.errors.TracerArrayConversionError, match="called on traced array"):
        jax.jit(lambda bracket: np.array(conversions.RATES)[bracket])(1)


def test_an_array_as_a_table():
    for bracket, expected in enumerate(conversions.RATES):
        assert conversions.rate(bracket) == np.float32(expected)
    assert conversions.rate(7) == np.float32(conversions.RATES[-1])


def test_text(raises_declared, capsys):
    raises_declared(conversions.report_by_format, jnp.array([1.0, 2.5]))
    jax.jit(lambda x: jax.debug.print("the sum is {:.2f}", jnp.sum(x)))(jnp.array([1.0, 2.5]))
    jax.effects_barrier()
    assert capsys.readouterr().out == "the sum is 3.50\n"
    jax.jit(lambda x: print(f"{x}"))(jnp.float32(1))
    assert capsys.readouterr().out == "JitTracer(float32[])\n"


@pytest.mark.parametrize("use", [hash, lambda x: {x}, lambda x: {x: 1}, functools.lru_cache(id)])
@pytest.mark.parametrize("jit", [False, True])
def test_arrays_are_not_hashable(use, jit):
    with pytest.raises(TypeError, match="unhashable type"):
        (jax.jit(lambda x: use(x)) if jit else use)(jnp.float32(1))


def test_names(raises_declared):
    raises_declared(conversions.name_by_array, jnp.array([0.1, 0.7, 0.2]))
    assert conversions.NAMES[int(jnp.argmax(jnp.array([0.1, 0.7, 0.2])))] == "dog"
    assert hash(tuple(jnp.arange(2).tolist())) == hash((0, 1))


def test_penalty(raises_declared):
    x, other = jnp.array([1.0, 2.0]), jnp.array([1.0, 3.0])
    raises_declared(conversions.penalty_by_if, x, other)
    raises_declared(conversions.penalty_by_if.__wrapped__, x, other)
    with pytest.raises(jax.errors.TracerBoolConversionError):
        conversions.penalty_by_if(1.0, 1.0)
    assert conversions.penalty_by_if.__wrapped__(jnp.float32(1), 1.0) == 0
    penalty = jax.jit(lambda x, y: jnp.where(jnp.array_equal(x, y), 0.0, 1.0))
    for target, expected in ((other, 1), (x + 0, 0), (jnp.ones(3), 1)):
        assert penalty(x, target) == expected


def test_pytrees_are_compared_leaf_by_leaf():
    one, equal = {"w": jnp.ones(2)}, {"w": jnp.ones(2)}
    with pytest.raises(ValueError, match=AMBIGUOUS):
        assert one == equal
    assert conversions.same_leaves(one, equal)
    assert not conversions.same_leaves(one, {"w": jnp.zeros(2)})


def test_a_list_finds_the_same_object_only_where_no_other_comes_before():
    x, y = jnp.ones(2), jnp.zeros(2)
    assert x in [x, y]
    for search in (lambda: y in [x, y], lambda: [x, y].index(y), lambda: [x, y].remove(y)):
        with pytest.raises(ValueError, match=AMBIGUOUS):
            search()
    assert any(jnp.array_equal(array, jnp.zeros(2)) for array in [x, y])
    assert not any(jnp.array_equal(array, 3 * x) for array in [x, y])
    assert any(array is y for array in [x, y])


def test_isinstance_takes_the_other_branch_under_jit():
    assert conversions.half_by_isinstance(3.0) == 1.5
    assert jax.jit(conversions.half_by_isinstance)(3.0) == 1.0
    assert conversions.half_by_isinstance(jnp.float32(3)) == 1.0


@pytest.mark.parametrize(
    ("x", "expected"),
    [(3.0, 1.5), (3, 1), (jnp.float32(3), 1.5), (jnp.int32(3), 1), (jnp.bfloat16(3), 1.5)],
)
@pytest.mark.parametrize("compile", [lambda function: function, jax.jit])
def test_half_by_dtype(compile, x, expected):
    assert compile(conversions.half)(x) == expected
