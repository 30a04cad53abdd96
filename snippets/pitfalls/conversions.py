"""Traced arrays as numbers, keys and conditions, and the alternatives."""

import math

import jax
import jax.numpy as jnp
import numpy as np

EXPECTED_ERRORS = {
    "whole_minutes_by_int": (
        jax.errors.ConcretizationTypeError,
        "Abstract tracer value encountered",
    ),
    "norm_by_math": (
        jax.errors.ConcretizationTypeError,
        "Abstract tracer value encountered",
    ),
    "extremes_by_numpy": (
        ValueError,
        "setting an array element with a sequence",
    ),
    "rate_from_list": (
        jax.errors.TracerIntegerConversionError,
        "__index__() method was called",
    ),
    "report_by_format": (TypeError, "unsupported format string passed to"),
    "name_by_array": (TypeError, "unhashable type"),
    "penalty_by_if": (
        ValueError,
        "The truth value of an array with more than one element is ambiguous",
    ),
}

RATES = [0.05, 0.1, 0.2]
NAMES = {0: "cat", 1: "dog", 2: "bird"}


@jax.jit
def whole_minutes_by_int(seconds):
    """Return the full minutes in `seconds`; raises ConcretizationTypeError."""
    return int(seconds / 60)


@jax.jit
def whole_minutes(seconds):
    """Return the full minutes in `seconds` as int32, in its shape."""
    return (seconds / 60).astype(jnp.int32)


def square_by_item(x):
    """Return x² of a float32 x (), with one factor as a Python number."""
    return x * x.item()


@jax.jit
def norm_by_math(x):
    """Return the norm of a vector; raises ConcretizationTypeError."""
    return math.sqrt(jnp.sum(x * x))


@jax.jit
def extremes_by_numpy(x):
    """Write minimum and maximum into a NumPy array; raises ValueError."""
    result = np.zeros(2)
    result[0], result[1] = x.min(), x.max()
    return result


@jax.jit
def extremes(x):
    """Return minimum and maximum of `x` as a vector (2,)."""
    return jnp.stack([x.min(), x.max()])


@jax.jit
def rate_from_list(bracket):
    """Look `bracket` up in a list; raises TracerIntegerConversionError."""
    return RATES[bracket]


@jax.jit
def rate(bracket):
    """Return the rate of a bracket, an integer from 0 to 2."""
    return jnp.asarray(RATES)[bracket]


@jax.jit
def report_by_format(x):
    """Print the sum of `x` by an f-string; raises TypeError."""
    print(f"the sum is {jnp.sum(x):.2f}")


def name_by_array(scores):
    """Use an array as a key of a dictionary; raises TypeError."""
    return NAMES[jnp.argmax(scores)]


@jax.jit
def penalty_by_if(x, target):
    """Return 0 if x equals the target, else 1; raises ValueError."""
    return 0.0 if x == target else 1.0


def same_leaves(one, other):
    """Return whether two pytrees of one structure hold equal arrays."""
    return jax.tree.all(jax.tree.map(jnp.array_equal, one, other))


def half_by_isinstance(x):
    """Return x / 2 for a float, and x // 2 for anything else."""
    return x / 2 if isinstance(x, float) else x // 2


def half(x):
    """Return x / 2 for a floating-point dtype, else x // 2."""
    floating = jnp.issubdtype(jnp.result_type(x), jnp.floating)
    return x / 2 if floating else x // 2
