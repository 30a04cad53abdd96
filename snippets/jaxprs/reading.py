"""Reading a jaxpr, JAX's own form of a traced function."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, check_jaxpr

EXPECTED_ERRORS = {
    "without_first": (jax.errors.JaxprTypeError, "not defined"),
}
WEIGHTS = np.array([1.0, 2.0, 3.0], dtype=np.float32)


def shifted_product(x, y):
    """Return (x + 1) @ (y + 1). x: (n, m), y: (m,)."""
    return jnp.dot(x + 1, y + 1)


def selu(x, alpha=1.67, scale=1.05):
    """Return scale * x where x > 0, else scale * alpha * (exp(x) - 1).

    Elementwise; the form is that of Klambauer et al. 2017, arXiv:1706.02515.
    """
    return scale * jnp.where(x > 0, x, alpha * jnp.exp(x) - alpha)


def equations(jaxpr):
    """Return (primitive, input types, output types) for each equation."""
    return [
        (
            equation.primitive.name,
            [str(value.aval) for value in equation.invars],
            [str(value.aval) for value in equation.outvars],
        )
        for equation in jaxpr.eqns
    ]


def weighted_sum(x):
    """Return the sum of WEIGHTS * x. x: (3,)."""
    return jnp.dot(WEIGHTS, x)


def power(x, n):
    """Return x to the power n by n - 1 multiplications. n: an int ≥ 1."""
    result = x
    for _ in range(n - 1):
        result = result * x
    return result


def sine_or_cosine(x):
    """Return sin(x) where the sum of x is positive, else cos(x). x: (n,)."""
    return jax.lax.cond(jnp.sum(x) > 0, jnp.sin, jnp.cos, x)


def running_sums(x):
    """Return the sums x[0], x[0] + x[1], and so on. x: (n,) float32."""

    def add(total, entry):
        total = total + entry
        return total, total

    return jax.lax.scan(add, jnp.float32(0), x)[1]


def inner_jaxprs(equation):
    """Return the jaxprs within an equation, such as the body of a loop."""

    def is_jaxpr(value):
        return isinstance(value, (Jaxpr, ClosedJaxpr))

    values = jax.tree.leaves(list(equation.params.values()), is_leaf=is_jaxpr)
    return [value for value in values if is_jaxpr(value)]


def primitives(jaxpr):
    """Return the names of all primitives, inner jaxprs included."""
    names = []
    for equation in jaxpr.eqns:
        names.append(equation.primitive.name)
        for inner in inner_jaxprs(equation):
            names += primitives(inner)
    return names


def without_first(jaxpr):
    """Return a jaxpr without its first equation.

    Raises JaxprTypeError where another equation needs the result.
    """
    shorter = jaxpr.jaxpr.replace(eqns=jaxpr.eqns[1:])
    check_jaxpr(shorter)
    return jaxpr.replace(jaxpr=shorter)
