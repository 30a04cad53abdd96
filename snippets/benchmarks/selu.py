"""The activation SELU, eager and compiled, in three frameworks."""

import contextlib
import functools
import math
import os
import resource
import shutil
import tempfile

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


def torch_tensor(array):
    """Return a NumPy array as a tensor on the accelerator, or the CPU without one."""
    found = torch.accelerator.current_accelerator(check_available=True)
    return torch.tensor(array, device=found or "cpu")


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


def at_size(functions, size):
    """Return what to compare: functions of arrays of shape (size, size).

    `functions` maps keys to pairs of a function and how its framework takes a
    NumPy array.
    """
    x = normal(size)
    return {
        key: functools.partial(function, convert(x))
        for key, (function, convert) in functions.items()
    }


def calls_until_paid(comparison, other, compiled):
    """Return from how many calls on `compiled` takes no longer in all than `other`.

    Both are keys of a comparison. The compiled total includes its first call; every
    call of the other is taken at the median. None where the compiled one is not
    the faster, or the two cannot be told apart.
    """
    slow, fast = (comparison.alternatives[key] for key in (other, compiled))
    if fast.first_call <= slow.median:
        return 1
    ratio = comparison.ratio(other, compiled)
    if not ratio.different or ratio.value < 1:
        return None
    return math.ceil((fast.first_call - fast.median) / (slow.median - fast.median))


def has_cpp_compiler():
    """Say whether a C++ compiler is installed, which torch.compile needs on a CPU."""
    return any(
        shutil.which(name) for name in (os.environ.get("CXX", ""), "g++", "clang++")
    )


@contextlib.contextmanager
def empty_torch_cache():
    """Let torch.compile start from an empty cache, which is then thrown away."""
    before = dict(os.environ)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
        try:
            yield
        finally:
            os.environ.pop("TORCHINDUCTOR_CACHE_DIR")
            os.environ.update(before)


def largest_difference(result, exact):
    """Return the largest absolute difference of an array from the exact one."""
    return float(np.max(np.abs(np.asarray(result, np.float64) - exact)))
