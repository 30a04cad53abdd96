"""Where memory goes, and how to get the same result with less of it."""

import pathlib

import jax
import jax.numpy as jnp

EXPECTED_ERRORS = {
    "too_large": (
        jax.errors.JaxRuntimeError,
        "RESOURCE_EXHAUSTED: Out of memory",
    ),
}


def too_large():
    """Ask for 128 TiB of float32 zeros; raises JaxRuntimeError."""
    return jax.block_until_ready(jnp.zeros(2**45, jnp.float32))


def mebibytes(count):
    """Return a number of bytes in MiB, rounded to a tenth."""
    return round(count / 2**20, 1)


def held():
    """Return the MiB of all arrays that this process holds on devices."""
    return mebibytes(sum(array.nbytes for array in jax.live_arrays()))


def largest(count):
    """Return shape, dtype and MiB of the `count` largest live arrays."""
    known = sorted(jax.live_arrays(), key=lambda array: -array.nbytes)[:count]
    return [
        (array.shape, array.dtype.name, mebibytes(array.nbytes))
        for array in known
    ]


def needed(function, *args):
    """Return the memory that a call of a jitted function needs, in MiB."""
    memory = function.lower(*args).compile().memory_analysis()
    return {
        "arguments": mebibytes(memory.argument_size_in_bytes),
        "outputs": mebibytes(memory.output_size_in_bytes),
        "aliased": mebibytes(memory.alias_size_in_bytes),
        "temporaries": mebibytes(memory.temp_size_in_bytes),
    }


@jax.jit
def nearest(points, centres):
    """Return the index (n,) of the nearest of `centres` (k, d).

    `points` is (n, d).
    """
    distances = jnp.abs(points[:, None] - centres[None]) ** 1.5
    return jnp.sort(distances, axis=2).sum(axis=2).argmin(axis=1)


@jax.jit(static_argnames="batch_size")
def nearest_in_batches(points, centres, batch_size):
    """Return the same, computed for `batch_size` points at a time."""

    def one(point):
        return nearest(point[None], centres)[0]

    return jax.lax.map(one, points, batch_size=batch_size)


@jax.jit
def moved_average(average, x):
    """Return 0.9 `average` + 0.1 `x`, both of any shape, as a new array."""
    return 0.9 * average + 0.1 * x


@jax.jit(donate_argnames="average")
def moved_average_in_place(average, x):
    """Return the same in the memory of `average`, which is donated."""
    return 0.9 * average + 0.1 * x


def mappings():
    """Return how many memory mappings this process has; 0 if not on Linux."""
    maps = pathlib.Path("/proc/self/maps")
    return len(maps.read_text().splitlines()) if maps.exists() else 0


@jax.jit
def total(x):
    """Return the sum of sin(x), a number; compiled for each shape of x."""
    return jnp.sin(x).sum()
