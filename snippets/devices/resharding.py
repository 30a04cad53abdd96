"""Changing the layout of an array, and what it costs."""

import re
from collections import Counter

import jax
import jax.numpy as jnp
from jax._src.core import ShardingTypeError

from snippets.devices.arrays import blocks

EXPECTED_ERRORS = {
    "sort_sharded_columns": (
        ShardingTypeError,
        "must be unsharded over the sorting dimension",
    ),
    "constrain": (
        AssertionError,
        "acts as an assert when all axes of mesh are",
    ),
    "reshard": (ValueError, "cannot contain axis names that are of type Auto"),
}

COLLECTIVES = (
    "all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute"
)


@jax.jit
def sort_sharded_columns(x):
    """Sort each column of x, its rows sharded; raises ShardingTypeError."""
    return jnp.sort(x, axis=0)


@jax.jit
def sort_columns(x):
    """Sort each column of x (n, m), its rows sharded over "i"."""
    x = jax.reshard(x, jax.P(None, "i"))
    x = jnp.sort(x, axis=0)
    return jax.reshard(x, jax.P("i", None))


def reshard(x, sharding):
    """Return x in another layout; raises ValueError for automatic axes."""
    return jax.reshard(x, sharding)


@jax.jit(static_argnames="sharding")
def constrain(x, sharding):
    """Return x in a layout; AssertionError for another, on explicit axes."""
    return jax.lax.with_sharding_constraint(x, sharding)


@jax.jit(static_argnames="sharding")
def doubled(x, sharding):
    """Return 2 * x in a layout, on a mesh with automatic axes."""
    return jax.lax.with_sharding_constraint(2 * x, sharding)


def collectives(function, *args):
    """Count the operations between devices in the compiled program."""
    program = jax.jit(function).lower(*args).compile().as_text()
    names = re.findall(rf" ({COLLECTIVES})(?:-start)?\(", program)
    return dict(Counter(names))


def collectives_in_loops(function, *args):
    """Count the collectives in the bodies of a program's loops."""
    program = jax.jit(function).lower(*args).compile().as_text()
    bodies = "|".join(map(re.escape, re.findall(r"body=%([\w.-]+)", program)))
    inside = re.findall(rf"^%(?:{bodies}) .*?^}}", program, re.M | re.S)
    return len(re.findall(rf" (?:{COLLECTIVES})\(", "\n".join(inside)))


def overlap(one, other):
    """Return how many elements two blocks share."""
    shared = 1
    for (start, stop), (begin, end) in zip(one, other, strict=True):
        shared *= max(0, min(stop, end) - max(start, begin))
    return shared


def bytes_to_receive(before, after):
    """Return the bytes that all devices together lack for `after`."""
    held = blocks(before).items()
    old = {d: block for block, devices in held for d in devices}
    missing = 0
    for block, devices in blocks(after).items():
        for d in devices:
            missing += overlap(block, block) - overlap(block, old[d])
    return missing * after.dtype.itemsize


def cost_of_change(x, spec):
    """Return the collectives and bytes of resharding x to a PartitionSpec."""
    return (
        collectives(lambda x: jax.reshard(x, spec), x),
        bytes_to_receive(x, jax.reshard(x, spec)),
    )


@jax.jit
def to_columns(x):
    """Return x (n, m) with its columns sharded over "i"."""
    return jax.reshard(x, jax.P(None, "i"))


@jax.jit
def to_replicated(x):
    """Return x, replicated on every device."""
    return jax.reshard(x, jax.P())


@jax.jit
def double(x):
    """Return 2 * x, in the layout of x."""
    return 2 * x


def replicate(tree):
    """Return a pytree of arrays, of which each device has a copy.

    Along explicit axes of the mesh this is `jax.reshard`; along automatic
    ones, for which that does nothing, a constraint for the compiler. Without
    a mesh the arrays stay as they are.
    """
    mesh = jax.sharding.get_abstract_mesh()
    if mesh.explicit_axes:
        tree = jax.reshard(tree, jax.P())
    if mesh.auto_axes:
        tree = jax.lax.with_sharding_constraint(tree, jax.P())
    return tree
