"""What JAX sees of a function while it traces it."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
import torch

EXPECTED_ERRORS = {
    "ask_for_value": (
        jax.errors.ConcretizationTypeError,
        "Abstract tracer value",
    ),
    "hand_to_numpy": (
        jax.errors.TracerArrayConversionError,
        "called on traced array",
    ),
}

SETTINGS = {"factor": 2.0}


@jax.jit
def shifted_product(x, y):
    """Return (x + 1) @ (y + 1); print what Python sees. x: (n, m), y: (m,)."""
    print("x is", x)
    print("y is", y)
    result = jnp.dot(x + 1, y + 1)
    print("the result is", result)
    return result


@jax.jit
def describe(x):
    """Return x unchanged; print what its tracer can tell."""
    print("shape:", x.shape)
    print("dtype:", x.dtype)
    print("axes:", x.ndim)
    print("entries:", x.size)
    print("is a jax.Array:", isinstance(x, jax.Array))
    print("is a tracer:", isinstance(x, jax.core.Tracer))
    return x


@jax.jit
def ask_for_value(x):
    """Raise ConcretizationTypeError: a tracer has no value to convert."""
    return float(x)


@jax.jit
def hand_to_numpy(x):
    """Raise TracerArrayConversionError: NumPy needs values, and x has none."""
    return np.sin(x)


@jax.jit
def shown_product(x, y):
    """Return (x + 1) @ (y + 1), and print it. x: (n, m), y: (m,)."""
    result = jnp.dot(x + 1, y + 1)
    jax.debug.print("the result is {}", result)
    return result


@jax.jit
def scaled(x):
    """Return x times the factor of SETTINGS."""
    return x * SETTINGS["factor"]


@torch.compile(backend="eager")
def scaled_torch(x):
    """Return x times the factor of SETTINGS."""
    return x * SETTINGS["factor"]


@tf.function
def scaled_tensorflow(x):
    """Return x times the factor of SETTINGS."""
    return x * SETTINGS["factor"]


@jax.jit
def scaled_by(x, factor):
    """Return x times factor."""
    return x * factor


@jax.jit
def frozen_noise(x):
    """Return x plus a NumPy random number, drawn only while tracing."""
    return x + np.random.default_rng().normal()


@jax.jit
def fresh_noise(key, x):
    """Return x plus one standard normal number drawn from a JAX key."""
    return x + jax.random.normal(key)


@tf.function
def tensorflow_product(x, y):
    """Return (x + 1) @ (y + 1); print what Python and TensorFlow see."""
    print("x is", x)
    result = tf.linalg.matvec(x + 1, y + 1)
    tf.print("the result is", result, output_stream=sys.stdout)
    return result


@torch.compile(backend="eager")
def torch_product(x, y):
    """Return (x + 1) @ (y + 1) and print it. x: (n, m), y: (m,)."""
    result = (x + 1) @ (y + 1)
    print("the result is", result)
    return result
