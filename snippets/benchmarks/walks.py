"""Random walks in NumPy and Numba, as the simulations in JAX take them."""

import numba
import numpy as np


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
