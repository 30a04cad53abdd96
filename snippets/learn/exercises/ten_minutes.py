"""Lesson 1, ten minutes: three exercises."""

import jax
import jax.numpy as jnp


def without(x, i):
    """Return `x` (n,) with element `i` set to zero."""
    x[i] = 0
    return x


def update(params, grads, rate, decay):
    """Return parameters after a step of gradient descent with weight decay.

    Each array p, with gradient g, becomes p - rate * (g + decay * p).
    """
    for name, grad in grads.items():
        params[name] -= rate * (grad + decay * params[name])


def losses_after(loss, params, batch, rates):
    """Return the loss after one step with each of `rates` (n,), as (n,).

    A step replaces each array p, with gradient g, by p - rate * g. The
    gradient of `loss(params, batch)` is computed once.
    """
    losses = []
    for rate in rates:
        grads = jax.grad(loss)(params, batch)
        new = {name: p - rate * grads[name] for name, p in params.items()}
        losses.append(loss(new, batch))
    return jnp.stack(losses)
