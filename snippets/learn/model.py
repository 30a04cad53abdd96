"""A small network in PyTorch, from the first parameters of the one in JAX."""

import numpy as np
import torch


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
