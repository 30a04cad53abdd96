"""A convolutional network with batch norm: plain, in NNX, Equinox and PyTorch."""

import equinox as eqx
import jax
import jax.numpy as jnp
import torch
from flax import nnx

from snippets.models.modules import linear


class TorchCnn(torch.nn.Module):
    """A small convolutional network on float32 images (n, 1, 8, 8)."""

    def __init__(self, width=16):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(1, width, 3, padding=1)
        self.norm1 = torch.nn.BatchNorm2d(width)
        self.conv2 = torch.nn.Conv2d(width, 2 * width, 3, 2, padding=1)
        self.norm2 = torch.nn.BatchNorm2d(2 * width)
        self.out = torch.nn.Linear(2 * width, 10)

    def forward(self, x):
        """Return logits (n, 10)."""
        x = torch.relu(self.norm1(self.conv1(x)))
        x = torch.relu(self.norm2(self.conv2(x)))
        return self.out(x.mean(dim=(2, 3)))


def conv(params, x, stride=1):
    """Convolve x (n, height, width, inputs) by a kernel (3, 3, inputs, outputs)."""
    y = jax.lax.conv_general_dilated(
        x,
        params["kernel"],
        window_strides=(stride, stride),
        padding=((1, 1), (1, 1)),
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )
    return y + params["bias"]


def batch_norm(params, stats, x, train):
    """Normalize each channel of x (..., channels); return (y, new stats).

    While training, with the mean and variance of the batch, of which the
    running statistics take a tenth; else with the running statistics.
    """
    if train:
        axes = tuple(range(x.ndim - 1))
        mean, var = x.mean(axis=axes), x.var(axis=axes)
        count = x.size / x.shape[-1]
        new = {"mean": mean, "var": var * count / (count - 1)}
        stats = jax.tree.map(lambda s, n: 0.9 * s + 0.1 * n, stats, new)
    else:
        mean, var = stats["mean"], stats["var"]
    y = (x - mean) * jax.lax.rsqrt(var + 1e-5)
    return y * params["scale"] + params["bias"], stats


def cnn(params, stats, x, train=True):
    """Return logits (n, 10) for images (n, 8, 8, 1), and the new statistics."""
    stats = dict(stats)
    for n, stride in (1, 1), (2, 2):
        x = conv(params[f"conv{n}"], x, stride)
        norm = f"norm{n}"
        x, stats[norm] = batch_norm(params[norm], stats[norm], x, train)
        x = jax.nn.relu(x)
    return linear(params["out"], x.mean(axis=(1, 2))), stats


class NnxCnn(nnx.Module):
    """The network in Flax NNX, on images (n, 8, 8, 1)."""

    def __init__(self, width=16, *, rngs):
        pad = {"padding": ((1, 1), (1, 1)), "rngs": rngs}
        norm = {"momentum": 0.9, "epsilon": 1e-5, "rngs": rngs}
        self.conv1 = nnx.Conv(1, width, (3, 3), **pad)
        self.norm1 = nnx.BatchNorm(width, **norm)
        self.conv2 = nnx.Conv(width, 2 * width, (3, 3), strides=2, **pad)
        self.norm2 = nnx.BatchNorm(2 * width, **norm)
        self.out = nnx.Linear(2 * width, 10, rngs=rngs)

    def __call__(self, x):
        """Return logits (n, 10); while training, update the statistics."""
        x = nnx.relu(self.norm1(self.conv1(x)))
        x = nnx.relu(self.norm2(self.conv2(x)))
        return self.out(x.mean(axis=(1, 2)))


class EquinoxCnn(eqx.Module):
    """The network in Equinox, on one image (1, 8, 8), under `vmap`."""

    conv1: eqx.nn.Conv2d
    norm1: eqx.nn.BatchNorm
    conv2: eqx.nn.Conv2d
    norm2: eqx.nn.BatchNorm
    out: eqx.nn.Linear

    def __init__(self, width=16, *, key):
        one, two, three = jax.random.split(key, 3)
        norm = {"axis_name": "batch", "momentum": 0.9, "mode": "batch"}
        self.conv1 = eqx.nn.Conv2d(1, width, 3, padding=1, key=one)
        self.norm1 = eqx.nn.BatchNorm(width, **norm)
        self.conv2 = eqx.nn.Conv2d(width, 2 * width, 3, 2, padding=1, key=two)
        self.norm2 = eqx.nn.BatchNorm(2 * width, **norm)
        self.out = eqx.nn.Linear(2 * width, 10, key=three)

    def __call__(self, x, state):
        """Return logits (10,) and the new statistics."""
        x, state = self.norm1(self.conv1(x), state)
        x, state = self.norm2(self.conv2(jax.nn.relu(x)), state)
        return self.out(jax.nn.relu(x).mean(axis=(1, 2))), state
