"""Lesson 3, jit and tracing: solutions."""

import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def centred(x):
    """Return `x` (n,) minus its mean."""
    return x - jnp.mean(x)


@jax.jit(static_argnames="kind")
def limited(x, kind, limit):
    """Return the activation of `x`, by `kind` "relu" or "tanh", up to `limit`.

    Elements above `limit` are replaced by it.
    """
    y = jax.nn.relu(x) if kind == "relu" else jnp.tanh(x)
    return jnp.minimum(y, limit)


@jax.jit
def step(x, rate):
    """Return x - rate * tanh(x)."""
    return x - rate * jnp.tanh(x)


def descend(x, rate, steps):
    """Return `x` after `steps` of x - rate * tanh(x)."""
    for _ in range(steps):
        x = step(x, rate)
    return x


@jax.jit
def summed_error(params, x, y, is_row):
    """Return the sum of the squared errors over the rows that are rows."""
    error = x @ params["w"] + params["b"] - y
    return jnp.sum(error**2, where=is_row)


def evaluate(params, x, y, size):
    """Return the mean squared error of x @ w + b, in batches of `size` rows.

    x is (rows, n), y (rows,), and `params` a dictionary of w (n,) and b ().
    """
    missing = -len(x) % size
    padded_x = np.pad(x, ((0, missing), (0, 0)))
    padded_y = np.pad(y, (0, missing))
    is_row = np.arange(len(padded_x)) < len(x)
    total = 0.0
    for start in range(0, len(padded_x), size):
        rows = slice(start, start + size)
        total += summed_error(
            params, padded_x[rows], padded_y[rows], is_row[rows]
        )
    return total / len(x)
