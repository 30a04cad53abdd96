"""Parameters and the state of the optimizer split over devices."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from snippets.devices.arrays import draw
from snippets.training.data_parallel import (
    adam,
    collectives,
    cut,
    loss,
    train_step,
)


def bytes_on_each_device(tree):
    """Return {device number: bytes it holds of a pytree}."""
    held = {}
    for x in jax.tree.leaves(tree):
        for shard in x.addressable_shards:
            number = shard.device.id
            held[number] = held.get(number, 0) + shard.data.nbytes
    return held


def split_one_axis(x, parts):
    """Return a spec that splits the first axis `parts` divides, if any."""
    for axis, length in enumerate(x.shape):
        if length % parts == 0:
            return jax.P(*[None] * axis, "data")
    return jax.P()


def on_mesh(mesh, specs):
    """Return the shardings that a pytree of specs means on a mesh."""
    return jax.tree.map(lambda spec: jax.NamedSharding(mesh, spec), specs)


def loss_of_parts(params, batch):
    """Return the loss of parameters in parts, made whole on every device first."""
    whole = jax.tree.map(lambda x: jax.reshard(x, jax.P()), params)
    return loss(whole, batch)


@jax.jit(donate_argnames="state")
def gathering_step(state, batch):
    """Return the state after one step, in parts as before, and the loss."""
    value, grads = jax.value_and_grad(loss_of_parts)(state.params, batch)
    return adam(state, grads), value


def automatic(mesh):
    """Return a mesh of the same devices, whose layouts the compiler chooses."""
    auto = (jax.sharding.AxisType.Auto,) * len(mesh.axis_names)
    return jax.sharding.Mesh(mesh.devices, mesh.axis_names, axis_types=auto)


def step_that_keeps(shardings):
    """Return a train step whose new state has the given layout."""
    results = shardings, None
    return jax.jit(train_step, out_shardings=results, donate_argnames="state")


def draw_weights(params, layer):
    """Draw which device holds which part of the weights of a layer."""
    return draw(params[layer]["weights"])


def exchanged(step, *args):
    """Return lines that name the collectives of a compiled step."""
    found = collectives(step, *args).items()
    return "\n".join(
        f"{kind}: {counts['operations']}, with {counts['numbers']} numbers"
        for kind, counts in found
    )


class Memory(NamedTuple):
    """Bytes on one device: of arguments, of results, and of what is in between.

    Results that take the place of donated arguments are not counted.
    """

    arguments: int
    results: int
    between: int


def memory(step, *args):
    """Return the `Memory` that a compiled step needs on one device."""
    stats = step.lower(*args).compile().memory_analysis()
    return Memory(
        stats.argument_size_in_bytes,
        stats.output_size_in_bytes - stats.alias_size_in_bytes,
        stats.temp_size_in_bytes,
    )


def gather(params, specs):
    """Return whole parameters, made of the parts on the devices."""

    def whole(part, spec):
        if "data" not in spec:
            return part
        axis = list(spec).index("data")
        return jax.lax.all_gather(part, "data", axis=axis, tiled=True)

    return jax.tree.map(whole, params, specs)


def step_by_hand(mesh, specs):
    """Return a step that gathers parameters and scatters gradients."""

    def step(state, batch):
        def average(params):
            value = loss(gather(params, specs.params), batch)
            return jax.lax.pmean(value, "data")

        value, grads = jax.value_and_grad(average)(state.params)
        return adam(state, grads), value

    by_hand = jax.shard_map(
        step,
        mesh=mesh,
        in_specs=(specs, jax.P("data")),
        out_specs=(specs, jax.P()),
    )
    return jax.jit(by_hand, donate_argnums=0)


def whole_gradient(params, batch):
    """Return the gradient of a batch, computed at once."""
    return jax.grad(loss)(params, batch)


def accumulated_gradient(params, batch, parts):
    """Return the gradient of a batch, computed part after part."""

    def add(total, part):
        grads = jax.grad(loss)(params, part)
        return jax.tree.map(jnp.add, total, grads), None

    zeros = jax.tree.map(jnp.zeros_like, params)
    total, _ = jax.lax.scan(add, zeros, cut(batch, parts))
    return jax.tree.map(lambda g: g / parts, total)
