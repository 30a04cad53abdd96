"""Random numbers from hidden state and, in JAX, from keys."""

import zlib

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
import torch

EXPECTED_ERRORS = {
    "add_to_typed": (TypeError, "add does not accept dtypes key<fry>"),
    "typed_to_numpy": (TypeError, "cannot be converted to a NumPy array"),
    "refuse_legacy": (ValueError, "Legacy uint32 key array"),
    "reuse_checked": (jax.errors.KeyReuseError, "Previously-consumed key"),
}


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
    """Zero a fraction `rate` of `x` and scale the rest by 1 / (1 - rate)."""
    keep = jax.random.bernoulli(key, 1 - rate, x.shape)
    return jnp.where(keep, x / (1 - rate), 0)


def dropout_twice_one_key(key, x):
    """Apply dropout twice, wrongly with the same key."""
    return dropout(key, dropout(key, x))


def dropout_twice(key, x):
    """Apply dropout twice, each time with a key of its own."""
    first, second = jax.random.split(key)
    return dropout(second, dropout(first, x))


def share_kept(x):
    """Return the fraction of the elements of `x`, (n,), that are not zero."""
    return (x != 0).sum().item() / x.shape[0]


def masks_by_step(key, steps):
    """Return a mask of 12 for each of `steps`, from keys of their own."""
    keys = [jax.random.fold_in(key, step) for step in steps]
    return jnp.stack([jax.random.bernoulli(k, 0.5, (12,)) for k in keys])


def children(key, n):
    """Return n keys of a split of `key`, and n with 0 to n - 1 folded in."""
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
    return {
        layer: jax.random.normal(key_for(key, layer)).item()
        for layer in layers
    }


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
    """Return the keys of a small program by purpose, each as its data."""
    weights, noise = jax.random.split(jax.random.key(seed))
    keys = {
        "weights": {layer: key_for(weights, layer) for layer in layers},
        "noise": {
            f"step {n}": jax.random.fold_in(noise, n) for n in range(steps)
        },
    }
    numbers = jax.tree.map(lambda key: str(jax.random.key_data(key)), keys)
    return {f"key({seed})": numbers}


def both_kinds(seed):
    """Make a typed and a legacy key from the same seed."""
    return jax.random.key(seed), jax.random.PRNGKey(seed)


def add_to_typed(seed):
    """Add one to a typed key. Raises TypeError."""
    return jax.random.key(seed) + 1


def add_to_legacy(seed):
    """Add one to a legacy key; draw a float32 scalar from the sum."""
    key = jax.random.PRNGKey(seed) + 1
    return key, jax.random.normal(key)


def refuse_legacy(seed):
    """Draw from a legacy key, forbidden. Raises ValueError."""
    with jax.legacy_prng_key("error"):
        return jax.random.normal(jax.random.PRNGKey(seed))


def typed_to_numpy(seed):
    """Convert a typed key to a NumPy array. Raises TypeError."""
    return np.asarray(jax.random.key(seed))


def unwrap(key):
    """Return the data of a typed key, NumPy uint32."""
    return np.asarray(jax.random.key_data(key))


def rewrap(data, implementation):
    """Return the typed key with the given uint32 data."""
    return jax.random.wrap_key_data(data, impl=implementation)


def reuse(key):
    """Draw two float32 scalars from one key, by mistake."""
    return jax.random.normal(key), jax.random.normal(key)


def reuse_checked(seed):
    """Make the mistake with the check on. Raises KeyReuseError."""
    with jax.debug_key_reuse(True):
        return reuse(jax.random.key(seed))


def reuse_legacy(seed):
    """Draw twice from one legacy key."""
    return reuse(jax.random.PRNGKey(seed))


def seed_twice(seed):
    """Draw from two keys that were made from one seed."""
    first, second = jax.random.key(seed), jax.random.key(seed)
    return jax.random.normal(first), jax.random.normal(second)


def fold_twice(seed):
    """Fold one number into a key twice, and draw from both results."""
    key = jax.random.key(seed)
    first, second = jax.random.fold_in(key, 7), jax.random.fold_in(key, 7)
    return jax.random.normal(first), jax.random.normal(second)


def split_and_fold(seed):
    """Draw from the first child of a key, and from the key folded with 0."""
    key = jax.random.key(seed)
    first, second = jax.random.split(key)[0], jax.random.fold_in(key, 0)
    return jax.random.normal(first), jax.random.normal(second)


def is_found(mistake, seed):
    """Say whether the check finds the error that `mistake` makes."""
    with jax.debug_key_reuse(True):
        try:
            mistake(seed)
        except jax.errors.KeyReuseError:
            return True
    return False


def mapped_equals_looped(implementation, seed):
    """Say whether `vmap` over four keys draws what a loop does."""
    keys = jax.random.split(jax.random.key(seed, impl=implementation), 4)
    mapped = jax.vmap(jax.random.bits)(keys)
    looped = jnp.stack([jax.random.bits(key) for key in keys])
    return (mapped == looped).all().item()
