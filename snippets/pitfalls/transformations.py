"""Functions that vmap, loops and branches refuse, and what they accept."""

import jax
import jax.numpy as jnp

EXPECTED_ERRORS = {
    "scale_each": (
        ValueError,
        "vmap was requested to map its argument along axis 0",
    ),
    "predict_each": (
        ValueError,
        "vmap in_axes specification must be a tree prefix",
    ),
    "mean_square": (ValueError, "got axis spec None but output was batched"),
    "three_copies": (ValueError, "vmap must have at least one non-None value"),
    "running_total": (TypeError, "scan body output must be a pair"),
    "total_from": (TypeError, "carry output must have equal types"),
    "evens_appended": (TypeError, "carry output must have equal types"),
    "fibonacci": (
        TypeError,
        "carry output must have the same pytree structure",
    ),
    "halve_all": (TypeError, "cond_fun must return a boolean scalar"),
    "root_or_nothing": (
        TypeError,
        "cond branch outputs must have the same pytree",
    ),
    "root_where_positive": (TypeError, "Pred must be a scalar"),
    "root_called": (
        TypeError,
        "true_fun and false_fun arguments should be callable",
    ),
}


def scale_each(xs, factor):
    """Return xs (n,) times factor (n,); raises ValueError for a scalar."""
    return jax.vmap(jnp.multiply)(xs, factor)


def scale_each_alike(xs, factor):
    """Return xs (n,) times one factor ()."""
    return jax.vmap(jnp.multiply, in_axes=(0, None))(xs, factor)


def line(params, x):
    """Return w x + b for a number x."""
    return params["w"] * x + params["b"]


def predict_each(params, xs):
    """Map over w alone, with no entry for b; raises ValueError."""
    return jax.vmap(line, in_axes=({"w": 0}, None))(params, xs)


def predict_each_w(params, x):
    """Return w x + b for each w (n,), with one b, as an array (n,)."""
    return jax.vmap(line, in_axes=({"w": 0, "b": None}, None))(params, x)


def project(x, directions):
    """Return the dot products (m,) of x (n,) with the directions (m, n)."""
    return directions @ x


def mean_square(xs):
    """Ask for one result that all xs (n,) share; raises ValueError."""
    return jax.vmap(jnp.square, out_axes=None)(xs)


def mean_square_after(xs):
    """Return the mean () of the squares of xs (n,)."""
    return jax.vmap(jnp.square)(xs).mean()


def mean_square_inside(xs):
    """Return the mean () of the squares of xs (n,), from inside vmap."""

    def shared(x):
        return jax.lax.pmean(x**2, "batch")

    return jax.vmap(shared, out_axes=None, axis_name="batch")(xs)


def three_copies(x):
    """Map over none of the arguments; raises ValueError."""
    return jax.vmap(jnp.square, in_axes=None)(x)


def running_total(xs):
    """Return the last total instead of a pair; raises TypeError."""

    def add(total, x):
        return total + x

    return jax.lax.scan(add, 0.0, xs)


def running_totals(xs):
    """Return the sum () of xs (n,), and the running sums (n,)."""

    def add(total, x):
        return total + x, total + x

    return jax.lax.scan(add, 0.0, xs)


def total_from(start, xs):
    """Return start + the sum of xs (n, ...); TypeError if types differ."""

    def add(total, x):
        return total + x, None

    return jax.lax.scan(add, start, xs)[0]


def total_like(xs):
    """Return the sum of xs (n, ...) over the first axis."""
    return total_from(jnp.zeros_like(xs[0]), xs)


def total_in_dtype_of(start, xs):
    """Return start + the sum of xs (n, ...), in the dtype of start."""

    def add(total, x):
        return (total + x).astype(total.dtype), None

    return jax.lax.scan(add, start, xs)[0]


def evens_appended(count):
    """Append each even number to the carry; raises TypeError."""

    def append(found, n):
        return jnp.append(found, 2 * n), None

    return jax.lax.scan(append, jnp.array([], int), jnp.arange(count))[0]


def fibonacci(n):
    """Return one number where the carry is a pair; raises TypeError."""

    def step(_, pair):
        before, last = pair
        return before + last

    return jax.lax.fori_loop(0, n, step, (0, 1))


def steps_of(xs):
    """Return the number of iterations of a scan over xs."""
    return jax.lax.scan(lambda count, _: (count + 1, None), 0, xs)[0]


def halve_all(xs):
    """Halve xs (n,) while each is above 1, one by one; raises TypeError."""
    return jax.lax.while_loop(lambda xs: xs > 1, lambda xs: xs / 2, xs)


def root_or_nothing(x):
    """Return the root of x, or None; raises TypeError."""
    return jax.lax.cond(x >= 0, lambda x: jnp.sqrt(x), lambda x: None, x)


def root_or_nan(x):
    """Return the root of x (), or nan where there is none."""
    return jax.lax.cond(
        x >= 0, lambda x: jnp.sqrt(x), lambda x: x * jnp.nan, x
    )


def root_where_positive(xs):
    """Choose by xs >= 0, an array (n,); raises TypeError."""
    return jax.lax.cond(xs >= 0, jnp.sqrt, jnp.zeros_like, xs)


def root_called(x):
    """Call the branches instead of passing them; raises TypeError."""
    return jax.lax.cond(x >= 0, jnp.sqrt(x), jnp.zeros_like(x))


def root_passed(x):
    """Return the root of x (), or 0 where there is none."""
    return jax.lax.cond(x >= 0, jnp.sqrt, jnp.zeros_like, x)
