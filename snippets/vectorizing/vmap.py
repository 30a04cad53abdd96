"""A function of one example, turned into a function of a batch by jax.vmap."""

import jax
import jax.numpy as jnp

EXPECTED_ERRORS = {
    "convolve_pairs": (ValueError, "vmap got inconsistent sizes"),
    "convolve_each": (
        ValueError,
        "vmap in_axes must be an int, None, or a tuple",
    ),
    "center_without_name": (NameError, "unbound axis name"),
}


def convolve(x, w):
    """Slide `w`, of shape (k,), over `x`, of shape (n,): shape (n - k + 1,).

    Each result is the dot product of `w` with k neighbours in `x`. The window
    is not reversed, so NumPy's name for it is `correlate`.
    """
    starts = range(len(x) - len(w) + 1)
    return jnp.stack([jnp.dot(x[i : i + len(w)], w) for i in starts])


def seen_by_the_body(xs, ws):
    """Map `convolve` over `xs`, (b, n), and `ws`, (b, k); say what `x` was."""
    seen = []

    def convolve_and_note(x, w):
        seen.append(x)
        return convolve(x, w)

    jax.vmap(convolve_and_note)(xs, ws)
    return [(x.shape, isinstance(x, jax.core.Tracer)) for x in seen]


def operations(function, *args):
    """Name the operations in the jaxpr of `function`, in their order."""
    jaxpr = jax.make_jaxpr(function)(*args)
    return [equation.primitive.name for equation in jaxpr.eqns]


def layer(params, x):
    """Apply weights "w", (m, n), and bias "b", (m,), to one `x`, (n,)."""
    return params["w"] @ x + params["b"]


def convolve_each(xs, w):
    """Slide one `w`, (k,), over each of `xs`, (b, n); raises ValueError."""
    return jax.vmap(convolve, in_axes=(0, None))(xs, w=w)


def all_pairs(xs, ws):
    """Slide each of `ws`, (c, k), over each of `xs`: (b, c, n - k + 1)."""
    each_w = jax.vmap(convolve, in_axes=(None, 0))
    return jax.vmap(each_w, in_axes=(0, None))(xs, ws)


def convolve_pairs(xs, ws):
    """Slide `ws`, (c, k), over `xs`, (b, n); ValueError unless b == c."""
    return jax.vmap(convolve)(xs, ws)


def sine_or_double(x, positive):
    """Return sin x if `positive`, else 2 x, from two branches."""
    return jax.lax.cond(positive, jnp.sin, lambda x: 2 * x, x)


def halvings(x):
    """Count how often `x` is halved until it is 1 or less, and return both."""

    def more(state):
        return state[0] > 1

    def halve(state):
        return state[0] / 2, state[1] + 1

    return jax.lax.while_loop(more, halve, (x, 0))


def center(x):
    """Subtract from `x` the mean over the mapped axis called "batch"."""
    return x - jax.lax.pmean(x, "batch")


def center_without_name(xs):
    """Map `center` over an axis that was given no name; raises NameError."""
    return jax.vmap(center)(xs)
