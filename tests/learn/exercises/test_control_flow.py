"""Wrong answers to the exercises on control flow, and what is said of them."""

import jax
import jax.numpy as jnp
import pytest

from snippets.learn.checks import control_flow as checks
from snippets.learn.exercises import control_flow as exercises
from snippets.learn.solutions import control_flow as solutions
from snippets.programs.practice import problem_of


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


def smoothed_from_zero(x, rate):
    def step(value, element):
        value = value + rate * (element - value)
        return value, value

    return jax.lax.scan(step, 0.0, x)[1]


def last_value(x, rate):
    return solutions.smoothed(x, rate)[-1]


def with_the_rate_reversed(x, rate):
    return solutions.smoothed(x, 1.25 - rate)


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


WRONG = [
    (checks.check_unit, divided, "for zeros it returns [nan nan]"),
    (checks.check_unit, jax.jit(by_if), "it raises TracerBoolConversionError"),
    (checks.check_unit, with_an_epsilon, "the unit vector of"),
    (checks.check_unit, with_a_tiny_epsilon, "the unit vector of [3e-18, 4e-18]"),
    (checks.check_unit, each_element_repaired, "only a vector of zeros alone"),
    (checks.check_unit, not_below_a_limit, "only a vector of zeros alone"),
    (checks.check_unit, with_a_constant_length, "the derivatives at"),
    (checks.check_unit, exercises.unit, "the value at zeros is right"),
    (checks.check_smoothed, smoothed_from_zero, "the first value is 0.5"),
    (checks.check_smoothed, last_value, "it has the shape ()"),
    (checks.check_smoothed, with_the_rate_reversed, "not [1. 2. 2.5]"),
    (checks.check_smoothed, exercises.smoothed, "lines for 10 steps and"),
    (checks.check_root, to_the_limit, "it goes on to the limit"),
    (checks.check_root, masked_to_the_limit, "the loop itself has to end"),
    (checks.check_root, counted_from_one, "it says that it took 4 steps"),
    (checks.check_root, without_a_limit, "the limit is 5"),
    (checks.check_root, by_while, "it raises TracerBoolConversionError"),
    (checks.check_root, checked_at_the_end, "although it begins at a root"),
]


@pytest.mark.parametrize(("check", "answer", "said"), WRONG)
def test_a_wrong_answer_is_told_what_is_wrong(check, answer, said):
    assert said in problem_of(check, answer)
