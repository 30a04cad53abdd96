"""What collectives move, and what a compiled program sends."""

import jax
import jax.numpy as jnp
import numpy as np

from snippets.learn.checks.layouts import sent_bytes


def moved(mesh):
    """Return what each device holds of the sum of each block.

    An array (3, devices, blocks) of shares of the sum: before, after a
    reduce-scatter, and after an all-gather of that. `mesh` has one axis,
    "data", and there are as many blocks as devices.
    """
    count = mesh.size

    def collectives(terms):
        own = jax.lax.psum_scatter(terms[0, 0], "data", tiled=True)
        place = jnp.arange(count) == jax.lax.axis_index("data")
        gathered = jax.lax.all_gather(own, "data", tiled=True)
        moments = terms[0, 0], jnp.where(place, own, 0), gathered
        return jnp.stack(moments)[:, None]

    by_device = jax.P(None, "data")
    mapped = jax.shard_map(
        collectives, mesh=mesh, in_specs=by_device, out_specs=by_device
    )
    terms = np.full((1, count, count), 1 / count, np.float32)
    return mapped(jax.device_put(terms, jax.NamedSharding(mesh, by_device)))


def report(program):
    """Print what a device computes, holds and sends for a compiled program.

    The bytes it holds are those of the arguments.
    """
    operations = program.cost_analysis()["flops"]
    held = program.memory_analysis().argument_size_in_bytes
    print(f"computes {operations:.2e} operations, holds {held / 1024:g} KiB")
    sent = sent_bytes(program)
    for kind, count in sent.items():
        print(f"{kind}: {count / 1024:g} KiB")
    print(f"sends in all: {sum(sent.values()) / 1024:g} KiB")
