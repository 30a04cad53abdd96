"""The same functions on the CPU and on the accelerator of one machine."""

import functools

import jax
import jax.numpy as jnp
import numpy as np


def processors():
    """Return the CPU, and the accelerator if JAX computes on one."""
    found = {"cpu": jax.devices("cpu")[0]}
    if jax.default_backend() != "cpu":
        found["accelerator"] = jax.devices()[0]
    return found


def draw(*shape, count=1):
    """Return `count` float32 NumPy arrays of `shape`, uniform from 0 to 1."""
    rng = np.random.default_rng(0)
    return [rng.random(shape, np.float32) for _ in range(count)]


@jax.jit
def product(a, b):
    """Return the matrix product of `a` and `b`, (n, n), in full float32."""
    return jnp.matmul(a, b, precision="highest")


@jax.jit
def orbit(x):
    """Return `x`, of any shape, after 1000 steps of the logistic map."""
    return jax.lax.fori_loop(0, 1000, lambda _, x: 3.7 * x * (1 - x), x)


def there_and_back(function, arrays, device):
    """Copy NumPy arrays to a device, compute there, and return a NumPy array."""
    return np.asarray(function(*jax.device_put(arrays, device)))


def contenders(function, arrays):
    """Return what to compare: data that are on a processor, and data from NumPy."""
    known = processors()
    found = {
        name: functools.partial(function, *jax.device_put(arrays, device))
        for name, device in known.items()
    }
    if "accelerator" in known:
        found["with_copies"] = functools.partial(
            there_and_back, function, arrays, known["accelerator"]
        )
    return found
