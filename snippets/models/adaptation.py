"""A trained model, adapted with few parameters, and in fewer bytes."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import torch


def transposed(images):
    """Return images (n, 64) with rows and columns exchanged."""
    squares = images.reshape(-1, 8, 8).swapaxes(1, 2)
    return np.ascontiguousarray(squares.reshape(-1, 64))


def init_lora(key, params, rank):
    """Return adapters for the kernels (inputs, outputs) of layers.

    "down" (inputs, rank) is normal with variance 1 / inputs, "up"
    (rank, outputs) is zero (Hu et al., 2021).
    """
    adapters = []
    for own, layer in zip(
        jax.random.split(key, len(params)), params, strict=True
    ):
        inputs, outputs = layer["kernel"].shape
        down = jax.random.normal(own, (inputs, rank)) / jnp.sqrt(inputs)
        adapters.append({"down": down, "up": jnp.zeros((rank, outputs))})
    return adapters


def merged(params, adapters):
    """Return layers whose kernels include their adapters, in their dtype."""
    layers = []
    for layer, one in zip(params, adapters, strict=True):
        kernel = layer["kernel"] + one["down"] @ one["up"]
        layers.append(layer | {"kernel": kernel.astype(layer["kernel"].dtype)})
    return layers


def adapted_mlp(params, adapters, x):
    """Return logits (n, 10) for x (n, 64); no kernel is changed."""
    for layer, one in zip(params, adapters, strict=True):
        y = x @ layer["kernel"] + x @ one["down"] @ one["up"] + layer["bias"]
        x = jnp.tanh(y)
    return y


def adapted(adapters, params, x, train=True):
    """Return (logits, params): a model whose parameters are the adapters."""
    return adapted_mlp(params, adapters, x), params


def adapted_by_merging(adapters, params, x, train=True):
    """Do the same with a new kernel for each layer."""
    nothing = jax.tree.map(jnp.zeros_like, adapters)
    return adapted_mlp(merged(params, adapters), nothing, x), params


class AdaptedLinear(torch.nn.Module):
    """A linear layer of PyTorch that is frozen, with an adapter beside it."""

    def __init__(self, linear, adapter):
        super().__init__()
        self.linear = linear.requires_grad_(False)
        self.down, self.up = (
            torch.nn.Parameter(torch.tensor(np.array(adapter[name])))
            for name in ("down", "up")
        )

    def forward(self, x):
        """Return the layer's result plus the adapter's."""
        return self.linear(x) + x @ self.down @ self.up


def adapted_torch(module, adapters):
    """Return the module with an adapter beside each linear layer."""
    linear = iter(adapters)
    return torch.nn.Sequential(
        *(
            AdaptedLinear(layer, next(linear))
            if isinstance(layer, torch.nn.Linear)
            else layer
            for layer in module
        )
    )


def quantize(x, axis):
    """Return int8 and a float32 scale along an axis; int8 * scale is about x.

    The largest magnitude along the axis becomes 127. x has any float dtype.
    """
    scale = jnp.abs(x.astype(jnp.float32)).max(axis=axis, keepdims=True) / 127
    scale = jnp.where(scale == 0, 1, scale)
    return jnp.round(x / scale).astype(jnp.int8), scale


def quantize_layers(params):
    """Return layers with int8 kernels, each column with its scale."""
    layers = []
    for layer in params:
        kernel, scale = quantize(layer["kernel"], axis=0)
        layers.append(
            {"kernel": kernel, "scale": scale, "bias": layer["bias"]}
        )
    return layers


def weights_in_int8(x, layer):
    """Return x @ kernel, with the int8 kernel converted to x's dtype first.

    x (..., inputs) has a dtype of floats, and the result has the same.
    """
    y = x @ layer["kernel"].astype(x.dtype) * layer["scale"]
    return y.astype(x.dtype)


def all_in_int8(x, layer):
    """Return about x @ kernel, by an int8 matmul that sums in int32.

    x and the result are as in `weights_in_int8`.
    """
    rows, scale = quantize(x, axis=-1)
    total = jnp.matmul(rows, layer["kernel"], preferred_element_type=jnp.int32)
    return (total * scale * layer["scale"]).astype(x.dtype)


def quantized_mlp(params, x, matmul):
    """Return logits (n, 10) for x (n, 64), with one of the two matmuls."""
    for layer in params:
        y = matmul(x, layer) + layer["bias"]
        x = jnp.tanh(y)
    return y


def quantize_torch(kernel):
    """Return a kernel (inputs, outputs) in int8, by PyTorch's function."""
    weight = torch.tensor(np.array(kernel.T))
    scales = weight.abs().amax(dim=1) / 127
    zeros = torch.zeros_like(scales, dtype=torch.int64)
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        quantized = torch.quantize_per_channel(
            weight, scales, zeros, 0, torch.qint8
        )
    return quantized.int_repr().numpy().T
