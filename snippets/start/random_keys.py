"""Random numbers from hidden state (PyTorch, TensorFlow) and from keys (JAX)."""

import zlib

import jax
import jax.numpy as jnp
import tensorflow as tf
import torch


def torch_two_draws(seed):
    """Seed the global state, draw two float32 arrays of shape (1,)."""
    torch.manual_seed(seed)
    return torch.randn(1), torch.randn(1)


def tensorflow_two_draws(seed):
    """Seed the global state; draw two float32 numbers."""
    tf.random.set_seed(seed)
    return tf.random.normal([]).numpy(), tf.random.normal([]).numpy()


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


def dropout(key, x, rate=0.5):
    """Set a share `rate` of `x` to zero and scale the rest by 1 / (1 - rate)."""
    keep = jax.random.bernoulli(key, 1 - rate, x.shape)
    return jnp.where(keep, x / (1 - rate), 0)


def dropout_twice_one_key(key, x):
    """Apply dropout twice, wrongly with the same key."""
    return dropout(key, dropout(key, x))


def dropout_twice(key, x):
    """Apply dropout twice, each time with a key of its own."""
    first, second = jax.random.split(key)
    return dropout(second, dropout(first, x))


def dropout_twice_torch(x):
    """Apply dropout twice with torch's global generator."""
    return torch.nn.functional.dropout(torch.nn.functional.dropout(x))


def share_kept(x):
    """Return the share of elements of `x`, (n,), that are not zero."""
    return (x != 0).sum().item() / x.shape[0]


def masks_one_key(key, steps):
    """Return a mask of 12 for each of `steps`, wrongly all from one key."""
    return jnp.stack([jax.random.bernoulli(key, 0.5, (12,)) for _ in steps])


def masks_by_step(key, steps):
    """Return a mask of 12 for each of `steps`, from keys of their own."""
    keys = [jax.random.fold_in(key, step) for step in steps]
    return jnp.stack([jax.random.bernoulli(k, 0.5, (12,)) for k in keys])


def children(key, n):
    """Return n keys made by a split of `key`, and n by folding in 0 to n - 1."""
    folded = [jax.random.fold_in(key, i) for i in range(n)]
    return list(jax.random.split(key, n)), folded


def weights_torch(seed, layers):
    """Draw one weight for each layer from the global state."""
    torch.manual_seed(seed)
    return {layer: torch.randn(1).item() for layer in layers}


def weights_in_turn(key, layers):
    """Draw one weight for each layer, with a split before each draw."""
    weights = {}
    for layer in layers:
        key, subkey = jax.random.split(key)
        weights[layer] = jax.random.normal(subkey).item()
    return weights


def weights_by_position(key, layers):
    """Draw one weight for each layer, after one split for all of them."""
    keys = jax.random.split(key, len(layers))
    draws = [jax.random.normal(subkey).item() for subkey in keys]
    return dict(zip(layers, draws, strict=True))


def key_for(key, name):
    """Return the key that belongs to `name`, whatever else is drawn."""
    return jax.random.fold_in(key, zlib.crc32(name.encode()))


def weights_by_name(key, layers):
    """Draw one weight for each layer from a key made with its name."""
    return {layer: jax.random.normal(key_for(key, layer)).item() for layer in layers}


def draw_for_each(keys, shape):
    """Draw float32 numbers of `shape` from each key: (n, *shape)."""
    return jax.vmap(lambda key: jax.random.normal(key, shape))(keys)


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


def tree_of_keys(seed, layers, steps):
    """Return the keys of a small program by purpose, each as its numbers."""
    weights, noise = jax.random.split(jax.random.key(seed))
    keys = {
        "weights": {layer: key_for(weights, layer) for layer in layers},
        "noise": {f"step {n}": jax.random.fold_in(noise, n) for n in range(steps)},
    }
    numbers = jax.tree.map(lambda key: str(jax.random.key_data(key)), keys)
    return {f"key({seed})": numbers}


def torch_own_generator(seed):
    """Draw two float32 arrays of shape (1,) from a new generator."""
    generator = torch.Generator().manual_seed(seed)
    first = torch.randn(1, generator=generator)
    return first, torch.randn(1, generator=generator)


def tensorflow_stateless(seed):
    """Draw two float32 numbers from the same pair of seeds."""
    pair = [seed, 0]
    first = tf.random.stateless_normal([], seed=pair).numpy()
    return first, tf.random.stateless_normal([], seed=pair).numpy()
