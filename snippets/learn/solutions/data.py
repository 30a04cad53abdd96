"""Lesson 9, feeding a step: solutions."""

import jax
import numpy as np


def collated(examples):
    """Return one batch of a list of examples, pytrees of NumPy arrays.

    Each leaf is an array (examples, ...) in the dtype that it had.
    """
    return jax.tree.map(lambda *leaves: np.stack(leaves), *examples)


def batches_of(count, size, seed, epoch, start=0):
    """Return the indices of each batch of an epoch, from batch `start` on.

    They are arrays (size,) of indices below `count`, each at most once in an
    epoch, in an order of its own for each epoch and seed. A smaller batch at
    the end is left out. With `start`, a run that was broken off goes on.
    """
    order = np.random.default_rng((seed, epoch)).permutation(count)
    whole = count // size
    return [order[i * size : (i + 1) * size] for i in range(start, whole)]


def rows_of_process(order, size, process, processes):
    """Return what a process reads in each step, arrays (rows,) of indices.

    `order`, the same array (count,) on all processes, is what one process
    would read, `size` examples in each step. Each of the processes has an
    equal share of every step, and `processes` divides `size`. A smaller step
    at the end is left out.
    """
    steps = len(order) // size
    whole = np.reshape(order[: steps * size], (steps, processes, -1))
    return list(whole[:, process])
