"""The network of the lesson in PyTorch, and the step that Flax has."""

import numpy as np
import optax
import torch
from flax import nnx


@nnx.jit
def nnx_step(model, optimizer, images, labels):
    """Train a module of Flax NNX for a step; return the loss before it.

    `model` and `optimizer`, an nnx.Optimizer, are changed.
    """

    def loss_of(model):
        losses = optax.softmax_cross_entropy_with_integer_labels(
            model(images), labels
        )
        return losses.mean()

    value, grads = nnx.value_and_grad(loss_of)(model)
    optimizer.update(model, grads)
    return value


def torch_mlp(params):
    """Return a module with copies of the layers of `steps.init_mlp`."""
    module = torch.nn.Sequential()
    for layer in params:
        inputs, outputs = layer["kernel"].shape
        linear = torch.nn.Linear(inputs, outputs)
        kernel, bias = (np.array(layer[name]) for name in ("kernel", "bias"))
        linear.weight.data = torch.tensor(kernel.T.copy())
        linear.bias.data = torch.tensor(bias)
        module.extend([linear, torch.nn.Tanh()])
    return module[:-1]


def train_torch(module, data, rate):
    """Take a step of Adam for each batch (images, labels); return losses."""
    optimizer = torch.optim.Adam(module.parameters(), rate)
    losses = []
    for images, labels in data:
        optimizer.zero_grad()
        logits = module(torch.tensor(images))
        loss = torch.nn.functional.cross_entropy(
            logits, torch.tensor(labels).long()
        )
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return np.array(losses, np.float32)
