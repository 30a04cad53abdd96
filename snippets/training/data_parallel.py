"""A small network trained on one device, on eight, and in PyTorch with DDP."""

import itertools
import math
import re
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import torch
from sklearn.datasets import load_digits

from snippets.devices.arrays import COLOURS, label, picture
from snippets.processes.launcher import launch, scratch_folder

RATE = 0.001
MEAN_DECAY = 0.9
SQUARE_DECAY = 0.999
EPSILON = 1e-8

COLLECTIVE = re.compile(
    r"= (.*?) (all-reduce|all-gather|reduce-scatter|all-to-all"
    r"|collective-permute)(?:-done)?\("
)


def digits(training=1536):
    """Return (images, labels) for training and for testing, mixed.

    Images are float32 (n, 64) from 0 to 1, labels int32 (n,) from 0 to 9.
    """
    data = load_digits()
    order = np.random.default_rng(0).permutation(len(data.target))
    images = (data.data[order] / 16).astype(np.float32)
    labels = data.target[order].astype(np.int32)
    for_training = images[:training], labels[:training]
    return for_training, (images[training:], labels[training:])


def first_params(key, sizes=(64, 256, 256, 10)):
    """Return layers: dicts of weights (in, out) and biases (out,).

    Weights are normal with variance 1 / in, so that sums keep their size.
    """
    params = []
    for n, (inputs, outputs) in enumerate(itertools.pairwise(sizes)):
        own_key = jax.random.fold_in(key, n)
        weights = jax.random.normal(own_key, (inputs, outputs))
        weights /= jnp.sqrt(inputs)
        params.append({"weights": weights, "biases": jnp.zeros(outputs)})
    return params


def scores(params, images):
    """Return ten scores (n, 10) for each image (n, 64)."""
    x = images
    for layer in params[:-1]:
        x = jnp.tanh(x @ layer["weights"] + layer["biases"])
    return x @ params[-1]["weights"] + params[-1]["biases"]


def loss(params, batch):
    """Return the mean of -log p(label) over images and labels."""
    images, labels = batch
    log_p = jax.nn.log_softmax(scores(params, images))
    return -jnp.take_along_axis(log_p, labels[:, None], axis=1).mean()


@jax.jit
def accuracy(params, images, labels):
    """Return the share of images whose label has the highest score."""
    return (scores(params, images).argmax(axis=1) == labels).mean()


class TrainState(NamedTuple):
    """Parameters, Adam's two averages, and the count of steps."""

    params: list
    mean: list
    square: list
    steps: jax.Array


def first_state(key):
    """Return the state before the first step."""
    params = first_params(key)
    mean, square = (jax.tree.map(jnp.zeros_like, params) for _ in range(2))
    return TrainState(params, mean, square, jnp.zeros((), jnp.int32))


def correction(decay, steps):
    """Return 1 - decay ** steps, exact also close to zero."""
    return -jnp.expm1(steps * math.log(decay))


def adam(state, grads):
    """Return the state after a step of Adam (Kingma and Ba, 2015)."""
    steps = state.steps + 1

    def average(old, g):
        return MEAN_DECAY * old + (1 - MEAN_DECAY) * g

    def average_square(old, g):
        return SQUARE_DECAY * old + (1 - SQUARE_DECAY) * g**2

    def move(p, m, s):
        m = m / correction(MEAN_DECAY, steps)
        s = s / correction(SQUARE_DECAY, steps)
        return p - RATE * m / (jnp.sqrt(s) + EPSILON)

    mean = jax.tree.map(average, state.mean, grads)
    square = jax.tree.map(average_square, state.square, grads)
    params = jax.tree.map(move, state.params, mean, square)
    return TrainState(params, mean, square, steps)


@jax.jit(donate_argnames="state")
def train_step(state, batch):
    """Return the state after one step, and the loss before it.

    The old state is donated, so nobody can use it afterwards.
    """
    value, grads = jax.value_and_grad(loss)(state.params, batch)
    return adam(state, grads), value


def batches(images, labels, epochs, size=128):
    """Return batches of `size`, each epoch in an order of its own."""
    rng = np.random.default_rng(1)
    chosen = []
    for _ in range(epochs):
        order = rng.permutation(len(images))
        for start in range(0, len(images) - size + 1, size):
            chosen.append(order[start : start + size])
    return [(images[rows], labels[rows]) for rows in chosen]


def train(state, data, placement, step=train_step):
    """Run a step, which donates the state, for each batch, put where `placement` says.

    Returns the last state and the losses (steps,), float32.
    """
    losses = []
    for batch in data:
        state, value = step(state, jax.device_put(batch, placement))
        losses.append(float(value))
    return state, np.array(losses, np.float32)


def axis_of_devices(devices):
    """Return a mesh of one axis, "data", which is explicit."""
    return jax.make_mesh((len(devices),), ("data",), devices=devices)


def shares(array):
    """Return {device number: shape of what it holds}."""
    shards = array.addressable_shards
    return {shard.device.id: shard.data.shape for shard in shards}


def count_collectives(text):
    """Count the collectives in the text of a compiled function.

    Returns {kind: {"operations": how many, "numbers": how many numbers
    they return on one device}}.
    """
    found = {}
    for result, kind in COLLECTIVE.findall(text):
        counts = found.setdefault(kind, {"operations": 0, "numbers": 0})
        counts["operations"] += 1
        for shape in re.findall(r"\w+\[([\d,]*)\]", result):
            lengths = re.findall(r"\d+", shape)
            counts["numbers"] += math.prod(map(int, lengths))
    return found


def collectives(step, *args):
    """Count the collectives in the compiled step, as `count_collectives` does."""
    return count_collectives(step.lower(*args).compile().as_text())


def count_numbers(tree):
    """Return how many numbers the arrays of a pytree hold in all."""
    return sum(x.size for x in jax.tree.leaves(tree))


def close(tree, other):
    """Return whether two pytrees agree, up to rounding in float32."""

    def agree(x, y):
        return np.allclose(x, y, rtol=1e-3, atol=1e-5)

    return all(jax.tree.leaves(jax.tree.map(agree, tree, other)))


def cut(batch, parts):
    """Cut each array (n, ...) of a batch into (parts, n / parts, ...)."""
    return jax.tree.map(lambda x: x.reshape(parts, -1, *x.shape[1:]), batch)


@jax.jit(static_argnames="parts")
def average_of_parts(params, batch, parts):
    """Return the average of the gradients of equal parts of a batch."""
    gradients = jax.vmap(jax.grad(loss), in_axes=(None, 0))
    of_each = gradients(params, cut(batch, parts))
    return jax.tree.map(lambda g: g.mean(axis=0), of_each)


def draw_curves(curves):
    """Draw {name: losses}; the axis of losses is logarithmic."""
    logs = {name: np.log10(losses) for name, losses in curves.items()}
    top = math.ceil(max(log.max() for log in logs.values()))
    bottom = math.floor(min(log.min() for log in logs.values()))
    steps = max(map(len, logs.values()))
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


@jax.shard_map(in_specs=(jax.P(), jax.P("data")), out_specs=jax.P())
def gradient_of_the_average(params, batch):
    """Return the gradient of the loss that is averaged over devices."""

    def average(params):
        return jax.lax.pmean(loss(params, batch), "data")

    return jax.grad(average)(params)


@jax.shard_map(in_specs=(jax.P(), jax.P("data")), out_specs=jax.P())
def average_of_the_gradients(params, batch):
    """Return what looks like the average of gradients, and is none."""
    return jax.lax.pmean(jax.grad(loss)(params, batch), "data")


def times_larger(tree, other):
    """Return the ratio of two pytrees, all numbers added without sign."""
    one = sum(float(abs(x).sum()) for x in jax.tree.leaves(tree))
    two = sum(float(abs(x).sum()) for x in jax.tree.leaves(other))
    return round(one / two, 3)


def torch_model(params):
    """Return the network as a torch module with the same parameters."""
    layers = []
    for layer in params:
        weights = torch.tensor(np.array(layer["weights"]))
        biases = torch.tensor(np.array(layer["biases"]))
        linear = torch.nn.Linear(*weights.shape)
        linear.load_state_dict({"weight": weights.T, "bias": biases})
        layers += [linear, torch.nn.Tanh()]
    return torch.nn.Sequential(*layers[:-1])


def train_torch(model, data):
    """Train with torch's Adam; return the losses (steps,), float32."""
    optimizer = torch.optim.Adam(
        model.parameters(), RATE, (MEAN_DECAY, SQUARE_DECAY), EPSILON
    )
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
    """Save the gradient that DDP leaves in this process, from its share of a batch."""
    import os

    import torch
    from torch.nn.parallel import DistributedDataParallel

    rank, count = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    folder = os.environ["SHARED"]
    torch.distributed.init_process_group(
        "gloo",
        init_method=f"file://{folder}/join",
        rank=rank,
        world_size=count,
    )
    model, images, labels = torch.load(f"{folder}/work.pt", weights_only=False)
    images, labels = images.chunk(count)[rank], labels.chunk(count)[rank]
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
        torch.save((model, images, labels.long()), folder / "work.pt")

        def variables(port, count, number):
            shared = {"WORLD_SIZE": str(count), "SHARED": str(folder)}
            return {"RANK": str(number)} | shared

        ended = launch(ddp_program, count, 1, variables=variables)
        grads = [
            torch.load(folder / f"{number}.pt") for number in range(count)
        ]
    return ended, grads


def as_params(tensors):
    """Return torch's weights (out, in) and biases, in turns, as layers of JAX."""
    arrays = [tensor.numpy() for tensor in tensors]
    return [
        {"weights": weights.T, "biases": biases}
        for weights, biases in zip(arrays[::2], arrays[1::2], strict=True)
    ]
