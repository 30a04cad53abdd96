"""Simulations: walks that end, samples of a posterior, recurrences."""

import functools

import jax
import jax.numpy as jnp
from jax import lax

PRIOR = 10.0


def noise(key, path, step):
    """Return a normal number, the same for the same path and step."""
    return jax.random.normal(
        jax.random.fold_in(jax.random.fold_in(key, path), step)
    )


def steps_to_exit(key, path, level, limit):
    """Return the steps until a random walk leaves (-level, level).

    It takes `limit` steps at most.
    """

    def inside(state):
        position, step = state
        return (jnp.abs(position) < level) & (step < limit)

    def move(state):
        position, step = state
        return position + noise(key, path, step), step + 1

    return lax.while_loop(inside, move, (0.0, 0))[1]


def refill(count, state, position, step, ended):
    """Return the next state; a lane whose walk ended gets the next walk."""
    path = state["path"]
    found = state["found"].at[jnp.where(ended, path, count)]
    waiting = state["next"] + jnp.cumsum(ended) - 1
    return {
        "position": jnp.where(ended, 0.0, position),
        "step": jnp.where(ended, 0, step),
        "path": jnp.where(ended, waiting, path),
        "next": state["next"] + ended.sum(),
        "found": found.set(step, mode="drop"),
        "iterations": state["iterations"] + 1,
    }


def next_state(key, count, level, limit, state):
    """Take a step in each lane."""
    path, step = state["path"], state["step"] + 1
    moved = jax.vmap(noise, (None, 0, 0))(key, path, step - 1)
    position = state["position"] + moved
    ended = (jnp.abs(position) >= level) | (step == limit)
    return refill(count, state, position, step, ended)


@jax.jit(static_argnames=("count", "lanes", "advance"))
def refilled(key, count, lanes, level, limit, advance=next_state):
    """Return the steps of `count` walks, and the iterations of `lanes`."""
    start = {
        "position": jnp.zeros(lanes),
        "step": jnp.zeros(lanes, jnp.int32),
        "path": jnp.arange(lanes),
        "next": jnp.int32(lanes),
        "found": jnp.zeros(count, jnp.int32),
        "iterations": jnp.int32(0),
    }
    state = lax.while_loop(
        lambda state: (state["path"] < count).any(),
        functools.partial(advance, key, count, level, limit),
        start,
    )
    return state["found"], state["iterations"]


def log_posterior(params, inputs, targets):
    """Return the log density of params (bias, weight), up to a constant.

    The targets (n,) are bias + weight * inputs with normal noise of deviation
    1; both parameters have a normal prior of deviation `PRIOR`.
    """
    bias, weight = params
    error = targets - (bias + weight * inputs)
    return -(jnp.sum(error**2) + jnp.sum((params / PRIOR) ** 2)) / 2


def exact_posterior(inputs, targets):
    """Return the mean (2,) and the deviations (2,) of that posterior.

    It is normal, because noise and prior are.
    """
    X = jnp.stack([jnp.ones_like(inputs), inputs], axis=1)
    covariance = jnp.linalg.inv(X.T @ X + jnp.eye(2) / PRIOR**2)
    return covariance @ (X.T @ targets), jnp.sqrt(jnp.diag(covariance))


def chain(key, sampler, start, count):
    """Return samples (count, n), and the number of steps of each.

    `sampler` is one of BlackJAX, `start` has shape (n,). A step is one
    gradient of the log density.
    """

    def draw(state, key):
        state, info = sampler.step(key, state)
        return state, (state.position, info.num_integration_steps)

    keys = jax.random.split(key, count)
    return lax.scan(draw, sampler.init(start), keys)[1]


@jax.jit(static_argnames=("sampler", "count"))
def chains(key, sampler, starts, count):
    """Return what `chain` does from each row of `starts`, all at once."""

    def run(key, start):
        return chain(key, sampler, start, count)

    return jax.vmap(run)(jax.random.split(key, len(starts)), starts)


@jax.jit(static_argnames=("sampler", "count"))
def chains_in_turn(key, sampler, starts, count):
    """Return what `chains` does, one chain after another."""

    def run(both):
        key, start = both
        return chain(key, sampler, start, count)

    return lax.map(run, (jax.random.split(key, len(starts)), starts))


def recurrence(a, b):
    """Return h with h[t] = a[t] * h[t - 1] + b[t], one step at a time."""

    def step(h, ab):
        h = ab[0] * h + ab[1]
        return h, h

    return lax.scan(step, 0.0, (a, b))[1]


def recurrence_by_pairs(a, b):
    """Return the same; pairs of steps are combined, then pairs of pairs."""

    def combine(first, second):
        (a1, b1), (a2, b2) = first, second
        return a1 * a2, b1 * a2 + b2

    return lax.associative_scan(combine, (a, b))[1]
