"""Lesson 10, precision and memory: four exercises."""

import jax
import jax.numpy as jnp


def low_matmul(x, kernel):
    """Return x @ kernel in float32, which is computed from bfloat16.

    `x` (rows, n) and `kernel` (n, m) are in float32. The sums are never
    rounded to bfloat16.
    """
    return x @ kernel


def rms_norm(scale, x):
    """Return x (rows, n) over the root of its rows' mean squares, scaled.

    `scale` (n,) is in float32. It computes in float32, whatever the dtype of
    x, and returns the dtype of x. 1e-6 is added to a mean square.
    """
    scale = scale.astype(x.dtype)
    square = jnp.mean(x * x, axis=-1, keepdims=True)
    return scale * x * jax.lax.rsqrt(square + 1e-6)


@jax.jit
def mixed_step(params, batch, rate):
    """Return parameters after a step of gradient descent, in float32.

    The model is x @ kernel + bias, `params` a dictionary of the two, `batch`
    a pair of x (rows, n) and y (rows, m). Its matmul is computed in bfloat16,
    and the mean squared error in float32.
    """

    def loss(params):
        x, y = jax.tree.map(jnp.bfloat16, batch)
        return jnp.mean((x @ params["kernel"] + params["bias"] - y) ** 2)

    params = jax.tree.map(jnp.bfloat16, params)
    grads = jax.grad(loss)(params)
    return jax.tree.map(lambda p, g: p - rate * g, params, grads)


def thick_layer(kernels, x):
    """Return x (rows, n) plus what two kernels make of it."""
    up, down = kernels
    return x + jnp.tanh(jax.nn.gelu(x @ up) ** 2) @ down


def deep_loss(kernels, x):
    """Return the mean of squares behind all layers.

    `kernels` is a pair of arrays (layers, n, m) and (layers, m, n).
    """

    def step(x, kernels):
        return thick_layer(kernels, x), None

    x, _ = jax.lax.scan(step, x, kernels)
    return jnp.mean(x**2)
