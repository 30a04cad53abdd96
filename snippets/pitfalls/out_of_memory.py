"""Where memory goes, and how the same result needs less of it."""

import functools

import jax
import jax.numpy as jnp

EXPECTED_ERRORS = {
    "too_large": (
        jax.errors.JaxRuntimeError,
        "RESOURCE_EXHAUSTED: Out of memory",
    ),
}


def too_large():
    """Ask for 128 TiB of float32 zeros; raises JaxRuntimeError on every device."""
    return jax.block_until_ready(jnp.zeros(2**45, jnp.float32))


def mebibytes(count):
    """Return a number of bytes in MiB, rounded to a tenth."""
    return round(count / 2**20, 1)


def held():
    """Return the MiB of all arrays that this process holds on its devices."""
    return mebibytes(sum(array.nbytes for array in jax.live_arrays()))


def largest(count):
    """Return shape, dtype and MiB of the `count` largest arrays that are alive."""
    known = sorted(jax.live_arrays(), key=lambda array: -array.nbytes)[:count]
    return [
        (array.shape, array.dtype.name, mebibytes(array.nbytes))
        for array in known
    ]


def needed(function, *args):
    """Return what a call of a jitted function needs, in MiB, by part."""
    memory = function.lower(*args).compile().memory_analysis()
    return {
        "arguments": mebibytes(memory.argument_size_in_bytes),
        "results": mebibytes(memory.output_size_in_bytes),
        "of these shared": mebibytes(memory.alias_size_in_bytes),
        "in between": mebibytes(memory.temp_size_in_bytes),
    }


@jax.jit
def nearest(points, centres):
    """Return the index (n,) of the nearest of `centres` (k, d) to `points` (n, d)."""
    apart = jnp.abs(points[:, None] - centres[None]) ** 1.5
    return jnp.sort(apart, axis=2).sum(axis=2).argmin(axis=1)


@functools.partial(jax.jit, static_argnames="batch_size")
def nearest_in_parts(points, centres, batch_size):
    """Return the same for `batch_size` points at a time."""

    def one(point):
        return nearest(point[None], centres)[0]

    return jax.lax.map(one, points, batch_size=batch_size)


@jax.jit
def moved_average(average, x):
    """Return 0.9 `average` + 0.1 `x`, both of any shape, as a new array."""
    return 0.9 * average + 0.1 * x


@functools.partial(jax.jit, donate_argnames="average")
def moved_average_in_place(average, x):
    """Return the same in the memory of `average`, which is then gone."""
    return 0.9 * average + 0.1 * x
