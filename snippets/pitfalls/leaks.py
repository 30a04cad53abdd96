"""Tracers that outlive their trace, and how to find and avoid them."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

EXPECTED_ERRORS = {
    "use_kept_attribute": (jax.errors.UnexpectedTracerError, "side effect"),
    "float_of_kept_attribute": (
        jax.errors.ConcretizationTypeError,
        "Abstract tracer value encountered",
    ),
    "drop_last_by_nonlocal": (jax.errors.UnexpectedTracerError, "side effect"),
    "use_cached_positions": (jax.errors.UnexpectedTracerError, "side effect"),
    "keep_while_checked": (Exception, "Leaked trace"),
}

KEPT = []


class Centring:
    """A layer that remembers the mean of its last input."""

    mean = None

    def centre(self, x):
        """Return `x` (n,) without its mean, which stays in an attribute."""
        self.mean = x.mean()
        return x - self.mean


def use_kept_attribute(x):
    """Use what a jitted method kept; raises UnexpectedTracerError."""
    layer = Centring()
    centred = jax.jit(layer.centre)(x)
    return centred + layer.mean


def float_of_kept_attribute(x):
    """Convert what a method kept; raises ConcretizationTypeError."""
    layer = Centring()
    jax.jit(layer.centre)(x)
    return float(layer.mean)


@jax.jit
def centred_and_mean(x):
    """Return `x` (n,) without its mean, and the mean ()."""
    mean = x.mean()
    return x - mean, mean


def drop_last_by_nonlocal(xs):
    """Keep the last of `xs` in a variable; raises UnexpectedTracerError."""
    last = 0.0

    def step(total, x):
        nonlocal last
        last = x
        return total + x, None

    total, _ = jax.lax.scan(step, 0.0, xs)
    return total - last


def drop_last_by_carry(xs):
    """Return the sum of `xs` (n,) without the last, kept in the carry."""

    def step(carry, x):
        total, _ = carry
        return (total + x, x), None

    (total, last), _ = jax.lax.scan(step, (0.0, 0.0), xs)
    return total - last


@functools.lru_cache
def positions(n):
    """Return 0, 2, 4 ... as a JAX array (n,), computed once for each n."""
    return 2.0 * jnp.arange(n)


@jax.jit
def add_positions(x):
    """Return x (n,) plus its positions."""
    return x + positions(len(x))


def use_cached_positions(x):
    """Use the cached positions in a jitted function, then outside it.

    Raises UnexpectedTracerError if the first use was the jitted one.
    """
    add_positions(x)
    return positions(len(x)) + 1


@functools.lru_cache
def numpy_positions(n):
    """Return 0, 2, 4 ... as a NumPy array (n,), computed once for each n."""
    return 2.0 * np.arange(n)


@functools.lru_cache
def evaluated_positions(n):
    """Return 0, 2, 4 ... as a JAX array (n,), also while JAX traces."""
    with jax.ensure_compile_time_eval():
        return 2.0 * jnp.arange(n)


def keep(x):
    """Append `x` to the global list KEPT, and return it."""
    KEPT.append(x)
    return x


def keep_while_checked(x):
    """Trace `keep` under `jax.checking_leaks`; raises Exception."""
    with jax.checking_leaks():
        return jax.jit(keep)(x)


def leaks(function, x):
    """Return whether `jax.checking_leaks` finds a leak in a call with `x`."""
    try:
        with jax.checking_leaks():
            function(x)
    except Exception as error:
        return str(error).startswith("Leaked trace")
    return False
