"""Lesson 5, control flow: four exercises."""

import jax
import jax.numpy as jnp


@jax.jit
def leaky(x):
    """Return `x`, of any shape, and a tenth of it where it is negative."""
    return x if x >= 0 else 0.1 * x


@jax.jit
def unit(v):
    """Return `v` (n,) divided by its length, and zeros for a `v` of zeros.

    At zeros, its derivatives are zeros as well. A length is zero, or at least
    1e-18: below, its square underflows.
    """
    length = jnp.sqrt(jnp.sum(v**2))
    return jnp.where(length > 0, v / length, 0.0)


@jax.jit
def smoothed(x, rate):
    """Return the smoothed values of a series `x` (steps,).

    The first is the first of `x`. Each that follows is the one before it,
    plus `rate` times the distance from there to its own element of `x`.
    """
    values = [x[0]]
    for step in range(1, len(x)):
        values.append(values[-1] + rate * (x[step] - values[-1]))
    return jnp.stack(values)


def root(f, x, tolerance, limit):
    """Return a root of `f` by Newton's method from `x`, and the steps taken.

    A step replaces x by x - f(x) / f'(x). It stops when the absolute value of
    f(x) is below `tolerance`, or after `limit` steps. It works under `jit`,
    for traced `x`, `tolerance` and `limit`.
    """
    raise NotImplementedError
