"""Lesson 12, several devices: solutions."""

import jax
import jax.numpy as jnp


def place_rows(mesh, x):
    """Return an array x (rows, ...), sharded by rows over a mesh.

    The mesh has one axis, "data".
    """
    return jax.device_put(x, jax.NamedSharding(mesh, jax.P("data")))


def place_batch(mesh, batch):
    """Return a batch over the axis "data" of a mesh, a pytree of arrays.

    The first axis of each array is sharded; an array without axes, such as a
    count, is replicated.
    """

    def sharding(x):
        spec = jax.P("data") if x.ndim else jax.P()
        return jax.NamedSharding(mesh, spec)

    return jax.device_put(batch, jax.tree.map(sharding, batch))


@jax.jit
def multiplied(x, w):
    """Return x @ w, replicated: x (n, k) and w (k, m) are sharded along k.

    Each device multiplies its shards, and one all-reduce adds the results.
    """
    return jnp.matmul(x, w, out_sharding=jax.P())


def standardised(x):
    """Return x (n,), sharded along "data", with mean 0 and variance 1.

    Mean and variance are those of the whole array.
    """

    @jax.shard_map(in_specs=jax.P("data"), out_specs=jax.P("data"))
    def of_shards(x):
        centred = x - jax.lax.pmean(x.mean(), "data")
        variance = jax.lax.pmean((centred**2).mean(), "data")
        return centred / jnp.sqrt(variance)

    return of_shards(x)
