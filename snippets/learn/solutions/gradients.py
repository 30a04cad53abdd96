"""Lesson 4, gradients: solutions."""

import jax
import jax.numpy as jnp


def gradient_for_y(f, x, y):
    """Return the gradient of `f(x, y)`, a number, with respect to `y`."""
    return jax.grad(f, argnums=1)(x, y)


def penalised_gradient(params, x, y, strength):
    """Return the gradient of a penalised loss of a linear model.

    The loss is the mean of (x @ w + b - y)², plus `strength` times the sum of
    the squares of w: x (rows, n), y (rows,), `params` a dictionary of w (n,)
    and b (). The bias b is not penalised.
    """

    def loss(params):
        error = x @ params["w"] + params["b"] - y
        return jnp.mean(error**2) + strength * jnp.sum(params["w"] ** 2)

    return jax.grad(loss)(params)


def td_gradient(params, state, reward, next_state, discount):
    """Return the gradient of a value function's error for `params` (n,).

    The value of a state (n,) is `state @ params`. The target,
    reward + discount * value of the next state, counts as a constant.
    """

    def loss(params):
        target = reward + discount * (next_state @ params)
        return (state @ params - jax.lax.stop_gradient(target)) ** 2

    return jax.grad(loss)(params)


def curvature(f, x, v):
    """Return the Hessian of `f` at `x` (n,) times the vector `v` (n,)."""
    return jax.jvp(jax.grad(f), (x,), (v,))[1]
