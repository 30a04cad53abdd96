"""Lesson 3, jit and tracing: four exercises."""

import jax
import jax.numpy as jnp


@jax.jit
def centred(x):
    """Return `x` (n,) minus its mean."""
    return x - float(jnp.mean(x))


@jax.jit
def limited(x, kind, limit):
    """Return the activation of `x`, by `kind` "relu" or "tanh", up to `limit`.

    Elements above `limit` are replaced by it.
    """
    y = jax.nn.relu(x) if kind == "relu" else jnp.tanh(x)
    if y.max() > limit:
        y = jnp.minimum(y, limit)
    return y


def descend(x, rate, steps):
    """Return `x` after `steps` of x - rate * tanh(x)."""
    for _ in range(steps):
        x = jax.jit(lambda x: x - rate * jnp.tanh(x))(x)
    return x


@jax.jit
def summed_error(params, x, y):
    """Return the sum of the squared errors of x @ w + b over all rows."""
    error = x @ params["w"] + params["b"] - y
    return jnp.sum(error**2)


def evaluate(params, x, y, size):
    """Return the mean squared error of x @ w + b, in batches of `size` rows.

    x is (rows, n), y (rows,), and `params` a dictionary of w (n,) and b ().
    """
    total = 0.0
    for start in range(0, len(x), size):
        end = start + size
        total += summed_error(params, x[start:end], y[start:end])
    return total / len(x)
