"""Gradients that are zero or wrong, and functions that grad refuses."""

from functools import partial

import jax
import jax.numpy as jnp
from jax.experimental import hijax

EXPECTED_ERRORS = {
    "loss_and_predictions": (
        TypeError,
        "Gradient only defined for scalar-output",
    ),
    "gradient_by_name": (
        TypeError,
        "differentiating with respect to argnums=0 requires",
    ),
    "gradient_of_count": (TypeError, "grad requires real-valued outputs"),
    "gradients_of_settings": (TypeError, "is not a valid JAX type"),
    "forward_derivative": (
        TypeError,
        "can't apply forward-mode autodiff (jvp)",
    ),
    "gradient_of_through": (TypeError, "is not a valid JAX type"),
    "gradient_of_scale": (
        jax.errors.UnexpectedTracerError,
        "Encountered an unexpected tracer. A function transformed by JAX",
    ),
    "gradient_of_bent": (
        NotImplementedError,
        "Transpose rule (for reverse-mode",
    ),
    "gradient_of_layer": (
        jax.errors.TracerBoolConversionError,
        "Attempted boolean conversion of traced array",
    ),
}


def accuracy(w, x, labels):
    """Return the fraction of rows x (n, m) @ w (m, k) that peak at labels."""
    return (jnp.argmax(x @ w, axis=1) == labels).mean()


def cross_entropy(w, x, labels):
    """Return the mean of -log p of labels (n,), for logits x @ w (n, k)."""
    log_p = jax.nn.log_softmax(x @ w)
    return -jnp.take_along_axis(log_p, labels[:, None], axis=1).mean()


def stepped(x):
    """Return {name: value at x ()} of functions that change in steps."""
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


def gradient_by_name(x, w):
    """Differentiate with arguments passed by name; raises TypeError."""
    return jax.grad(squared_error)(x=x, w=w)


def gradient_for_w(x, w):
    """Return the gradient (m,) of the squared error for w."""
    return jax.grad(lambda w: squared_error(x=x, w=w))(w)


def loss_and_predictions(w, x):
    """Differentiate a function that returns a pair; raises TypeError."""
    return jax.grad(lambda w: (jnp.mean((x @ w) ** 2), x @ w))(w)


def gradient_and_predictions(w, x):
    """Return the gradient (m,) of the mean square of x @ w, and x @ w (n,)."""
    return jax.grad(lambda w: (jnp.mean((x @ w) ** 2), x @ w), has_aux=True)(w)


def gradient_of_count(xs):
    """Differentiate a count of elements; raises TypeError."""
    return jax.grad(lambda xs: jnp.sum(xs > 0))(xs)


def gradient_of_soft_count(xs, width=1.0):
    """Return the gradient (n,) of a smooth count of positive xs (n,)."""
    return jax.grad(lambda xs: jax.nn.sigmoid(xs / width).sum())(xs)


def activated(params, x):
    """Apply the activation that `params` names to w x."""
    return getattr(jnp, params["activation"])(params["w"] * x)


def gradients_of_settings(params, x):
    """Differentiate with respect to a string, too; raises TypeError."""
    return jax.grad(activated)(params, x)


@jax.custom_vjp
def cube(x):
    """Return x³ for x ()."""
    return x**3


def cube_forward(x):
    """Return x³, and x as the residual."""
    return x**3, x


def cube_backward_alone(x, g):
    """Return 3 x², without the incoming gradient g."""
    return (3 * x**2,)


def cube_backward(x, g):
    """Return 3 x² times the incoming gradient g."""
    return (3 * x**2 * g,)


@jax.custom_vjp
def scaled(x, scale):
    """Return scale times x."""
    return scale * x


def scale_forward(x, scale):
    """Return scale times x, and both as residuals."""
    return scale * x, (x, scale)


def scale_backward_short(residuals, g):
    """Return the gradient for x, without that for scale."""
    _, scale = residuals
    return (scale * g,)


def scale_backward(residuals, g):
    """Return the gradients for x and for scale."""
    x, scale = residuals
    return scale * g, x * g


HiPrim = getattr(hijax, "HiPrim", None) or hijax.VJPHiPrimitive


class Scaled(HiPrim):
    """Scale times x, both (), with a rule for each mode."""

    def __init__(self, x, scale):
        self.in_avals, self.out_aval, self.params = (x, scale), x, {}
        super().__init__()

    def expand(self, x, scale):
        """Return the value."""
        return scale * x

    def jvp(self, primals, tangents):
        """Return the value, and how it changes along the tangents."""
        (x, scale), (t, u) = primals, map(hijax.instantiate_zeros, tangents)
        return self(x, scale), scale * t + x * u

    def vjp_fwd(self, nzs_in, x, scale):
        """Return the value and, for each gradient that is wanted, a factor."""
        factors = zip(nzs_in, (scale, x), strict=True)
        return self(x, scale), [f if wanted else None for wanted, f in factors]

    def vjp_bwd_retval(self, factors, g):
        """Return the gradients, and None for what has no factor."""
        return tuple(None if f is None else f * g for f in factors)


def forward_derivative(x):
    """Use forward mode on a custom_vjp function; raises TypeError."""
    return jax.jacfwd(cube)(x)


def gradient_of_through(x):
    """Pass a function to a custom_vjp like an array; raises TypeError."""
    apply = jax.custom_vjp(lambda function, x: function(x))
    apply.defvjp(
        lambda function, x: (function(x), None), lambda _, g: (None, g)
    )
    return jax.grad(apply, argnums=1)(jnp.round, x)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def through(function, x):
    """Return function(x), with a derivative of 1."""
    return function(x)


def through_forward(function, x):
    """Return function(x), and no residuals."""
    return function(x), None


def through_backward(function, residuals, g):
    """Return the incoming gradient g unchanged."""
    return (g,)


def scale_closed(x, scale):
    """Return scale times x, with a rule that closes over scale."""
    multiply = jax.custom_vjp(lambda x: scale * x)
    multiply.defvjp(lambda x: (scale * x, None), lambda _, g: (scale * g,))
    return multiply(x)


def gradient_of_scale(x, scale):
    """Differentiate for a closed-over scale; raises UnexpectedTracerError."""
    return jax.grad(scale_closed, argnums=1)(x, scale)


@jax.custom_jvp
def cube_by_jvp(x):
    """Return x³ for x ()."""
    return x**3


def cube_derivative(primals, tangents):
    """Return x³ and its derivative, without the tangent."""
    (x,) = primals
    return x**3, 3 * x**2


def cube_jvp(primals, tangents):
    """Return x³ and its derivative times the tangent."""
    (x,), (t,) = primals, tangents
    return x**3, 3 * x**2 * t


def gradient_of_bent(x):
    """Use a rule that squares the tangent; raises NotImplementedError."""
    bent = jax.custom_jvp(lambda x: x**3)
    bent.defjvp(lambda primals, tangents: (primals[0] ** 3, tangents[0] ** 2))
    return jax.grad(bent)(x)


def layer(w, x, training):
    """Return tanh(w x), halved if `training`."""
    return jnp.tanh(w * x) / 2 if training else jnp.tanh(w * x)


def gradient_of_layer(w, x, training):
    """Checkpoint a layer with a flag; raises TracerBoolConversionError."""
    return jax.grad(jax.checkpoint(layer))(w, x, training)


def gradient_of_layer_static(w, x, training):
    """Return the derivative for w of a layer under `jax.checkpoint`."""
    return jax.grad(jax.checkpoint(layer, static_argnums=2))(w, x, training)
