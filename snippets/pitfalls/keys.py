"""Random numbers that repeat, or that depend on each other."""

import itertools

import jax
import jax.numpy as jnp

EXPECTED_ERRORS = {
    "scanned_checked": (
        jax.errors.KeyReuseError,
        "scan body function leads to key reuse",
    ),
    "draw_from_many": (
        ValueError,
        "accepts a single key, but was given a key array",
    ),
    "draw_from_seed": (
        TypeError,
        "expected key_data to have ndim, shape, and dtype",
    ),
}


def pick(x, n):
    """Draw n elements of `x`, with a key that is made inside."""
    return jax.random.choice(jax.random.key(0), x, (n,))


def layers_alike(key, shapes):
    """Draw float32 weights of each shape, all from one key."""
    return [jax.random.normal(key, shape) for shape in shapes]


def layers_independent(key, shapes):
    """Draw float32 weights of each shape, each from a key of its own."""
    keys = jax.random.split(key, len(shapes))
    pairs = zip(keys, shapes, strict=True)
    return [jax.random.normal(subkey, shape) for subkey, shape in pairs]


def make_mask(keys, n):
    """Return a function that draws n booleans with the next of `keys`."""
    return lambda: jax.random.bernoulli(next(keys), 0.5, (n,))


@jax.jit(static_argnames="n")
def mask_of_step(key, step, n):
    """Draw n booleans for a step; the base key stays the same."""
    return jax.random.bernoulli(jax.random.fold_in(key, step), 0.5, (n,))


def add_noise_to_row(key, row):
    """Add float32 noise to one row (columns,)."""
    return row + jax.random.normal(key, row.shape)


def noisy_rows_alike(key, rows):
    """Add noise to rows (n, columns), with one key for all of them."""
    return jax.vmap(add_noise_to_row, in_axes=(None, 0))(key, rows)


def noisy_rows(key, rows):
    """Add noise to rows (n, columns), with a key for each."""
    return jax.vmap(add_noise_to_row)(jax.random.split(key, len(rows)), rows)


def noisy_rows_by_number(key, rows):
    """Add noise to rows (n, columns), with the number of the row folded in."""

    def add_noise_here(row):
        here = jax.random.fold_in(key, jax.lax.axis_index("rows"))
        return add_noise_to_row(here, row)

    return jax.vmap(add_noise_here, axis_name="rows")(rows)


def looped(key, n):
    """Draw n uint32 numbers in a loop that keeps its key."""
    draws = []
    for _ in range(n):
        _, subkey = jax.random.split(key)
        draws.append(jax.random.bits(subkey))
    return jnp.stack(draws)


def scanned(key, n):
    """Draw n uint32 numbers in a scan whose body closes over the key."""

    def draw(carry, _):
        return carry, jax.random.bits(key)

    return jax.lax.scan(draw, None, length=n)[1]


def scanned_checked(key, n):
    """Draw n numbers with the check on; raises KeyReuseError."""
    with jax.debug_key_reuse(True):
        return scanned(key, n)


def scanned_keys(key, n):
    """Draw n uint32 numbers in a scan over n keys."""

    def draw(carry, subkey):
        return carry, jax.random.bits(subkey)

    return jax.lax.scan(draw, None, jax.random.split(key, n))[1]


def mask_and_noise(key, n):
    """Draw n booleans and n float32 numbers from one key."""
    return jax.random.bernoulli(key, 0.5, (n,)), jax.random.normal(key, (n,))


def order_and_scores(key, n):
    """Shuffle 0 to n - 1 with a key; draw n uint32 scores from its child."""
    order = jax.random.permutation(key, n)
    _, child = jax.random.split(key)
    return order, jax.random.bits(child, (n,))


def split_twice(key):
    """Split a key into two and into three; return the numbers of all five."""
    both = jax.random.split(key, 2), jax.random.split(key, 3)
    pairs = [jax.random.key_data(keys).tolist() for keys in both]
    return [tuple(pair) for pair in itertools.chain(*pairs)]


def key_of(seed):
    """Make a key from all of the last 64 bits of an integer."""
    high, low = divmod(seed % 2**64, 2**32)
    return jax.random.fold_in(jax.random.key(low), high)


def draw_from_many(key):
    """Draw from an array of three keys; raises ValueError."""
    return jax.random.normal(jax.random.split(key, 3))


def draw_from_seed(seed):
    """Draw from a seed instead of a key; raises TypeError."""
    return jax.random.normal(seed)


def says_reuse(mistake, *args):
    """Return whether the check finds a key that is used twice."""
    with jax.debug_key_reuse(True):
        try:
            mistake(*args)
        except jax.errors.KeyReuseError:
            return True
    return False
