"""Loops that tracing unrolls, and what they cost before the first result."""

import functools

import jax
import jax.numpy as jnp

from snippets.jaxprs.reading import primitives

LENGTHS = (4, 12, 36)


def smooth(level, x):
    """Return the next level: mostly the old one, and a little of tanh x."""
    return 0.9 * level + 0.1 * jnp.tanh(x)


def levels_by_loop(xs):
    """Return the level after each of `xs`, (n,), by a Python loop."""
    level, levels = jnp.zeros(()), []
    for x in xs:
        level = smooth(level, x)
        levels.append(level)
    return jnp.stack(levels)


def levels_by_scan(xs, unroll=1):
    """Return the level after each of `xs`, (n,), by a compiled loop."""

    def step(level, x):
        level = smooth(level, x)
        return level, level

    return jax.lax.scan(step, jnp.zeros(()), xs, unroll=unroll)[1]


def equations(function, *args):
    """Count the equations in the jaxpr of a call, nested jaxprs included."""
    return len(primitives(jax.make_jaxpr(function)(*args)))


def grid_sum(rows, columns):
    """Return the sum of cos(i j) over a grid, by two nested Python loops."""
    total = 0.0
    for i in range(rows):
        for j in range(columns):
            total = total + jnp.cos(jnp.float32(i * j))
    return total


def grid_sum_at_once(rows, columns):
    """Return the sum of cos(i j) over a grid, as one operation on an array."""
    products = jnp.outer(jnp.arange(rows), jnp.arange(columns))
    return jnp.cos(products.astype(jnp.float32)).sum()


def lines_to_compile(function, *args):
    """Return how many lines of StableHLO the compiler gets."""
    return len(jax.jit(function).lower(*args).as_text().splitlines())


def block(w, x):
    """Apply attention and a layer to `x`, (rows, k), with `w`, (4, k, k)."""
    scores = (x @ w[0]) @ (x @ w[1]).T
    x = x + jax.nn.softmax(scores) @ (x @ w[2])
    return x + jax.nn.gelu(x @ w[3])


def blocks_loss(step, weights, x):
    """Apply `step` with each of a list of weights; return a mean, ()."""
    for w in weights:
        x = step(w, x)
    return jnp.mean(x**2)


def gradient_of_blocks(wrap):
    """Return the jitted gradient of blocks that JAX has not seen before.

    `wrap` is applied to the block, as `jax.jit` is.
    """
    step = wrap(lambda w, x: block(w, x))
    return jax.jit(jax.grad(functools.partial(blocks_loss, step)))


def states_by_scan(xs, w, unroll=1):
    """Return the last h = tanh(h @ w + x) for `xs`, (n, batch, k)."""

    def step(h, x):
        return jnp.tanh(h @ w + x), None

    return jax.lax.scan(step, jnp.zeros(xs.shape[1:]), xs, unroll=unroll)[0]


def unrolled(function, count):
    """Return `function`, jitted, with `count` steps per loop iteration."""
    return jax.jit(functools.partial(function, unroll=count))
