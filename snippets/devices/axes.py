"""Axes that are automatic, manual or unreduced in one function."""

import re

import jax
import jax.numpy as jnp
from jax import P, lax, reshard
from jax.sharding import auto_axes, explicit_axes

from snippets.devices.resharding import COLLECTIVES


@jax.jit
def gram(x):
    """Return x @ x.T, its rows sharded; the compiler chooses what is sent."""
    return auto_axes(lambda x: x @ x.T, out_sharding=P("x"))(x)


@jax.jit
@explicit_axes(in_sharding=P("x"))
def typed(x):
    """Return 2 * x, on a mesh of automatic axes; prints the type of x."""
    print(jax.typeof(x))
    return 2 * x


def loss(w, batch):
    """Return the sum of the squares of batch (n, 16) @ w (16, m)."""
    return jnp.sum((batch @ w) ** 2)


def add_gradients(w, total, batches):
    """Return `total` and the gradients with respect to w of all batches."""

    def add(total, batch):
        return total + jax.grad(loss)(w, batch), None

    return lax.scan(add, total, batches)[0]


@jax.jit
def sum_in_each(w, batches):
    """Return the sum of the gradients of batches (k, n, 16), n sharded."""
    return add_gradients(w, jnp.zeros_like(w), batches)


@jax.jit
def sum_once(w, batches):
    """Return the same; the devices add up their sums after the last batch."""
    total = reshard(jnp.zeros_like(w), P(unreduced={"x"}))
    total = add_gradients(reshard(w, P(reduced={"x"})), total, batches)
    return reshard(total, P())


def collectives_in_loops(function, *args):
    """Count the collectives in the bodies of a program's loops."""
    program = jax.jit(function).lower(*args).compile().as_text()
    bodies = "|".join(map(re.escape, re.findall(r"body=%([\w.-]+)", program)))
    inside = re.findall(rf"^%(?:{bodies}) .*?^}}", program, re.M | re.S)
    return len(re.findall(rf" (?:{COLLECTIVES})\(", "\n".join(inside)))


@jax.jit
def two_matmuls(x, up, down):
    """Return tanh(x @ up) @ down, features sharded over an automatic axis."""
    up = lax.with_sharding_constraint(up, P(None, "model"))
    down = lax.with_sharding_constraint(down, P("model"))
    return jnp.tanh(x @ up) @ down


@jax.jit
@jax.shard_map(axis_names={"x"}, in_specs=P("x"), out_specs=P())
def total_by_hand(x):
    """Return the sum of each column; along "y" the compiler shards it."""
    return lax.psum(x.sum(axis=0), "x")
