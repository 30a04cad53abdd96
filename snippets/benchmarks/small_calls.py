"""What a call costs, on arrays so small that the work does not count."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
import torch

SIZES = (4, 1_000, 30_000)


def cosine_torch(x):
    """Return the cosine of a PyTorch tensor of any shape, in radians."""
    return torch.cos(x)


def numbers(size):
    """Return a float32 NumPy array of shape (size,), evenly spaced from 0 to 1."""
    return np.linspace(0, 1, size, dtype=np.float32)


def add_up(*arrays):
    """Return 1 plus the sum of arrays of equal shape, of any framework."""
    return sum(arrays, start=1.0)


def add_up_leaves(tree):
    """Return 1 plus the sum of the arrays in a pytree, all of equal shape."""
    return add_up(*jax.tree.leaves(tree))


def add_up_rows(rows):
    """Return 1 plus the sum of the rows of one array, (count, size)."""
    return 1.0 + rows.sum(axis=0)


def nested(x, count):
    """Return a dictionary of dictionaries that holds `x` so many times."""
    return {f"layer_{i}": {"weight": x} for i in range(count)}


def scale(x, factor):
    """Return `x`, of any shape, times a factor."""
    return x * factor


class Scaler:
    """Multiplies arrays by a factor, which is fixed when `jit` traces its method."""

    def __init__(self, factor):
        """Keep the factor, a Python number."""
        self.factor = factor

    @jax.jit(static_argnames="self")
    def scale(self, x):
        """Return `x`, of any shape, times the factor."""
        return x * self.factor


def in_a_row(function, x, times=100):
    """Call a function so many times, each time with the result before."""
    for _ in range(times):
        x = function(x)
    return x


@jax.jit
def in_one_call(x):
    """Take the cosine of `x`, of any shape, a hundred times in one program."""
    return jax.lax.fori_loop(0, 100, lambda _, x: jnp.cos(x), x)


@tf.function
def in_one_graph(x):
    """Take the cosine of `x`, of any shape, a hundred times in one graph."""
    return tf.while_loop(
        lambda i, x: i < 100, lambda i, x: (i + 1, tf.cos(x)), [tf.constant(0), x]
    )[1]


def one_by_one(function, rows):
    """Return a list of what a function makes of each of several arrays."""
    return [function(row) for row in rows]


def call_share(seconds):
    """Return which share of its time each size spends on the call, at most 1.

    `seconds` maps sizes to the time of a call; the smallest is taken to be all call.
    """
    call = seconds[min(seconds)]
    return {size: min(1.0, call / time) for size, time in sorted(seconds.items())}


def size_of_share(shares, share):
    """Return the size at which the call takes only `share` of the time, or None.

    Between the sizes that were measured, shares are interpolated; both scales are
    logarithmic.
    """
    for (small, high), (large, low) in itertools.pairwise(shares.items()):
        if high > share >= low:
            way = math.log(high / share) / math.log(high / low)
            return round(small * (large / small) ** way)
    return None
