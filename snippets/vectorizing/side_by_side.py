"""jax.vmap, torch.func.vmap and tf.vectorized_map, compared."""

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
import torch

XS = np.array([[0, 1, 2, 3, 4], [0, 10, 20, 30, 40]], np.float32)
WS = np.array([[2, 3, 4], [3, 4, 5]], np.float32)


def convolve_torch(x, w):
    """Slide `w`, (k,), over `x`, (n,), in PyTorch: shape (n - k + 1,)."""
    starts = range(len(x) - len(w) + 1)
    return torch.stack([torch.dot(x[i : i + len(w)], w) for i in starts])


def convolve_tensorflow(pair):
    """Slide `w`, (k,), over `x`, (n,), given as a pair: shape (n - k + 1,)."""
    x, w = pair
    k = w.shape[0]
    starts = range(x.shape[0] - k + 1)
    return tf.stack([tf.tensordot(x[i : i + k], w, 1) for i in starts])


def map_tensorflow(function):
    """Return `function`, mapped over the first axis, as one graph."""

    @tf.function
    def mapped(elements):
        return tf.vectorized_map(function, elements)

    return mapped


def map_anew(function):
    """Return `function`, mapped over the first axis, with a graph per call."""
    return lambda elements: tf.vectorized_map(function, elements)


def all_equal(first, *others):
    """Say whether arrays of any framework hold the same numbers."""
    arrays = [np.asarray(array) for array in (first, *others)]
    return all(np.array_equal(arrays[0], array) for array in arrays)


def outcome(function, *args):
    """Return the numbers that a call gives, or the name of its error."""
    try:
        return np.asarray(function(*args)).tolist()
    except Exception as error:
        return type(error).__name__


def add_jax(a, b):
    """Map an addition over two NumPy arrays, each (n,), in JAX."""
    return jax.vmap(jnp.add)(jnp.array(a), jnp.array(b))


def add_torch(a, b):
    """Map an addition over two NumPy arrays, each (n,), in PyTorch."""
    return torch.func.vmap(torch.add)(torch.tensor(a), torch.tensor(b))


@tf.function
def add_tensorflow(a, b):
    """Map an addition over two NumPy arrays, each (n,), in TensorFlow."""
    return tf.vectorized_map(lambda pair: tf.add(*pair), (a, b))


def negate_small(x):
    """Return -x below 2, else x, by an `if`."""
    if x < 2:
        x = -x
    return x


def negate_small_jax(x):
    """Return -x below 2, else x, from two branches."""
    return jax.lax.cond(x < 2, lambda x: -x, lambda x: x, x)


def negate_small_torch(x):
    """Return -x below 2, else x, from two branches."""
    return torch.cond(x < 2, lambda x: -x, lambda x: x.clone(), (x,))


def negate_small_tensorflow(x):
    """Return -x below 2, else x, from two branches."""
    return tf.cond(x < 2, lambda: -x, lambda: x)


def distinct(numbers):
    """Return how many different numbers there are."""
    return len(set(np.asarray(numbers).tolist()))


def draw_torch(x):
    """Return `x` plus a standard normal number from the global state."""
    return x + torch.randn(())


def draw_tensorflow(x):
    """Return `x` plus a standard normal number from the global state."""
    return x + tf.random.normal([])


def add_one_in_place(x):
    """Add 1 to a tensor in its own memory and return it."""
    return x.add_(1)


def count_body_runs(transform, x, calls=3):
    """Return how often Python runs a mapped body in `calls` calls."""
    runs = []

    def body(x):
        runs.append(1)
        return x + 1

    mapped = transform(body)
    for _ in range(calls):
        mapped(x)
    return len(runs)


def init(key):
    """Return the weights of a linear layer from 5 features to 2."""
    return {"weight": jax.random.normal(key, (5, 2)), "bias": jnp.zeros(2)}


def predict(weights, x):
    """Return what a linear layer makes of x, (5,): shape (2,)."""
    return x @ weights["weight"] + weights["bias"]


def predict_torch(module, params, buffers, x):
    """Return what a module makes of x for each of n stacked weights: (n, ...).

    `params` and `buffers` are what torch.func.stack_module_state returns.
    """

    def one(params, buffers):
        return torch.func.functional_call(module, (params, buffers), (x,))

    return torch.func.vmap(one)(params, buffers)
