"""Typed keys (`jax.random.key`) beside legacy ones (`jax.random.PRNGKey`)."""

import jax
import jax.numpy as jnp
import numpy as np

EXPECTED_ERRORS = {
    "add_to_typed": (TypeError, "add does not accept dtypes key<fry>"),
    "typed_to_numpy": (TypeError, "cannot be converted to a NumPy array"),
    "refuse_legacy": (ValueError, "Legacy uint32 key array"),
    "reuse_checked": (jax.errors.KeyReuseError, "Previously-consumed key"),
    "reuse_parent_checked": (jax.errors.KeyReuseError, "Previously-consumed key"),
}


def both_kinds(seed):
    """Make a typed and a legacy key from the same seed."""
    return jax.random.key(seed), jax.random.PRNGKey(seed)


def kind_of(key):
    """Return a key's dtype and shape, and whether it is typed."""
    is_typed = jax.dtypes.issubdtype(key.dtype, jax.dtypes.prng_key)
    return key.dtype, key.shape, is_typed


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
    """Hand a typed key to NumPy. Raises TypeError."""
    return np.asarray(jax.random.key(seed))


def unwrap(key):
    """Return the numbers inside a typed key, NumPy uint32."""
    return np.asarray(jax.random.key_data(key))


def rewrap(data, implementation):
    """Turn the uint32 numbers of a key back into a typed key."""
    return jax.random.wrap_key_data(data, impl=implementation)


def reuse(key):
    """Draw two float32 scalars from one key, by mistake."""
    return jax.random.normal(key), jax.random.normal(key)


def reuse_checked(seed):
    """Make the mistake with the check on. Raises KeyReuseError."""
    with jax.debug_key_reuse(True):
        return reuse(jax.random.key(seed))


def reuse_parent_checked(seed):
    """Split a key, then draw from it. Raises KeyReuseError."""
    with jax.debug_key_reuse(True):
        key = jax.random.key(seed)
        jax.random.split(key)
        return jax.random.normal(key)


def split_checked(seed):
    """Draw two float32 scalars from two keys, with the check on."""
    with jax.debug_key_reuse(True):
        first, second = jax.random.split(jax.random.key(seed))
        return jax.random.normal(first), jax.random.normal(second)


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
    """Draw from the first part of a key, and from the key folded with 0."""
    key = jax.random.key(seed)
    first, second = jax.random.split(key)[0], jax.random.fold_in(key, 0)
    return jax.random.normal(first), jax.random.normal(second)


def is_found(mistake, seed):
    """Say whether the check finds what `mistake` does with keys from a seed."""
    with jax.debug_key_reuse(True):
        try:
            mistake(seed)
        except jax.errors.KeyReuseError:
            return True
    return False


def draw_with(implementation, seed):
    """Return a key's dtype, its data, and a float32 scalar from it."""
    key = jax.random.key(seed, impl=implementation)
    return key.dtype, unwrap(key), jax.random.normal(key)


def mapped_equals_looped(implementation, seed):
    """Say whether `vmap` over four keys draws what a loop does."""
    keys = jax.random.split(jax.random.key(seed, impl=implementation), 4)
    mapped = jax.vmap(jax.random.bits)(keys)
    looped = jnp.stack([jax.random.bits(key) for key in keys])
    return (mapped == looped).all().item()
