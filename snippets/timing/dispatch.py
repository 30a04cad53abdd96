"""What a call returns, when its result is ready, and what it costs."""

import time

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
import torch


def size_worth_waiting_for():
    """Return an n whose n×n matmul takes some milliseconds on this device."""
    return 1500 if jax.default_backend() == "cpu" else 12_000


def random_square(n):
    """Return a float32 array of shape (n, n), standard normal and finished."""
    return jax.block_until_ready(jax.random.normal(jax.random.key(0), (n, n)))


def timeline(x, products):
    """Multiply by `x`, (n, n), again and again; return what happened when.

    Returns (who, what, start, end) in seconds. A matmul begins when its call
    does and the one before is ready, and ends when it is ready itself.
    """
    result = jnp.dot(x, x).block_until_ready()
    start = time.perf_counter()

    def now():
        return round(time.perf_counter() - start, 6)

    calls, results = [], []
    for n in range(products):
        called = now()
        result = jnp.dot(result, x)
        calls.append(("Python", f"call {n + 1}", called, now()))
        results.append(result)
    waiting, ready, work = now(), 0, []
    for n, result in enumerate(results):
        begun = max(calls[n][2], ready)
        result.block_until_ready()
        ready = now()
        work.append(("device", f"product {n + 1}", begun, ready))
    return [*calls, ("Python", "waits", waiting, ready), *work]


def pass_on(x):
    """Multiply three times, from `x`, (n, n); say what is ready when."""
    second = jnp.dot(x, x)
    fourth = jnp.dot(second, second)
    eighth = jnp.dot(fourth, fourth)
    products = second, fourth, eighth
    after_the_calls = [product.is_ready() for product in products]
    eighth.block_until_ready()
    return {
        "after the calls": after_the_calls,
        "after waiting for the last": [
            product.is_ready() for product in products
        ],
    }


def powers(x):
    """Return the square and the cube of `x`, (n, n), in a dictionary."""
    square = x @ x
    return {"square": square, "higher": [square @ x]}


def all_ready(tree):
    """Say whether all arrays in nested lists and dictionaries are ready."""
    return all(leaf.is_ready() for leaf in jax.tree.leaves(tree))


WAITING = {
    "product.shape": lambda product: product.shape,
    "product + 1": lambda product: product + 1,
    "product[0, 0]": lambda product: product[0, 0],
    "float(product[0, 0])": lambda product: float(product[0, 0]),
    "bool(product[0, 0] > 0)": lambda product: bool(product[0, 0] > 0),
    "np.asarray(product)": np.asarray,
    "repr(product)": repr,
}


def ready_after(action, x):
    """Say whether a matmul (n, n) is ready once `action` of it returns."""
    action(jnp.dot(x, x))
    product = jnp.dot(x, x)
    action(product)
    return product.is_ready()


def accelerator():
    """Return PyTorch's accelerator if there is one, else its CPU."""
    return torch.accelerator.current_accelerator(
        check_available=True
    ) or torch.device("cpu")


def in_torch(x):
    """Return a JAX array as a tensor on PyTorch's accelerator, if any."""
    return torch.tensor(np.asarray(x), device=accelerator())


def in_tensorflow(x):
    """Return a JAX array as a tensor on TensorFlow's GPU, if any."""
    return tf.constant(np.asarray(x))


@jax.jit
def increment(x):
    """Add 1 to `x`, an array of any shape: one operation for each element."""
    return x + 1


def ready_at_return(n, calls=100):
    """Count the additions on `n` numbers, on a CPU, that are ready at once."""
    x = jnp.ones(n, device=jax.devices("cpu")[0])
    increment(x).block_until_ready()
    return sum(increment(x).is_ready() for _ in range(calls))


def draw_with_one_key(n):
    """Return two float32 arrays, (n, n), drawn as the course draws them."""
    x = jax.random.normal(jax.random.PRNGKey(0), (n, n))
    y = jax.random.normal(jax.random.PRNGKey(0), (n, n))
    return x, y


def draw_with_two_keys(n):
    """Return two float32 arrays of shape (n, n), normal and ready."""
    first, second = jax.random.split(jax.random.key(0))
    x = jax.random.normal(first, (n, n))
    y = jax.random.normal(second, (n, n))
    return jax.block_until_ready((x, y))


def calls_ahead(x, most):
    """Multiply by `x`, (n, n), on a CPU; count the calls that ran ahead.

    Returns how many of `most` calls returned before the first result was
    ready. Scaling keeps the values finite. The largest of three counts is
    taken, because Python itself may be interrupted.
    """
    x = jax.device_put(x / x.shape[0], jax.devices("cpu")[0])
    return max(_calls_before_ready(x, most) for _ in range(3))


def _calls_before_ready(x, most):
    """Return how many calls returned before the first was ready."""
    first = latest = jnp.dot(x, x)
    calls = 0
    while calls < most and not first.is_ready():
        calls += 1
        latest = jnp.dot(latest, x)
    latest.block_until_ready()
    return calls


SIZES = (4, 1_000, 10_000, 100_000)


def cosine_torch(x):
    """Return the cosine of a PyTorch tensor of any shape, in radians."""
    return torch.cos(x)


def numbers(size):
    """Return a float32 NumPy array (size,), evenly spaced from 0 to 1."""
    return np.linspace(0, 1, size, dtype=np.float32)


def add_up(*arrays):
    """Return 1 plus the sum of arrays of equal shape, of any framework."""
    return sum(arrays, start=1.0)


def add_up_leaves(tree):
    """Return 1 plus the sum of the arrays in a pytree, all of equal shape."""
    return add_up(*jax.tree.leaves(tree))


def add_up_rows(rows):
    """Return 1 plus the sum of the rows of one array, (count, size)."""
    return 1.0 + rows.sum(axis=0)


def nested(x, count):
    """Return a dictionary of dictionaries that holds `x` so many times."""
    return {f"layer_{i}": {"weight": x} for i in range(count)}


def scale(x, factor):
    """Return `x`, of any shape, times a factor."""
    return x * factor


class Scaler:
    """Multiplies by a factor, which is fixed when `jit` traces its method."""

    def __init__(self, factor):
        """Keep the factor, a Python number."""
        self.factor = factor

    @jax.jit(static_argnames="self")
    def scale(self, x):
        """Return `x`, of any shape, times the factor."""
        return x * self.factor


def in_a_row(function, x, times=100):
    """Call a function so many times, each time with the result before."""
    for _ in range(times):
        x = function(x)
    return x


@jax.jit
def in_one_call(x):
    """Take the cosine of `x`, of any shape, a hundred times in one program."""
    return jax.lax.fori_loop(0, 100, lambda _, x: jnp.cos(x), x)


def one_by_one(function, rows):
    """Return a list of what a function makes of each of several arrays."""
    return [function(row) for row in rows]
