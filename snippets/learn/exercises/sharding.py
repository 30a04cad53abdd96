"""Lesson 13, sharding a model: four exercises."""

import jax
import jax.numpy as jnp


def laid_out(state, batch):
    """Return (state, batch), laid out for data parallelism.

    The state is replicated, and each array of the batch sharded by rows. Both
    are pytrees; a mesh with the axis "data" is set.
    """
    raise NotImplementedError


def specs_of(params, count):
    """Return a spec for each array: sharded over `count` devices, or whole.

    An array of at least 1000 elements is sharded along the largest of its
    axes that `count` divides, the first of several; all others are whole on
    each device. The name of the axis of the mesh is "data".
    """
    raise NotImplementedError


def gradient(loss, params, batch):
    """Return the gradient of the mean loss over a batch sharded by rows.

    `loss(params, batch)` is the mean over the rows it gets; the axis of the
    mesh is "data".
    """

    @jax.shard_map(in_specs=(jax.P(), jax.P("data")), out_specs=jax.P())
    def of_shards(params, batch):
        grads = jax.grad(loss)(params, batch)
        return jax.tree.map(lambda g: jax.lax.pmean(g, "data"), grads)

    return of_shards(params, batch)


def first_state(init, key, shardings):
    """Return the parameters that `init(key)` makes, and Adam's two averages.

    All three are pytrees of one structure, laid out as `shardings` says, and
    each device makes its own shards alone. The averages begin at zero. A mesh
    with explicit axes is set.
    """
    params = jax.device_put(init(key), shardings)
    return params, *(jax.tree.map(jnp.zeros_like, params) for _ in range(2))
