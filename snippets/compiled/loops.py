"""A scan and a gradient, to be compiled."""

import jax
import jax.numpy as jnp

COMPILED = {
    "running_average": ["float32[1000,256]"],
    "gradient": ["float32[512,512]", "float32[1024,512]", "float32[1024,512]"],
}


def running_average(x):
    """Return the running averages of the rows of `x`, (n, m).

    Each is 0.9 times the one before plus 0.1 times the row; the first is zero.
    """

    def step(average, row):
        average = 0.9 * average + 0.1 * row
        return average, average

    return jax.lax.scan(step, jnp.zeros(x.shape[1:]), x)[1]


def squared_error(weights, x, y):
    """Return the mean of (tanh(x @ weights) - y)**2 over all of `y`."""
    return jnp.mean((jnp.tanh(x @ weights) - y) ** 2)


def gradient(weights, x, y):
    """Return the gradient of the squared error with respect to the weights."""
    return jax.grad(squared_error)(weights, x, y)
