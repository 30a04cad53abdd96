"""What the documentation of JAX says about speed, memory and compiling, run."""

import os
import subprocess
import sys
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import export

from snippets.tracing.retracing import compilations

EXPECTED_ERRORS = {"read_donated": (RuntimeError, "Array has been deleted")}


def programs(function, *args):
    """Return how many programs JAX compiles during one call of `function`."""
    with compilations() as compiled:
        jax.block_until_ready(function(*args))
    return len(compiled)


def to_integers(x):
    """Return x scaled to whole numbers between -127 and 127, float32."""
    return jnp.round(x * (127 / jnp.max(jnp.abs(x))))


def instructions(function, *args):
    """Return the number of instructions in the program compiled for `args`."""
    text = jax.jit(function).lower(*args).compile().as_text()
    return text.count(" = ")


def sum_of_list(numbers):
    """Return the sum of a list, after making an array of it."""
    return jnp.sum(jnp.array(numbers))


def for_any_length(function):
    """Return `function` of float32[n, 3], exported once for every n."""
    (rows,) = export.symbolic_shape("rows")
    argument = jax.ShapeDtypeStruct((rows, 3), jnp.float32)
    return jax.jit(export.export(jax.jit(function))(argument).call)


def lengths(x):
    """Return the Euclidean length of each row of x, float32[n, 3]."""
    return jnp.sqrt(jnp.sum(x * x, axis=1))


def repeated_sine(x, times):
    """Return sin applied `times` times to x, by a scan."""
    return jax.lax.scan(lambda y, _: (jnp.sin(y), None), x, length=times)[0]


def read_donated(x):
    """Give the memory of x to a result, then read x; raises RuntimeError."""
    jax.jit(jnp.negative, donate_argnums=0)(x)
    return np.asarray(x)


@jax.jit
def increase(ref):
    """Add one to every number of a ref, in its own memory."""
    ref[...] = ref[...] + 1


def to_host(x):
    """Return x·x, for a square float32 matrix, as an array of NumPy."""
    return np.asarray(jnp.dot(x, x))


def chain(x, xp):
    """Return nine elementwise operations on float32 x, by the module `xp`."""
    return xp.exp(-x * x) * xp.cos(3 * x) + xp.log1p(x * x)


def standardized(x):
    """Return x with mean 0 and standard deviation 1 in every column."""
    x = x - x.mean(0)
    return x / x.std(0)


def in_a_loop(matrix, batch):
    """Return matrix·v for each row v of `batch`, one product after the other."""
    return jnp.stack([jnp.dot(matrix, v) for v in batch])


@jax.jit
def by_hand(matrix, batch):
    """Return matrix·v for each row v of `batch`, as one product."""
    return jnp.dot(batch, matrix.T)


@jax.jit
def by_vmap(matrix, batch):
    """Return matrix·v for each row v of `batch`, by vmap."""
    return jax.vmap(partial(jnp.dot, matrix))(batch)


def two_layers(weights, x):
    """Return tanh layers of x: weights (w1, w2) of shapes [m, n] and [m, m]."""
    first, second = weights
    return jnp.tanh(second @ jnp.tanh(first @ x))


def jacobian_operations(jacobian, inputs, outputs):
    """Return the operations that XLA counts in a Jacobian of `two_layers`."""
    weights = jnp.ones((outputs, inputs)), jnp.ones((outputs, outputs))
    compiled = jax.jit(jacobian(partial(two_layers, weights)))
    return int(compiled.lower(jnp.ones(inputs)).compile().cost_analysis()["flops"])


def starts_with_flags(*flags):
    """Return whether JAX finds its devices in a process with these XLA_FLAGS."""
    environment = os.environ | {"XLA_FLAGS": " ".join(flags)}
    command = [sys.executable, "-c", "import jax; jax.devices()"]
    return not subprocess.run(command, env=environment, capture_output=True).returncode
