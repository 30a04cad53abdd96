"""Gradients that are zero or wrong, and functions that grad refuses."""

from functools import partial

import jax
import jax.numpy as jnp

EXPECTED_ERRORS = {
    "loss_and_predictions": (
        TypeError,
        "Gradient only defined for scalar-output",
    ),
    "slope_by_name": (
        TypeError,
        "differentiating with respect to argnums=0 requires",
    ),
    "slope_of_count": (TypeError, "grad requires real-valued outputs"),
    "slopes_of_settings": (TypeError, "is not a valid JAX type"),
    "slope_forward": (TypeError, "can't apply forward-mode autodiff (jvp)"),
    "slope_of_through": (TypeError, "is not a valid JAX type"),
    "slope_of_scale": (
        jax.errors.UnexpectedTracerError,
        "Encountered an unexpected tracer. A function transformed by JAX had a side",
    ),
    "slope_of_bent": (NotImplementedError, "Transpose rule (for reverse-mode"),
    "slope_of_layer": (
        jax.errors.TracerBoolConversionError,
        "Attempted boolean conversion of traced array",
    ),
}


def accuracy(w, x, labels):
    """Return the fraction of the rows x (n, m) @ w (m, k) that peak at labels (n,)."""
    return (jnp.argmax(x @ w, axis=1) == labels).mean()


def cross_entropy(w, x, labels):
    """Return the mean of -log p of the labels (n,), for scores x (n, m) @ w (m, k)."""
    log_p = jax.nn.log_softmax(x @ w)
    return -jnp.take_along_axis(log_p, labels[:, None], axis=1).mean()


def stepped(x):
    """Return {name: function of x ()} of functions that change in steps."""
    return {
        "round": jnp.round(x),
        "floor": jnp.floor(x),
        "sign": jnp.sign(x),
        "comparison": jnp.where(x > 1, 1.0, 0.0),
        "cast": x.astype(int).astype(float),
        "index": jnp.array([0.0, 3.0, 5.0])[x.astype(int)],
        "stop_gradient": jax.lax.stop_gradient(x),
    }


def rounded_through(x):
    """Return x rounded, with the derivative of x itself."""
    return x + jax.lax.stop_gradient(jnp.round(x) - x)


def squared_error(x, w):
    """Return the mean of the squares of x (n, m) @ w (m,)."""
    return jnp.mean((x @ w) ** 2)


def slope_by_name(x, w):
    """Differentiate with arguments passed by name; raises TypeError."""
    return jax.grad(squared_error)(x=x, w=w)


def slope_for_w(x, w):
    """Return the gradient (m,) of the squared error for w."""
    return jax.grad(lambda w: squared_error(x=x, w=w))(w)


def loss_and_predictions(w, x):
    """Differentiate a function with two results; raises TypeError."""
    return jax.grad(lambda w: (jnp.mean((x @ w) ** 2), x @ w))(w)


def slope_and_predictions(w, x):
    """Return the gradient (m,) of the mean square of x @ w, and x @ w (n,)."""
    return jax.grad(lambda w: (jnp.mean((x @ w) ** 2), x @ w), has_aux=True)(w)


def slope_of_count(xs):
    """Differentiate a number of elements; raises TypeError."""
    return jax.grad(lambda xs: jnp.sum(xs > 0))(xs)


def slope_of_soft_count(xs, width=1.0):
    """Return the slopes (n,) of a count of positive xs (n,) with soft edges."""
    return jax.grad(lambda xs: jax.nn.sigmoid(xs / width).sum())(xs)


def activated(params, x):
    """Return the activation that params names, of w x."""
    return getattr(jnp, params["activation"])(params["w"] * x)


def slopes_of_settings(params, x):
    """Differentiate for a dictionary with a text in it; raises TypeError."""
    return jax.grad(activated)(params, x)


@jax.custom_vjp
def cube(x):
    """Return x³ for x ()."""
    return x**3


def cube_forward(x):
    """Return x³, and x for the way back."""
    return x**3, x


def cube_backward_alone(x, g):
    """Return 3 x², without the factor g of what comes after."""
    return (3 * x**2,)


def cube_backward(x, g):
    """Return 3 x² times the derivative g of what comes after."""
    return (3 * x**2 * g,)


@jax.custom_vjp
def scaled(x, scale):
    """Return scale times x."""
    return scale * x


def scale_forward(x, scale):
    """Return scale times x, and both for the way back."""
    return scale * x, (x, scale)


def scale_backward_short(kept, g):
    """Return the derivative for x, without that for scale."""
    _, scale = kept
    return (scale * g,)


def scale_backward(kept, g):
    """Return the derivatives for x and for scale."""
    x, scale = kept
    return scale * g, x * g


def slope_forward(x):
    """Differentiate a function with a custom_vjp forward; raises TypeError."""
    return jax.jacfwd(cube)(x)


def slope_of_through(x):
    """Pass a function to a custom_vjp as if it were a number; raises TypeError."""
    apply = jax.custom_vjp(lambda function, x: function(x))
    apply.defvjp(
        lambda function, x: (function(x), None), lambda _, g: (None, g)
    )
    return jax.grad(apply, argnums=1)(jnp.round, x)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def through(function, x):
    """Return function(x), which has the derivative 1."""
    return function(x)


def through_forward(function, x):
    """Return function(x), and nothing for the way back."""
    return function(x), None


def through_backward(function, kept, g):
    """Return g as it is."""
    return (g,)


def scale_closed(x, scale):
    """Return scale times x, by a function with a rule that closes over scale."""
    multiply = jax.custom_vjp(lambda x: scale * x)
    multiply.defvjp(lambda x: (scale * x, None), lambda _, g: (scale * g,))
    return multiply(x)


def slope_of_scale(x, scale):
    """Differentiate for what a rule closes over; raises UnexpectedTracerError."""
    return jax.grad(scale_closed, argnums=1)(x, scale)


@jax.custom_jvp
def cube_by_jvp(x):
    """Return x³ for x ()."""
    return x**3


def cube_slope(primals, tangents):
    """Return x³ and its derivative, without the direction."""
    (x,) = primals
    return x**3, 3 * x**2


def cube_jvp(primals, tangents):
    """Return x³ and its change in the direction of the tangent."""
    (x,), (t,) = primals, tangents
    return x**3, 3 * x**2 * t


def slope_of_bent(x):
    """Use a rule that squares the tangent; raises NotImplementedError."""
    bent = jax.custom_jvp(lambda x: x**3)
    bent.defjvp(lambda primals, tangents: (primals[0] ** 3, tangents[0] ** 2))
    return jax.grad(bent)(x)


def layer(w, x, training):
    """Return tanh of w x, halved where `training`."""
    return jnp.tanh(w * x) / 2 if training else jnp.tanh(w * x)


def slope_of_layer(w, x, training):
    """Recompute a layer with a flag; raises TracerBoolConversionError."""
    return jax.grad(jax.checkpoint(layer))(w, x, training)


def slope_of_layer_static(w, x, training):
    """Return the derivative for w of a layer that is recomputed on the way back."""
    return jax.grad(jax.checkpoint(layer, static_argnums=2))(w, x, training)
