"""SELU and chains of operations, eager and compiled, in three frameworks."""

import contextlib
import functools
import inspect
import math
import os
import resource
import subprocess
import sys

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
        2 * double * e**2
        + pi * half**2 * e
        - 2 * (2 + pi) * half * sqrt(e)
        + pi
        + 2
    )
    return alpha, (1 - half * sqrt(e)) * sqrt(2 * pi) / sqrt(below)


def exact_selu(x):
    """Return SELU of `x`, a NumPy array of any shape, in float64."""
    x = np.asarray(x, np.float64)
    return SCALE * np.where(x > 0, x, ALPHA * np.expm1(np.minimum(x, 0)))


def normal(size):
    """Return a float32 NumPy array of shape (size, size), standard normal."""
    return np.random.default_rng(0).standard_normal(
        (size, size), dtype=np.float32
    )


@jax.jit(donate_argnames="x")
def selu_in_place(x):
    """Return SELU of `x`, any shape, in the memory of `x`, which is lost."""
    return selu(x)


def in_place(x):
    """Return a function that replaces a copy of `x` by its SELU."""
    latest = jnp.copy(x)

    def step():
        nonlocal latest
        latest = selu_in_place(latest)
        return latest

    return step


def fresh_arrays(function, x, calls=3):
    """Return the new memory of a call, in arrays like `x`.

    It is the number of page faults times the size of a page, divided by
    that of `x`, an array of any framework and shape.
    """
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(calls):
        jax.block_until_ready(function(x))
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    size = math.prod(x.shape) * 4
    return round(faults / calls * resource.getpagesize() / size, 1)


KEEPING = (
    "glibc.malloc.arena_max=1:glibc.malloc.mmap_max=0"
    ":glibc.malloc.trim_threshold=0x100000000"
)
SET_UP = {
    "jax": """
import jax, jax.numpy as jnp
x, compiled = jnp.ones({shape}), jax.jit({name})
call = lambda: compiled(x).block_until_ready()
""",
    "torch": """
import torch
x = torch.ones({shape})
call = lambda: {name}(x)
""",
}
CHILD = """
import resource, sys
ALPHA, SCALE = {constants}
{source}
{set_up}
print("ready", flush=True)
for line in sys.stdin:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    call()
    after = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    print(after - before, flush=True)
"""


@contextlib.contextmanager
def in_own_process(framework, function, shape, tunables=""):
    """Yield what calls a function of float32 ones in a child process.

    Each call returns the number of its page faults. JAX compiles the
    function. `tunables` are settings of glibc's allocator, which a process
    reads as it starts. The process has imported what it needs.
    """
    set_up = SET_UP[framework].format(shape=shape, name=function.__name__)
    code = CHILD.format(
        constants=(ALPHA, SCALE),
        source=inspect.getsource(function),
        set_up=set_up,
    )
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"GLIBC_TUNABLES": tunables},
    ) as process:
        process.stdout.readline()

        def call():
            print(file=process.stdin, flush=True)
            return int(process.stdout.readline())

        yield call


def step(x, number):
    """Return 0.75 `x`, of any shape, or for odd numbers `x` + 0.5."""
    return x * 0.75 if number % 2 == 0 else x + 0.5


def chain(x, length):
    """Apply `length` elementwise operations to any framework's array."""
    for number in range(length):
        x = step(x, number)
    return x


def exact_chain(x, length):
    """Return what `chain` does for a NumPy array, in float64."""
    return chain(np.asarray(x, np.float64), length)


def uniform(size):
    """Return `size` float32 numbers between -1 and 1 as a NumPy array."""
    return np.random.default_rng(0).uniform(-1, 1, size).astype(np.float32)


def chains(arrays, length):
    """Return what to compare, of frameworks that have an array in `arrays`."""
    eager = functools.partial(chain, length=length)
    compiled = {"jit@jax": functools.partial(jax.jit(eager), arrays["jax"])}
    return compiled | {
        f"eager@{name}": functools.partial(eager, array)
        for name, array in arrays.items()
    }


def chain_in_xla(tensor, length):
    """Return what takes part for TensorFlow's compiler."""
    xla = tf.function(
        functools.partial(chain, length=length), jit_compile=True
    )
    return functools.partial(xla, tensor)


def kernels(function, x):
    """Return the number of fused loops in the program of `function(x)`."""
    return jax.jit(function).lower(x).compile().as_text().count(" fusion(")


def arrays_moved(function, x):
    """Return what `function(x)` reads and writes, in arrays like `x`.

    It is the compiler's own count, for one compiled program.
    """
    cost = jax.jit(function).lower(x).compile().cost_analysis()
    return round(cost["bytes accessed"] / x.nbytes, 1)


def tanhs(x):
    """Return tanh of tanh of ... of `x`, any shape, eight times."""
    for _ in range(8):
        x = jnp.tanh(x)
    return x


@jax.jit
def tanhs_in_a_loop(x):
    """Return tanh eight times of `x`, any shape, in a loop."""
    return jax.lax.fori_loop(0, 8, lambda _, x: jnp.tanh(x), x)


def tanhs_of_quarters(x):
    """Return the sum of the four quarters of `tanhs(x)`, for `x` of (n,)."""
    return sum(tanhs(quarter) for quarter in x.reshape(4, -1))


def tanhs_torch(x):
    """Return tanh eight times of `x`, a PyTorch tensor of any shape."""
    for _ in range(8):
        x = torch.tanh(x)
    return x


def tanhs_tensorflow(x):
    """Return tanh eight times of `x`, a TensorFlow tensor of any shape."""
    for _ in range(8):
        x = tf.tanh(x)
    return x


def exact_tanhs(x):
    """Return tanh eight times of a NumPy array of any shape, in float64."""
    x = np.asarray(x, np.float64)
    for _ in range(8):
        x = np.tanh(x)
    return x
