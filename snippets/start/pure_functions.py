"""What happens to side effects and globals when a function is traced."""

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
import torch

EXPECTED_ERRORS = {
    "use_leaked_value": (jax.errors.UnexpectedTracerError, "side effect"),
}

SCALE = 2.0
CALLS = []


@jax.jit
def scaled(x):
    """Multiply `x` by the global SCALE."""
    return SCALE * x


def scaled_torch(x):
    """Multiply `x` by the global SCALE."""
    return SCALE * x


@tf.function
def scaled_tensorflow(x):
    """Multiply `x` by the global SCALE."""
    return SCALE * x


def compile_torch(function):
    """Compile a torch function without generating machine code."""
    return torch.compile(function, backend="eager")


@jax.jit
def scaled_by(x, scale):
    """Multiply `x` by `scale`."""
    return scale * x


@jax.jit
def square_and_log(x):
    """Return x² and note the call in the global list CALLS."""
    CALLS.append("called")
    return x * x


@jax.jit
def square_and_count(x, calls):
    """Return x² and the number of calls so far, this one included."""
    return x * x, calls + 1


@jax.jit
def add_noise_numpy(x):
    """Add normal noise drawn by NumPy."""
    return x + np.random.normal(size=x.shape)


@jax.jit
def add_noise(key, x):
    """Add normal noise drawn with `key`."""
    return x + jax.random.normal(key, x.shape)


def use_leaked_value(x):
    """Store a traced value and use it afterwards; raises UnexpectedTracerError."""
    stored = []

    @jax.jit
    def double(x):
        y = 2 * x
        stored.append(y)
        return y.sum()

    total = double(x)
    return total, stored[0] + 1


@jax.jit
def double_and_sum(x):
    """Return 2x and its sum."""
    y = 2 * x
    return y.sum(), y


@jax.jit
def powers(x):
    """Return 1, x, x², x³ along a new first axis."""
    rows = []
    for exponent in range(4):
        rows.append(x**exponent)
    return jnp.stack(rows)


@jax.jit
def square_and_print(x):
    """Return x² and print `x` at every call."""
    jax.debug.print("x is {}", x)
    return x * x
