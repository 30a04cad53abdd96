"""Optimizer state in the memory of the host, or in 8 bits."""

import collections
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
import orbax.checkpoint as ocp

from snippets.jaxprs.reading import inner_jaxprs
from snippets.models.float8 import rounded_by_chance, scale_of

EXPECTED_ERRORS = {
    "update_from_host": (
        ValueError,
        "memory_space of all inputs passed to",
    ),
}


def on_host(optimizer):
    """Return the optimizer, whose state stays in the host's memory.

    `update` copies it to the device, and the new one back. It passes on
    further arguments, such as `value`.
    """
    optimizer = optax.with_extra_args_support(optimizer)

    def init(params):
        return jax.device_put(optimizer.init(params), jax.memory.Space.Host)

    def update(grads, opt_state, params=None, **more):
        near = jax.device_put(opt_state, jax.memory.Space.Device)
        updates, new = optimizer.update(grads, near, params, **more)
        return updates, jax.device_put(new, jax.memory.Space.Host)

    return optax.GradientTransformationExtraArgs(init, update)


def in_host_memory(layout):
    """Return a pytree of shardings, with the memory of the hosts."""
    return jax.tree.map(
        lambda sharding: sharding.with_memory_kind("pinned_host"), layout
    )


def kinds(tree):
    """Return the kinds of memory that the arrays of a pytree are in."""
    return {leaf.sharding.memory_kind for leaf in jax.tree.leaves(tree)}


def update_from_host(optimizer, grads, opt_state, params):
    """Update with state that nothing has copied; raises ValueError."""
    return optimizer.update(grads, opt_state, params)


def memory_of(aval):
    """Return "host" or "device", for the type of an array."""
    is_host = aval.memory_space == jax.memory.Space.Host
    return "host" if is_host else "device"


def brought(jaxpr):
    """Return the bytes that a traced function moves from memory to memory.

    They are {memory that they go to: bytes}, on explicit axes those of one
    device. A `while` loop counts as one iteration.
    """
    total = collections.Counter()
    for equation in jaxpr.eqns:
        if equation.primitive.name == "device_put":
            variables = equation.invars, equation.outvars
            for old, new in zip(*variables, strict=True):
                shape = new.aval.sharding.shard_shape(new.aval.shape)
                size = math.prod(shape) * new.aval.dtype.itemsize
                if memory_of(old.aval) != memory_of(new.aval):
                    total[memory_of(new.aval)] += size
        times = equation.params.get("length", 1)
        for inner in inner_jaxprs(equation) * times:
            total += brought(inner)
    return total


def save_and_restore(folder, state, like):
    """Save a state, and restore it in the form of `like`."""
    with ocp.CheckpointManager(folder) as manager:
        manager.save(0, args=ocp.args.StandardSave(state))
        manager.wait_until_finished()
        return manager.restore(0, args=ocp.args.StandardRestore(like))


def shapes(tree, layout=None):
    """Return shapes and dtypes of a pytree, and its shardings, if given."""
    if layout is None:
        layout = jax.tree.map(lambda x: None, tree)
    return jax.tree.map(
        lambda x, sharding: jax.ShapeDtypeStruct(
            x.shape, x.dtype, sharding=sharding
        ),
        tree,
        layout,
    )


def llama(layers=32, width=4096, hidden=11008, words=32000):
    """Return the shapes of Llama 2 7B (Touvron et al. 2023), float32."""
    kernels = {
        "attention": (layers, 4, width, width),
        "up": (layers, 2, width, hidden),
        "down": (layers, hidden, width),
        "norms": (layers, 2, width),
        "last_norm": (width,),
        "embedding": (words, width),
        "head": (width, words),
    }
    return {
        name: jax.ShapeDtypeStruct(shape, jnp.float32)
        for name, shape in kernels.items()
    }


def bytes_of_state(optimizer, params):
    """Return the bytes of an optimizer's state in each memory.

    Nothing is allocated, so `params` may be shapes.
    """
    total = collections.Counter()
    for aval in jax.make_jaxpr(optimizer.init)(params).out_avals:
        total[memory_of(aval)] += aval.size * aval.dtype.itemsize
    return total


class EightBits(NamedTuple):
    """An array in float8 (..., n), and the float32 scales (..., 1) of rows."""

    values: jax.Array
    scale: jax.Array


def to_8_bits(x, key):
    """Return floats x, of at least one axis, as `EightBits`.

    They are rounded by chance. The largest element of a row becomes the
    largest float8, 448. ValueError for a scalar.
    """
    if x.ndim == 0:
        raise ValueError("a scalar has no row: keep it in float32")
    scale = scale_of(x, jnp.float8_e4m3fn, axis=-1)
    small = x.astype(jnp.float32) / scale
    values = rounded_by_chance(small, jnp.float8_e4m3fn, key)
    return EightBits(values, scale)


def from_8_bits(small):
    """Return the float32 array of `to_8_bits`."""
    return small.values.astype(jnp.float32) * small.scale


def all_to_8_bits(tree, key):
    """Return `to_8_bits` of each array, with random numbers of its own."""
    leaves, structure = jax.tree.flatten(tree)
    keys = jax.random.split(key, len(leaves))
    small = [to_8_bits(x, k) for x, k in zip(leaves, keys, strict=True)]
    return jax.tree.unflatten(structure, small)


def adam_in_8_bits(rate):
    """Return Adam, whose averages have 8 bits for each element.

    Of the squares the root is kept, which has the range of the gradients.
    Parameters must have at least one axis.
    """
    adam = optax.scale_by_adam()

    def small(state):
        averages = state.mu, jax.tree.map(jnp.sqrt, state.nu)
        key = jax.random.fold_in(jax.random.key(0), state.count)
        return state.count, all_to_8_bits(averages, key)

    def init(params):
        return small(adam.init(params))

    def update(grads, opt_state, params=None):
        count, averages = opt_state
        mu, root = jax.tree.map(
            from_8_bits, averages, is_leaf=lambda x: type(x) is EightBits
        )
        nu = jax.tree.map(jnp.square, root)
        state = optax.ScaleByAdamState(count, mu, nu)
        updates, state = adam.update(grads, state)
        return jax.tree.map(lambda u: -rate * u, updates), small(state)

    return optax.GradientTransformation(init, update)
