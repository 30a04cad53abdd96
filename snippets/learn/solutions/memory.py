"""Lesson 9, data, precision and memory: solutions."""

import jax
import jax.numpy as jnp
import numpy as np


def low_matmul(x, kernel):
    """Return x @ kernel in float32, which is computed from bfloat16.

    `x` (rows, n) and `kernel` (n, m) are in float32.
    """
    return jnp.float32(jnp.bfloat16(x) @ jnp.bfloat16(kernel))


def batches_of(count, size, seed, epoch, start=0):
    """Return the indices of each batch of an epoch, from batch `start` on.

    They are arrays (size,) of indices below `count`, each at most once in an
    epoch, in an order of its own for each epoch and seed. A smaller batch at
    the end is left out. With `start`, a run that was broken off goes on.
    """
    order = np.random.default_rng((seed, epoch)).permutation(count)
    whole = count // size
    return [order[i * size : (i + 1) * size] for i in range(start, whole)]


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
