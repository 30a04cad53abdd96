"""What is timed, wrongly and rightly, on the page of timings that mislead."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np


def random_square(n, dtype):
    """Return a NumPy array of shape (n, n) and of `dtype`, standard normal."""
    return np.random.default_rng(0).standard_normal((n, n)).astype(dtype)


def smooth(x):
    """Return 1 / (1 + exp(-x)) for `x` of any shape."""
    return 1 / (1 + jnp.exp(-x))


def ten_calls(function, x):
    """Call `function(x)`, any shape, ten times; wait for each result."""
    for _ in range(10):
        result = jax.block_until_ready(function(x))
    return result


def result_dtypes(n):
    """Return the dtypes of a float64 NumPy array (n, n) times itself."""
    x = random_square(n, np.float64)
    return {"NumPy": np.dot(x, x).dtype, "JAX": jnp.dot(x, x).dtype}


WRAPPERS = {
    "jax.jit(f)": jax.jit,
    "jax.jit(lambda y: f(y))": lambda f: jax.jit(lambda y: f(y)),
    "jax.jit(partial(f))": lambda f: jax.jit(partial(f)),
}


def traces(wrap, calls=5):
    """Count the traces when `wrap(function)(1.0)` runs `calls` times."""
    traced = []

    def function(x):
        traced.append(x)
        return smooth(x)

    for _ in range(calls):
        wrap(function)(1.0)
    return len(traced)
