"""Immutable arrays, their dtypes, and pure functions."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
import torch
from jax.experimental import checkify

EXPECTED_ERRORS = {
    "write_in_place": (TypeError, "JAX arrays are immutable"),
    "write_in_place_tensorflow": (
        TypeError,
        "does not support item assignment",
    ),
    "write_into_numpy_view": (ValueError, "read-only"),
    "overwrite_needed_value_torch": (
        RuntimeError,
        "modified by an inplace operation",
    ),
    "read_checked": (checkify.JaxRuntimeError, "out-of-bounds indexing"),
    "donate_twice": (jax.errors.JaxRuntimeError, "Attempt to donate"),
    "call_with_ref_twice": (
        ValueError,
        "only one reference to a mutable array may be passed as an argument",
    ),
    "write_integer": (
        ValueError,
        "Ref dtype: float32. Value dtype: int32",
    ),
    "add_rows_to_ref": (
        Exception,
        "performing a set/swap operation with vmapped value on an unbatched",
    ),
}


def write_in_place(x):
    """Try to change the first element; raises TypeError for a JAX array."""
    x[0] = 1
    return x


def write_in_place_torch(x):
    """Change the first element of a torch tensor, also for the caller."""
    x[0] = 1
    return x


def write_in_place_tensorflow(x):
    """Try to change the first element; raises TypeError for a tf.Tensor."""
    x[0] = 1
    return x


def write_into_numpy_view(x):
    """Try to change a JAX array through its NumPy view; raises ValueError."""
    view = np.asarray(x)
    view[0] = 1
    return view


def set_first(x, value):
    """Return a copy of `x` whose first element is `value`."""
    return x.at[0].set(value)


def set_first_tensorflow(x, value):
    """Return a copy of a TensorFlow vector whose first element is `value`."""
    return tf.tensor_scatter_nd_update(x, [[0]], [value])


def assign_first_tensorflow(variable, value):
    """Change the first element of a `tf.Variable` where it is."""
    variable[0].assign(value)
    return variable


def centre(x):
    """Subtract the mean of `x`."""
    x -= x.mean()
    return x


def update_methods(x, i):
    """Return what each update of element `i` makes of `x`."""
    return {
        "set": x.at[i].set(10),
        "add": x.at[i].add(10),
        "subtract": x.at[i].subtract(10),
        "multiply": x.at[i].multiply(10),
        "divide": x.at[i].divide(10),
        "power": x.at[i].power(2),
        "min": x.at[i].min(0),
        "max": x.at[i].max(10),
        "apply": x.at[i].apply(jnp.sqrt),
    }


@jax.jit
def zero_negatives_where(x):
    """Return `x` with every negative element set to zero, also under jit."""
    return jnp.where(x < 0, 0, x)


def count_bins(bins, length):
    """Count how often each of 0 to length - 1 occurs in `bins`."""
    return jnp.zeros(length, jnp.int32).at[bins].add(1)


def count_bins_numpy(bins, length):
    """Count with `+=`, which loses all but one of several equal indices."""
    counts = np.zeros(length, np.int32)
    counts[bins] += 1
    return counts


def read_at(x, i):
    """Read element `i` in each mode for an index out of bounds."""
    return {
        "x[i]": x[i],
        "clip": x.at[i].get(mode="clip"),
        "fill": x.at[i].get(mode="fill", fill_value=-1),
        "jnp.take": jnp.take(x, i),
    }


def write_at(x, i):
    """Write to element `i` in two modes for an index out of bounds."""
    return {
        "set": x.at[i].set(9),
        "clip": x.at[i].set(9, mode="clip"),
    }


def read_checked(x, i):
    """Return `x[i]`; raises JaxRuntimeError where `i` is out of bounds."""
    checked = checkify.checkify(
        lambda x, i: x[i], errors=checkify.index_checks
    )
    error, value = jax.jit(checked)(x, i)
    error.throw()
    return value


def write_ten(x):
    """Set the first ten elements to 0, 1, ... 9, one after the other."""
    for i in range(10):
        x = x.at[i].set(i)
    return x


def buffer_sizes(function, x, **options):
    """Return the bytes that the compiled function needs beside its argument.

    `shared` bytes of the result lie in the argument's own memory.
    `options` are those of `jax.jit`.
    """
    memory = jax.jit(function, **options).lower(x).compile().memory_analysis()
    return {
        "result": memory.output_size_in_bytes,
        "temporary": memory.temp_size_in_bytes,
        "shared": memory.alias_size_in_bytes,
    }


def overwrite_needed_value_torch(x):
    """Change a value that torch kept for the gradient; raises RuntimeError."""
    x = x.clone().requires_grad_()
    y = torch.exp(x)
    y[0] = 0
    y.sum().backward()
    return x.grad


def exp_without_first(x):
    """Sum exp over all elements but the first, which counts as zero."""
    return jnp.exp(x).at[0].set(0).sum()


def dtypes_of_sums(xp):
    """Return the dtypes of five sums in `xp`: NumPy, jax.numpy or torch."""
    integers = xp.ones(2, dtype=xp.int32)
    half = xp.ones(2, dtype=xp.float16)
    single = xp.ones(2, dtype=xp.float32)
    sums = {
        "int32 + 1.5": integers + 1.5,
        "int32 + float16": integers + half,
        "int32 + float32": integers + single,
        "float16 + float32": half + single,
        "float16 + 1.5": half + 1.5,
    }
    return {name: str(array.dtype) for name, array in sums.items()}


def descend_in_dict(params, grads):
    """Put w minus its gradient into the dict `params`."""
    params["w"] -= grads["w"]


def first_moments(x):
    """Return a state of two arrays like `x`, which are one array of zeros."""
    zeros = jnp.zeros_like(x)
    return {"mean": zeros, "square": zeros}


@jax.jit(donate_argnames="state")
def update_moments(state, x):
    """Return the running means of `x` and x²; donates `state`."""
    return {
        "mean": 0.9 * state["mean"] + 0.1 * x,
        "square": 0.9 * state["square"] + 0.1 * x**2,
    }


def donate_twice(x):
    """Donate a state that holds one array twice; raises JaxRuntimeError."""
    return update_moments(first_moments(x), x)


def sum_donated(x):
    """Sum a donated array (n,).

    Return the sum, whether x is deleted, and the warning.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        total = jax.jit(jnp.sum, donate_argnums=0)(x)
    return total, x.is_deleted(), str(caught[0].message)


def aligned_zeros(n):
    """Return n float32 zeros of NumPy at a multiple of 64 bytes."""
    buffer = np.zeros(n + 16, np.float32)
    start = -buffer.ctypes.data % 64 // buffer.itemsize
    return buffer[start : start + n]


@jax.jit
def late_sum(x, matrix):
    """Return the sum of `x` (n,), read after 60 matmuls of `matrix` (m, m)."""

    def multiply(_, product):
        return jnp.tanh(product @ product)

    product = jax.lax.fori_loop(0, 60, multiply, matrix)
    return jnp.sum(x + product[0, 0])


def sum_and_refill(buffer, passed):
    """Sum `passed` (n,); fill `buffer` with ones before the sum is ready."""
    total = late_sum(passed, jnp.zeros((700, 700)))
    buffer[:] = 1
    return total


@jax.jit
def add_to_ref(ref, n):
    """Add `n` to a ref of an int32 array (); return the new count."""
    ref[...] += n
    return ref[...]


@jax.jit
def filled(x):
    """Return x (n,) with its first two elements set to 1 through a ref."""
    ref = jax.new_ref(x)
    ref[0] = 1.0
    ref[1] = 1.0
    return jax.freeze(ref)


def write_integer(x):
    """Write an integer to a ref of floats; raises ValueError."""
    ref = jax.new_ref(x)
    ref[0] = 1
    return ref


@jax.jit
def move(source, target):
    """Add the contents of one ref to another, and clear the first."""
    target[...] += source[...]
    source[...] = jnp.zeros(source.shape)


def call_with_ref_twice(x):
    """Pass one ref as two arguments; raises ValueError."""
    ref = jax.new_ref(x)
    move(ref, ref)


def add_rows_to_ref(rows):
    """Add rows (n, m) to a ref from outside under vmap; raises Exception."""
    total = jax.new_ref(jnp.zeros(rows.shape[1]))

    def add(row):
        total[...] += row

    jax.vmap(add)(rows)
    return total[...]
