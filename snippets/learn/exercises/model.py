"""Lesson 8, a model and its optimizer: four exercises."""

import jax
import jax.numpy as jnp
import optax


def clipped(rate, limit):
    """Return Adam, for gradients whose norm was cut to `limit` before."""
    return optax.chain(optax.adam(rate), optax.clip_by_global_norm(limit))


def head(state, x):
    """Return what this module of PyTorch returns, for x (rows, 8).

    torch.nn.Sequential(
        torch.nn.LayerNorm(8),
        torch.nn.Linear(8, 16),
        torch.nn.GELU(),
        torch.nn.Linear(16, 4),
    )

    `state` is its state_dict as NumPy arrays: "0.weight", "0.bias",
    "1.weight" (16, 8), "1.bias", "3.weight" (4, 16) and "3.bias".
    """
    raise NotImplementedError


def with_decay(rate, decay):
    """Return AdamW as an optimizer of Optax, which decays matrices alone.

    Biases and the scales of norms, arrays of one axis, are not decayed. The
    kernel of a convolution, of more than two axes, counts as a matrix.
    """
    return optax.adamw(rate, weight_decay=decay)


def last_layer_alone(optimizer):
    """Return an optimizer that trains "last" of the parameters alone.

    The parameters are a dictionary of pytrees. What is not "last" stays as it
    is, to the last bit, whatever `optimizer` does, which gets the gradients
    and parameters of "last" alone.
    """

    def update(grads, state, params):
        frozen = jax.tree.map(jnp.zeros_like, grads)
        grads = frozen | {"last": grads["last"]}
        return optimizer.update(grads, state, params)

    return optax.GradientTransformation(optimizer.init, update)
