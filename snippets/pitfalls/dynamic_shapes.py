"""Results whose shape depends on values, and the alternatives."""

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
import torch

EXPECTED_ERRORS = {
    "negatives_jitted": (
        jax.errors.NonConcreteBooleanIndexError,
        "Array boolean indices must be concrete",
    ),
    "positions_jitted": (
        jax.errors.ConcretizationTypeError,
        "size argument of jnp.nonzero",
    ),
    "distinct_jitted": (
        jax.errors.ConcretizationTypeError,
        "the first argument of jnp.unique()",
    ),
    "first_jitted": (IndexError, "Got slice(None"),
    "count_up_jitted": (
        jax.errors.ConcretizationTypeError,
        "jnp.arange argument 'stop'",
    ),
}

TRACED_LENGTHS = []


def negatives(x):
    """Return the negative elements of a vector."""
    return x[x < 0]


@jax.jit
def negatives_jitted(x):
    """Return the negatives of x; raises NonConcreteBooleanIndexError."""
    return x[x < 0]


@jax.jit
def positions_jitted(x):
    """Return where a vector is negative; raises ConcretizationTypeError."""
    return jnp.nonzero(x < 0)


@jax.jit
def distinct_jitted(x):
    """Return the distinct elements; raises ConcretizationTypeError."""
    return jnp.unique(x)


@jax.jit
def first_jitted(x, n):
    """Return the first `n` elements."""
    return x[:n]


@jax.jit
def count_up_jitted(n):
    """Return 0, 1, ... n - 1; raises ConcretizationTypeError."""
    return jnp.arange(n)


@tf.function
def negatives_tensorflow(x):
    """Return the negative elements of a TensorFlow vector."""
    return x[x < 0]


@torch.compile(backend="eager")
def negatives_torch(x):
    """Return the negative elements of a PyTorch vector."""
    return x[x < 0]


def name_of_caught(function, *args):
    """Catch any error under the name of a type; return its real type."""
    try:
        return function(*args)
    except Exception as NonConcreteBooleanIndexError:
        return type(NonConcreteBooleanIndexError).__name__


@jax.jit
def keep_negatives(x):
    """Return `x` with zero instead of every element that is not negative."""
    return jnp.where(x < 0, x, 0)


@jax.jit
def sum_negatives(x):
    """Return the sum of the negative elements."""
    return jnp.sum(x, where=x < 0)


@jax.jit
def mean_negatives(x):
    """Return the mean of the negative elements, nan where there are none."""
    return jnp.mean(x, where=x < 0)


@jax.jit
def largest_negative(x):
    """Return the largest negative element, -inf where there are none."""
    return jnp.max(x, where=x < 0, initial=-jnp.inf)


@jax.jit(static_argnames="size")
def negatives_padded(x, size):
    """Return `size` negative elements, padded with nan, and how many exist."""
    negative = x < 0
    (positions,) = jnp.nonzero(negative, size=size, fill_value=x.shape[0])
    values = x.at[positions].get(mode="fill", fill_value=jnp.nan)
    return values, negative.sum()


@jax.jit(static_argnames="length")
def window(x, start, length):
    """Return `length` elements from `start` on; `start` may be traced."""
    return x[jax.ds(start, length)]


@jax.jit(static_argnames="n")
def first(x, n):
    """Return the first `n` elements, compiled again for every `n`."""
    return x[:n]


def padded(x, length):
    """Pad x (n, ...) with zeros to `length`; return it and a mask."""
    missing = length - len(x)
    rows = np.pad(x, [(0, missing)] + [(0, 0)] * (x.ndim - 1))
    return rows, np.arange(length) < len(x)


def bucket(n):
    """Return the smallest power of two that is at least `n`; 1 for 0."""
    return 1 << max(n - 1, 0).bit_length()


@jax.jit
def padded_root_mean_square(x, real):
    """Return the root mean square of real elements; record the length."""
    TRACED_LENGTHS.append(x.shape[0])
    return jnp.sqrt(jnp.mean(x**2, where=real))


def rms_of_negatives_in_buckets(x):
    """Pad the negative elements to a power of two before they enter jit."""
    chosen = np.asarray(negatives(x))
    return padded_root_mean_square(*padded(chosen, bucket(len(chosen))))


@jax.jit
def mean_of_rows(rows, real):
    """Return the mean of those `rows` (n, ...) where `real` (n,) is true."""
    TRACED_LENGTHS.append(rows.shape[0])
    return jnp.mean(rows, axis=0, where=real[:, None])
