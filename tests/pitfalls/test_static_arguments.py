import collections
import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snippets.pitfalls import static_arguments


@pytest.fixture(autouse=True)
def nothing_compiled():
    jax.clear_caches()


X = np.array([-1.0, 2.0], np.float32)


def test_a_default_is_not_passed_and_a_text_is_refused(raises_declared):
    assert static_arguments.activate_by_dynamic_name(X).tolist() == [0, 2]
    for call in (("tanh",), ("relu",)):
        raised = raises_declared(static_arguments.activate_by_dynamic_name, X, *call)
        assert "at path kind" in str(raised)


@pytest.mark.parametrize("other", ["text", jnp.tanh, jnp.float32, {1}, range(3), object()])
def test_what_is_no_array_is_refused_and_may_be_static(other):
    with pytest.raises(TypeError, match=r"Error interpreting argument[\s\S]*at path d\['kind'\]"):
        jax.jit(lambda d: d)({"kind": other})
    if not isinstance(other, set):
        assert jax.jit(lambda x, other: x, static_argnames="other")(1, other) == 1


def test_a_static_text_by_position_and_by_name():
    expected = np.tanh(X)
    np.testing.assert_allclose(static_arguments.activate(X, "tanh"), expected, rtol=1e-6)
    np.testing.assert_allclose(static_arguments.activate(X, kind="tanh"), expected, rtol=1e-6)
    assert static_arguments.activate(X).tolist() == [0, 2]


def test_grad_and_vmap_alone_pass_on_anything():
    assert jax.grad(lambda x, kind: 3 * x)(1.0, "text") == 3
    mapped = jax.vmap(lambda x, kind: 3 * x, in_axes=(0, None))
    assert mapped(X, "text").tolist() == [-3, 6]


def test_results(raises_declared):
    raises_declared(static_arguments.with_label, X)
    assert jax.jit(lambda x: {"sum": jnp.sum(x)})(X) == {"sum": 1}


@pytest.mark.parametrize("axes", [[0], {0}, {0: 0}, np.array([0]), jnp.array([0]), (jnp.array(0),)])
def test_static_values_must_be_hashable(axes):
    with pytest.raises(ValueError, match="Non-hashable static arguments"):
        static_arguments.summed(jnp.ones((2, 3)), axes=axes)


def test_hashable_static_values():
    assert static_arguments.summed(jnp.ones((2, 3)), axes=(0, 1)) == 6
    assert static_arguments.summed(jnp.ones((2, 3)), axes=(0,)).tolist() == [2, 2, 2]


WHOLE = np.array([1, 2], np.int32)


@pytest.mark.parametrize(
    ("first", "second", "dtype"),
    [((2,), (2.0,), "int32"), ((2.0,), (2,), "float32"), ((1,), (True,), "int32")],
)
def test_an_equal_tuple_gets_the_program_of_the_first(first, second, dtype):
    calls = [static_arguments.scaled(WHOLE, factors=factors) for factors in (first, second)]
    assert [result.dtype for result in calls] == [dtype, dtype]
    jax.clear_caches()
    assert static_arguments.scaled(WHOLE, factors=(2.0,)).dtype == "float32"


def test_bare_numbers_are_told_apart():
    scaled = jax.jit(lambda x, n: x * n, static_argnames="n")
    assert [scaled(WHOLE, n=n).dtype for n in (2, 2.0)] == ["int32", "float32"]


@dataclasses.dataclass(frozen=True)
class Setting:
    factor: object


def test_equal_dataclasses_share_a_program_too():
    scaled = jax.jit(lambda x, setting: x * setting.factor, static_argnames="setting")
    results = [scaled(WHOLE, setting=Setting(factor)) for factor in (2, 2.0)]
    assert [result.dtype for result in results] == ["int32", "int32"]
    assert scaled(WHOLE, setting=Setting(5)).tolist() == [5, 10]


@pytest.mark.parametrize("order", [((2,), (2.0,)), ((2.0,), (2,))])
def test_a_dtype_that_is_chosen_does_not_depend_on_the_order(order):
    def by_floats(x, factors):
        return x * math.prod(factors, start=1.0)

    scaled = jax.jit(by_floats, static_argnames="factors")
    for factors in order:
        result = scaled(WHOLE, factors=factors)
        assert result.dtype == "float32"
        assert result.tolist() == [2, 4]


def test_a_static_object_that_changes_gives_the_old_result():
    scaler = static_arguments.Scaler(2.0)
    assert scaler.apply(1.0) == 2
    scaler.factor = 10.0
    assert scaler.apply(1.0) == 2
    assert scaler.apply(X).tolist() == [-10, 20]
    assert static_arguments.Scaler(10.0).apply(1.0) == 10


def test_a_registered_object_gives_the_new_result():
    scale = static_arguments.Scale(2.0)
    assert scale.apply(1.0) == 2
    assert dataclasses.replace(scale, factor=10.0).apply(1.0) == 10
    with pytest.raises(dataclasses.FrozenInstanceError):
        scale.factor = 10.0


def test_an_array_in_a_static_field_fails_at_the_second_call():
    def table():
        return static_arguments.StaticTable(jnp.array([1.0, 2.0]))

    assert static_arguments.look_up(table(), 1) == 2
    with pytest.raises(ValueError, match="checking equality of metadata fields of pytree"):
        static_arguments.look_up(table(), 1)


def test_an_array_in_an_ordinary_field():
    for values in ([1.0, 2.0], [3.0, 4.0]):
        table = static_arguments.Table(jnp.array(values), unit="m")
        assert static_arguments.look_up(table, 1) == values[1]


@pytest.mark.parametrize(
    ("function", "options", "message"),
    [
        (static_arguments.power, {"static_argnames": "exponent"}, "invalid argnames"),
        (static_arguments.power, {"static_argnums": 3}, "but only accepts 3"),
        (functools.partial(static_arguments.power, 2.0), {"static_argnums": 2}, "only accepts 2"),
    ],
)
def test_names_and_numbers_are_checked_before_any_call(function, options, message):
    with pytest.raises(ValueError, match=message):
        jax.jit(function, **options)


def test_names_stay_right_in_a_partial():
    partial = functools.partial(static_arguments.power, 2.0)
    assert jax.jit(partial, static_argnames="n")(3.0, n=2) == 18
    assert jax.jit(partial, static_argnums=1)(3.0, 2) == 18


def test_a_misspelt_name_of_an_option_is_ignored():
    def is_static(x, **options):
        return not isinstance(options["kind"], jax.core.Tracer)

    assert jax.jit(is_static, static_argnames="kind")(1, kind=3)
    assert not jax.jit(is_static, static_argnames="knd")(1, kind=3)


def test_a_partial_under_jit_keeps_the_old_array():
    table = np.array([1.0, 2.0])
    frozen = jax.jit(functools.partial(static_arguments.product, table))
    passed = functools.partial(jax.jit(static_arguments.product), table)
    assert frozen(1.0).tolist() == passed(1.0).tolist() == [1, 2]
    table[:] = 10.0
    assert frozen(1.0).tolist() == [1, 2]
    assert passed(1.0).tolist() == [10, 10]


def test_optional_arguments():
    with pytest.raises(jax.errors.TracerBoolConversionError):
        jax.jit(lambda x, scale: x * (scale or 1.0))(X, 2.0)
    assert static_arguments.rescaled(X).tolist() == X.tolist()
    assert static_arguments.rescaled(X, 2.0).tolist() == [-2, 4]
    assert not static_arguments.rescaled(X, 0.0).any()


def test_keys_must_have_an_order():
    with pytest.raises(ValueError, match="Comparator raised exception while sorting"):
        jax.jit(static_arguments.as_matrix)({"width": 1.0, 0: 2.0})
    assert jax.jit(static_arguments.as_matrix)({1: 1.0, 0: 2.0}).tolist() == [2, 1]


def test_a_dictionary_arrives_sorted():
    sizes = {"width": 1.0, "height": 2.0}
    assert static_arguments.as_matrix(sizes).tolist() == [1, 2]
    assert jax.jit(static_arguments.as_matrix)(sizes).tolist() == [2, 1]
    assert list(jax.tree.map(abs, sizes)) == ["height", "width"]
    assert list(jax.grad(lambda tree: tree["width"])(sizes)) == ["height", "width"]
    assert list(jax.vmap(lambda tree: tree)({"b": X, "a": X})) == ["a", "b"]
    ordered = collections.OrderedDict(sizes)
    assert jax.jit(static_arguments.as_matrix)(ordered).tolist() == [1, 2]
    assert jax.jit(lambda tree: tree["width"])(sizes) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"w": 1, "b": 2}, {"w": 1}),
        ([1, 2], [1]),
        ([1, 2], (1, 2)),
        ({"w": None}, {"w": 1}),
    ],
)
def test_structures_must_match(raises_declared, one, other):
    raises_declared(static_arguments.updated_by_map, one, other)


def test_self_is_not_an_array(raises_declared):
    raises_declared(static_arguments.call_jitted_method)
