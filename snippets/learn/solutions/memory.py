"""Lesson 10, precision and memory: solutions."""

import jax
import jax.numpy as jnp


def low_matmul(x, kernel):
    """Return x @ kernel in float32, which is computed from bfloat16.

    `x` (rows, n) and `kernel` (n, m) are in float32. The sums are never
    rounded to bfloat16.
    """
    low = jnp.bfloat16(x), jnp.bfloat16(kernel)
    return jnp.matmul(*low, preferred_element_type=jnp.float32)


def rms_norm(scale, x):
    """Return x (rows, n) over the root of its rows' mean squares, scaled.

    `scale` (n,) is in float32. It computes in float32, whatever the dtype of
    x, and returns the dtype of x. 1e-6 is added to a mean square.
    """
    y = x.astype(jnp.float32)
    square = jnp.mean(y * y, axis=-1, keepdims=True)
    return (scale * y * jax.lax.rsqrt(square + 1e-6)).astype(x.dtype)


@jax.jit
def mixed_step(params, batch, rate):
    """Return parameters after a step of gradient descent, in float32.

    The model is x @ kernel + bias, `params` a dictionary of the two, `batch`
    a pair of x (rows, n) and y (rows, m). Its matmul is computed in bfloat16,
    and the mean squared error in float32.
    """

    def loss(params):
        x, y = batch
        low = jax.tree.map(jnp.bfloat16, params)
        predicted = jnp.bfloat16(x) @ low["kernel"] + low["bias"]
        return jnp.mean((jnp.float32(predicted) - y) ** 2)

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

    @jax.checkpoint
    def step(x, kernels):
        return thick_layer(kernels, x), None

    x, _ = jax.lax.scan(step, x, kernels)
    return jnp.mean(x**2)
