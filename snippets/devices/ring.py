"""Programs that pass blocks to neighbours: heat in a rod, and a matmul."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

SPEED = 0.25


def first_heat(cells):
    """Return temperatures (cells,), float32, hot in the middle."""
    position = np.linspace(-1, 1, cells, dtype=np.float32)
    return 100 * np.exp(-20 * position**2)


def spread_heat(padded):
    """Return the next temperatures (n,) of padded temperatures (n + 2,)."""
    left, here, right = padded[:-2], padded[1:-1], padded[2:]
    return here + SPEED * (left - 2 * here + right)


@jax.jit(static_argnames="steps")
def heat_on_one(u, steps):
    """Return u (n,) after some steps; outside it the temperature is 0."""

    def step(_, u):
        return spread_heat(jnp.pad(u, 1))

    return jax.lax.fori_loop(0, steps, step, u)


def with_halo(u):
    """Return a block (n,) with a cell of each neighbour, (n + 2,)."""
    devices = jax.lax.axis_size("i")
    to_right = [(d, d + 1) for d in range(devices - 1)]
    to_left = [(d + 1, d) for d in range(devices - 1)]
    from_left = jax.lax.ppermute(u[-1:], "i", to_right)
    from_right = jax.lax.ppermute(u[:1], "i", to_left)
    return jnp.concatenate([from_left, u, from_right])


def heat_on_block(u, steps):
    """Return a block (n,) after some steps, each with a new halo."""

    def step(_, u):
        return spread_heat(with_halo(u))

    return jax.lax.fori_loop(0, steps, step, u)


@jax.jit(static_argnames="steps")
def heat(u, steps):
    """Return u (n,) after some steps, its cells sharded over "i"."""
    block = partial(heat_on_block, steps=steps)
    return jax.shard_map(block, in_specs=jax.P("i"), out_specs=jax.P("i"))(u)


@jax.jit(static_argnames="steps")
def heat_without_halo(u, steps):
    """Return u (n,) after some steps without values of neighbours."""
    block = partial(heat_on_one, steps=steps)
    return jax.shard_map(block, in_specs=jax.P("i"), out_specs=jax.P("i"))(u)


@jax.jit
@jax.shard_map(in_specs=jax.P("i"), out_specs=jax.P("i"))
def show_halo(u):
    """Return each block of u with its halo, (devices * (n + 2),)."""
    return with_halo(u)


def pass_on(x):
    """Return the block of the previous device, in a ring."""
    devices = jax.lax.axis_size("i")
    ring = [(d, (d + 1) % devices) for d in range(devices)]
    return jax.lax.ppermute(x, "i", ring)


def ring_matmul_of_blocks(a, b):
    """Return the rows a (m, k) @ all of B (k, n), of which b is a block."""
    devices, own = jax.lax.axis_size("i"), jax.lax.axis_index("i")

    def accumulate(iteration, carry):
        total, b = carry
        owner = (own - iteration) % devices
        start = owner * len(b)
        columns = jax.lax.dynamic_slice_in_dim(a, start, len(b), axis=1)
        return total + columns @ b, pass_on(b)

    total = jnp.zeros((len(a), b.shape[1]), a.dtype)
    total = jax.lax.pcast(total, "i", to="varying")
    return jax.lax.fori_loop(0, devices, accumulate, (total, b))[0]


@jax.jit
def ring_matmul(a, b):
    """Return a @ b, the rows of both sharded over "i"; b stays sharded."""
    rows = jax.P("i")
    matmul = jax.shard_map(
        ring_matmul_of_blocks, in_specs=(rows, rows), out_specs=rows
    )
    return matmul(a, b)


@jax.jit
def gathered_matmul(a, b):
    """Return a @ b, the rows of both sharded over "i"; b is gathered."""
    return a @ jax.reshard(b, jax.P())


def owners_of_blocks(devices):
    """Return whose block of B a device (row) has in an iteration (column)."""
    own, iteration = np.arange(devices)[:, None], np.arange(devices)
    return (own - iteration) % devices
