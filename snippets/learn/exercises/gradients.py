"""Lesson 4, gradients: four exercises."""

import jax
import jax.numpy as jnp


def gradient_for_y(f, x, y):
    """Return the gradient of `f(x, y)`, a number, with respect to `y`."""
    return jax.grad(f)(x, y)


def penalised_gradient(params, x, y, strength):
    """Return the gradient of a penalised loss of a linear model.

    The loss is the mean of (x @ w + b - y)², plus `strength` times the sum of
    the squares of w: x (rows, n), y (rows,), `params` a dictionary of w (n,)
    and b (). The bias b is not penalised.
    """
    raise NotImplementedError


def td_gradient(params, state, reward, next_state, discount):
    """Return the gradient of a value function's error for `params` (n,).

    The value of a state (n,) is `state @ params`. The target,
    reward + discount * value of the next state, counts as a constant.
    """

    def loss(params):
        target = reward + discount * (next_state @ params)
        return (state @ params - target) ** 2

    return jax.grad(loss)(params)


def curvature(f, x, v):
    """Return the Hessian of `f` at `x` (n,) times the vector `v` (n,)."""
    return jnp.matmul(jax.hessian(f)(x), v)
