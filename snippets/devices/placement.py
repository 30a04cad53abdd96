"""Making an array on a chosen device, asking where it lives, and moving it."""

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
import torch

EXPECTED_ERRORS = {
    "every_second_column": (jax.errors.JaxRuntimeError, "striding"),
    "with_gradient": (BufferError, "require gradient"),
    "torch_mix": (RuntimeError, "is not on the expected device"),
}


def made_on(device):
    """Make a float32 array of shape (3,) on `device` in three ways."""
    with jax.default_device(device):
        by_context = jnp.ones(3)
    by_argument = jnp.ones(3, device=device)
    by_put = jax.device_put(np.ones(3, np.float32), device)
    return by_context, by_argument, by_put


def where_is(array):
    """Return the device of an array, all its devices, and its sharding."""
    return array.device, array.devices(), array.sharding


def result_of(array):
    """Return the device of `array * 2`, and if it is committed."""
    result = array * 2
    return result.device, result.committed


def matrix_in_context(device, size):
    """Make a random square matrix in a context.

    Return the devices of the key, of the matrix, and of a
    matmul outside the context.
    """
    key = jax.random.key(42)
    with jax.default_device(device):
        matrix = jax.random.normal(key, (size, size))
    return key.device, matrix.device, jnp.dot(matrix, matrix.T).device


def matrix_committed(device, size):
    """Make a square matrix from a key that was put on `device`.

    Return the devices of the key, of the matrix, and of a matmul.
    """
    key = jax.device_put(jax.random.key(42), device)
    matrix = jax.random.normal(key, (size, size))
    return key.device, matrix.device, jnp.dot(matrix, matrix.T).device


def to_cpu(array):
    """Copy an array to the memory of the host; it stays a JAX array."""
    return jax.device_put(array, jax.devices("cpu")[0])


def address(array):
    """Return the address of an array's first element, as a number."""
    if isinstance(array, jax.Array):
        return array.unsafe_buffer_pointer()
    if isinstance(array, np.ndarray):
        return array.ctypes.data
    return array.data_ptr()


def on_host(array):
    """Say whether two conversions to NumPy copy, and can be written."""
    ways = {"np.asarray": np.asarray(array), "np.array": np.array(array)}
    return {
        way: {
            "same memory": address(host) == address(array),
            "writeable": host.flags.writeable,
        }
        for way, host in ways.items()
    }


def shared_device():
    """Return a device that both frameworks can use: a GPU, or else the CPU."""
    both = torch.cuda.is_available() and jax.default_backend() == "gpu"
    return jax.devices("gpu" if both else "cpu")[0]


def to_torch(array):
    """Return a JAX array as a tensor in the same memory."""
    tensor = torch.from_dlpack(array)
    assert address(tensor) == address(array)
    return tensor


def to_jax(tensor):
    """Return a contiguous float32 tensor as a JAX array in the same memory."""
    array = jnp.from_dlpack(tensor, copy=False)
    assert address(array) == address(tensor)
    return array


def write_through(device):
    """Return a JAX array after a write into a tensor that shares it."""
    array = jnp.zeros(3, device=device)
    to_torch(array)[0] = 7
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return array


def shares(tensor):
    """Return a tensor's dtype in JAX, and if the memory is the same."""
    array = jnp.from_dlpack(tensor)
    return array.dtype.name, address(array) == address(tensor)


def every_second_column(tensor):
    """Share a view with gaps; raises JaxRuntimeError."""
    return jnp.from_dlpack(tensor[:, ::2])


def with_gradient(tensor):
    """Share a tensor that records gradients; raises BufferError."""
    return jnp.from_dlpack(tensor.clone().requires_grad_())


def torch_made_on(device):
    """Name the device by default, by argument and by context."""
    by_default = torch.ones(3)
    by_argument = torch.ones(3, device=device)
    with torch.device(device):
        by_context = torch.ones(3)
    return by_default.device, by_argument.device, by_context.device


def torch_mix():
    """Add tensors of two devices. Raises RuntimeError."""
    return torch.ones(3, device="cpu") + torch.ones(3, device="meta")


def torch_mix_with_number():
    """Return the device of a tensor on `meta` plus a scalar on the CPU."""
    return (torch.ones(3, device="meta") + torch.tensor(2.0)).device


def tensorflow_made_on(name):
    """Name the device by default and under `tf.device(name)`."""
    by_default = tf.ones(3)
    with tf.device(name):
        by_context = tf.ones(3)
    return by_default.device, by_context.device
