"""The activation SELU, eager and compiled, in three frameworks."""

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

from snippets.timing.timer import measure

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


def measure_jax(name, x):
    """Measure SELU of `x`, any shape, in JAX: eager, and compiled once."""
    return measure(f"{name}/eager", selu, x), measure(f"{name}/jit", jax.jit(selu), x)


@jax.jit(donate_argnames="x")
def selu_in_place(x):
    """Return SELU of `x`, any shape, in the memory of `x`, which is then gone."""
    return selu(x)


def measure_in_place(name, x):
    """Measure SELU where each call takes over the memory of the last one's result."""
    latest = jnp.copy(x)

    def step():
        nonlocal latest
        latest = selu_in_place(latest)
        return latest

    return measure(f"{name}/jit_in_place", step, framework="jax", inputs=[x])


def page_faults(function, *args, calls=3):
    """Count how often a call has to ask the system for a page of memory."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(calls):
        jax.block_until_ready(function(*args))
    return (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) // calls


def jit_again(x):
    """Return SELU of `x` by a function that is passed to `jax.jit` in every call."""
    return jax.jit(selu)(x)


def jit_a_lambda(x):
    """Return SELU of `x` by a function that is new, and compiled, in every call."""
    return jax.jit(lambda y: selu(y))(x)


def measure_jit_in_the_loop(name, x):
    """Measure SELU of `x`, any shape, where each call wraps a function anew."""
    measure(f"{name}/jit_again", jit_again, x)
    measure(f"{name}/jit_a_lambda", jit_a_lambda, x)


def count_traces(wrap, calls=5):
    """Count how often selu is traced when `wrap(selu)(1.0)` runs `calls` times."""
    count = 0

    def counted(x):
        nonlocal count
        count += 1
        return selu(x)

    for _ in range(calls):
        wrap(counted)(1.0)
    return count


def calls_until_paid(eager, compiled):
    """Return from how many calls on `compiled` takes no longer in all than `eager`.

    Both are measurements. The compiled total holds its first call; every eager
    call is taken at the median. None means that compiling never pays.
    """
    if compiled.first_call <= eager.median:
        return 1
    gain = eager.median - compiled.median
    return (
        None if gain <= 0 else math.ceil((compiled.first_call - compiled.median) / gain)
    )


def measure_tensorflow(x):
    """Measure SELU of `x`, any shape, in TensorFlow: eager, as a graph, and by XLA."""
    return (
        measure("selu/eager", selu_tensorflow, x),
        measure("selu/graph", tf.function(selu_tensorflow), x),
        measure("selu/xla", tf.function(selu_tensorflow, jit_compile=True), x),
    )


def has_cpp_compiler():
    """Say whether a C++ compiler is installed, which torch.compile needs on a CPU."""
    return any(
        shutil.which(name) for name in (os.environ.get("CXX", ""), "g++", "clang++")
    )


def measure_torch_compile(name, x):
    """Measure torch.compile with an empty cache; None where there is no C++ compiler.

    `x` is a tensor of any shape.
    """
    if not has_cpp_compiler():
        print("torch.compile was not run: it needs a C++ compiler, and none was found.")
        return None
    before = dict(os.environ)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
        try:
            return measure(name, torch.compile(selu_torch), x)
        finally:
            os.environ.pop("TORCHINDUCTOR_CACHE_DIR")
            os.environ.update(before)


def measure_torch(x):
    """Measure SELU of `x`, any shape, in PyTorch: eager, and compiled if possible."""
    return measure("selu/eager", selu_torch, x), measure_torch_compile(
        "selu/compile", x
    )


def largest_difference(result, exact):
    """Return the largest absolute difference of an array from the exact one."""
    return float(np.max(np.abs(np.asarray(result, np.float64) - exact)))
