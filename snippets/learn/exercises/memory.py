"""Lesson 9, data, precision and memory: four exercises."""

import jax
import jax.numpy as jnp
import numpy as np


def low_matmul(x, kernel):
    """Return x @ kernel in float32, which is computed from bfloat16.

    `x` (rows, n) and `kernel` (n, m) are in float32.
    """
    return x @ kernel


def batches_of(count, size, seed, epoch, start=0):
    """Return the indices of each batch of an epoch, from batch `start` on.

    They are arrays (size,) of indices below `count`, each at most once in an
    epoch, in an order of its own for each epoch and seed. A smaller batch at
    the end is left out. With `start`, a run that was broken off goes on.
    """
    order = np.random.default_rng(seed).permutation(count)
    return [order[i : i + size] for i in range(0, count, size)]


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
