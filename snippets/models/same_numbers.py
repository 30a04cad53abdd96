"""What changes the last bits of a result, and what does not."""

import jax
import jax.numpy as jnp
import numpy as np
import torch

from snippets.models.steps import (
    cross_entropy,
    gradient_of,
    mlp,
    moving_average,
    stateless,
)


def compared(tree, other):
    """Say whether two pytrees have the same bits, or how far apart they are.

    The distance is the largest one, as a share of the largest element.
    """
    pairs = list(
        zip(jax.tree.leaves(tree), jax.tree.leaves(other), strict=True)
    )
    if all(np.array_equal(x, y) for x, y in pairs):
        return "the same bits"
    distance = max(np.abs(np.subtract(x, y)).max() for x, y in pairs)
    largest = max(np.abs(x).max() for x, _ in pairs)
    return f"differ by {distance / largest:.0e}"


def gradient(params, batch):
    """Return the gradient of the loss over a batch of (images, labels)."""
    loss = cross_entropy(stateless(mlp))
    return gradient_of(loss)(params, {}, batch)[1]


def each_alone(params, batch):
    """Return the mean of the gradients of single examples, with vmap."""
    ones = jax.tree.map(lambda x: x[:, None], batch)
    grads = jax.vmap(gradient, in_axes=(None, 0))(params, ones)
    return jax.tree.map(lambda g: g.mean(axis=0), grads)


def in_halves(params, batch):
    """Return the mean of the gradients of two halves of the batch."""
    half = len(batch[0]) // 2
    first, second = (
        gradient(params, [x[part] for x in batch])
        for part in (slice(None, half), slice(half, None))
    )
    return moving_average(first, second, decay=0.5)


def backwards(params, batch):
    """Return the gradient over the batch with its rows in reverse order."""
    return gradient(params, [x[::-1] for x in batch])


def sharded(params, batch):
    """Return the gradient, computed on all virtual devices of the CPU."""
    mesh = jax.make_mesh(
        (jax.device_count("cpu"),), ("data",), devices=jax.devices("cpu")
    )
    rows = jax.NamedSharding(mesh, jax.P("data"))
    whole = jax.NamedSharding(mesh, jax.P())
    with jax.set_mesh(mesh):
        return jax.jit(gradient)(
            jax.device_put(params, whole), jax.device_put(batch, rows)
        )


def gradient_program():
    """Print a number that changes with any bit of a gradient."""
    import zlib

    import jax
    import numpy as np

    x, y = (
        jax.random.normal(key, (512, 512))
        for key in jax.random.split(jax.random.key(0))
    )
    grads = jax.jit(jax.grad(lambda x: ((x @ y) ** 2).mean()))(x)
    print(zlib.crc32(np.asarray(grads).tobytes()))


def distances(step, params, other, opt_state, data, at):
    """Train from two sets of parameters; return how far apart they are.

    Returns {steps taken: distance} for the numbers of steps in `at`.
    """
    states = [(tree, {}, opt_state) for tree in (params, other)]
    states = jax.tree.map(jnp.copy, states)
    found = {}
    for number, batch in enumerate(data, start=1):
        states = [step(*state, batch)[:3] for state in states]
        if number in at:
            found[number] = compared(states[0][0], states[1][0])
    return found


def torch_gradient(module, batch, threads):
    """Return the first layer's gradient, computed by so many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        logits = module(torch.tensor(batch[0]))
        labels = torch.tensor(batch[1]).long()
        loss = torch.nn.functional.cross_entropy(logits, labels)
        return torch.autograd.grad(loss, module[0].weight)[0].numpy()
    finally:
        torch.set_num_threads(before)
