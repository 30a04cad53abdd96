"""Training loops that compile again, and the same loops with the cause removed."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

from snippets.tracing.retracing import compilations, counted


def count_loop(loop, function, *args, **options):
    """Return how often loop(function, ...) traces and compiles it, as a text.

    The loop runs twice. What it does outside of `function` is compiled the first time.
    """
    loop(counted(function), *args, **options)
    body = counted(function)
    with compilations() as compiled:
        loop(body, *args, **options)
    return f"traces: {body.traces}, compilations: {len(compiled)}"


def descend(weights, gradient, rate):
    """Return the weights, of any shape, after a step of gradient descent."""
    return weights - rate * gradient


def new_step_each_epoch(function, rates):
    """Train for one epoch with each rate, with a step made for it."""
    weights = np.ones(3, np.float32)
    for rate in rates:
        step = jax.jit(functools.partial(function, rate=rate))
        for _ in range(2):
            weights = step(weights, weights)
    return weights


def one_step_for_all_epochs(function, rates):
    """Train for one epoch with each rate, with one step for all of them."""
    weights = np.ones(3, np.float32)
    step = jax.jit(function)
    for rate in rates:
        for _ in range(2):
            weights = step(weights, weights, rate)
    return weights


class Optimizer:
    """Gradient descent; two objects with the same rate are not equal."""

    def __init__(self, rate):
        self.rate = rate


@dataclasses.dataclass(frozen=True)
class FrozenOptimizer:
    """Gradient descent; objects with the same rate are equal, with one hash."""

    rate: float


def apply_optimizer(optimizer, weights):
    """Return the weights after a step against themselves."""
    return weights - optimizer.rate * weights


def new_optimizer_each_epoch(function, kind, epochs):
    """Train with an optimizer of the class `kind`, made anew for each epoch."""
    weights = np.ones(3, np.float32)
    step = jax.jit(function, static_argnames="optimizer")
    for _ in range(epochs):
        weights = step(kind(0.1), weights)
    return weights


def decaying_rate(function, steps, static=()):
    """Train with a rate that is halved after each step."""
    weights, rate = np.ones(3, np.float32), 0.1
    step = jax.jit(function, static_argnames=static)
    for _ in range(steps):
        weights, rate = step(weights, weights, rate=rate), rate / 2
    return weights


def track(mean, batch):
    """Return the running mean, float32 (), after one more batch of float32."""
    return 0.9 * mean + 0.1 * jnp.mean(batch)


def over_batches(function, start, batches):
    """Return what becomes of `start` when `function` takes all batches in turn."""
    step, carry = jax.jit(function), start
    for batch in batches:
        carry = step(carry, batch)
    return carry


def search_line(function, lengths):
    """Return the value of `function` after a step of each length."""
    step, x = jax.jit(function), np.ones(3, np.float32)
    return [step(x, x, length) for length in lengths]


def descend_bfloat16(weights, gradient):
    """Return the weights, bfloat16 or float32, after a step with a float32 gradient."""
    return weights - 0.1 * gradient


def descend_same_dtype(weights, gradient):
    """Return the weights, in their own dtype, after a step with a float32 gradient."""
    return (weights - 0.1 * gradient).astype(weights.dtype)


def with_momentum(state, gradient):
    """Return the state after a step; its momentum may be None."""
    momentum = state["momentum"]
    momentum = gradient if momentum is None else 0.9 * momentum + gradient
    return {"weights": state["weights"] - 0.1 * momentum, "momentum": momentum}


def add_up(total, batch):
    """Return the total plus both entries of a batch, in the shape of `total`."""
    return total + batch["x"] + batch["y"]


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=["weights"],
    meta_fields=["step"],
)
@dataclasses.dataclass
class CountingState:
    """Weights, and the number of the step as metadata."""

    weights: jax.Array
    step: int


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class State:
    """Weights and the number of the step, both as data."""

    weights: jax.Array
    step: int


def decay(state):
    """Return the state after a step."""
    return dataclasses.replace(state, weights=0.9 * state.weights, step=state.step + 1)


def repeat(function, start, times):
    """Return what becomes of `start` when `function` is applied again and again."""
    step, carry = jax.jit(function), start
    for _ in range(times):
        carry = step(carry)
    return carry


def in_layout(function, weights, gradient, steps, result=None):
    """Train with weights on several devices; `result` is their layout after a step."""
    step = jax.jit(function, out_shardings=result)
    for _ in range(steps):
        weights = step(weights, gradient, 0.1)
    return weights


def clear_each_epoch(function, epochs):
    """Train for some epochs, and clear all caches after each."""
    step, weights = jax.jit(function), np.ones(3, np.float32)
    for _ in range(epochs):
        weights = step(weights, weights, 0.1)
        jax.clear_caches()
    return weights
