"""Layouts that fail, and layouts that nobody wanted."""

import jax
import jax.numpy as jnp
import numpy as np

EXPECTED_ERRORS = {
    "split_rows": (ValueError, "does not evenly divide the dimension size"),
    "total_of_split": (ValueError, "Sharding passed to jit does not match"),
    "add": (
        ValueError,
        "Received incompatible devices for jitted computation",
    ),
    "refuse_copies": (ValueError, "are not split"),
}


def mesh_of_all(columns):
    """Return a mesh of all devices, with axes "x" and "y", and `columns` along "y"."""
    return jax.make_mesh((jax.device_count() // columns, columns), ("x", "y"))


def split_rows(x, mesh):
    """Split the rows of x over "i"; raises ValueError if they cannot be even."""
    return jax.device_put(x, jax.NamedSharding(mesh, jax.P("i")))


def doubled_rows(x, mesh):
    """Split the rows of 2 x over "i"; raises IndivisibleError, a ValueError."""
    rows = jax.NamedSharding(mesh, jax.P("i"))
    return jax.jit(lambda x: 2 * x, out_shardings=rows)(x)


def pad_rows(x, parts):
    """Return x with zero rows up to a multiple of `parts`, and True for real rows."""
    missing = -len(x) % parts
    padded = np.pad(x, [(0, missing)] + [(0, 0)] * (x.ndim - 1))
    return padded, np.arange(len(padded)) < len(x)


@jax.jit
def mean_of_real(x, real):
    """Return the mean over the rows of x (n, m) where `real` (n,) is True."""
    return jnp.where(real[:, None], x, 0).sum(axis=0) / real.sum()


@jax.jit
def add(x, y):
    """Return x + y; raises ValueError if they are committed to different devices."""
    return x + y


def total_of_split(x, mesh):
    """Return the sum of x, split over "i"; raises ValueError for another layout."""
    rows = jax.NamedSharding(mesh, jax.P("i"))
    return jax.jit(jnp.sum, in_shardings=rows)(x)


def add_where_x_is(x, y):
    """Return x + y, on the devices and in the layout of x."""
    return add(x, jax.device_put(y, x.sharding))


def layout(x):
    """Return the shape of x and of its parts, how often and by how many it is held."""
    held = sum(shard.data.size for shard in x.addressable_shards)
    return {
        "shape": x.shape,
        "on each device": x.sharding.shard_shape(x.shape),
        "copies": held / x.size,
        "devices": len(x.sharding.device_set),
    }


def velocity_by_shape(weights):
    """Return zeros in the shape of the weights."""
    return jnp.zeros(weights.shape)


def velocity_like(weights):
    """Return zeros in the shape and layout of the weights."""
    return jnp.zeros_like(weights)


def first_weights(key):
    """Return random weights (1024, 256), float32."""
    return jax.random.normal(key, (1024, 256))


def refuse_copies(tree, limit):
    """Return a pytree, or raise ValueError for a whole array above `limit` bytes."""
    for path, x in jax.tree.leaves_with_path(tree):
        if x.nbytes > limit and x.sharding.is_fully_replicated:
            name = jax.tree_util.keystr(path)
            raise ValueError(f"the {x.nbytes} bytes of {name} are not split")
    return tree
