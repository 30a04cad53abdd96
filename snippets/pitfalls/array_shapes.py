"""JAX arrays used as shapes, and the shapes that are known without them."""

import math

import jax
import jax.numpy as jnp
import numpy as np

EXPECTED_ERRORS = {
    "flatten_by_jnp": (
        TypeError,
        "Shapes must be 1D sequences of concrete values",
    ),
    "flatten_by_np_prod_of_jnp": (
        TypeError,
        "Shapes must be 1D sequences of concrete values",
    ),
    "flatten_by_np_prod": (
        TypeError,
        "Shapes must be 1D sequences of concrete values",
    ),
    "zeros_traced": (
        TypeError,
        "Shapes must be 1D sequences of concrete values",
    ),
    "one_hot_of_data": (jax.errors.ConcretizationTypeError, "num_classes"),
}


@jax.jit
def flatten_by_jnp(x):
    """Return `x` as a vector, its length computed by JAX; raises TypeError."""
    return x.reshape(jnp.array(x.shape).prod())


@jax.jit
def flatten_by_np_prod_of_jnp(x):
    """Return `x` as a vector, its length by np.prod of a JAX array."""
    return x.reshape(np.prod(jnp.array(x.shape)))


@jax.jit
def flatten_by_np_prod(x):
    """Return `x` as a vector, its length computed by NumPy."""
    return x.reshape(np.prod(x.shape))


@jax.jit
def flatten_by_math_prod(x):
    """Return `x` as a vector, its length computed by Python."""
    return x.reshape(math.prod(x.shape))


@jax.jit
def flatten_by_size(x):
    """Return `x` as a vector of `x.size` elements."""
    return x.reshape(x.size)


@jax.jit
def flatten(x):
    """Return `x` as a vector, its length left to reshape."""
    return x.reshape(-1)


@jax.jit
def flatten_rows(x):
    """Return `x` (rows, ...) as (rows, features), also for no rows."""
    return x.reshape(x.shape[0], math.prod(x.shape[1:]))


@jax.jit
def zeros_traced(n):
    """Return `n` zeros; raises TypeError."""
    return jnp.zeros(n)


@jax.jit(static_argnames="n")
def zeros(n):
    """Return `n` zeros, compiled for each `n`."""
    return jnp.zeros(n)


@jax.jit
def zeros_for(template):
    """Return as many zeros as `template` has elements along its first axis."""
    return jnp.zeros(template.shape[0])


@jax.jit
def one_hot_of_data(labels):
    """Count the classes in the data; raises ConcretizationTypeError."""
    return jax.nn.one_hot(labels, labels.max() + 1)


@jax.jit(static_argnames="classes")
def one_hot(labels, classes):
    """Return labels (n,) as rows (n, classes) with a single 1."""
    return jax.nn.one_hot(labels, classes)
