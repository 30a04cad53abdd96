"""The activation SELU, eager and compiled, in three frameworks."""

import math
import resource

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
import torch

ALPHA = 1.6732632423543772
SCALE = 1.0507009873554805


def selu(x):
    """Return SELU of `x`, any shape (Klambauer et al. 2017, equation 2)."""
    return SCALE * jnp.where(x > 0, x, ALPHA * jnp.exp(x) - ALPHA)


def selu_torch(x):
    """Return SELU of `x`, a PyTorch tensor of any shape."""
    return SCALE * torch.where(x > 0, x, ALPHA * torch.exp(x) - ALPHA)


def selu_tensorflow(x):
    """Return SELU of `x`, a TensorFlow tensor of any shape."""
    return SCALE * tf.where(x > 0, x, ALPHA * tf.exp(x) - ALPHA)


def constants():
    """Return alpha and scale by Klambauer et al. 2017, equation 14.

    With them a standard normal input keeps mean 0 and variance 1.
    """
    e, pi, sqrt = math.e, math.pi, math.sqrt
    half, double = math.erfc(1 / sqrt(2)), math.erfc(sqrt(2))
    alpha = -sqrt(2 / pi) / (half * math.exp(0.5) - 1)
    below = (
        2 * double * e**2 + pi * half**2 * e - 2 * (2 + pi) * half * sqrt(e) + pi + 2
    )
    return alpha, (1 - half * sqrt(e)) * sqrt(2 * pi) / sqrt(below)


def exact_selu(x):
    """Return SELU of `x`, a NumPy array of any shape, in float64."""
    x = np.asarray(x, np.float64)
    return SCALE * np.where(x > 0, x, ALPHA * np.expm1(np.minimum(x, 0)))


def normal(size):
    """Return a float32 NumPy array of shape (size, size), standard normal."""
    return np.random.default_rng(0).standard_normal((size, size), dtype=np.float32)


@jax.jit(donate_argnames="x")
def selu_in_place(x):
    """Return SELU of `x`, any shape, in the memory of `x`, which is then gone."""
    return selu(x)


def in_place(x):
    """Return a function that replaces a copy of `x`, any shape, by its SELU."""
    latest = jnp.copy(x)

    def step():
        nonlocal latest
        latest = selu_in_place(latest)
        return latest

    return step


def fresh_arrays(function, x, calls=3):
    """Return how much new memory a call gets from the system, in arrays like `x`.

    It is the number of page faults times the size of a page, divided by that of
    `x`, an array of any framework and shape.
    """
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(calls):
        jax.block_until_ready(function(x))
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    size = math.prod(x.shape) * 4
    return round(faults / calls * resource.getpagesize() / size, 1)
