import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from snippets.jaxprs import reading

X = np.arange(12.0).reshape(3, 4)
Y = np.arange(4.0)
floats = st.floats(-5, 5, width=32)
few = settings(max_examples=15, deadline=None)


def numpy_selu(x):
    return 1.05 * np.where(x > 0, x, 1.67 * (np.exp(x) - 1))


def names(jaxpr):
    return [equation.primitive.name for equation in jaxpr.eqns]


@few
@given(arrays(np.float32, (3, 4), elements=floats), arrays(np.float32, (4,), elements=floats))
def test_shifted_matmul_is_that_of_numpy(x, y):
    expected = (x.astype(float) + 1) @ (y.astype(float) + 1)
    np.testing.assert_allclose(reading.shifted_product(x, y), expected, rtol=1e-4, atol=1e-3)


@settings(deadline=None)
@given(floats)
def test_selu_is_that_of_numpy(x):
    np.testing.assert_allclose(reading.selu(x), numpy_selu(x), rtol=1e-4, atol=1e-5)


@settings(deadline=None)
@given(floats.filter(lambda x: abs(x) > 1e-3))
def test_the_derivative_of_selu_is_the_closed_form(x):
    expected = 1.05 * (1 if x > 0 else 1.67 * np.exp(x))
    np.testing.assert_allclose(jax.grad(reading.selu)(x), expected, rtol=1e-4)


def test_the_matmul_has_three_equations_on_float32():
    jaxpr = jax.make_jaxpr(reading.shifted_product)(X, Y)
    assert reading.equations(jaxpr) == [
        ("add", ["float32[3,4]", "float32[]"], ["float32[3,4]"]),
        ("add", ["float32[4]", "float32[]"], ["float32[4]"]),
        ("dot_general", ["float32[3,4]", "float32[4]"], ["float32[3]"]),
    ]
    assert [str(aval) for aval in jaxpr.in_avals] == ["float32[3,4]", "float32[4]"]
    assert [str(aval) for aval in jaxpr.out_avals] == ["float32[3]"]


def test_x64_keeps_float64():
    with jax.enable_x64(True):
        jaxpr = jax.make_jaxpr(reading.shifted_product)(X, Y)
    assert "f64[3,4]" in str(jaxpr) and "f32" not in str(jaxpr)
    assert reading.equations(jaxpr)[-1][2] == ["float64[3]"]


def test_a_jaxpr_can_be_evaluated():
    jaxpr = jax.make_jaxpr(reading.shifted_product)(X, Y)
    (result,) = jax.core.eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, jnp.array(X), jnp.array(Y))
    np.testing.assert_array_equal(result, (X + 1) @ (Y + 1))


def test_selu_holds_a_jit_for_where():
    jaxpr = jax.make_jaxpr(reading.selu)(np.ones(4))
    assert names(jaxpr) == ["gt", "exp", "mul", "sub", "jit", "mul"]
    where = jaxpr.eqns[4]
    assert where.params["name"] == "_where"
    assert [names(inner) for inner in reading.inner_jaxprs(where)] == [["select_n"]]
    assert reading.primitives(jaxpr) == ["gt", "exp", "mul", "sub", "jit", "select_n", "mul"]


def test_a_jitted_function_is_one_equation():
    jaxpr = jax.make_jaxpr(jax.jit(reading.selu))(np.ones(4))
    assert names(jaxpr) == ["jit"]
    assert jaxpr.eqns[0].params["name"] == "selu"


def test_the_gradient_reuses_the_exponential():
    found = reading.primitives(jax.make_jaxpr(jax.grad(reading.selu))(1.0))
    assert found.count("exp") == 1
    assert found.count("select_n") >= 2


def test_an_array_from_outside_becomes_a_constant():
    jaxpr = jax.make_jaxpr(reading.weighted_sum)(np.ones(3))
    (constant,) = jaxpr.consts
    np.testing.assert_array_equal(constant, reading.WEIGHTS)
    assert reading.weighted_sum(np.array([1.0, 10.0, 100.0])) == 321


@few
@given(st.floats(-2, 2, width=32), st.integers(1, 6))
def test_power_is_that_of_numpy_and_unrolled(x, n):
    np.testing.assert_allclose(reading.power(x, n), float(x) ** n, rtol=1e-5, atol=1e-30)
    jaxpr = jax.make_jaxpr(reading.power, static_argnums=1)(x, n)
    assert names(jaxpr) == ["mul"] * (n - 1)


@pytest.mark.parametrize(("x", "expected"), [([1.0, 2.0], np.sin), ([-1.0, -2.0], np.cos)])
def test_cond_computes_one_branch_and_shows_both(x, expected):
    x = np.array(x)
    np.testing.assert_allclose(reading.sine_or_cosine(x), expected(x), rtol=1e-5)
    jaxpr = jax.make_jaxpr(reading.sine_or_cosine)(x)
    cond = next(equation for equation in jaxpr.eqns if equation.primitive.name == "cond")
    assert [names(branch) for branch in reading.inner_jaxprs(cond)] == [["cos"], ["sin"]]
    assert [names(branch) for branch in cond.params["branches"]] == [["cos"], ["sin"]]


@few
@given(arrays(np.float32, st.integers(1, 6), elements=floats))
def test_running_sums_are_those_of_numpy(x):
    np.testing.assert_allclose(reading.running_sums(x), np.cumsum(x), rtol=1e-5, atol=1e-5)


def test_scan_holds_its_body_once():
    for length in (3, 300):
        jaxpr = jax.make_jaxpr(reading.running_sums)(np.ones(length))
        assert names(jaxpr) == ["scan"]
        assert jaxpr.eqns[0].params["length"] == length
        assert reading.primitives(jaxpr) == ["scan", "add"]


def test_an_equation_that_others_need_cannot_go(raises_declared):
    error = raises_declared(reading.without_first, jax.make_jaxpr(reading.shifted_product)(X, Y))
    assert "dot_general" in str(error)


def test_an_equation_that_nothing_needs_can_go():
    def wasteful(x):
        jnp.sin(x)
        return x + 1

    jaxpr = jax.make_jaxpr(wasteful)(1.0)
    assert names(jaxpr) == ["sin", "add"]
    assert names(reading.without_first(jaxpr)) == ["add"]
