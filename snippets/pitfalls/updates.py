"""Updates that are refused, that do nothing or too little, and arrays that are gone."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np

EXPECTED_ERRORS = {
    "donate_twice": (
        jax.errors.JaxRuntimeError,
        "Attempt to donate",
    ),
    "call_with_ref_twice": (
        ValueError,
        "only one reference to a mutable array may be passed as an argument",
    ),
    "write_whole_number": (ValueError, "Ref dtype: float32. Value dtype: int32"),
    "add_rows_to_ref": (
        Exception,
        "performing a set/swap operation with vmapped value on an unbatched array",
    ),
}


def clear_first_unused(x):
    """Make a copy of `x` (n,) whose first element is 0, and return `x` itself."""
    x.at[0].set(0)
    return x


def clear_first(x):
    """Return a copy of `x` (n,) whose first element is 0."""
    x = x.at[0].set(0)
    return x


def sort_unused(x):
    """Call `x.sort()` on an array (n,) of NumPy or JAX, and return `x`."""
    x.sort()
    return x


def descend_in_loop(params, grads):
    """Subtract from each array of a list its gradient, as PyTorch's users do."""
    for param, grad in zip(params, grads, strict=True):
        param -= grad


def descend(params, grads):
    """Return the tree `params` minus the tree `grads`."""
    return jax.tree.map(lambda param, grad: param - grad, params, grads)


def descend_in_dict(params, grads):
    """Put w minus its gradient into the dict `params`."""
    params["w"] -= grads["w"]


def count_by_set(bins, length):
    """Count the numbers in `bins` by setting; repeated ones count once."""
    counts = jnp.zeros(length, jnp.int32)
    return counts.at[bins].set(counts[bins] + 1)


def aligned_zeros(n):
    """Return n float32 zeros of NumPy at a multiple of 64 bytes."""
    buffer = np.zeros(n + 16, np.float32)
    start = -buffer.ctypes.data % 64 // buffer.itemsize
    return buffer[start : start + n]


@jax.jit
def late_sum(x, matrix):
    """Return the sum of `x` (n,), read after 60 products of `matrix` (m, m)."""

    def multiply(_, product):
        return jnp.tanh(product @ product)

    product = jax.lax.fori_loop(0, 60, multiply, matrix)
    return jnp.sum(x + product[0, 0])


def sum_and_refill(buffer, passed):
    """Sum `passed` (n,); fill NumPy's `buffer` with ones before the sum is there."""
    total = late_sum(passed, jnp.zeros((700, 700)))
    buffer[:] = 1
    return total


def first_moments(x):
    """Return a state of two arrays like `x`, which are one array of zeros."""
    zeros = jnp.zeros_like(x)
    return {"mean": zeros, "square": zeros}


def separate_moments(x):
    """Return a state of two arrays of zeros like `x`."""
    return {"mean": jnp.zeros_like(x), "square": jnp.zeros_like(x)}


@jax.jit(donate_argnames="state")
def update_moments(state, x):
    """Return the running means of `x` and x², giving away the memory of `state`."""
    return {
        "mean": 0.9 * state["mean"] + 0.1 * x,
        "square": 0.9 * state["square"] + 0.1 * x**2,
    }


def donate_twice(x):
    """Donate a state that holds one array twice; raises JaxRuntimeError."""
    return update_moments(first_moments(x), x)


def sum_donated(x):
    """Sum a donated array (n,); return the sum, whether x is gone, and the warning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        total = jax.jit(jnp.sum, donate_argnums=0)(x)
    return total, x.is_deleted(), str(caught[0].message)


@jax.jit
def filled(x):
    """Return x (n,) with its first two elements set to 1, by way of a ref."""
    ref = jax.new_ref(x)
    ref[0] = 1.0
    ref[1] = 1.0
    return jax.freeze(ref)


@jax.jit
def move(source, target):
    """Add the contents of one ref to another, and clear the first."""
    target[...] += source[...]
    source[...] = jnp.zeros(source.shape)


def call_with_ref_twice(x):
    """Pass one ref as two arguments; raises ValueError."""
    ref = jax.new_ref(x)
    move(ref, ref)


def write_whole_number(x):
    """Write an integer to a ref of floats; raises ValueError."""
    ref = jax.new_ref(x)
    ref[0] = 1
    return ref


def add_rows_to_ref(rows):
    """Add up rows (n, m) under vmap in a ref from outside; raises Exception."""
    total = jax.new_ref(jnp.zeros(rows.shape[1]))

    def add(row):
        total[...] += row

    jax.vmap(add)(rows)
    return total[...]


def add_rows_in_scan(rows):
    """Return the sum of the rows (n, m), added up in a ref from outside."""
    total = jax.new_ref(jnp.zeros(rows.shape[1]))

    def add(_, row):
        total[...] += row
        return None, None

    jax.lax.scan(add, None, rows)
    return total[...]


def count_in_ref(bins, length):
    """Count the numbers in `bins` in two refs: by `+=`, and by `addupdate`."""
    once, every = (jax.new_ref(jnp.zeros(length, jnp.int32)) for _ in range(2))
    once[bins] += 1
    jax.ref.addupdate(every, bins, jnp.ones(len(bins), jnp.int32))
    return once[...], every[...]
