"""Answers to the exercises on control flow: what is said of them."""

import functools

import jax
import jax.numpy as jnp
import pytest

from snippets.learn.checks import control_flow as checks
from snippets.learn.exercises import control_flow as exercises
from snippets.learn.solutions import control_flow as solutions
from snippets.programs.practice import problem_of


def by_cond(x):
    return jax.lax.cond(x >= 0, lambda x: x, lambda x: 0.1 * x, x)


def where_any(x):
    return jnp.where(jnp.any(x >= 0), x, 0.1 * x)


def where_all(x):
    return jnp.where(jnp.all(x >= 0), x, 0.1 * x)


def exchanged(x):
    return jnp.where(x >= 0, 0.1 * x, x)


def cut_off(x):
    return jnp.maximum(x, 0)


def without_signs(x):
    return jnp.where(x >= 0, x, 0.1 * jnp.abs(x))


def a_tenth_itself(x):
    return jnp.where(x >= 0, x, 0.1)


def one_by_one(x):
    return jnp.array([e if e >= 0 else 0.1 * e for e in x.ravel()]).reshape(x.shape)


def selected_by_index(x):
    return jnp.concatenate([x[x >= 0], 0.1 * x[x < 0]]).reshape(x.shape)


def above_one(x):
    return jnp.where(x > 1, x, 0.1 * x)


def with_torch_slope(x):
    return jax.nn.leaky_relu(x)


def first_row(x):
    return jnp.where(x[0] >= 0, x[0], 0.1 * x[0])


def by_maximum(x):
    return jnp.maximum(x, 0.1 * x)


def by_library(x):
    return jax.nn.leaky_relu(x, 0.1)


def in_a_loop_over_rows(x):
    return jnp.stack([jnp.where(row >= 0, row, 0.1 * row) for row in x])


def by_a_mapped_cond(x):
    each = jax.vmap(lambda e: jax.lax.cond(e >= 0, lambda e: e, lambda e: 0.1 * e, e))
    return each(x.ravel()).reshape(x.shape)


def by_a_factor(x):
    return x * jnp.where(x < 0, 0.1, 1)


def divided(v):
    return v / jnp.sqrt(jnp.sum(v**2))


def by_if(v):
    length = jnp.sqrt(jnp.sum(v**2))
    return v / length if length > 0 else jnp.zeros_like(v)


def with_an_epsilon(v):
    return v / jnp.sqrt(jnp.sum(v**2) + 1e-2)


def with_a_tiny_epsilon(v):
    return v / jnp.sqrt(jnp.sum(v**2) + 1e-12)


def each_element_repaired(v):
    length = jnp.linalg.norm(jnp.where(v == 0, 1.0, v))
    return jnp.where(jnp.any(v != 0), v / length, 0.0)


def not_below_a_limit(v):
    return v / jnp.sqrt(jnp.maximum(jnp.sum(v**2), 1e-3))


def with_a_constant_length(v):
    length = jax.lax.stop_gradient(jnp.sqrt(jnp.sum(v**2)))
    return jnp.where(length > 0, v / jnp.where(length > 0, length, 1), 0.0)


def divided_by_its_sum(v):
    return v / jnp.sum(v)


def of_two_elements(v):
    square = v[0] ** 2 + v[1] ** 2
    length = jnp.sqrt(jnp.where(square == 0, 1, square))
    return jnp.where(square == 0, 0, jnp.stack([v[0] / length, v[1] / length]))


def nan_to_num(v):
    return jnp.nan_to_num(v / jnp.linalg.norm(v))


def where_outside(v):
    return jnp.where(jnp.any(v != 0), v / jnp.linalg.norm(v), 0.0)


def at_least_tiny(v):
    return v / jnp.sqrt(jnp.maximum(jnp.sum(v**2), 1e-37))


def ones_for_zeros(v):
    is_zero = jnp.all(v == 0)
    return v / jnp.sqrt(jnp.where(is_zero, 1.0, jnp.sum(v**2)))


def zero_elements_left_out(v):
    square = jnp.sum(v**2)
    return jnp.where(v != 0, v / jnp.sqrt(jnp.where(square > 0, square, 1)), 0.0)


def norm_of_a_safe_vector(v):
    is_zero = jnp.all(v == 0)
    safe = jnp.where(is_zero, jnp.ones_like(v), v)
    return jnp.where(is_zero, 0.0, safe / jnp.linalg.norm(safe))


def unit_by_cond(v):
    return jax.lax.cond(
        jnp.any(v != 0), lambda v: v / jnp.linalg.norm(v), lambda v: jnp.zeros_like(v), v
    )


def by_rsqrt(v):
    square = v @ v
    inverse = jax.lax.rsqrt(jnp.where(square > 0, square, 1))
    return jnp.where(square > 0, v * inverse, jnp.zeros_like(v))


@jax.custom_jvp
def own_derivative(v):
    length = jnp.linalg.norm(v)
    return v / jnp.where(length > 0, length, 1)


@own_derivative.defjvp
def own_jvp(primals, tangents):
    (v,), (t,) = primals, tangents
    length, u = jnp.linalg.norm(v), own_derivative(v)
    return u, jnp.where(length > 0, t - u * (u @ t), 0) / jnp.where(length > 0, length, 1)


def smoothed_from_zero(x, rate):
    def step(value, element):
        value = value + rate * (element - value)
        return value, value

    return jax.lax.scan(step, 0.0, x)[1]


def last_value(x, rate):
    return solutions.smoothed(x, rate)[-1]


def with_the_rate_reversed(x, rate):
    return solutions.smoothed(x, 1 - rate)


def one_step_late(x, rate):
    def step(value, element):
        return value + rate * (element - value), value

    return jax.lax.scan(step, x[0], x)[1]


def from_the_element_before(x, rate):
    return jnp.concatenate([x[:1], x[:-1] + rate * (x[1:] - x[:-1])])


def without_a_difference(x, rate):
    def step(value, element):
        value = value + rate * element
        return value, value

    return jnp.concatenate([x[:1], jax.lax.scan(step, x[0], x[1:])[1]])


def away_from_it(x, rate):
    return solutions.smoothed(x, -rate)


def without_the_first(x, rate):
    return solutions.smoothed(x, rate)[1:]


def at_a_fixed_rate(x, rate):
    return solutions.smoothed(x, 0.25)


def three_steps(x, rate):
    first = x[0]
    second = first + rate * (x[1] - first)
    return jnp.stack([first, second, second + rate * (x[2] - second)])


def unrolled_by_scan(x, rate):
    def step(value, element):
        value = value + rate * (element - value)
        return value, value

    return jax.lax.scan(step, x[0], x, unroll=True)[1]


def jitted_steps(x, rate):
    step = jax.jit(lambda value, element: value + rate * (element - value))
    values = [x[0]]
    for element in x[1:]:
        values.append(step(values[-1], element))
    return jnp.stack(values)


def carry_and_output(x, rate):
    def step(value, element):
        value = value + rate * (element - value)
        return value, value

    return jax.lax.scan(step, x[0], x)


def scanned_from_the_second(x, rate):
    def step(value, element):
        value = (1 - rate) * value + rate * element
        return value, value

    return jnp.append(x[0], jax.lax.scan(step, x[0], x[1:])[1])


def in_a_fori_loop(x, rate):
    def step(i, values):
        return values.at[i].set(values[i - 1] + rate * (x[i] - values[i - 1]))

    return jax.lax.fori_loop(1, len(x), step, x)


def by_associative_scan(x, rate):
    def combine(a, b):
        return a[0] * b[0], a[1] * b[0] + b[1]

    kept = jnp.full_like(x, 1 - rate).at[0].set(0)
    added = (rate * x).at[0].set(x[0])
    return jax.lax.associative_scan(combine, (kept, added))[1]


def by_weights(x, rate):
    steps = jnp.arange(len(x))
    ago = steps[:, None] - steps
    weights = jnp.where(steps > 0, rate, 1.0) * (1 - rate) ** jnp.maximum(ago, 0)
    return jnp.where(ago >= 0, weights, 0) @ x


def in_a_while_loop(x, rate):
    def step(state):
        i, values = state
        return i + 1, values.at[i].set(values[i - 1] + rate * (x[i] - values[i - 1]))

    return jax.lax.while_loop(lambda state: state[0] < x.size, step, (1, x))[1]


def smoothed_by_partial(x, rate):
    def step(rate, value, element):
        return (value := value + rate * (element - value)), value

    return jax.lax.scan(functools.partial(step, rate), x[0], x)[1]


def newton(f, x, tolerance, limit, first=0, always=False):
    def goes_on(state):
        unfinished = jnp.abs(f(state[0])) >= tolerance
        return (always | unfinished) & (state[1] < limit + first)

    def step(state):
        return state[0] - f(state[0]) / jax.grad(f)(state[0]), state[1] + 1

    return jax.lax.while_loop(goes_on, step, (jnp.asarray(x), first))


def to_the_limit(f, x, tolerance, limit):
    return newton(f, x, tolerance, limit, always=True)


def counted_from_one(f, x, tolerance, limit):
    return newton(f, x, tolerance, limit, first=1)


def without_a_limit(f, x, tolerance, limit):
    return newton(f, x, tolerance, 10_000)


def by_while(f, x, tolerance, limit):
    steps = 0
    while abs(f(x)) >= tolerance and steps < limit:
        x, steps = x - f(x) / jax.grad(f)(x), steps + 1
    return x, steps


def checked_at_the_end(f, x, tolerance, limit):
    x = x - f(x) / jax.grad(f)(x)
    x, steps = newton(f, x, tolerance, limit - 1)
    return x, steps + 1


def masked_to_the_limit(f, x, tolerance, limit):
    def step(_, state):
        x, steps = state
        goes_on = jnp.abs(f(x)) >= tolerance
        new = x - f(x) / jax.grad(f)(x)
        return jnp.where(goes_on, new, x), steps + goes_on

    return jax.lax.fori_loop(0, limit, step, (jnp.asarray(x), 0))


def without_absolute(f, x, tolerance, limit):
    def goes_on(state):
        return (f(state[0]) >= tolerance) & (state[1] < limit)

    def step(state):
        return state[0] - f(state[0]) / jax.grad(f)(state[0]), state[1] + 1

    return jax.lax.while_loop(goes_on, step, (jnp.asarray(x), 0))


def by_the_size_of_a_step(f, x, tolerance, limit):
    def goes_on(state):
        return (jnp.abs(state[1]) >= tolerance) & (state[2] < limit)

    def step(state):
        x, _, steps = state
        change = f(x) / jax.grad(f)(x)
        return x - change, change, steps + 1

    x, _, steps = jax.lax.while_loop(goes_on, step, (jnp.asarray(x), jnp.inf, 0))
    return x, steps


def until_it_is_close(f, x, tolerance, limit):
    return newton(f, x, 1e-3, limit)


def either_is_enough(f, x, tolerance, limit):
    def goes_on(state):
        return (jnp.abs(f(state[0])) >= tolerance) | (state[1] < limit)

    def step(state):
        return state[0] - f(state[0]) / jax.grad(f)(state[0]), state[1] + 1

    return jax.lax.while_loop(goes_on, step, (jnp.asarray(x), 0))


def in_the_wrong_direction(f, x, tolerance, limit):
    return newton(lambda x: f(2 - x), x, tolerance, limit)


def to_five(f, x, tolerance, limit):
    return newton(f, x, tolerance, 5)


def always_positive(f, x, tolerance, limit):
    x, steps = newton(f, x, tolerance, limit)
    return jnp.abs(x), steps


def steps_first(f, x, tolerance, limit):
    return newton(f, x, tolerance, limit)[::-1]


def without_steps(f, x, tolerance, limit):
    return newton(f, x, tolerance, limit)[0]


def by_and(f, x, tolerance, limit):
    def goes_on(state):
        return jnp.abs(f(state[0])) >= tolerance and state[1] < limit

    def step(state):
        return state[0] - f(state[0]) / jax.grad(f)(state[0]), state[1] + 1

    return jax.lax.while_loop(goes_on, step, (jnp.asarray(x), 0))


def scanned_to_the_limit(f, x, tolerance, limit):
    def step(state, _):
        x, steps = state
        goes_on = (jnp.abs(f(x)) >= tolerance) & (steps < limit)
        new = x - f(x) / jax.grad(f)(x)
        return (jnp.where(goes_on, new, x), steps + goes_on), None

    return jax.lax.scan(step, (jnp.asarray(x), 0), length=100)[0]


def value_in_the_carry(f, x, tolerance, limit):
    value_and_grad = jax.value_and_grad(f)

    def step(carry):
        x, y, slope, steps = carry
        x = x - y / slope
        return x, *value_and_grad(x), steps + 1

    x = jnp.asarray(x)
    first = (x, *value_and_grad(x), 0)
    last = jax.lax.while_loop(
        lambda c: jnp.logical_and(jnp.abs(c[1]) >= tolerance, c[3] < limit), step, first
    )
    return last[0], last[3]


def as_a_list(f, x, tolerance, limit):
    state = {"x": jnp.asarray(x), "steps": jnp.zeros((), "int32")}

    def step(state):
        change = f(state["x"]) / jax.jacfwd(f)(state["x"])
        return {"x": state["x"] - change, "steps": state["steps"] + 1}

    def goes_on(state):
        return (jnp.abs(f(state["x"])) >= tolerance) & (state["steps"] < limit)

    return list(jax.lax.while_loop(goes_on, step, state).values())[::-1]


@functools.partial(jax.jit, static_argnums=0)
def jitted_root(f, x, tolerance, limit):
    return newton(f, x, tolerance, limit)


def forward_slope(f, x, tolerance, limit):
    def step(state):
        y, slope = jax.jvp(f, (state[0],), (jnp.ones_like(state[0]),))
        return state[0] - y / slope, state[1] + 1

    def goes_on(state):
        return ~((jnp.abs(f(state[0])) < tolerance) | (state[1] >= limit))

    return jax.lax.while_loop(goes_on, step, (jnp.asarray(x), 0))


def masked_in_a_loop_that_ends(f, x, tolerance, limit):
    def step(state):
        x, steps, done = state
        done = (jnp.abs(f(x)) < tolerance) | (steps >= limit)
        new = jax.lax.cond(done, lambda x: x, lambda x: x - f(x) / jax.grad(f)(x), x)
        return new, steps + ~done, done

    return jax.lax.while_loop(lambda s: ~s[2], step, (jnp.asarray(x), 0, False))[:2]


WRONG = [
    (checks.check_leaky, exercises.leaky, "it raises ValueError: The truth value of an array"),
    (checks.check_leaky, by_cond, "it raises TypeError: Pred must be a scalar"),
    (checks.check_leaky, in_a_loop_over_rows, "it raises TypeError: iteration over a 0-d array"),
    (checks.check_leaky, where_any, "since some are positive"),
    (checks.check_leaky, where_all, "since some are negative"),
    (checks.check_leaky, exchanged, "the sides are exchanged"),
    (checks.check_leaky, cut_off, "negative elements become 0"),
    (checks.check_leaky, without_signs, "lose their sign"),
    (checks.check_leaky, a_tenth_itself, "it returns [["),
    (checks.check_leaky, one_by_one, "it raises TracerBoolConversionError"),
    (checks.check_leaky, selected_by_index, "it raises NonConcreteBooleanIndexError"),
    (checks.check_leaky, above_one, "it returns [["),
    (checks.check_leaky, with_torch_slope, "it returns [["),
    (checks.check_leaky, first_row, "become an array of shape (3,)"),
    (checks.check_unit, divided, "for zeros it returns [nan nan]"),
    (checks.check_unit, jax.jit(by_if), "it raises TracerBoolConversionError"),
    (checks.check_unit, with_an_epsilon, "the unit vector of"),
    (checks.check_unit, with_a_tiny_epsilon, "the unit vector of [3e-18, 4e-18]"),
    (checks.check_unit, each_element_repaired, "only a vector of zeros alone"),
    (checks.check_unit, not_below_a_limit, "only a vector of zeros alone"),
    (checks.check_unit, with_a_constant_length, "the derivatives at"),
    (checks.check_unit, exercises.unit, "the value at zeros is right"),
    (checks.check_unit, by_if, "it raises TracerBoolConversionError"),
    (checks.check_unit, divided_by_its_sum, "the unit vector of [3.0, 4.0] is not"),
    (checks.check_unit, of_two_elements, "for [-3.0, 0.0, 4.0] it returns the shape (2,)"),
    (checks.check_unit, nan_to_num, "the derivative is nan"),
    (checks.check_unit, where_outside, "the derivative is nan"),
    (checks.check_unit, at_least_tiny, "not zeros; a step"),
    (checks.check_unit, ones_for_zeros, "not zeros; a step"),
    (checks.check_unit, zero_elements_left_out, "the derivatives at [5. 0.]"),
    (checks.check_smoothed, smoothed_from_zero, "the first value is 0.25"),
    (checks.check_smoothed, last_value, "it has the shape ()"),
    (checks.check_smoothed, with_the_rate_reversed, "the rate belongs to the new element"),
    (checks.check_smoothed, one_step_late, "one step too late"),
    (checks.check_smoothed, from_the_element_before, "starts from the element of `x`"),
    (checks.check_smoothed, without_a_difference, "is to be subtracted"),
    (checks.check_smoothed, away_from_it, "these are steps away from `x`"),
    (checks.check_smoothed, without_the_first, "it has the shape (2,)"),
    (checks.check_smoothed, at_a_fixed_rate, "at a rate of 0.5 it makes"),
    (checks.check_smoothed, three_steps, "at a rate of 0.5 it makes"),
    (checks.check_smoothed, unrolled_by_scan, "lines for 20 steps and"),
    (checks.check_smoothed, jitted_steps, "lines for 20 steps and"),
    (checks.check_smoothed, carry_and_output, "it returns a pair, as"),
    (checks.check_smoothed, exercises.smoothed, "lines for 20 steps and"),
    (checks.check_root, to_the_limit, "it goes on to the limit"),
    (checks.check_root, masked_to_the_limit, "the loop itself has to end"),
    (checks.check_root, counted_from_one, "it says that it took 4 steps"),
    (checks.check_root, without_a_limit, "the limit is 5"),
    (checks.check_root, by_while, "it raises TracerBoolConversionError"),
    (checks.check_root, checked_at_the_end, "although it begins at a root"),
    (checks.check_root, without_absolute, "it stays at 1"),
    (checks.check_root, by_the_size_of_a_step, "it says that it took 4 steps"),
    (checks.check_root, until_it_is_close, "with a tolerance of 0.3"),
    (checks.check_root, either_is_enough, "it goes on to the limit"),
    (checks.check_root, in_the_wrong_direction, "as a root of x² - 2"),
    (checks.check_root, to_five, "the limit is 2"),
    (checks.check_root, always_positive, "for -3 - x one step leads to -3"),
    (checks.check_root, steps_first, "it returns the steps first"),
    (checks.check_root, without_steps, "it is to return two things"),
    (checks.check_root, by_and, "it raises TracerBoolConversionError"),
    (checks.check_root, scanned_to_the_limit, "the loop itself has to end"),
    (checks.check_root, exercises.root, "write `root`; it has no body"),
]

RIGHT = [
    (checks.check_leaky, by_maximum),
    (checks.check_leaky, by_library),
    (checks.check_leaky, by_a_mapped_cond),
    (checks.check_leaky, jax.jit(by_a_factor)),
    (checks.check_unit, norm_of_a_safe_vector),
    (checks.check_unit, unit_by_cond),
    (checks.check_unit, by_rsqrt),
    (checks.check_unit, own_derivative),
    (checks.check_smoothed, scanned_from_the_second),
    (checks.check_smoothed, in_a_fori_loop),
    (checks.check_smoothed, by_associative_scan),
    (checks.check_smoothed, by_weights),
    (checks.check_smoothed, in_a_while_loop),
    (checks.check_smoothed, smoothed_by_partial),
    (checks.check_root, value_in_the_carry),
    (checks.check_root, as_a_list),
    (checks.check_root, jitted_root),
    (checks.check_root, forward_slope),
    (checks.check_root, masked_in_a_loop_that_ends),
]


@pytest.mark.parametrize(("check", "answer", "said"), WRONG)
def test_a_wrong_answer_is_told_what_is_wrong(check, answer, said):
    assert said in problem_of(check, answer)


@pytest.mark.parametrize(("check", "answer"), RIGHT)
def test_a_right_answer_written_otherwise_passes(check, answer):
    assert problem_of(check, answer) is None
