"""What double precision costs in three frameworks, and what it gains."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
import torch

from snippets.benchmarks.race import on_host, torch_tensor


def gauss(x):
    """Return exp(-x²) of `x`, any shape."""
    return jnp.exp(-x * x)


def gauss_torch(x):
    """Return exp(-x²) of `x`, a PyTorch tensor of any shape."""
    return torch.exp(-x * x)


def gauss_tensorflow(x):
    """Return exp(-x²) of `x`, a TensorFlow tensor of any shape."""
    return tf.exp(-x * x)


def system(size):
    """Return a matrix, (size, size), a right side and its exact solution, (size, 1).

    All three hold small whole numbers, so that float32 can write them exactly.
    """
    rng = np.random.default_rng(0)
    matrix = rng.integers(-4, 5, (size, size)) + 8 * np.eye(size)
    solution = rng.integers(-9, 10, (size, 1)).astype(np.float64)
    return matrix, matrix @ solution, solution


def inputs(operation, size):
    """Return NumPy arrays in float64, with numbers that float32 can write exactly.

    A product takes two of (size, size), a system also a right side of (size, 1), and
    what works on single numbers takes one of (size,).
    """
    if operation == "solve":
        return system(size)[:2]
    shapes = {"product": [(size, size)] * 2, "gauss": [(size,)]}[operation]
    rng = np.random.default_rng(0)
    return [rng.standard_normal(s, np.float32).astype(np.float64) for s in shapes]


ROWS = 8


def error_of(operation, size, result):
    """Return the relative error of a result in the norm of Frobenius.

    A product is compared on its first rows. Except for a system, whose solution is
    known, the exact result comes from NumPy's longdouble.
    """
    result = on_host(result).astype(np.longdouble)
    given = [array.astype(np.longdouble) for array in inputs(operation, size)]
    if operation == "solve":
        exact = system(size)[2]
    elif operation == "product":
        exact, result = given[0][:ROWS] @ given[1], result[:ROWS]
    else:
        exact = np.exp(-(given[0] ** 2))
    return float(np.linalg.norm(np.float64(result - exact)) / np.linalg.norm(exact))


def both(function, convert, operation, size):
    """Return a function of arrays in float64, and the same one in float32.

    `convert` is how a framework takes a NumPy array in.
    """
    given = inputs(operation, size)
    return {
        dtype: functools.partial(function, *(convert(x.astype(dtype)) for x in given))
        for dtype in ("float64", "float32")
    }


def errors(contenders, operation, size):
    """Return the error of each function's result."""
    return {
        key: error_of(operation, size, function())
        for key, function in contenders.items()
    }


JAX = {
    "product": jax.jit(jnp.matmul),
    "gauss": jax.jit(gauss),
    "solve": jax.jit(jnp.linalg.solve),
}
TORCH = {
    "product": torch.matmul,
    "gauss": gauss_torch,
    "solve": torch.linalg.solve,
}
TENSORFLOW = {
    "product": tf.matmul,
    "gauss": gauss_tensorflow,
    "solve": tf.linalg.solve,
}


def contenders_jax(operation, size):
    """Return what takes part for JAX, compiled."""
    return both(JAX[operation], jnp.asarray, operation, size)


def contenders_torch(operation, size):
    """Return what takes part for PyTorch, eager."""
    found = both(TORCH[operation], torch_tensor, operation, size)
    return {f"{key}@torch": function for key, function in found.items()}


def contenders_tensorflow(operation, size):
    """Return what takes part for TensorFlow: eager, and `gauss` in a graph as well.

    A single operation is the same kernel in a graph.
    """
    function = TENSORFLOW[operation]
    found = both(function, tf.constant, operation, size)
    if operation == "gauss":
        in_graph = both(tf.function(function), tf.constant, operation, size)
        found |= {f"{key}_graph": each for key, each in in_graph.items()}
    return {f"{key}@tensorflow": each for key, each in found.items()}


def costs(operation, size, dtype):
    """Return the operations that XLA counts in a program, and the bytes it touches."""
    given = [x.astype(dtype) for x in inputs(operation, size)]
    cost = JAX[operation].lower(*given).compile().cost_analysis()
    return int(cost["flops"]), int(cost["bytes accessed"])


@jax.jit
def refined_solve(matrix, right):
    """Solve a float64 system, (n, n) and (n, 1), with one factorization in float32.

    Each of three corrections solves for what is left, which is computed in float64.
    """
    factors = jax.scipy.linalg.lu_factor(matrix.astype(jnp.float32))
    solution = jnp.zeros_like(right)
    for _ in range(4):
        left = (right - matrix @ solution).astype(jnp.float32)
        solution += jax.scipy.linalg.lu_solve(factors, left)
    return solution
