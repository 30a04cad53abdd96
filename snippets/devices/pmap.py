"""jax.pmap, and one training step with pmap, with jit and with shard_map."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

EXPECTED_ERRORS = {
    "share_of_total_unnamed": (NameError, "unbound axis name: batch"),
    "double_under_mesh": (
        ValueError,
        "should match the mesh passed to shard_map",
    ),
    "total_outside": (NameError, "unbound axis name: batch"),
}

RATE = 0.1


def convolve(x, w):
    """Return the dot product of w (3,) with each window of x (n,)."""
    return jnp.array(
        [jnp.dot(x[i - 1 : i + 2], w) for i in range(1, len(x) - 1)]
    )


@partial(jax.pmap, axis_name="batch", backend="cpu")
def share_of_total(x):
    """Return x divided by its sum over all devices."""
    return x / jax.lax.psum(x, "batch")


@partial(jax.pmap, backend="cpu")
def double(x):
    """Return 2 * x."""
    return 2 * x


@partial(jax.pmap, backend="cpu")
def add(x, y):
    """Return x + y by rows; ValueError for different numbers of rows."""
    return x + y


@partial(jax.pmap, backend="cpu")
@jax.vmap
def double_each(row):
    """Return 2 * x of rows (devices, n, ...), n rows on each device."""
    return 2 * row


def double_rows(x, devices):
    """Return 2 * x (n, ...), with equally many of its rows on each device."""
    rows = x.reshape(devices, -1, *x.shape[1:])
    return double_each(rows).reshape(x.shape)


def double_under_mesh(x, mesh):
    """Return 2 * x, with pmap under a mesh; raises ValueError."""
    with jax.set_mesh(mesh):
        return double(x)


@partial(jax.pmap, backend="cpu")
def share_of_total_unnamed(x):
    """Return x divided by its sum over all devices; raises NameError."""
    return x / jax.lax.psum(x, "batch")


def total_outside(x):
    """Return the sum of x over devices; raises NameError outside pmap."""
    return jax.lax.psum(x, "batch")


def line_data(rows):
    """Return inputs (rows, 2) and targets (rows,) of 3 x0 - x1 with noise."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(rows, 2)).astype(np.float32)
    noise = 0.1 * generator.normal(size=rows).astype(np.float32)
    return x, x @ np.array([3, -1], np.float32) + noise


def loss(params, batch):
    """Return the mean squared error of x (n, 2) @ params (2,) against y."""
    x, y = batch
    return jnp.mean((x @ params - y) ** 2)


@partial(jax.pmap, axis_name="i", backend="cpu")
def train_step_pmap(params, batch):
    """Take a step of gradient descent; arguments are (devices, ...)."""
    gradient = jax.grad(loss)(params, batch)
    return params - RATE * jax.lax.pmean(gradient, "i")


def train_pmap(params, batch, steps, devices):
    """Return the parameters (2,) after some steps, with pmap."""
    params = jnp.broadcast_to(params, (devices, *params.shape))
    batch = [x.reshape(devices, -1, *x.shape[1:]) for x in batch]
    for _ in range(steps):
        params = jax.block_until_ready(train_step_pmap(params, batch))
    return params[0]


@jax.jit
def train_step(params, batch):
    """Take a step of gradient descent; written as for one device."""
    return params - RATE * jax.grad(loss)(params, batch)


def train_jit(params, batch, steps, mesh):
    """Return the parameters (2,) after some steps, with jit on shards."""
    params = jax.device_put(params, jax.NamedSharding(mesh, jax.P()))
    batch = jax.device_put(batch, jax.NamedSharding(mesh, jax.P("i")))
    for _ in range(steps):
        params = jax.block_until_ready(train_step(params, batch))
    return params


def loss_of_all(params, batch):
    """Return the mean of the losses of all devices along "i"."""
    return jax.lax.pmean(loss(params, batch), "i")


def step_on_block(params, batch):
    """Take a step of gradient descent, with the rows of one device."""
    return params - RATE * jax.grad(loss_of_all)(params, batch)


def train_shard_map(params, batch, steps, mesh):
    """Return the parameters (2,) after some steps, with shard_map."""
    replicated, sharded = jax.P(), jax.P("i")
    train_step = jax.jit(
        jax.shard_map(
            step_on_block,
            mesh=mesh,
            in_specs=(replicated, sharded),
            out_specs=replicated,
        )
    )
    batch = jax.device_put(batch, jax.NamedSharding(mesh, sharded))
    for _ in range(steps):
        params = jax.block_until_ready(train_step(params, batch))
    return params


def gradient_of_all(params, batch):
    """Return the gradient of the mean loss, from the rows of one device."""
    return jax.grad(loss_of_all)(params, batch)


def on_all(gradient, params, batch, mesh, check=True):
    """Return what a gradient function gives for a batch sharded over "i"."""
    rows = jax.P("i")
    batch = jax.device_put(batch, jax.NamedSharding(mesh, rows))
    mapped = jax.shard_map(
        gradient,
        mesh=mesh,
        in_specs=(jax.P(), rows),
        out_specs=jax.P(),
        check_vma=check,
    )
    return mapped(params, batch)


def gradient_as_in_pmap(params, batch):
    """Return the mean of the gradients of all devices, as in pmap code."""
    return jax.lax.pmean(jax.grad(loss)(params, batch), "i")


def gradient_of_own(params, batch):
    """Return the mean of the devices' gradients, each of its own weights."""
    own = jax.lax.pcast(params, "i", to="varying")
    return jax.lax.pmean(jax.grad(loss)(own, batch), "i")
