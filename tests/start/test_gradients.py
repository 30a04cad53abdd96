import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from jax.test_util import check_grads

from snippets.start import gradients

COUNTS = st.integers(1, 6)
NUMBERS = st.floats(-3, 3, width=32)
POLAR = np.array([2.0, 0.5])
DIRECTION = np.array([1.0, 3.0])


@pytest.fixture(scope="module", autouse=True)
def rules():
    """Give the functions their rules, as the page does."""
    gradients.root.defvjp(gradients.root_forward, gradients.root_backward)
    gradients.clip_gradient.defvjp(gradients.clip_forward, gradients.clip_backward)
    gradients.stash_gradient.defvjp(gradients.stash_forward, gradients.stash_backward)


@pytest.fixture
def x64():
    with jax.enable_x64(True):
        yield


@st.composite
def some_problem(draw):
    count, size = draw(COUNTS), draw(COUNTS)
    shapes = (size,), (count, size), (count,)
    return [draw(arrays(np.float64, shape, elements=NUMBERS)) for shape in shapes]


def by_formula(w, x, y):
    return 2 * x.T @ (x @ w - y) / len(y)


@settings(max_examples=10, deadline=None)
@given(some_problem())
def test_all_frameworks_give_the_gradient_of_the_formula(problem):
    w, x, y = problem
    expected = by_formula(w, x, y)
    with jax.enable_x64(True):
        found = [
            jax.grad(gradients.squared_error)(w, x, y),
            gradients.gradient_torch(w, x, y),
            gradients.gradient_tensorflow(w, x, y),
            torch.func.grad(gradients.squared_error)(*map(torch.tensor, (w, x, y))),
        ]
    for gradient in found:
        np.testing.assert_allclose(gradient, expected, rtol=1e-9, atol=1e-9)
    checked = gradients.finite_differences(lambda w: gradients.squared_error(w, x, y), w)
    np.testing.assert_allclose(checked, expected, rtol=1e-4, atol=1e-5)


def test_the_points_of_the_page():
    w, x, y = gradients.some_points()
    assert (w.shape, x.shape, y.shape) == ((2,), (3, 2), (3,))
    assert {w.dtype, x.dtype, y.dtype} == {np.dtype(np.float32)}
    np.testing.assert_allclose(
        jax.grad(gradients.squared_error)(w, x, y), by_formula(w, x, y), rtol=1e-5
    )


def test_finite_differences_of_a_known_function():
    found = gradients.finite_differences(lambda w: (w**3).sum(), [1.0, -2.0])
    np.testing.assert_allclose(found, [3, 12], rtol=1e-8)


def test_arrays_agree_or_not():
    one = np.array([1.0, 2.0])
    assert gradients.agree(one, jnp.array(one), torch.tensor(one), tf.constant(one))
    assert not gradients.agree(one, one, np.array([1.0, 2.01]))


def test_what_else_the_function_returns_comes_with_the_gradient():
    w, x, y = gradients.some_points()
    both = jax.value_and_grad(gradients.error_and_residuals, has_aux=True)
    (value, residuals), gradient = both(w, x, y)
    np.testing.assert_allclose(residuals, x @ w - y)
    assert value == pytest.approx(np.mean((x @ w - y) ** 2))
    np.testing.assert_allclose(gradient, by_formula(w, x, y), rtol=1e-5)


def test_the_gradients_of_a_line_have_its_form(x64):
    w, x, y = (array.astype(float) for array in gradients.some_points())
    params = {"w": w, "b": 0.5}
    found = jax.grad(gradients.line_error)(params, x, y)
    assert found.keys() == params.keys()
    np.testing.assert_allclose(found["w"], by_formula(w, x, y - 0.5), rtol=1e-9)
    assert float(found["b"]) == pytest.approx(np.mean(2 * (x @ w + 0.5 - y)))


def test_the_gradient_for_the_targets():
    w, x, y = gradients.some_points()
    for_w, for_y = jax.grad(gradients.squared_error, argnums=(0, 2))(w, x, y)
    np.testing.assert_allclose(for_w, by_formula(w, x, y), rtol=1e-5)
    np.testing.assert_allclose(for_y, -2 * (x @ w - y) / 3, rtol=1e-5)


def test_gradients_of_microbatches_add_up():
    w, x, y = gradients.some_points()
    microbatches = [(x[:1], y[:1]), (x[1:], y[1:])]
    expected = by_formula(w, x, y)
    np.testing.assert_allclose(gradients.accumulated(w, microbatches), expected, rtol=1e-5)
    in_place = gradients.accumulated_in_place(jnp.asarray(w), microbatches)
    np.testing.assert_allclose(in_place, expected, rtol=1e-5)
    np.testing.assert_allclose(gradients.accumulated_torch(w, microbatches), expected, rtol=1e-5)


@pytest.mark.parametrize("w", [3.0, -1.5])
def test_a_constant_half_does_not_count(w):
    found = [
        jax.grad(gradients.half_frozen)(w),
        gradients.derivative_torch(gradients.half_frozen_torch, w),
    ]
    assert list(map(float, found)) == [w, w]
    assert gradients.half_frozen(w) == w * w
    assert gradients.half_frozen_torch(torch.tensor(w)) == w * w


def test_several_results_have_no_gradient_but_with_a_tape_of_tensorflow(raises_declared):
    raises_declared(gradients.gradient_of_many, jnp.ones(2))
    raises_declared(gradients.gradient_of_many_torch, torch.ones(2, requires_grad=True))
    summed = gradients.derivative_tensorflow(gradients.square, [1.0, 2.0])
    np.testing.assert_array_equal(summed, [2, 4])


def test_integers_have_no_gradient(raises_declared):
    raises_declared(gradients.gradient_at_integer, 3)
    raises_declared(gradients.gradient_at_integer_torch, 3)
    assert gradients.derivative_tensorflow(gradients.square, 3) is None


def test_a_gradient_for_an_integer_is_a_float0(raises_declared):
    w, x, y = gradients.some_points()
    params = {"w": jnp.array(w), "steps": jnp.array(0)}
    raises_declared(gradients.descend_with_counter, params, x, y)
    grads = jax.grad(gradients.counted_error, allow_int=True)(params, x, y)
    assert grads["steps"].dtype == jax.dtypes.float0
    np.testing.assert_allclose(grads["w"], by_formula(w, x, y), rtol=1e-5)


@settings(max_examples=10, deadline=None)
@given(arrays(np.float64, 2, elements=st.floats(0.1, 3)))
def test_jacobians_are_the_formula_in_all_frameworks(p):
    (r, a), tensor = p, torch.tensor(p)
    expected = [[np.cos(a), -r * np.sin(a)], [np.sin(a), r * np.cos(a)]]
    with jax.enable_x64(True):
        found = [
            jax.jacfwd(gradients.from_polar)(p),
            jax.jacrev(gradients.from_polar)(p),
            torch.func.jacfwd(gradients.from_polar_torch)(tensor),
            torch.func.jacrev(gradients.from_polar_torch)(tensor),
        ]
    for jacobian in found:
        np.testing.assert_allclose(jacobian, expected, rtol=1e-9, atol=1e-12)


def test_jvp_and_vjp_multiply_with_the_jacobian(x64):
    jacobian = np.asarray(jax.jacfwd(gradients.from_polar)(POLAR))
    tensors = torch.tensor(POLAR), torch.tensor(DIRECTION)
    forward = [
        jax.jvp(gradients.from_polar, (POLAR,), (DIRECTION,))[1],
        torch.func.jvp(gradients.from_polar_torch, tensors[:1], tensors[1:])[1],
    ]
    for change in forward:
        np.testing.assert_allclose(change, jacobian @ DIRECTION, rtol=1e-9)
    backward = [
        jax.vjp(gradients.from_polar, POLAR)[1](jnp.asarray(DIRECTION))[0],
        torch.func.vjp(gradients.from_polar_torch, tensors[0])[1](tensors[1])[0],
    ]
    for weighted in backward:
        np.testing.assert_allclose(weighted, DIRECTION @ jacobian, rtol=1e-9)


def test_two_passes_are_traced_once_and_a_jitted_pull_back_each_time(x64):
    traced = []

    @jax.custom_vjp
    def square(x):
        return x**2

    def forward(x):
        traced.append("forward")
        return x**2, x

    def backward(x, g):
        traced.append("backward")
        return (2 * x * g,)

    square.defvjp(forward, backward)
    once, again = jax.fwd_and_bwd(square, argnums=0)
    for x in 3.0, 4.0:
        y, residuals = once(x)
        assert (y, again(residuals, 1.0), again(residuals, 2.0)) == (x**2, 2 * x, 4 * x)
    assert traced == ["forward", "backward"]
    traced.clear()
    for x in 3.0, 4.0:
        _, pull_back = jax.vjp(square, x)
        assert jax.jit(pull_back)(1.0) == (2 * x,)
    assert traced == ["forward", "backward"] * 2


def test_rows_of_a_jacobian(x64):
    passes = jax.fwd_and_bwd(gradients.from_polar, argnums=0)
    found = gradients.rows_of_jacobian(*passes, POLAR)
    np.testing.assert_allclose(found, jax.jacfwd(gradients.from_polar)(POLAR), rtol=1e-9)


@settings(max_examples=10, deadline=None)
@given(arrays(np.float64, 2, elements=NUMBERS), arrays(np.float64, 2, elements=NUMBERS))
def test_a_hvp_is_the_formula(x, v):
    a, b = x
    hessian = np.array([[2 - 400 * (b - 3 * a**2), -400 * a], [-400 * a, 200.0]])
    with jax.enable_x64(True):
        found = [
            gradients.hvp(gradients.rosenbrock, jnp.asarray(x), jnp.asarray(v)),
            gradients.hvp_torch(gradients.rosenbrock, x, v),
            jax.hessian(gradients.rosenbrock)(x) @ v,
        ]
    for product in found:
        np.testing.assert_allclose(product, hessian @ v, rtol=1e-9, atol=1e-9)


def test_rosenbrock_has_its_minimum_at_one():
    assert gradients.rosenbrock(np.ones(2)) == 0
    np.testing.assert_array_equal(jax.grad(gradients.rosenbrock)(jnp.ones(2)), [0, 0])


@pytest.mark.parametrize(("x", "derivative"), [(2.0, 1.0), (-2.0, 0.1)])
def test_a_branch_has_the_derivative_of_its_side(x, derivative, raises_declared):
    assert float(jax.grad(gradients.leaky)(x)) == pytest.approx(derivative)
    assert float(jax.jit(jax.grad(gradients.leaky_cond))(x)) == pytest.approx(derivative)
    assert float(gradients.leaky_cond(x)) == pytest.approx(gradients.leaky(x))
    raises_declared(gradients.gradient_of_leaky_jit, x)


@settings(max_examples=10, deadline=None)
@given(st.floats(-0.1, 0.5), arrays(np.float64, 5, elements=NUMBERS))
def test_a_loop_along_an_array_has_the_derivative_of_the_polynomial(rate, payments):
    polynomial = np.polynomial.Polynomial(payments[::-1])
    with jax.enable_x64(True):
        assert float(gradients.final_balance(rate, payments)) == pytest.approx(
            polynomial(1 + rate), abs=1e-9
        )
        derivative = float(jax.grad(gradients.final_balance)(rate, payments))
    assert derivative == pytest.approx(polynomial.deriv()(1 + rate), abs=1e-9)
    in_torch = gradients.derivative_torch(
        lambda rate: gradients.final_balance_python(rate, payments), rate
    )
    assert float(in_torch) == pytest.approx(derivative, rel=1e-4, abs=1e-4)


def test_an_open_loop_has_no_reverse_mode_in_jax_alone(raises_declared):
    raises_declared(gradients.gradient_of_sqrt_by_newton, 2.0)


@pytest.mark.parametrize("a", [0.25, 2.0, 9.0])
def test_the_root_and_its_derivative(a):
    roots = [
        gradients.sqrt_by_newton(a),
        gradients.root(a),
        gradients.sqrt_by_newton_torch(torch.tensor(a)),
        gradients.RootTorch.apply(torch.tensor(a)),
    ]
    np.testing.assert_allclose(list(map(float, roots)), a**0.5, rtol=1e-4)
    derivatives = [
        jax.jacfwd(gradients.sqrt_by_newton)(a),
        jax.grad(gradients.root)(a),
        gradients.derivative_torch(gradients.sqrt_by_newton_torch, a),
        gradients.derivative_torch(gradients.RootTorch.apply, a),
    ]
    np.testing.assert_allclose(list(map(float, derivatives)), 0.5 / a**0.5, rtol=1e-3)


def test_the_rule_of_the_root_is_its_derivative(x64):
    check_grads(jnp.sqrt, (2.0,), order=1)
    _, kept = gradients.root_forward(2.0)
    (found,) = gradients.root_backward(kept, 3.0)
    assert float(found) == pytest.approx(1.5 / 2**0.5, rel=1e-4)


@settings(max_examples=10, deadline=None)
@given(arrays(np.float32, 3, elements=NUMBERS))
def test_the_gradient_is_limited_on_its_way_by_rule_and_by_hook(w):
    expected = 2 * np.clip(3 * (2 * w) ** 2, -1, 1)
    found = jax.grad(gradients.cubes_clipped)(jnp.array(w))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(gradients.gradient_of_cubes_torch(w), expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(gradients.clip_gradient(w), w)


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit])
def test_a_gradient_is_stashed_in_the_backward_pass_and_stays_what_it_is(transform):
    w, box = jnp.array([2.0, 0.1, -1.5]), jax.new_ref(jnp.zeros(3))

    def cubes(w):
        return (gradients.stash_gradient(box, 2 * w) ** 3).sum()

    found = transform(jax.grad(cubes))(w)
    at_doubled = 3 * (2 * w) ** 2
    np.testing.assert_allclose(jax.freeze(box), at_doubled, rtol=1e-5)
    np.testing.assert_allclose(found, 2 * at_doubled, rtol=1e-5)


def test_the_gradients_of_the_network_are_equal_and_finite_differences():
    network = gradients.some_network(6, 3, 4)
    found = gradients.network_gradient(*network)
    in_torch = gradients.network_gradient_torch(*gradients.network_torch(*network))
    for name, other in zip(("w1", "w2"), in_torch, strict=True):
        np.testing.assert_allclose(other.cpu(), found[name], rtol=1e-4, atol=1e-6)
    exact = jax.tree.map(lambda array: np.asarray(array, np.float64), network)
    with jax.enable_x64(True):
        check_grads(
            lambda params: gradients.network_error(params, *exact[1:]), (exact[0],), order=1
        )


def test_the_network_has_the_sizes_asked_for():
    weights, x, y = gradients.some_network(6, 3, 4)
    assert {name: w.shape for name, w in weights.items()} == {"w1": (3, 4), "w2": (4,)}
    assert (x.shape, y.shape) == ((6, 3), (6,))
    np.testing.assert_allclose(y, np.sin(x.sum(1)))


def powers(x, n):
    """Return loops and branches that compute x to the power n ≥ 1, some of them for n = 3."""

    def multiply(_, result):
        return result * x

    def count_and_multiply(state):
        return state[0] + 1, state[1] * x

    return {
        "cond": jax.lax.cond(x > 0, lambda x: x**3, lambda x: x**3, x),
        "switch": jax.lax.switch(n, [jnp.sin, jnp.sin, jnp.sin, lambda x: x**3], x),
        "scan": jax.lax.scan(lambda r, _: (r * x, None), 1.0, length=3)[0],
        "fori_loop, length known": jax.lax.fori_loop(0, 3, multiply, 1.0),
        "fori_loop, length a value": jax.lax.fori_loop(0, n, multiply, 1.0),
        "while_loop": jax.lax.while_loop(lambda s: s[0] < n, count_and_multiply, (0, 1.0))[1],
    }


@pytest.mark.parametrize(
    ("name", "backward"),
    [
        ("cond", True),
        ("switch", True),
        ("scan", True),
        ("fori_loop, length known", True),
        ("fori_loop, length a value", False),
        ("while_loop", False),
    ],
)
def test_which_loops_have_reverse_mode(name, backward):
    @jax.jit
    def power(x, n):
        return powers(x, n)[name]

    assert float(jax.jacfwd(power)(2.0, 3)) == pytest.approx(12)
    if backward:
        assert float(jax.grad(power)(2.0, 3)) == pytest.approx(12)
    else:
        with pytest.raises(ValueError, match="Reverse-mode differentiation"):
            jax.grad(power)(2.0, 3)
