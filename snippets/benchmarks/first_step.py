"""The training step of the first lesson, compiled in three frameworks."""

import torch

from snippets.start.ten_minutes import loss_torch, train_step


@torch.no_grad()
def pure_step_torch(params, batch, rate):
    """Return new params after a step of gradient descent, and the loss before.

    No tensor changes.
    """
    grads, loss = torch.func.grad_and_value(loss_torch)(params, batch)
    return {name: p - rate * grads[name] for name, p in params.items()}, loss


def stepper(step, params, *rest):
    """Return a function: each call does the next step and returns its loss."""

    def next_step():
        nonlocal params
        params, value = step(params, *rest)
        return value

    return next_step


def step_each_rate(runs, batch, rates):
    """Do `train_step` for each of a list of params, one after another."""
    pairs = [
        train_step(params, batch, rate)
        for params, rate in zip(runs, rates, strict=True)
    ]
    return [params for params, _ in pairs], [value for _, value in pairs]
