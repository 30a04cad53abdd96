"""Gradients that vanish in 16 bits, and residuals over a step."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

from snippets.models.memory import in_a_loop, layer, saved_bytes
from snippets.models.steps import mlp


def gradients_in(dtype, params, batch, weight):
    """Return the gradients of a weighted loss of `mlp`, as params.

    The network computes in `dtype`, the loss in float32. `batch` is a pair of
    images (n, 64) and labels (n,).
    """

    def loss(params):
        images, labels = batch
        low = jax.tree.map(lambda leaf: leaf.astype(dtype), params)
        logits = mlp(low, images.astype(dtype)).astype(jnp.float32)
        losses = optax.softmax_cross_entropy_with_integer_labels(
            logits, labels
        )
        return weight * losses.mean()

    return jax.grad(loss)(params)


def share_of_zeros(tree):
    """Return which share of all elements of a pytree is exactly 0."""
    zeros = [np.ravel(leaf == 0) for leaf in jax.tree.leaves(tree)]
    return float(np.concatenate(zeros).mean())


def kept_for(layers, weights, batch, layer=layer):
    """Return the bytes of residuals of the first layers of a network."""

    def network(weights, x):
        return in_a_loop(weights, x, layer)

    first = jax.tree.map(lambda kernels: kernels[:layers], weights)
    return saved_bytes(network, first, batch)


def over_a_step(weights, batch):
    """Return {moment: {way: bytes of residuals}}, layer after layer.

    A layer that is computed again holds its own residuals once more, beside
    the inputs of those before it.
    """
    again = jax.checkpoint(layer)
    numbers = range(1, len(weights["up"]) + 1)
    moments = {
        f"forward {n}": {
            "all kept": kept_for(n, weights, batch),
            "recomputed": kept_for(n, weights, batch, again),
        }
        for n in numbers
    }
    for n in reversed(numbers):
        before = kept_for(n - 1, weights, batch, again)
        moments[f"backward {n}"] = {
            "all kept": kept_for(n, weights, batch),
            "recomputed": before + kept_for(1, weights, batch),
        }
    return moments
