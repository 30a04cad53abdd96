"""Chains of elementwise operations, eager and compiled, in three frameworks."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
import torch


def step(x, number):
    """Return 0.75 `x`, of any shape, or for odd numbers `x` + 0.5."""
    return x * 0.75 if number % 2 == 0 else x + 0.5


def chain(x, length):
    """Apply `length` elementwise operations to `x`, an array of any framework."""
    for number in range(length):
        x = step(x, number)
    return x


def exact_chain(x, length):
    """Return what `chain` returns for a NumPy array of any shape, in float64."""
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
    xla = tf.function(functools.partial(chain, length=length), jit_compile=True)
    return functools.partial(xla, tensor)


def kernels(function, x):
    """Return the number of fused loops in the compiled program of `function(x)`."""
    return jax.jit(function).lower(x).compile().as_text().count(" fusion(")


def arrays_moved(function, x):
    """Return how much `function(x)` reads and writes, in arrays as large as `x`.

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
    """Return tanh eight times of `x`, any shape, one after the other in a loop."""
    return jax.lax.fori_loop(0, 8, lambda _, x: jnp.tanh(x), x)


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
