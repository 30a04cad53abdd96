"""Python branches and loops on traced values, and what replaces them."""

import jax
import jax.numpy as jnp

EXPECTED_ERRORS = {
    "negate_if": (
        jax.errors.TracerBoolConversionError,
        "Attempted boolean conversion of traced array",
    ),
    "clip_below": (
        jax.errors.TracerBoolConversionError,
        "Attempted boolean conversion of traced array",
    ),
    "negate_if_stacked": (ValueError, "Non-hashable static arguments"),
    "negate_if_mixed_types": (
        TypeError,
        "branches must have equal output types",
    ),
    "activation_of_sign": (TypeError, "Index type must be an integer"),
    "power_by_range": (
        jax.errors.TracerIntegerConversionError,
        "__index__() method was called",
    ),
    "gradient_of_power": (
        ValueError,
        "Reverse-mode differentiation does not work",
    ),
}

TRACED_VALUES = []


@jax.jit
def negate_if(x, neg):
    """Return -x where `neg`, else x; raises TracerBoolConversionError."""
    return -x if neg else x


@jax.jit
def clip_below(x):
    """Return x, or 0 where it is less; raises TracerBoolConversionError."""
    return max(x, 0)


def is_inside(x):
    """Return x where 0 < x < 1, else 0, by a chained comparison of Python."""
    return x if 0 < x < 1 else 0 * x


TRANSFORMED = {
    "nothing": lambda f: f(0.5),
    "grad": lambda f: jax.grad(f)(0.5),
    "vmap": lambda f: jax.vmap(f)(jnp.array([0.5, 2.0])),
    "jit": lambda f: jax.jit(f)(0.5),
    "grad of jit": lambda f: jax.grad(jax.jit(f))(0.5),
}


def works(function, name):
    """Return whether a transformation lets Python branch on a value."""
    try:
        TRANSFORMED[name](function)
    except jax.errors.TracerBoolConversionError:
        return False
    return True


@jax.jit
def flatten_images(x):
    """Flatten images (n, rows, columns) to (n, pixels), and nothing else."""
    return x.reshape(len(x), -1) if x.ndim == 3 else x


@jax.jit
@jax.jit(static_argnames="neg")
def negate_if_stacked(x, neg=True):
    """Return -x where `neg`, with two jits on top of each other."""
    return -x if neg else x


@jax.jit(static_argnames="neg")
def negate_if_static(x, neg):
    """Return -x where `neg`, else x; record `neg` at each trace."""
    TRACED_VALUES.append(neg)
    return -x if neg else x


@jax.jit
def negate_if_cond(x, neg):
    """Return -x where `neg`, else x; one of two compiled branches runs."""
    return jax.lax.cond(neg, lambda x: -x, lambda x: x, x)


@jax.jit
def negate_if_where(x, neg):
    """Return -x where `neg`, else x, element by element; both are computed."""
    return jnp.where(neg, -x, x)


@jax.jit
def negate_if_mixed_types(x, neg):
    """Return -x or 0.0; raises TypeError for an integer `x`."""
    return jax.lax.cond(neg, lambda x: -x, lambda x: 0.0, x)


def safe_log(x):
    """Return log x, and 0 for x ≤ 0."""
    return jnp.where(x > 0, jnp.log(x), 0.0)


def log_gradients(x):
    """Return what the gradient of `safe_log` multiplies, for floats `x`: (n,).

    Three rows of n: 1 where the logarithm is selected, else 0; its derivative;
    and both multiplied: the gradient.
    """
    selected = (x > 0).astype(x.dtype)
    derivative = jax.vmap(jax.grad(jnp.log))(x)
    return jnp.stack([selected, derivative, selected * derivative])


def safer_log(x):
    """Return log x, and 0 for x ≤ 0; its derivative is 0 at 0."""
    inside = jnp.where(x > 0, x, 1.0)
    return jnp.where(x > 0, jnp.log(inside), 0.0)


@jax.jit
def apply_activation(number, x):
    """Apply relu, tanh or the identity to `x`, for number 0, 1 or 2."""
    return jax.lax.switch(number, [jax.nn.relu, jnp.tanh, lambda x: x], x)


@jax.jit
def activation_of_sign(x):
    """Choose a branch by a bool; raises TypeError."""
    return jax.lax.switch(x > 0, [jnp.tanh, jax.nn.relu], x)


@jax.jit
def power_by_range(x, n):
    """Return xⁿ by a Python loop; raises TracerIntegerConversionError."""
    result = jnp.ones_like(x)
    for _ in range(n):
        result = result * x
    return result


@jax.jit
def power(x, n):
    """Return x to the power n ≥ 0 by a compiled loop."""
    return jax.lax.fori_loop(
        0, n, lambda _, result: result * x, jnp.ones_like(x)
    )


@jax.jit
def gradient_of_power(x, n):
    """Differentiate a loop of unknown trip count; raises ValueError."""
    return jax.grad(power)(x, n)


@jax.jit(static_argnames="n")
def gradient_of_power_static(x, n):
    """Return the derivative of xⁿ, computed by a loop of static length."""

    def multiplied(x):
        return jax.lax.fori_loop(
            0, n, lambda _, result: result * x, jnp.ones_like(x)
        )

    return jax.grad(multiplied)(x)


@jax.jit
def halvings(x):
    """Count how often x must be halved to reach 1 or less."""

    def more(state):
        return state[0] > 1

    def halve(state):
        return state[0] / 2, state[1] + 1

    return jax.lax.while_loop(more, halve, (x, 0))[1]


@jax.jit
def balances(start, payments):
    """Return the balance after each of `payments` (n,), at 10 % interest."""

    def step(balance, payment):
        balance = 1.1 * balance + payment
        return balance, balance

    return jax.lax.scan(step, start, payments)[1]


@jax.jit(static_argnames="limit")
def root(a, limit):
    """Return √a by Newton's method, and the steps taken, up to `limit`."""

    def step(x, _):
        done = abs(x * x - a) < 1e-5 * a
        x = jax.lax.cond(done, lambda x: x, lambda x: (x + a / x) / 2, x)
        return x, done

    x, done = jax.lax.scan(step, a, length=limit)
    return x, limit - done.sum()
