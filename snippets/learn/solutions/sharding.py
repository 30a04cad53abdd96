"""Lesson 13, sharding a model: solutions."""

import jax
import jax.numpy as jnp


def laid_out(state, batch):
    """Return (state, batch), laid out for data parallelism.

    The state is replicated, and each array of the batch sharded by rows. Both
    are pytrees; a mesh with the axis "data" is set.
    """
    batch = jax.device_put(batch, jax.P("data"))
    return jax.device_put(state, jax.P()), batch


def specs_of(params, count):
    """Return a spec for each array: sharded over `count` devices, or whole.

    An array of at least 1000 elements is sharded along the largest of its
    axes that `count` divides, the first of several; all others are whole on
    each device. The name of the axis of the mesh is "data".
    """

    def spec(x):
        fits = [axis for axis in range(x.ndim) if x.shape[axis] % count == 0]
        if x.size < 1000 or not fits:
            return jax.P()
        axis = max(fits, key=lambda axis: x.shape[axis])
        return jax.P(*[None] * axis, "data")

    return jax.tree.map(spec, params)


def gradient(loss, params, batch):
    """Return the gradient of the mean loss over a batch sharded by rows.

    `loss(params, batch)` is the mean over the rows it gets; the axis of the
    mesh is "data".
    """

    @jax.shard_map(in_specs=(jax.P(), jax.P("data")), out_specs=jax.P())
    def of_shards(params, batch):
        def mean(params):
            return jax.lax.pmean(loss(params, batch), "data")

        return jax.grad(mean)(params)

    return of_shards(params, batch)


def first_state(init, key, shardings):
    """Return the parameters that `init(key)` makes, and Adam's two averages.

    All three are pytrees of one structure, laid out as `shardings` says, and
    each device makes its own shards alone. The averages begin at zero. A mesh
    with explicit axes is set.
    """

    def make(key):
        params = init(key)
        zeros = jax.tree.map(jnp.zeros_like, params)
        return params, zeros, zeros

    make = jax.sharding.auto_axes(make, out_sharding=(shardings,) * 3)
    return jax.jit(make)(key)
