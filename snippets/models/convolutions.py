"""A convolutional network with batch norm, in JAX and in PyTorch."""

import equinox as eqx
import jax
import numpy as np
import optax
import torch
from flax import nnx

from snippets.models.modules import linear
from snippets.models.steps import batches, digits


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
    """Convolve images x, NHWC, by a kernel (3, 3, inputs, outputs)."""
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
    """Return logits (n, 10) for images (n, 8, 8, 1), and new statistics."""
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


def max_pooled(x):
    """Return float32 images x (n, c, 2h, 2w), the largest of 2x2 pixels each.

    In Flax, Equinox and PyTorch.
    """
    nhwc = x.transpose(0, 2, 3, 1)
    in_flax = nnx.max_pool(nhwc, (2, 2), strides=(2, 2)).transpose(0, 3, 1, 2)
    in_equinox = jax.vmap(eqx.nn.MaxPool2d(2, stride=2))(x)
    in_torch = torch.nn.functional.max_pool2d(torch.tensor(x), 2)
    return in_flax, in_equinox, in_torch.numpy()


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


RATE = 0.05
MOMENTUM = 0.9
OPTIMIZER = optax.sgd(RATE, momentum=MOMENTUM)


def image_batches(epochs=8):
    """Return batches of (images (128, 8, 8, 1), labels), and a test batch."""
    training, (images, labels) = digits()
    rows = batches(*training, epochs=epochs)
    rows = [(x.reshape(-1, 8, 8, 1), y) for x, y in rows]
    return rows, (images.reshape(-1, 8, 8, 1), labels)


def to_torch(images):
    """Return images, NHWC, as a tensor, NCHW."""
    return torch.tensor(np.moveaxis(images, -1, 1).copy())


def mean_cross_entropy(logits, labels):
    """Return the mean of -log p(label)."""
    return optax.softmax_cross_entropy_with_integer_labels(
        logits, labels
    ).mean()


@jax.jit(donate_argnames=("params", "stats", "opt_state"))
def train_step(params, stats, opt_state, batch):
    """Return parameters, statistics, optimizer state, and the loss before."""

    def loss(params, batch):
        images, labels = batch
        logits, new_stats = cnn(params, stats, images)
        return mean_cross_entropy(logits, labels), new_stats

    gradient = jax.value_and_grad(loss, has_aux=True)
    (value, stats), grads = gradient(params, batch)
    updates, opt_state = OPTIMIZER.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), stats, opt_state, value


def train(params, stats, batches):
    """Train, donating all; return (params, stats, losses (steps,))."""
    opt_state, losses = OPTIMIZER.init(params), []
    for batch in batches:
        params, stats, opt_state, loss = train_step(
            params, stats, opt_state, batch
        )
        losses.append(loss)
    return params, stats, np.array(losses)


@nnx.jit(donate_argnames=("model", "optimizer"))
def nnx_step(model, optimizer, batch):
    """Update module and optimizer in place; return the loss before it."""

    def loss(model, batch):
        images, labels = batch
        return mean_cross_entropy(model(images), labels)

    value, grads = nnx.value_and_grad(loss)(model, batch)
    optimizer.update(model, grads)
    return value


def train_nnx(model, batches):
    """Train an NNX module in place; return the losses (steps,)."""
    optimizer = nnx.Optimizer(model, OPTIMIZER, wrt=nnx.Param)
    return np.array([nnx_step(model, optimizer, batch) for batch in batches])


def on_batch(model, state, images):
    """Return logits (n, 10) for images (n, 8, 8, 1), and the new state."""
    rows = jax.vmap(
        model, axis_name="batch", in_axes=(0, None), out_axes=(0, None)
    )
    return rows(images.transpose(0, 3, 1, 2), state)


@eqx.filter_jit
def equinox_step(model, state, opt_state, batch):
    """Return module, its state and the optimizer's, and the loss before."""

    def loss(model, batch):
        images, labels = batch
        logits, new_state = on_batch(model, state, images)
        return mean_cross_entropy(logits, labels), new_state

    gradient = eqx.filter_value_and_grad(loss, has_aux=True)
    (value, state), grads = gradient(model, batch)
    params = eqx.filter(model, eqx.is_inexact_array)
    updates, opt_state = OPTIMIZER.update(grads, opt_state, params)
    return eqx.apply_updates(model, updates), state, opt_state, value


def train_equinox(model, state, batches):
    """Train an Equinox module; return (model, state, losses (steps,))."""
    opt_state = OPTIMIZER.init(eqx.filter(model, eqx.is_inexact_array))
    losses = []
    for batch in batches:
        model, state, opt_state, loss = equinox_step(
            model, state, opt_state, batch
        )
        losses.append(loss)
    return model, state, np.array(losses)


def torch_step(model, optimizer, batch):
    """Update a torch module in place; return the loss before it."""
    images, labels = batch
    optimizer.zero_grad()
    logits = model(to_torch(images))
    labels = torch.tensor(labels, dtype=torch.long)
    loss = torch.nn.functional.cross_entropy(logits, labels)
    loss.backward()
    optimizer.step()
    return loss.item()


def train_torch(model, batches):
    """Train a torch module in place; return the losses (steps,)."""
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=MOMENTUM)
    return np.array([torch_step(model, optimizer, batch) for batch in batches])


def accuracy(logits, labels):
    """Return the fraction of rows whose largest logit is that of the label."""
    return float((np.asarray(logits).argmax(axis=-1) == labels).mean())


def kernel_after_flatten(kernel, height, width):
    """Return a kernel of PyTorch for features flattened from NHWC.

    Its first axis goes from (channels, height, width) to (height, width,
    channels), all in one; the second is (outputs,).
    """
    kernel = kernel.reshape(-1, height, width, kernel.shape[-1])
    return kernel.transpose(1, 2, 0, 3).reshape(-1, kernel.shape[-1])
