"""Lesson 5, control flow: solutions."""

import jax
import jax.numpy as jnp


@jax.jit
def leaky(x):
    """Return `x`, of any shape, and a tenth of it where it is negative."""
    return jnp.where(x >= 0, x, 0.1 * x)


@jax.jit
def unit(v):
    """Return `v` (n,) divided by its length, and zeros for a `v` of zeros.

    At zeros, its derivatives are zeros as well. A length is zero, or at least
    1e-18: below, its square underflows.
    """
    square = jnp.sum(v**2)
    is_zero = square == 0
    length = jnp.sqrt(jnp.where(is_zero, 1.0, square))
    return jnp.where(is_zero, 0.0, v / length)


@jax.jit
def smoothed(x, rate):
    """Return the smoothed values of a series `x` (steps,).

    The first is the first of `x`. Each that follows is the one before it,
    plus `rate` times the distance from there to its own element of `x`.
    """

    def step(value, element):
        value = value + rate * (element - value)
        return value, value

    return jax.lax.scan(step, x[0], x)[1]


def root(f, x, tolerance, limit):
    """Return a root of `f` by Newton's method from `x`, and the steps taken.

    A step replaces x by x - f(x) / f'(x). It stops when the absolute value of
    f(x) is below `tolerance`, or after `limit` steps. It works under `jit`,
    for traced `x`, `tolerance` and `limit`.
    """

    def goes_on(state):
        x, steps = state
        return (jnp.abs(f(x)) >= tolerance) & (steps < limit)

    def step(state):
        x, steps = state
        return x - f(x) / jax.grad(f)(x), steps + 1

    return jax.lax.while_loop(goes_on, step, (jnp.asarray(x), 0))
