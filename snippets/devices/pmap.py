"""jax.pmap: one copy of a function on each device."""

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
    """Return the products of w (3,) with each window of three of x (n,), summed."""
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
    """Return x + y, row by row; raises ValueError for different numbers of rows."""
    return x + y


def double_in_rounds(x, devices):
    """Return 2 * x (n, ...), computed by rounds of `devices` rows; n a multiple."""
    rounds = jnp.split(x, len(x) // devices)
    return jnp.concatenate([double(part) for part in rounds])


def double_under_mesh(x, mesh):
    """Return 2 * x, with pmap below a mesh; raises ValueError."""
    with jax.set_mesh(mesh):
        return double(x)


@partial(jax.pmap, backend="cpu")
def share_of_total_unnamed(x):
    """Return x divided by its sum over all devices; raises NameError."""
    return x / jax.lax.psum(x, "batch")


def total_outside(x):
    """Return the sum of x over the devices, outside of pmap; raises NameError."""
    return jax.lax.psum(x, "batch")
