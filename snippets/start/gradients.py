"""Gradients in JAX, in PyTorch (autograd) and TensorFlow (GradientTape)."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
import torch

EXPECTED_ERRORS = {
    "gradient_of_many": (
        TypeError,
        "only defined for scalar-output functions",
    ),
    "gradient_of_many_torch": (RuntimeError, "only for scalar outputs"),
    "gradient_at_integer": (
        TypeError,
        "requires real- or complex-valued inputs",
    ),
    "gradient_at_integer_torch": (
        RuntimeError,
        "floating point and complex dtype",
    ),
    "descend_with_counter": (TypeError, "with a float0"),
    "gradient_of_sqrt_by_newton": (
        ValueError,
        "Reverse-mode differentiation does not work",
    ),
    "gradient_of_leaky_jit": (
        jax.errors.TracerBoolConversionError,
        "Attempted boolean conversion of traced array",
    ),
}


def some_points():
    """Return weights w (2,), inputs x (3, 2) and targets y (3,): float32."""
    w = np.array([0.5, -0.5], np.float32)
    x = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
    y = np.array([1, 2, 4], np.float32)
    return w, x, y


def squared_error(w, x, y):
    """Return the mean of (x @ w - y)²: w (n,), x (count, n), y (count,)."""
    return ((x @ w - y) ** 2).mean()


def gradient_torch(w, x, y):
    """Return the gradient of `squared_error` for w, from NumPy arrays."""
    w = torch.tensor(w, requires_grad=True)
    error = squared_error(w, torch.tensor(x), torch.tensor(y))
    error.backward()
    return w.grad


def gradient_tensorflow(w, x, y):
    """Return the gradient of the squared error for w, from NumPy arrays."""
    w = tf.Variable(w)
    with tf.GradientTape() as tape:
        error = tf.reduce_mean((tf.linalg.matvec(x, w) - y) ** 2)
    return tape.gradient(error, w)


def finite_differences(f, w, h=1e-6):
    """Return the gradient of `f` at `w`, (n,), computed in float64.

    The error is of order h², and of order 1e-16 / h from rounding.
    """
    w = np.asarray(w, np.float64)
    steps = h * np.eye(w.size)
    return np.array([(f(w + s) - f(w - s)) / (2 * h) for s in steps])


def agree(first, *others, rtol=1e-3):
    """Say whether arrays of any framework are equal, up to `rtol`."""
    return all(np.allclose(first, other, rtol, 1e-5) for other in others)


def error_and_residuals(w, x, y):
    """Return the mean squared residual, and the residuals, (count,)."""
    residuals = x @ w - y
    return (residuals**2).mean(), residuals


def line_error(params, x, y):
    """Return the squared error of a line; `params` holds w (n,) and b ()."""
    return squared_error(params["w"], x, y - params["b"])


def accumulated_torch(w, microbatches):
    """Return the gradient over all rows of `microbatches`, pairs (x, y)."""
    w = torch.tensor(w, requires_grad=True)
    count = sum(len(x) for x, _ in microbatches)
    for x, y in microbatches:
        error = squared_error(w, torch.tensor(x), torch.tensor(y))
        (len(x) / count * error).backward()
    return w.grad


def accumulated(w, microbatches):
    """Return the gradient over all rows of `microbatches`, pairs (x, y)."""
    total, count = jnp.zeros_like(w), sum(len(x) for x, _ in microbatches)
    for x, y in microbatches:
        total += len(x) / count * jax.grad(squared_error)(w, x, y)
    return total


def accumulated_in_place(w, microbatches):
    """Return what `accumulated` does, added up in one `jax.Ref`."""
    total = jax.new_ref(jnp.zeros_like(w))
    count = sum(len(x) for x, _ in microbatches)
    for x, y in microbatches:
        _, backward = jax.vjp(functools.partial(squared_error, x=x, y=y), w)
        backward.with_refs(total)(len(x) / count)
    return total[...]


def half_frozen(w):
    """Return w², where the second w counts as a constant for the gradient."""
    return w * jax.lax.stop_gradient(w)


def half_frozen_torch(w):
    """Return w², where the second w counts as a constant for the gradient."""
    return w * w.detach()


def derivative_torch(f, x):
    """Return the derivative of `f` at the number `x`, from autograd."""
    x = torch.tensor(x, requires_grad=True)
    f(x).backward()
    return x.grad


def derivative_tensorflow(f, x):
    """Return the derivative of `f` at the number `x`, from a GradientTape."""
    x = tf.Variable(x)
    with tf.GradientTape() as tape:
        value = f(x)
    return tape.gradient(value, x)


def square(x):
    """Return x², element by element."""
    return x**2


def gradient_of_many(x):
    """Ask for the gradient of several results; raises TypeError."""
    return jax.grad(square)(x)


def gradient_of_many_torch(x):
    """Call backward on several results; raises RuntimeError."""
    square(x).backward()


def gradient_at_integer(x):
    """Ask for the gradient at an integer; raises TypeError."""
    return jax.grad(square)(x)


def gradient_at_integer_torch(x):
    """Ask for the gradient at an integer tensor; raises RuntimeError."""
    return torch.tensor(x, requires_grad=True)


def counted_error(params, x, y):
    """Return the error of `params["w"]`; the rest of params is unused."""
    return squared_error(params["w"], x, y)


def descend_with_counter(params, x, y):
    """Subtract a gradient with a leaf for an integer; raises TypeError."""
    grads = jax.grad(counted_error, allow_int=True)(params, x, y)
    return jax.tree.map(jnp.subtract, params, grads)


def from_polar(p):
    """Return the point (x, y) of a radius p[0] and an angle p[1]."""
    return p[0] * jnp.stack([jnp.cos(p[1]), jnp.sin(p[1])])


def from_polar_torch(p):
    """Return the point (x, y) of a radius p[0] and an angle p[1]."""
    return p[0] * torch.stack([torch.cos(p[1]), torch.sin(p[1])])


def rows_of_jacobian(forward, backward, x):
    """Return the Jacobian (m, n) of a function of x (n,), row by row.

    One forward pass, and a backward pass for each of the m results: both are
    what `jax.fwd_and_bwd` makes of the function.
    """
    y, residuals = forward(x)
    return jnp.stack([backward(residuals, u) for u in jnp.eye(len(y))])


def rosenbrock(x):
    """Return Rosenbrock's function of `x`, (2,); its minimum is at (1, 1)."""
    return (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2


def hvp(f, x, v):
    """Return the Hessian of `f` at `x` times `v`, without the Hessian."""
    return jax.jvp(jax.grad(f), (x,), (v,))[1]


def hvp_torch(f, x, v):
    """Return the Hessian of `f` at `x` times `v`, by going backward twice."""
    x = torch.tensor(x, requires_grad=True)
    (gradient,) = torch.autograd.grad(f(x), x, create_graph=True)
    return torch.autograd.grad(gradient @ torch.tensor(v), x)[0]


def leaky(x):
    """Return x where positive, else x / 10, by an `if` of Python."""
    return x if x > 0 else 0.1 * x


def gradient_of_leaky_jit(x):
    """Compile the gradient of `leaky`; raises TracerBoolConversionError."""
    return jax.jit(jax.grad(leaky))(x)


def leaky_cond(x):
    """Return x where positive, else x / 10; JAX can compile this branch."""
    return jax.lax.cond(x > 0, lambda x: x, lambda x: 0.1 * x, x)


def final_balance(rate, payments):
    """Return the balance after `payments`, with interest before each."""

    def one_year(balance, payment):
        return (1 + rate) * balance + payment, None

    return jax.lax.scan(one_year, 0.0, payments)[0]


def final_balance_python(rate, payments):
    """Return the balance after `payments`, by a loop of Python."""
    balance = 0.0
    for payment in payments:
        balance = (1 + rate) * balance + payment
    return balance


def sqrt_by_newton(a):
    """Return the root of a > 0 by Newton's method, a relative 1e-4 off."""

    def unfinished(x):
        return jnp.abs(x * x - a) > 1e-4 * a

    return jax.lax.while_loop(unfinished, lambda x: (x + a / x) / 2, a)


def gradient_of_sqrt_by_newton(a):
    """Differentiate a loop of unknown trip count; raises ValueError."""
    return jax.grad(sqrt_by_newton)(a)


def sqrt_by_newton_torch(a):
    """Return the root of a > 0 by Newton's method, by a loop of Python."""
    x = a
    while abs(x * x - a) > 1e-4 * a:
        x = (x + a / x) / 2
    return x


@jax.custom_vjp
def root(a):
    """Return the root of a > 0, with a derivative of its own."""
    return sqrt_by_newton(a)


def root_forward(a):
    """Return the root, and it again as the residual."""
    result = sqrt_by_newton(a)
    return result, result


def root_backward(result, g):
    """Return g times the root's derivative 1 / (2 √a), for one argument."""
    return (g / (2 * result),)


class RootTorch(torch.autograd.Function):
    """The root of a tensor > 0, with a derivative of its own."""

    @staticmethod
    def forward(context, a):
        """Return the root, and save it for the backward pass."""
        result = sqrt_by_newton_torch(a)
        context.save_for_backward(result)
        return result

    @staticmethod
    def backward(context, g):
        """Return g times the derivative of the root."""
        (result,) = context.saved_tensors
        return g / (2 * result)


@jax.custom_vjp
def clip_gradient(x):
    """Return `x`; the backward pass clips its gradient to -1 ... 1."""
    return x


def clip_forward(x):
    """Return `x`, and no residuals."""
    return x, None


def clip_backward(_, g):
    """Return the gradient g, clipped to -1 ... 1, for the one argument."""
    return (jnp.clip(g, -1, 1),)


def cubes_clipped(w):
    """Return the sum of (2w)³, with the gradient clipped at 2w."""
    return (clip_gradient(2 * w) ** 3).sum()


@jax.custom_vjp
def stash_gradient(box, x):
    """Return `x`; the backward pass writes its gradient into the ref `box`."""
    return x


def stash_forward(box, x):
    """Return `x`, and the ref as the residual."""
    return x, box


def stash_backward(box, g):
    """Write the gradient g into the ref; return it for the second argument."""
    box[...] = g
    return None, g


def gradient_of_cubes_torch(w):
    """Return the gradient of the sum of (2w)³, clipped at 2w by a hook."""
    w = torch.tensor(w, requires_grad=True)
    doubled = 2 * w
    doubled.register_hook(lambda g: g.clamp(-1, 1))
    (doubled**3).sum().backward()
    return w.grad


def some_network(count, inputs, hidden):
    """Return weights of two layers, x (count, inputs) and y: float32."""
    rng = np.random.default_rng(0)
    weights = {
        "w1": rng.standard_normal((inputs, hidden)) / inputs**0.5,
        "w2": rng.standard_normal(hidden) / hidden**0.5,
    }
    weights = {name: w.astype(np.float32) for name, w in weights.items()}
    x = rng.standard_normal((count, inputs), dtype=np.float32)
    return weights, x, np.sin(x.sum(1))


def network_error(params, x, y):
    """Return the mean squared error of a network with one hidden layer."""
    hidden = jnp.tanh(x @ params["w1"])
    return ((hidden @ params["w2"] - y) ** 2).mean()


def network_error_torch(params, x, y):
    """Return the mean squared error of a network with one hidden layer."""
    hidden = torch.tanh(x @ params["w1"])
    return ((hidden @ params["w2"] - y) ** 2).mean()


network_gradient = jax.grad(network_error)


def network_gradient_torch(params, x, y):
    """Return the gradients of the error for tensors that require them."""
    error = network_error_torch(params, x, y)
    return torch.autograd.grad(error, list(params.values()))


def network_torch(weights, x, y):
    """Return NumPy arrays as tensors, on the accelerator if there is one."""
    found = torch.accelerator.current_accelerator(check_available=True)
    tensor = functools.partial(torch.tensor, device=found or "cpu")
    params = {n: tensor(w, requires_grad=True) for n, w in weights.items()}
    return params, tensor(x), tensor(y)
