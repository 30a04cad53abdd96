"""A network trained on one device, on eight, and in PyTorch with DDP."""

import itertools
import math
import re

import jax
import numpy as np
import torch

from snippets.devices.arrays import COLOURS, label, picture
from snippets.models.steps import gradient_of, split_batch
from snippets.programs.launcher import launch, scratch_folder

RATE = 0.001

COLLECTIVE = re.compile(
    r"= (.*?) (all-reduce|all-gather|reduce-scatter|all-to-all"
    r"|collective-permute)(?:-done)?\("
)


class TorchMlp(torch.nn.Module):
    """Linear layers with tanh between them: images (n, 64) to (n, 10)."""

    def __init__(self, sizes=(64, 256, 256, 10)):
        super().__init__()
        pairs = itertools.pairwise(sizes)
        self.layers = torch.nn.ModuleList(
            torch.nn.Linear(*pair) for pair in pairs
        )

    def forward(self, x):
        """Return the logits."""
        for layer in self.layers[:-1]:
            x = torch.tanh(layer(x))
        return self.layers[-1](x)


def share_correct(logits, labels):
    """Return the share of rows whose label has the largest logit."""
    return (logits.argmax(axis=1) == labels).mean()


def axis_of_devices(devices):
    """Return a mesh of one axis, "data", which is explicit."""
    return jax.make_mesh((len(devices),), ("data",), devices=devices)


def shard_shapes(array):
    """Return {device number: shape of its shard}."""
    shards = array.addressable_shards
    return {shard.device.id: shard.data.shape for shard in shards}


def count_collectives(text):
    """Count the collectives in the text of a compiled function.

    Returns {kind: {"operations": how many, "elements": how many elements
    they return on one device}}.
    """
    found = {}
    for result, kind in COLLECTIVE.findall(text):
        counts = found.setdefault(kind, {"operations": 0, "elements": 0})
        counts["operations"] += 1
        for shape in re.findall(r"\w+\[([\d,]*)\]", result):
            lengths = re.findall(r"\d+", shape)
            counts["elements"] += math.prod(map(int, lengths))
    return found


def collectives(step, *args):
    """Count the collectives of a step, as `count_collectives` does."""
    return count_collectives(step.lower(*args).compile().as_text())


def count_elements(tree):
    """Return how many elements the arrays of a pytree have in all."""
    return sum(x.size for x in jax.tree.leaves(tree))


def close(tree, other):
    """Return whether two pytrees agree, up to rounding in float32."""

    def agree(x, y):
        return np.allclose(x, y, rtol=1e-3, atol=1e-5)

    return all(jax.tree.leaves(jax.tree.map(agree, tree, other)))


def mean_of_gradients(loss, count):
    """Return a gradient: the mean of those of `count` microbatches."""

    def gradient(params, stats, batch):
        of_each = jax.vmap(gradient_of(loss), in_axes=(None, None, 0))(
            params, stats, split_batch(batch, count)
        )
        return jax.tree.map(lambda x: x.mean(axis=0), of_each)

    return gradient


def draw_curves(curves, steps=None):
    """Draw {name: losses}; the axis of losses is logarithmic.

    Each curve has a loss for each step, or as many, spread over `steps`.
    """
    logs = {name: np.log10(losses) for name, losses in curves.items()}
    top = math.ceil(max(log.max() for log in logs.values()))
    bottom = math.floor(min(log.min() for log in logs.values()))
    steps = steps or max(map(len, logs.values()))
    parts = [label(265, 290, "step"), label(60, 290, 1)]
    parts.append(label(460, 290, steps))
    for power in range(bottom, top + 1):
        y = 20 + 240 * (top - power) / (top - bottom)
        grid = 'stroke="currentColor" opacity=".3"'
        parts.append(f'<path d="M60 {y}H470" {grid}/>')
        parts.append(label(50, y + 5, f"{10.0**power:g}", "end"))
    for n, (name, log) in enumerate(logs.items()):
        xs = np.linspace(60, 470, len(log))
        ys = 20 + 240 * (top - log) / (top - bottom)
        pairs = zip(xs, ys, strict=True)
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in pairs)
        look = f'fill="none" stroke="{COLOURS[n]}"'
        look += f' stroke-width="{5 - 3 * (n > 0)}"'
        look += f' stroke-dasharray="{6 * n} {6 * n}"' if n else ""
        parts.append(f'<polyline points="{points}" {look}/>')
        parts.append(f'<path d="M300 {40 + 24 * n}h40" {look}/>')
        parts.append(label(350, 45 + 24 * n, name, "start"))
    ends = [
        f"{name} from {c[0]:.2g} to {c[-1]:.2g}" for name, c in curves.items()
    ]
    meaning = f"Loss over {steps} steps: {', '.join(ends)}"
    return picture(480, 300, parts, meaning)


def gradient_of_the_mean(loss):
    """Return the gradient of the mean over the rows of all devices."""

    def gradient(params, batch):
        def total_of_all(params):
            total, (count, _) = loss(params, {}, batch)
            return jax.lax.psum(total, "data"), jax.lax.psum(count, "data")

        grads, count = jax.grad(total_of_all, has_aux=True)(params)
        return jax.tree.map(lambda x: x / count, grads)

    return by_rows(gradient)


def mean_of_the_gradients(loss):
    """Return what looks like the mean of gradients, and is none."""

    def gradient(params, batch):
        _, grads = gradient_of(loss)(params, {}, batch)
        return jax.lax.pmean(grads, "data")

    return by_rows(gradient)


def by_rows(gradient):
    """Return a gradient for which each device has some rows of the batch."""

    def sharded(params, batch):
        return jax.shard_map(
            gradient, in_specs=(jax.P(), jax.P("data")), out_specs=jax.P()
        )(params, batch)

    return sharded


def times_larger(tree, other):
    """Return the ratio of two pytrees, all numbers added without sign."""
    one = sum(float(abs(x).sum()) for x in jax.tree.leaves(tree))
    two = sum(float(abs(x).sum()) for x in jax.tree.leaves(other))
    return round(one / two, 3)


def train_torch(model, data):
    """Train with PyTorch's Adam; return the losses (steps,), float32."""
    optimizer = torch.optim.Adam(model.parameters(), RATE)
    losses = []
    for images, labels in data:
        optimizer.zero_grad()
        logits, right = model(torch.tensor(images)), torch.tensor(labels)
        value = torch.nn.functional.cross_entropy(logits, right.long())
        value.backward()
        optimizer.step()
        losses.append(value.item())
    return np.array(losses, np.float32)


def ddp_program():
    """Save the gradient that DDP leaves in a process, from its rows."""
    import os

    import torch
    from torch.nn.parallel import DistributedDataParallel

    rank, count = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    folder = os.environ["SHARED"]
    torch.distributed.init_process_group(
        "gloo", f"file://{folder}/join", rank=rank, world_size=count
    )
    model, *batch = torch.load(f"{folder}/work.pt", weights_only=False)
    images, labels = (x.chunk(count)[rank] for x in batch)
    shared = DistributedDataParallel(model)
    value = torch.nn.functional.cross_entropy(shared(images), labels)
    total = value.detach().clone()
    torch.distributed.all_reduce(total)
    value.backward()
    torch.save([p.grad for p in model.parameters()], f"{folder}/{rank}.pt")
    print(len(images), "images, own loss", f"{value.item():.3f}")
    print("loss of all", f"{total.item() / count:.3f}")
    torch.distributed.destroy_process_group()


def gradient_in_processes(model, batch, count=2):
    """Run `ddp_program` in `count` processes on a batch of NumPy arrays.

    Returns (how each ended, [its gradient, a list of tensors]).
    """
    images, labels = map(torch.tensor, batch)
    with scratch_folder() as folder:
        layers = []
        for layer in model.layers:
            layers += [layer, torch.nn.Tanh()]
        layers = torch.nn.Sequential(*layers[:-1])
        torch.save((layers, images, labels.long()), folder / "work.pt")

        def variables(port, count, number):
            shared = {"WORLD_SIZE": str(count), "SHARED": str(folder)}
            return {"RANK": str(number)} | shared

        ended = launch(ddp_program, count, 1, variables=variables)
        grads = [
            torch.load(folder / f"{number}.pt") for number in range(count)
        ]
    return ended, grads
