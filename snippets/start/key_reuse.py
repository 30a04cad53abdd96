"""What reuse of a random key does to dropout and to noise."""

import jax
import jax.numpy as jnp
import torch

EXPECTED_ERRORS = {
    "checked_dropout_twice": (jax.errors.KeyReuseError, "Previously-consumed key"),
}


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
    """Return the share of elements that are not zero."""
    return (x != 0).sum() / x.shape[0]


def signal_and_noise_one_key(key, n):
    """Draw `n` values and `n` noises, wrongly with the same key."""
    return jax.random.normal(key, (n,)), 0.1 * jax.random.normal(key, (n,))


def signal_and_noise(key, n):
    """Draw `n` values and `n` noises from two keys."""
    for_signal, for_noise = jax.random.split(key)
    return jax.random.normal(for_signal, (n,)), 0.1 * jax.random.normal(for_noise, (n,))


def masks_one_key(key, steps):
    """Return dropout masks (steps, 6), wrongly all from one key."""
    return jnp.stack([jax.random.bernoulli(key, 0.5, (6,)) for _ in range(steps)])


def masks_by_step(key, steps):
    """Return dropout masks (steps, 6), each from a key of its own."""
    keys = [jax.random.fold_in(key, step) for step in range(steps)]
    return jnp.stack([jax.random.bernoulli(k, 0.5, (6,)) for k in keys])


def checked_dropout_twice(key, x):
    """Run the wrong dropout with the check of keys on; raises KeyReuseError."""
    with jax.debug_key_reuse(True):
        return dropout_twice_one_key(key, x)
