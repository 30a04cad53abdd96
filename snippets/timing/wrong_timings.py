"""Timings that mislead, each with the one that does not."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from snippets.timing.timer import measure, no_wait


def random_square(n, dtype):
    """Return a NumPy array of shape (n, n) and of `dtype`, standard normal."""
    return np.random.default_rng(0).standard_normal((n, n)).astype(dtype)


def smooth(x):
    """Return 1 / (1 + exp(-x)) for `x` of any shape."""
    return 1 / (1 + jnp.exp(-x))


def unblocked(x):
    """Measure a product of `x`, of shape (n, n), without waiting and with it."""
    jnp.dot(x, x).block_until_ready()
    measure("gallery/unblocked", jnp.dot, x, x, wait=no_wait, calls=1)
    measure("gallery/blocked", jnp.dot, x, x)


def with_first_call(x, calls=10):
    """Measure `calls` calls together, once with the compiling call among them."""

    def from_the_start():
        fresh = jax.jit(lambda x: smooth(x))
        for _ in range(calls):
            fresh(x).block_until_ready()

    def in_steady_state():
        for _ in range(calls):
            compiled(x).block_until_ready()

    compiled = jax.jit(smooth)
    measure("gallery/first_call_included", from_the_start, framework="jax", inputs=[x])
    measure("gallery/first_call_apart", in_steady_state, framework="jax", inputs=[x])


def two_precisions(n):
    """Measure a product of shape (n, n) in NumPy's default dtype and in JAX's.

    JAX computes it on the CPU, as NumPy does, whatever its default device is.
    """
    double = random_square(n, np.float64)
    single = random_square(n, np.float32)
    measure("gallery/float64", np.dot, double, double)
    measure("gallery/float32", np.dot, single, single)
    in_jax = jax.device_put(double, jax.devices("cpu")[0])
    measure("gallery/float32", jnp.dot, in_jax, in_jax)


def result_dtypes(n):
    """Return the dtypes of the products of one float64 NumPy array, of shape (n, n)."""
    x = random_square(n, np.float64)
    return {"NumPy": np.dot(x, x).dtype, "JAX": jnp.dot(x, x).dtype}


def with_conversion(n):
    """Measure a compiled function on a NumPy array and on a JAX array, (n, n)."""
    on_host = random_square(n, np.float64)
    on_device = jnp.asarray(on_host)
    compiled = jax.jit(smooth)
    measure("gallery/converted_each_call", compiled, on_host)
    measure("gallery/converted_before", compiled, on_device)


def jit_once(x):
    """Measure a function that was compiled before the loop."""
    measure("gallery/jit_once", jax.jit(smooth), x)


def jit_in_the_loop(x):
    """Measure three ways to call `jax.jit` again in every turn of the loop."""
    measure("gallery/jit_same_function", lambda x: jax.jit(smooth)(x), x)
    measure("gallery/jit_new_lambda", lambda x: jax.jit(lambda y: smooth(y))(x), x)
    measure("gallery/jit_new_partial", lambda x: jax.jit(partial(smooth))(x), x)


WRAPPERS = {
    "jax.jit(f)": jax.jit,
    "jax.jit(lambda y: f(y))": lambda f: jax.jit(lambda y: f(y)),
    "jax.jit(partial(f))": lambda f: jax.jit(partial(f)),
}


def traces(wrap, calls=5):
    """Count the traces of a function when `wrap(function)(1.0)` runs `calls` times."""
    count = 0

    def function(x):
        nonlocal count
        count += 1
        return smooth(x)

    for _ in range(calls):
        wrap(function)(1.0)
    return count
