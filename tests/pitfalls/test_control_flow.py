import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from snippets.pitfalls import control_flow

numbers = st.integers(-99, 99)


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    monkeypatch.setattr(control_flow, "TRACED_VALUES", [])


def test_branch_on_a_value_raises(raises_declared):
    raises_declared(control_flow.negate_if, 1, True)


def test_max_hides_a_branch(raises_declared):
    raises_declared(control_flow.clip_below, 1.0)


def assert_small(x):
    assert x < 1


@pytest.mark.parametrize(
    "hidden",
    [assert_small, lambda x: 0 < x < 1, lambda x: x > 0 and x < 1, lambda x: not x],
)
def test_other_hidden_branches(hidden):
    with pytest.raises(jax.errors.TracerBoolConversionError):
        jax.jit(hidden)(0.5)


def test_values_are_there_under_grad_alone():
    found = {
        name: control_flow.works(control_flow.is_inside, name) for name in control_flow.TRANSFORMED
    }
    assert [name for name, works in found.items() if works] == ["nothing", "grad"]

    def asserted(x):
        assert x < 1 or x == 2
        return x

    for name in control_flow.TRANSFORMED:
        assert control_flow.works(lambda x: 2 * x, name)
        assert control_flow.works(asserted, name) is found[name]


def test_a_branch_on_the_shape_is_allowed():
    assert control_flow.flatten_images(jnp.ones((2, 3, 4))).shape == (2, 12)
    assert control_flow.flatten_images(jnp.ones((2, 5))).shape == (2, 5)


def test_two_jits_on_top_of_each_other_raise(raises_declared):
    raises_declared(control_flow.negate_if_stacked, 1, True)
    raises_declared(control_flow.negate_if_stacked, 1, neg=True)


def test_two_jits_work_only_while_the_flag_is_left_out():
    assert control_flow.negate_if_stacked(1) == -1


@given(numbers, st.booleans())
@settings(deadline=None, max_examples=50)
def test_every_fix_gives_the_right_value(x, neg):
    expected = -x if neg else x
    assert control_flow.negate_if_static(x, neg=neg) == expected
    assert control_flow.negate_if_cond(x, neg) == expected
    assert control_flow.negate_if_where(x, neg) == expected


def test_static_values_are_traced_one_by_one():
    control_flow.negate_if_static.clear_cache()
    for neg in (True, False, True, False):
        control_flow.negate_if_static(1, neg=neg)
    assert control_flow.TRACED_VALUES == [True, False]


def test_static_values_must_be_hashable():
    with pytest.raises(ValueError, match="Non-hashable static arguments"):
        control_flow.negate_if_static(1, neg=jnp.array(True))


def test_where_takes_a_mask():
    x, neg = jnp.array([1, 2, 3]), jnp.array([True, False, True])
    assert control_flow.negate_if_where(x, neg).tolist() == [-1, 2, -3]
    with pytest.raises(TypeError):
        control_flow.negate_if_cond(x, neg)


def test_cond_becomes_select_under_vmap():
    xs, flags = jnp.array([1, 2]), jnp.array([True, False])
    batched = jax.vmap(control_flow.negate_if_cond)
    assert batched(xs, flags).tolist() == [-1, 2]
    assert "cond" in str(jax.make_jaxpr(control_flow.negate_if_cond)(1, True))
    text = str(jax.make_jaxpr(batched)(xs, flags))
    assert "select_n" in text
    assert "cond" not in text.replace("negate_if_cond", "")


def test_branches_need_equal_types(raises_declared):
    raises_declared(control_flow.negate_if_mixed_types, 1, True)
    assert control_flow.negate_if_mixed_types(1.0, False) == 0


@given(st.floats(-5, 5, width=32, allow_subnormal=False))
@settings(deadline=None)
def test_logs(x):
    expected = np.log(x) if x > 0 else 0
    assert control_flow.safe_log(x) == pytest.approx(expected, rel=1e-5, abs=1e-6)
    assert control_flow.safer_log(x) == pytest.approx(expected, rel=1e-5, abs=1e-6)


def test_gradient_of_a_branch_that_was_not_chosen():
    assert jnp.isnan(jax.grad(control_flow.safe_log)(0.0))
    assert jax.grad(control_flow.safer_log)(0.0) == 0
    assert jax.grad(control_flow.safer_log)(4.0) == 0.25


@pytest.mark.parametrize(
    ("number", "expected"),
    [(-1, [0, 2]), (0, [0, 2]), (1, np.tanh([-1, 2])), (2, [-1, 2]), (9, [-1, 2])],
)
def test_switch_chooses_and_keeps_the_number_in_range(number, expected):
    x = jnp.array([-1.0, 2.0])
    np.testing.assert_allclose(control_flow.apply_activation(number, x), expected, rtol=1e-5)


def test_a_bool_is_no_number_of_a_branch(raises_declared):
    raises_declared(control_flow.activation_of_sign, jnp.array(-1.0))


def test_python_loops_raise(raises_declared):
    raises_declared(control_flow.power_by_range, 2.0, 3)


@given(st.integers(-5, 5), st.integers(0, 6))
@settings(deadline=None)
def test_powers(x, n):
    x = float(x)
    assert control_flow.power(x, n) == x**n
    expected = n * x ** (n - 1) if n else 0
    assert control_flow.gradient_of_power_static(x, n=n) == expected


def test_a_loop_of_unknown_length_has_no_backward_pass(raises_declared):
    raises_declared(control_flow.gradient_of_power, 2.0, 3)
    assert jax.jvp(lambda x: control_flow.power(x, 3), (2.0,), (1.0,))[1] == 12


@given(st.floats(0, 1e6, width=32))
@settings(deadline=None)
def test_halvings(x):
    count, left = 0, np.float32(x)
    while left > 1:
        left, count = left / np.float32(2), count + 1
    assert control_flow.halvings(x) == count


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=5))
@settings(deadline=None)
def test_balances(payments):
    balance, expected = 100.0, []
    for payment in payments:
        balance = 1.1 * balance + payment
        expected.append(balance)
    got = control_flow.balances(100.0, jnp.array(payments, jnp.float32))
    np.testing.assert_allclose(got, expected, rtol=1e-5)
    gradient = jax.grad(lambda start: control_flow.balances(start, jnp.zeros(3))[-1])(1.0)
    assert gradient == pytest.approx(1.1**3)


@given(st.floats(0.125, 128, width=32))
@example(1.0)
@settings(deadline=None, max_examples=30)
def test_a_loop_that_ends_early_has_the_gradient_of_what_it_computed(a):
    with_steps = jax.value_and_grad(control_flow.root, has_aux=True)
    (value, steps), derivative = with_steps(a, limit=20)
    assert value == pytest.approx(a**0.5, rel=1e-4)
    # Without a step it returns what it was given.
    assert derivative == pytest.approx(0.5 / a**0.5 if steps else 1, rel=1e-2)
    assert 0 <= steps < 20


def test_a_limit_that_is_too_low_is_reached():
    value, steps = control_flow.root(100.0, limit=3)
    assert (steps, value) == (3, pytest.approx(15.0, abs=5))
    assert control_flow.root(1.0, limit=3)[1] == 0


def test_the_gradient_of_a_where_multiplies_selection_and_derivative():
    x = jnp.array([0.0, 0.5, 2.0])
    selected, derivative, gradient = control_flow.log_gradients(x)
    np.testing.assert_array_equal(selected, [0, 1, 1])
    np.testing.assert_array_equal(derivative, [np.inf, 2, 0.5])
    np.testing.assert_array_equal(gradient, jax.vmap(jax.grad(control_flow.safe_log))(x))
