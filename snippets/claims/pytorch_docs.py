"""What PyTorch's documentation says of compiling and memory, counted."""

import functools
import logging

import torch
import torch.utils.benchmark
import torch.utils.checkpoint

EXPECTED_ERRORS = {
    "train_on": (
        RuntimeError,
        "Inference tensors cannot be saved for backward",
    ),
}


def recording(graphs):
    """Return a torch.compile backend that lists each graph and runs it."""

    def backend(graph, inputs):
        graphs.append(graph)
        return graph.forward

    return backend


def compilations(function, calls, **options):
    """Return how many graphs torch.compile has made after each call.

    A call is a tuple of arguments. `options` are those of torch.compile.
    """
    torch.compiler.reset()
    torch._logging.set_logs(dynamo=logging.ERROR)
    graphs, counts = [], []
    compiled = torch.compile(function, backend=recording(graphs), **options)
    for call in calls:
        compiled(*call)
        counts.append(len(graphs))
    return counts


def shift(x, by):
    """Return x plus `by`, a number or a tensor without axes."""
    return x + by


class Counting(torch.nn.Module):
    """A module that multiplies its input by how often it was called."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        """Return x times the number of calls, this one included."""
        self.calls += 1
        return x * self.calls


def scheduled_steps(rate, steps):
    """Return how many graphs were made by each step of SGD, as its rate falls.

    rate: the learning rate to begin with, a float or a tensor without axes.
    """
    weight = torch.nn.Parameter(torch.ones(3))
    optimizer = torch.optim.SGD([weight], lr=rate)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    graphs, counts = [], []
    torch.compiler.reset()
    step = torch.compile(optimizer.step, backend=recording(graphs))
    for _ in range(steps):
        weight.sum().backward()
        step()
        schedule.step()
        counts.append(len(graphs))
    return counts


def bytes_kept(function, *args):
    """Return the bytes that autograd keeps of a call for the backward pass."""
    kept = {}

    def keep(tensor):
        kept[tensor.data_ptr()] = tensor.nbytes
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        function(*args)
    return sum(kept.values())


def chain(x):
    """Return four functions applied to x, each of which keeps its result."""
    return x.sigmoid().tanh().exp().sigmoid()


def under(mode, function):
    """Return `function` under torch.no_grad or torch.inference_mode."""

    @functools.wraps(function)
    def call(*args):
        with mode():
            return function(*args)

    return call


def train_on(features):
    """Return the gradient of the sum of weights times features, shape (n,)."""
    weights = torch.ones_like(features, requires_grad=True)
    (weights * features).sum().backward()
    return weights.grad


def runs_with_checkpoint():
    """Return how often a checkpointed function runs for its gradient."""
    runs = 0

    def counted(x):
        nonlocal runs
        runs += 1
        return chain(x)

    x = torch.ones(3, requires_grad=True)
    torch.utils.checkpoint.checkpoint(
        counted, x, use_reentrant=False
    ).sum().backward()
    return runs


def small_network(layers=8, width=16):
    """Return a network of linear layers with relu."""
    parts = []
    for _ in range(layers):
        parts += [torch.nn.Linear(width, width), torch.nn.ReLU()]
    return torch.nn.Sequential(*parts)
