"""Layouts that fail, and layouts that waste memory."""

import jax
import jax.numpy as jnp
import numpy as np

EXPECTED_ERRORS = {
    "shard_rows": (ValueError, "does not evenly divide the dimension size"),
    "total_of_sharded": (ValueError, "Sharding passed to jit does not match"),
    "add": (
        ValueError,
        "Received incompatible devices for jitted computation",
    ),
    "refuse_unsharded": (ValueError, "are not sharded"),
}


def mesh_of_all(columns):
    """Return a mesh of all devices, "x" by "y", with `columns` along "y"."""
    return jax.make_mesh((jax.device_count() // columns, columns), ("x", "y"))


def shard_rows(x, mesh):
    """Shard the rows of x over "i"; raises ValueError for unequal shards."""
    return jax.device_put(x, jax.NamedSharding(mesh, jax.P("i")))


def doubled_rows(x, mesh):
    """Shard the rows of 2 * x over "i"; raises IndivisibleError."""
    rows = jax.NamedSharding(mesh, jax.P("i"))
    return jax.jit(lambda x: 2 * x, out_shardings=rows)(x)


def pad_rows(x, devices):
    """Return x padded to a multiple of `devices` rows, and a mask of its own.

    The mask (rows,) is True for a row of x, False for a row of zeros.
    """
    missing = -len(x) % devices
    padded = np.pad(x, [(0, missing)] + [(0, 0)] * (x.ndim - 1))
    return padded, np.arange(len(padded)) < len(x)


@jax.jit
def mean_of_real(x, real):
    """Return the mean over the rows of x (n, m) where `real` (n,) is True."""
    return jnp.where(real[:, None], x, 0).sum(axis=0) / real.sum()


@jax.jit
def add(x, y):
    """Return x + y; raises ValueError if committed to different devices."""
    return x + y


def total_of_sharded(x, mesh):
    """Return the sum of x, sharded over "i"; ValueError for other layouts."""
    rows = jax.NamedSharding(mesh, jax.P("i"))
    return jax.jit(jnp.sum, in_shardings=rows)(x)


def add_where_x_is(x, y):
    """Return x + y, on the devices and in the layout of x."""
    return add(x, jax.device_put(y, x.sharding))


def layout(x):
    """Return the shape of x and of a shard, its replicas and its devices."""
    held = sum(shard.data.size for shard in x.addressable_shards)
    return {
        "shape": x.shape,
        "on each device": x.sharding.shard_shape(x.shape),
        "replicas": held / x.size,
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


def refuse_unsharded(tree, limit):
    """Return a pytree; ValueError for unsharded leaves over `limit` bytes."""
    for path, x in jax.tree.leaves_with_path(tree):
        if x.nbytes > limit and x.sharding.is_fully_replicated:
            name = jax.tree_util.keystr(path)
            raise ValueError(f"the {x.nbytes} bytes of {name} are not sharded")
    return tree


@jax.jit
def step(weights, x):
    """Return weights (64, 64) after a gradient step on x (n, 64)."""

    def loss(weights):
        return jnp.mean((jnp.tanh(x @ weights) @ weights.T) ** 2)

    return weights - 1e-3 * jax.grad(loss)(weights)


def sum_of_steps(steps, wait):
    """Return the sum of weights after some steps on eight devices.

    Each step has an all-reduce. `wait` says whether each is waited for.
    """
    mesh = jax.make_mesh((8,), ("data",))
    rows = jax.NamedSharding(mesh, jax.P("data"))
    x = jax.device_put(jnp.ones((128, 64)), rows)
    weights = jax.device_put(
        jnp.ones((64, 64)) / 64, jax.NamedSharding(mesh, jax.P())
    )
    for _ in range(steps):
        weights = step(weights, x)
        if wait:
            weights.block_until_ready()
    return round(float(weights.sum()), 2)
