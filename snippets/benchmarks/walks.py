"""Random walks in JAX by blocks, in NumPy and in Numba."""

import jax
import jax.numpy as jnp
import numba
import numpy as np

from snippets.vectorizing.simulations import refill

BLOCK = 16


def moves(key, path, step):
    """Return the next moves of a walk (BLOCK,), equal for an equal step."""
    key = jax.random.fold_in(jax.random.fold_in(key, path), step)
    return jax.random.normal(key, BLOCK)


def next_block(key, count, level, limit, state):
    """Take BLOCK steps in each lane, as `next_state` takes one."""
    path, step = state["path"], state["step"]
    moved = jnp.cumsum(jax.vmap(moves, (None, 0, 0))(key, path, step), axis=1)
    position = state["position"][:, None] + moved
    outside = jnp.abs(position) >= level
    left = outside.any(axis=1)
    step += jnp.where(left, outside.argmax(axis=1) + 1, BLOCK)
    step = jnp.minimum(step, limit)
    ended = left | (step == limit)
    return refill(count, state, position[:, -1], step, ended)


def walks_in_numpy(count, level, limit):
    """Return the steps (count,) until each walk leaves (-level, level).

    A walk takes `limit` steps at most. Those that ended leave the array.
    """
    random = np.random.default_rng(0)
    lengths = np.full(count, limit)
    path, position = np.arange(count), np.zeros(count, np.float32)
    for step in range(1, limit + 1):
        position += random.standard_normal(len(path), dtype=np.float32)
        inside = np.abs(position) < level
        lengths[path[~inside]] = step
        path, position = path[inside], position[inside]
        if not len(path):
            break
    return lengths


@numba.njit(parallel=True)
def walks_in_numba(count, level, limit):
    """Return the same, walk by walk, by as many threads as there are cores."""
    lengths = np.empty(count, np.int64)
    for path in numba.prange(count):
        position, step = 0.0, 0
        while abs(position) < level and step < limit:
            position += np.random.standard_normal()
            step += 1
        lengths[path] = step
    return lengths
