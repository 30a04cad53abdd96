"""Why the same seed gave other numbers in older versions."""

import jax
import tensorflow as tf
import torch


def two_draws(partitionable):
    """Draw two float32 scalars from seed 42, the second after one split.

    `partitionable` is the setting of `jax_threefry_partitionable`.
    """
    with jax.threefry_partitionable(partitionable):
        key = jax.random.key(42)
        first = jax.random.normal(key)
        key, subkey = jax.random.split(key)
        return first, jax.random.normal(subkey)


def short_and_long(partitionable):
    """Draw float32 arrays of shape (2,) and (4,) from the same key."""
    with jax.threefry_partitionable(partitionable):
        key = jax.random.key(42)
        return jax.random.normal(key, (2,)), jax.random.normal(key, (4,))


def long_begins_with_short(partitionable):
    """Say whether four draws begin with the two draws of the same key."""
    short, long = short_and_long(partitionable)
    return bool((long[:2] == short).all())


def children(partitionable):
    """Return the data of the two keys of a split, uint32 (2, 2)."""
    with jax.threefry_partitionable(partitionable):
        return jax.random.key_data(jax.random.split(jax.random.key(42)))


def mean_and_deviation(partitionable, count):
    """Return mean and deviation of `count` draws, to one decimal."""
    with jax.threefry_partitionable(partitionable):
        draws = jax.random.normal(jax.random.key(42), (count,))
        mean, deviation = draws.mean().item(), draws.std().item()
        return abs(round(mean, 1)), round(deviation, 1)


def torch_draws():
    """Draw two float32 tensors of shape (1,) from seed 42."""
    torch.manual_seed(42)
    return torch.randn(1), torch.randn(1)


def tensorflow_draws(count):
    """Draw `count` float32 numbers one by one from seed 42."""
    tf.random.set_seed(42)
    return [tf.random.normal([1]).numpy().item() for _ in range(count)]


def contains(draws, number):
    """Say whether one of the draws is `number`, to a millionth."""
    return any(abs(draw - number) < 1e-6 for draw in draws)
