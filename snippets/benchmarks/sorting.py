"""Sorting, running sums, indexing and scatter, in four frameworks."""

import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
import torch

SIZES = (1_000, 30_000, 300_000)
GROUPS = 100

IN_JAX = {
    "gather": lambda x, index: x[index],
    "scatter": lambda x, index: jnp.zeros_like(x).at[index].add(x),
    "cumsum": lambda x, index: jnp.cumsum(x),
    "sort": lambda x, index: jnp.sort(x),
}

IN_TORCH = {
    "gather": lambda x, index: x[index],
    "scatter": lambda x, index: torch.zeros_like(x).index_add_(0, index, x),
    "cumsum": lambda x, index: torch.cumsum(x, 0),
    "sort": lambda x, index: torch.sort(x).values,
}

IN_TENSORFLOW = {
    "gather": lambda x, index: tf.gather(x, index),
    "scatter": lambda x, index: tf.tensor_scatter_nd_add(
        tf.zeros_like(x), index[:, None], x
    ),
    "cumsum": lambda x, index: tf.cumsum(x),
    "sort": lambda x, index: tf.sort(x),
}


def add_at(x, index):
    """Return zeros, shape (n,), with each `x[i]` added at `index[i]`."""
    result = np.zeros_like(x)
    np.add.at(result, index, x)
    return result


IN_NUMPY = {
    "gather": lambda x, index: x[index],
    "scatter": add_at,
    "cumsum": lambda x, index: np.cumsum(x),
    "sort": lambda x, index: np.sort(x),
}


def draw(size):
    """Return float32 numbers and int32 indices, both of shape (size,)."""
    random = np.random.default_rng(0)
    x = random.standard_normal(size, dtype=np.float32)
    return x, random.integers(0, size, size, dtype=np.int32)


def with_long_index(convert):
    """Return how a framework takes both arrays, with indices of 64 bits."""
    return lambda x, index: (convert(x), convert(index.astype(np.int64)))


def contenders(teams, size):
    """Return {operation: what to compare}, on the same data.

    A team is a dictionary of operations, functions of two arrays, with how
    the arrays are converted from NumPy and the name of the framework.
    """
    races = {}
    for operations, take, framework in teams:
        arrays = take(*draw(size))
        for name, function in operations.items():
            race = races.setdefault(name, {})
            race[framework] = functools.partial(function, *arrays)
    return races


def compiled_text(function, *arrays):
    """Return the program that XLA made of a function for these arguments."""
    return jax.jit(function).lower(*arrays).compile().as_text()


def comparison_steps(text):
    """Count the instructions with which a sort compares two elements.

    Parameters and constants do not count. Zero where the program leaves
    sorting to a library.
    """
    found = re.search(r" sort\(.*to_apply=%?([\w.-]+)", text)
    if not found:
        return 0
    body = re.search(
        rf"^%?{re.escape(found[1])} .*?^}}", text, re.MULTILINE | re.DOTALL
    )
    names = re.findall(r"= \S+ ([a-z-]+)\(", body[0])
    return sum(name not in ("parameter", "constant") for name in names)


def count(text, instruction):
    """Count how often an instruction occurs in a compiled program."""
    return len(re.findall(rf" {instruction}\(", text))


def additions(function, x):
    """Return XLA's count of operations per element of `x`, shape (n,)."""
    cost = jax.jit(function).lower(x).compile().cost_analysis()
    return round(cost["flops"] / x.size, 1)


def as_ordered_integers(x):
    """Return int32 numbers in the order of `x`, without NaN.

    `x` is float32 of any shape. Of a negative number all bits but the sign
    are inverted.
    """
    bits = jax.lax.bitcast_convert_type(x, jnp.int32)
    return jnp.where(bits < 0, bits ^ 0x7FFFFFFF, bits)


def sort_as_integers(x):
    """Return `x`, float32 (n,) without NaN, sorted as integers."""
    bits = jnp.sort(as_ordered_integers(x))
    bits = jnp.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
    return jax.lax.bitcast_convert_type(bits, jnp.float32)


def sort_in_numpy(x):
    """Return a JAX array sorted by NumPy, on the host, outside `jit`.

    A copy of `x` goes there, because JAX caches what it brought to the
    host.
    """
    return jnp.asarray(np.sort(np.asarray(jnp.copy(x))))


def largest(x):
    """Return the hundred largest of `x`, shape (n,), in descending order."""
    return jax.lax.top_k(x, 100)[0]


def scan_sum(x, unroll=1):
    """Return the running sums of `x`, shape (n,), one by one."""

    def add(total, value):
        total = total + value
        return total, total

    return jax.lax.scan(add, jnp.zeros((), x.dtype), x, unroll=unroll)[1]


def tree_sum(x):
    """Return the running sums of `x`, shape (n,), from sums of pairs."""
    return jax.lax.associative_scan(jnp.add, x)


def count_by_comparing(groups):
    """Return how often each integer below 100 occurs in `groups` (n,)."""
    return (groups[:, None] == jnp.arange(GROUPS)).sum(axis=0)


def count_by_bincount(groups):
    """Return how often each integer below 100 occurs in `groups` (n,)."""
    return jnp.bincount(groups, length=GROUPS)
