"""What moving data costs, between NumPy, frameworks and a GPU."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
import torch

from snippets.benchmarks.race import on_host


def numbers(*shape):
    """Return a float32 NumPy array, standard normal."""
    return np.random.default_rng(0).standard_normal(shape, dtype=np.float32)


def aligned(array, alignment=64):
    """Return a copy of a NumPy array at a multiple of `alignment` bytes."""
    room = np.empty(array.nbytes + alignment, np.uint8)
    start = -room.ctypes.data % alignment
    copy = (
        room[start : start + array.nbytes]
        .view(array.dtype)
        .reshape(array.shape)
    )
    copy[...] = array
    return copy


def shifted(array):
    """Return a copy of a NumPy array, 16 bytes past a multiple of 64."""
    room = aligned(np.empty(array.nbytes + 16, np.uint8))
    copy = room[16:].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def address(array):
    """Return where the data of any framework's array on a CPU begins."""
    if isinstance(array, torch.Tensor):
        return array.data_ptr()
    if isinstance(array, np.ndarray):
        return array.ctypes.data
    return np.from_dlpack(array).ctypes.data


def copies(way, array):
    """Say whether a conversion shares the memory of `array` or copies it."""
    try:
        return "shared" if address(way(array)) == address(array) else "copied"
    except (BufferError, RuntimeError):
        return "copied, to another device"


INTO_JAX = {
    "jnp.asarray(x)": jnp.asarray,
    "jax.device_put(x)": jax.device_put,
    "jnp.from_dlpack(x)": jnp.from_dlpack,
}
INTO_TORCH = {
    "torch.from_numpy(x)": torch.from_numpy,
    "torch.tensor(x)": torch.tensor,
}
INTO_TENSORFLOW = {
    "tf.constant(x)": tf.constant,
    "tf.convert_to_tensor(x)": tf.convert_to_tensor,
}


def changed_afterwards(x):
    """Put `x` on the CPU, write 7 into it; return what JAX then holds."""
    array = jax.device_put(x, jax.devices("cpu")[0]).block_until_ready()
    x[0] = 7
    return array


@jax.jit
def smooth(x):
    """Return 1 / (1 + exp(-x)) for `x` of any shape."""
    return 1 / (1 + jnp.exp(-x))


@jax.jit
def square(x):
    """Return the matmul of `x`, (n, n), with itself."""
    return x @ x


def smooth_torch(x):
    """Return what `smooth` does, in PyTorch."""
    return 1 / (1 + torch.exp(-x))


def smooth_tensorflow(x):
    """Return what `smooth` does, in TensorFlow."""
    return 1 / (1 + tf.exp(-x))


def smooth_numpy(x):
    """Return what `smooth` does, in NumPy."""
    return 1 / (1 + np.exp(-x))


def square_torch(x):
    """Return what `square` does, in PyTorch, TensorFlow or NumPy."""
    return x @ x


def in_and_out(function, x):
    """Compute in JAX with a NumPy array, and return a NumPy array."""
    return np.asarray(function(x))


def converted_and_out(function, x):
    """Return what `in_and_out` does, from an array that JAX has converted."""
    return np.asarray(function(jnp.asarray(x)))


def into_torch(x):
    """Return a NumPy array as a tensor: shared, or on the accelerator."""
    tensor = torch.from_numpy(x)
    found = torch.accelerator.current_accelerator(check_available=True)
    return tensor.to(found) if found else tensor


def in_and_out_torch(function, x):
    """Compute in PyTorch with a NumPy array, and return a NumPy array."""
    return on_host(function(into_torch(x)))


def in_and_out_tensorflow(function, x):
    """Compute in TensorFlow with a NumPy array, and return a NumPy array."""
    return function(tf.constant(x)).numpy()


def journeys(function, x):
    """Return what to compare: data on JAX's device, and from NumPy."""
    return {
        "device": functools.partial(function, jnp.asarray(x)),
        "numpy@jax": functools.partial(in_and_out, function, x),
    }


def journeys_tensorflow(function, x):
    """Return what takes part for TensorFlow, eager and as a graph."""
    in_graph = tf.function(function)
    return {
        "numpy@tensorflow": functools.partial(
            in_and_out_tensorflow, function, x
        ),
        "graph@tensorflow": functools.partial(
            in_and_out_tensorflow, in_graph, x
        ),
    }


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
    """Return the matmul of `a` and `b`, (n, n), in full float32."""
    return jnp.matmul(a, b, precision="highest")


@jax.jit
def orbit(x):
    """Return `x`, of any shape, after 1000 steps of the logistic map."""
    return jax.lax.fori_loop(0, 1000, lambda _, x: 3.7 * x * (1 - x), x)


def there_and_back(function, arrays, device):
    """Copy NumPy arrays to a device, compute, and return a NumPy array."""
    return np.asarray(function(*jax.device_put(arrays, device)))


def contenders(function, arrays):
    """Return what to compare: data on a processor, and from NumPy."""
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
