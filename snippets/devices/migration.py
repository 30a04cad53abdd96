"""One training step in three forms: pmap, jit with shardings, shard_map."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

RATE = 0.1


def line_data(rows):
    """Return inputs (rows, 2) and targets (rows,) of 3 x0 - x1 with some noise."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(rows, 2)).astype(np.float32)
    noise = 0.1 * generator.normal(size=rows).astype(np.float32)
    return x, x @ np.array([3, -1], np.float32) + noise


def loss(w, x, y):
    """Return the mean squared error of x (n, 2) @ w (2,) against y (n,)."""
    return jnp.mean((x @ w - y) ** 2)


@partial(jax.pmap, axis_name="i", backend="cpu")
def step_pmap(w, x, y):
    """Take a step of gradient descent; arguments are (devices, ...)."""
    gradient = jax.grad(loss)(w, x, y)
    return w - RATE * jax.lax.pmean(gradient, "i")


def train_pmap(w, x, y, steps, devices):
    """Return the weights (2,) after some steps, with pmap."""
    w = jnp.broadcast_to(w, (devices, *w.shape))
    x = x.reshape(devices, -1, *x.shape[1:])
    y = y.reshape(devices, -1, *y.shape[1:])
    for _ in range(steps):
        w = jax.block_until_ready(step_pmap(w, x, y))
    return w[0]


@jax.jit
def step(w, x, y):
    """Take a step of gradient descent; written as for one device."""
    return w - RATE * jax.grad(loss)(w, x, y)


def train_jit(w, x, y, steps, mesh):
    """Return the weights (2,) after some steps, with jit on sharded data."""
    replicated = jax.NamedSharding(mesh, jax.P())
    sharded = jax.NamedSharding(mesh, jax.P("i"))
    w, x, y = jax.device_put((w, x, y), (replicated, sharded, sharded))
    for _ in range(steps):
        w = jax.block_until_ready(step(w, x, y))
    return w


def loss_of_all(w, x, y):
    """Return the mean of the losses of all devices along "i"."""
    return jax.lax.pmean(loss(w, x, y), "i")


def step_on_block(w, x, y):
    """Take a step of gradient descent, with the rows of one device."""
    return w - RATE * jax.grad(loss_of_all)(w, x, y)


def train_shard_map(w, x, y, steps, mesh):
    """Return the weights (2,) after some steps, with shard_map."""
    replicated, sharded = jax.P(), jax.P("i")
    step = jax.jit(
        jax.shard_map(
            step_on_block,
            mesh=mesh,
            in_specs=(replicated, sharded, sharded),
            out_specs=replicated,
        )
    )
    x, y = jax.device_put((x, y), jax.NamedSharding(mesh, sharded))
    for _ in range(steps):
        w = jax.block_until_ready(step(w, x, y))
    return w


def gradient_of_all(w, x, y):
    """Return the gradient of the mean loss, from the rows of one device."""
    return jax.grad(loss_of_all)(w, x, y)


def on_all(gradient, w, x, y, mesh, check=True):
    """Return what a gradient function gives for x and y sharded over "i"."""
    rows = jax.P("i")
    x, y = jax.device_put((x, y), jax.NamedSharding(mesh, rows))
    mapped = jax.shard_map(
        gradient,
        mesh=mesh,
        in_specs=(jax.P(), rows, rows),
        out_specs=jax.P(),
        check_vma=check,
    )
    return mapped(w, x, y)


def gradient_as_in_pmap(w, x, y):
    """Return the mean of the gradients of all devices, as in pmap code."""
    return jax.lax.pmean(jax.grad(loss)(w, x, y), "i")


def gradient_of_own(w, x, y):
    """Return the mean of the devices' gradients, each of its own weights."""
    own = jax.lax.pcast(w, "i", to="varying")
    return jax.lax.pmean(jax.grad(loss)(own, x, y), "i")
