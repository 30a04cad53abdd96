"""Random numbers from hidden state (PyTorch, TensorFlow) and from keys (JAX)."""

import jax
import jax.numpy as jnp
import tensorflow as tf
import torch

LAYERS = ("encoder", "decoder")


def torch_two_draws(seed):
    """Seed the global state, draw two float32 arrays of shape (1,)."""
    torch.manual_seed(seed)
    return torch.randn(1), torch.randn(1)


def torch_state_changes(seed):
    """Say whether one draw changes PyTorch's hidden state."""
    torch.manual_seed(seed)
    before = torch.get_rng_state()
    torch.randn(1)
    return not torch.equal(before, torch.get_rng_state())


def tensorflow_two_draws(seed):
    """Seed the global state; draw two float32 arrays of shape (1,)."""
    tf.random.set_seed(seed)
    return tf.random.normal([1]), tf.random.normal([1])


def draw_twice(seed):
    """Draw two float32 scalars from the same key."""
    key = jax.random.key(seed)
    return jax.random.normal(key), jax.random.normal(key)


def split_and_draw(seed):
    """Draw two float32 scalars, each from a key of its own."""
    key = jax.random.key(seed)
    key, subkey = jax.random.split(key)
    first = jax.random.normal(subkey)
    key, subkey = jax.random.split(key)
    return first, jax.random.normal(subkey)


def fold_in_and_draw(seed, numbers):
    """Draw one float32 scalar for each integer in `numbers`."""
    key = jax.random.key(seed)
    keys = [jax.random.fold_in(key, number) for number in numbers]
    return [jax.random.normal(key) for key in keys]


def draw_for_each(keys, shape):
    """Draw float32 numbers of `shape` from each key: (n, *shape)."""
    return jax.vmap(lambda key: jax.random.normal(key, shape))(keys)


def torch_weights(seed, order):
    """Draw one weight for each layer, in the given order."""
    torch.manual_seed(seed)
    return {layer: torch.randn(1).item() for layer in order}


def jax_weights(seed, order):
    """Draw one weight for each layer from a key of its own."""
    subkeys = jax.random.split(jax.random.key(seed), len(LAYERS))
    keys = dict(zip(LAYERS, subkeys, strict=True))
    return {layer: jax.random.normal(keys[layer]).item() for layer in order}


def tree_of_keys(seed, layers, steps):
    """Return the keys of a small program by purpose, each as its numbers."""
    weights, noise = jax.random.split(jax.random.key(seed))
    keys = {
        "weights": dict(
            zip(layers, jax.random.split(weights, len(layers)), strict=True)
        ),
        "noise": {f"step {n}": jax.random.fold_in(noise, n) for n in range(steps)},
    }
    numbers = jax.tree.map(lambda key: str(jax.random.key_data(key)), keys)
    return {f"key({seed})": numbers}


@jax.jit
def noisy_step(weight, key):
    """Take a step down (weight - 3)², with noise on the gradient."""
    gradient = 2 * (weight - 3)
    noise = jax.random.normal(key, jnp.shape(weight))
    return weight - 0.1 * (gradient + noise)


def train(key, weight, steps):
    """Take one noisy step for each number in `steps`."""
    for step in steps:
        weight = noisy_step(weight, jax.random.fold_in(key, step))
    return weight


def torch_own_generator(seed):
    """Draw two float32 arrays of shape (1,) from a new generator."""
    generator = torch.Generator().manual_seed(seed)
    first = torch.randn(1, generator=generator)
    return first, torch.randn(1, generator=generator)


def tensorflow_stateless(seed):
    """Draw two float32 arrays of shape (1,) from a pair of seeds."""
    return (
        tf.random.stateless_normal([1], seed=[seed, 0]),
        tf.random.stateless_normal([1], seed=[seed, 0]),
    )
