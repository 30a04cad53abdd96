"""Lesson 8, a model and its optimizer: solutions."""

import jax
import optax


def clipped(rate, limit):
    """Return Adam, for gradients whose norm was cut to `limit` before."""
    return optax.chain(optax.clip_by_global_norm(limit), optax.adam(rate))


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
    y = jax.nn.standardize(x, epsilon=1e-5)
    y = y * state["0.weight"] + state["0.bias"]
    y = y @ state["1.weight"].T + state["1.bias"]
    y = jax.nn.gelu(y, approximate=False)
    return y @ state["3.weight"].T + state["3.bias"]


def with_decay(rate, decay):
    """Return AdamW as an optimizer of Optax, which decays matrices alone.

    Biases and the scales of norms, arrays of one axis, are not decayed. The
    kernel of a convolution, of more than two axes, counts as a matrix.
    """

    def mask(params):
        return jax.tree.map(lambda leaf: leaf.ndim > 1, params)

    return optax.adamw(rate, weight_decay=decay, mask=mask)


def last_layer_alone(optimizer):
    """Return an optimizer that trains "last" of the parameters alone.

    The parameters are a dictionary of pytrees. What is not "last" stays as it
    is, to the last bit, whatever `optimizer` does, which gets the gradients
    and parameters of "last" alone.
    """

    def labels(params):
        return {name: name if name == "last" else "frozen" for name in params}

    return optax.partition(
        {"last": optimizer, "frozen": optax.set_to_zero()}, labels
    )
