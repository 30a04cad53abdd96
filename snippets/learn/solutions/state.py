"""Lesson 6, pure functions and state: solutions."""

import jax
import jax.numpy as jnp


@jax.jit
def best_after(best, score):
    """Return the larger of `best`, the best score so far, and `score`."""
    return jnp.maximum(best, score)


def entries():
    """Return how many entries `log` has after these calls.

    log = []

    @jax.jit
    def total(x):
        log.append(x.shape)
        return x.sum()

    for length in (3, 4, 3, 4, 3):
        total(jnp.ones(length))
    """
    return 2


def average(means, params, decay):
    """Return the moving average of parameters, of any pytree.

    `means` is the average before, a pytree like `params`. Each of its arrays
    becomes `decay` times itself plus `1 - decay` times the parameter.
    """
    return jax.tree.map(
        lambda mean, p: decay * mean + (1 - decay) * p, means, params
    )


def train(params, batches, rate, momentum):
    """Return the parameters after a step of SGD with momentum for each batch.

    A velocity begins at zero. In each step it becomes `momentum` times itself
    plus the gradient, and the parameter falls by `rate` times the velocity.
    """

    def loss(params, batch):
        x, y = batch
        return jnp.mean((x @ params["w"] - y) ** 2)

    @jax.jit
    def step(params, velocities, batch):
        grads = jax.grad(loss)(params, batch)
        velocities = jax.tree.map(
            lambda v, grad: momentum * v + grad, velocities, grads
        )
        params = jax.tree.map(lambda p, v: p - rate * v, params, velocities)
        return params, velocities

    velocities = jax.tree.map(jnp.zeros_like, params)
    for batch in batches:
        params, velocities = step(params, velocities, batch)
    return params
