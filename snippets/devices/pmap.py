"""jax.pmap: one function on every device."""

from functools import partial

import jax
import jax.numpy as jnp

EXPECTED_ERRORS = {
    "share_of_total_unnamed": (NameError, "unbound axis name: batch"),
    "double_under_mesh": (
        ValueError,
        "should match the mesh passed to shard_map",
    ),
    "total_outside": (NameError, "unbound axis name: batch"),
}


def convolve(x, w):
    """Return the dot product of w (3,) with each window of x (n,)."""
    return jnp.array(
        [jnp.dot(x[i - 1 : i + 2], w) for i in range(1, len(x) - 1)]
    )


@partial(jax.pmap, axis_name="batch", backend="cpu")
def share_of_total(x):
    """Return x divided by its sum over all devices."""
    return x / jax.lax.psum(x, "batch")


@partial(jax.pmap, static_broadcasted_argnums=1, backend="cpu")
def power(x, exponent):
    """Return x ** exponent, compiled for each exponent."""
    return x**exponent


@partial(jax.pmap, backend="cpu")
def double(x):
    """Return 2 * x."""
    return 2 * x


@partial(jax.pmap, backend="cpu")
def add(x, y):
    """Return x + y by rows; ValueError for different numbers of rows."""
    return x + y


@partial(jax.pmap, backend="cpu")
@jax.vmap
def double_each(row):
    """Return 2 * x of rows (devices, n, ...), n rows on each device."""
    return 2 * row


def double_rows(x, devices):
    """Return 2 * x (n, ...), with equally many of its rows on each device."""
    rows = x.reshape(devices, -1, *x.shape[1:])
    return double_each(rows).reshape(x.shape)


def double_under_mesh(x, mesh):
    """Return 2 * x, with pmap under a mesh; raises ValueError."""
    with jax.set_mesh(mesh):
        return double(x)


@partial(jax.pmap, backend="cpu")
def share_of_total_unnamed(x):
    """Return x divided by its sum over all devices; raises NameError."""
    return x / jax.lax.psum(x, "batch")


def total_outside(x):
    """Return the sum of x over devices; raises NameError outside of pmap."""
    return jax.lax.psum(x, "batch")
