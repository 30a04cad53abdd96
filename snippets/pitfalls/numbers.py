"""Numbers that come out wrong without an error."""

import jax
import jax.numpy as jnp
import numpy as np

EXPECTED_ERRORS = {
    "days_to_milliseconds": (
        OverflowError,
        "An overflow was encountered while parsing",
    ),
    "averages_strictly": (
        jax.dtypes.TypePromotionError,
        "no available implicit dtype promotion path",
    ),
}


@jax.jit
def last_days(prices, day):
    """Return four prices from `day` on; a window beyond the end is shifted."""
    return jax.lax.dynamic_slice(prices, (day,), (4,))


@jax.jit
def last_days_filled(prices, day):
    """Return four prices from `day` on, nan for days that do not exist."""
    days = day + jnp.arange(4)
    return prices.at[days].get(
        mode="fill", fill_value=jnp.nan, wrap_negative_indices=False
    )


def empty_is_filled(platform):
    """Return whether `jnp.empty` is filled with zeros on "cpu", "cuda", ..."""
    traced = jax.jit(lambda: jnp.empty(3)).trace()
    lowered = traced.lower(lowering_platforms=(platform,))
    return "AllocateBuffer" not in lowered.as_text()


def largest_square(n):
    """Return (n - 1)², computed in int32 as the last of n squares."""
    return (jnp.arange(n) ** 2)[-1]


def difference(before, after):
    """Return |after - before| in the dtype of the images, uint8."""
    return jnp.abs(after - before)


def difference_widened(before, after):
    """Return |after - before| of uint8 images as int32."""
    return jnp.abs(after.astype(jnp.int32) - before)


@jax.jit
def days_to_milliseconds(days):
    """Convert days to ms; raises OverflowError for an int of over 32 bits."""
    return days * 86_400_000


def three_hundred():
    """Cast 300 to 8 bits in four ways."""
    return {
        "full": jnp.full(1, 300, jnp.int8),
        "add": jnp.zeros(1, jnp.int8) + 300,
        "int to uint8": jnp.array([300]).astype(jnp.uint8),
        "float to uint8": jnp.array([300.0]).astype(jnp.uint8),
    }


def divisions(x, y):
    """Divide int32 arrays: with floor, with truncation, and as floats."""
    return {
        "x // y": x // y,
        "lax.div": jax.lax.div(x, y),
        "x % y": x % y,
        "lax.rem": jax.lax.rem(x, y),
        "x / y": x / y,
    }


def divide_or_zero(x, y):
    """Return x // y in int32, and 0 where y is 0."""
    return jnp.where(y == 0, 0, x // jnp.where(y == 0, 1, y))


def seconds_between(start, end):
    """Return end - start of two times in s, subtracted in float32."""
    return jnp.asarray(end) - jnp.asarray(start)


def seconds_since(start, times):
    """Return times - start in s, subtracted in float64 before JAX."""
    return jnp.asarray(np.asarray(times) - start)


@jax.jit(static_argnames="dtype")
def tally(groups, dtype):
    """Count how often group 0 occurs, by adding ones of `dtype`."""
    return jnp.zeros(1, dtype).at[groups].add(1)[0]


def votes(first, second, third):
    """Count the votes of three boolean arrays; `+` of booleans is *or*."""
    return first + second + third


def votes_counted(first, second, third):
    """Count the votes of three boolean arrays in int32."""
    return jnp.stack([first, second, third]).sum(axis=0)


def averages_strictly(totals, counts):
    """Divide float32 by int32, mixing refused; raises TypePromotionError."""
    with jax.numpy_dtype_promotion("strict"):
        return totals / counts


def comparisons():
    """Compare numbers that are not equal."""
    return {
        "int32, float": jnp.array([16_777_217]) == 16_777_216.0,
        "uint8, int": jnp.array([44], jnp.uint8) == 300,
        "float32, float64": jnp.array([0.1]) == np.array([0.1]),
    }


def mean_by_product(x, mask):
    """Average what `mask` keeps, by multiplication, which may keep a nan."""
    return (x * mask).sum() / mask.sum()


def mean_where(x, mask):
    """Average what `mask` keeps; the rest does not count."""
    return x.mean(where=mask)


def error_masked_last(a, x, y, mask):
    """Return the mean squared error of a·x where `mask` is set."""
    return jnp.mean((a * x - y) ** 2, where=mask)


def error_masked_first(a, x, y, mask):
    """Return the same; a nan that is masked reaches no derivative."""
    known = jnp.where(mask, y, 0.0)
    return jnp.mean((a * x - known) ** 2, where=mask)


def sum_of_distances(points):
    """Add up the distances between all pairs of `points` (n, axes)."""
    return jnp.linalg.norm(points[:, None] - points, axis=-1).sum()


def sum_of_distances_safe(points):
    """Add up the distances of all pairs; gradient 0 where points meet."""
    squares = ((points[:, None] - points) ** 2).sum(axis=-1)
    positive = squares > 0
    distances = jnp.sqrt(jnp.where(positive, squares, 1.0))
    return jnp.where(positive, distances, 0.0).sum()


def round_trip(x):
    """Add 10⁸ to a float32 number and subtract it again."""
    return (x + 1e8) - 1e8


@jax.jit
def round_trip_kept(x):
    """Add 10⁸ and subtract it again; XLA may not merge the two steps."""
    return jax.lax.optimization_barrier(x + 1e8) - 1e8


def log_of_exp(x):
    """Return log eˣ; eˣ overflows in float32 for x > 88."""
    return jnp.log(jnp.exp(x))


def line(x, factor, offset):
    """Return factor · x + offset, which rounds twice; once if compiled."""
    return factor * x + offset


def largest_or_nan(x):
    """Return the largest element of floats x, or nan if any element is nan."""
    return jnp.where(jnp.isnan(x).any(), jnp.nan, x.max())
