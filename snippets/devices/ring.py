"""Two programs that pass blocks to neighbours: heat in a rod, and a product."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

SPEED = 0.25


def first_heat(cells):
    """Return temperatures (cells,), float32: hot in the middle, cold at the ends."""
    position = np.linspace(-1, 1, cells, dtype=np.float32)
    return 100 * np.exp(-20 * position**2)


def spread_heat(padded):
    """Return the next temperatures (n,) of padded temperatures (n + 2,)."""
    left, here, right = padded[:-2], padded[1:-1], padded[2:]
    return here + SPEED * (left - 2 * here + right)


@jax.jit(static_argnames="steps")
def heat_on_one(u, steps):
    """Return u (n,) after some steps; outside of it the temperature is 0."""

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
    """Return a block (n,) after some steps; each takes one exchange."""

    def step(_, u):
        return spread_heat(with_halo(u))

    return jax.lax.fori_loop(0, steps, step, u)


@jax.jit(static_argnames="steps")
def heat(u, steps):
    """Return u (n,) after some steps, its cells split over "i"."""
    block = partial(heat_on_block, steps=steps)
    return jax.shard_map(block, in_specs=jax.P("i"), out_specs=jax.P("i"))(u)


@jax.jit(static_argnames="steps")
def heat_without_halo(u, steps):
    """Return u (n,) after some steps in which no device asks its neighbours."""
    block = partial(heat_on_one, steps=steps)
    return jax.shard_map(block, in_specs=jax.P("i"), out_specs=jax.P("i"))(u)


@jax.jit
@jax.shard_map(in_specs=jax.P("i"), out_specs=jax.P("i"))
def show_halo(u):
    """Return each block of u with its halo, (devices * (n + 2),)."""
    return with_halo(u)


def pass_on(x):
    """Return the block of the device before, in a ring."""
    devices = jax.lax.axis_size("i")
    ring = [(d, (d + 1) % devices) for d in range(devices)]
    return jax.lax.ppermute(x, "i", ring)


def ring_product_of_blocks(a, b):
    """Return the rows a (m, k) @ all of B (k, n), of which b holds some rows."""
    devices, own = jax.lax.axis_size("i"), jax.lax.axis_index("i")

    def add_part(turn, state):
        total, b = state
        owner = (own - turn) % devices
        start = owner * len(b)
        columns = jax.lax.dynamic_slice_in_dim(a, start, len(b), axis=1)
        return total + columns @ b, pass_on(b)

    total = jnp.zeros((len(a), b.shape[1]), a.dtype)
    total = jax.lax.pcast(total, "i", to="varying")
    return jax.lax.fori_loop(0, devices, add_part, (total, b))[0]


@jax.jit
def ring_product(a, b):
    """Return a @ b, the rows of both split over "i"; b is never whole anywhere."""
    rows = jax.P("i")
    product = jax.shard_map(
        ring_product_of_blocks, in_specs=(rows, rows), out_specs=rows
    )
    return product(a, b)


@jax.jit
def gathered_product(a, b):
    """Return a @ b, the rows of both split over "i"; b is gathered on each device."""
    return a @ jax.reshard(b, jax.P())


def blocks_in_turns(devices):
    """Return whose block of B each device (rows) holds in each turn (columns)."""
    own, turn = np.arange(devices)[:, None], np.arange(devices)
    return (own - turn) % devices
