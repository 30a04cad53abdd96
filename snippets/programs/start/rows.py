"""Batches of rows: an endless series to train with, and all rows once."""

import collections
import itertools

import jax
import numpy as np


def batches_of(rows, numbers, size, seed=0):
    """Yield batches (x, labels) of `size` rows, by their numbers.

    A batch follows from its number alone, in whichever process it is made:
    each epoch has an order of its own, and drops what fills no batch.
    """
    x, labels = rows
    count = len(x) // size
    for epoch, own in itertools.groupby(numbers, lambda n: n // count):
        order = np.random.default_rng((seed, epoch)).permutation(len(x))
        for number in own:
            chosen = order[number % count * size :][:size]
            yield x[chosen], labels[chosen]


def in_order(rows, size):
    """Yield all rows in batches (x, labels) of `size`.

    The last batch is filled up with zeros, whose labels are -1: padding.
    """
    x, labels = rows
    for start in range(0, len(x), size):
        some = x[start : start + size], labels[start : start + size]
        lacking = size - len(some[0])
        yield tuple(
            np.pad(
                part,
                [(0, lacking)] + [(0, 0)] * (part.ndim - 1),
                constant_values=value,
            )
            for part, value in zip(some, (0, -1), strict=True)
        )


def on_devices(batch, mesh):
    """Return a batch with its rows sharded over a mesh.

    Each process brings the rows of its own devices.
    """
    count, own = jax.process_count(), jax.process_index()
    by_rows = jax.NamedSharding(mesh, jax.P("data"))
    return tuple(
        jax.make_array_from_process_local_data(
            by_rows, np.split(part, count)[own]
        )
        for part in batch
    )


def batches_ahead(rows, numbers, size, mesh):
    """Yield the batches of some numbers, on the devices of a mesh.

    The next batch is made, and on its way to the devices, before one is
    taken.
    """
    ready = collections.deque()
    for batch in batches_of(rows, numbers, size):
        ready.append(on_devices(batch, mesh))
        if len(ready) == 2:
            yield ready.popleft()
    yield from ready
