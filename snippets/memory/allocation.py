"""How the frameworks take memory from a GPU, and how to look at it."""

import os
from unittest import mock

import jax
import jax.numpy as jnp
import tensorflow as tf
import torch
from jaxlib import xla_client

MEMORY_OPTIONS = ("allocator", "preallocate", "memory_fraction")
EXPECTED_ERRORS = {
    "both_fractions": (ValueError, "Remove the latter one, it is deprecated"),
    "jax_change_late": (RuntimeError, "before backends are initialized"),
    "tensorflow_change_late": (RuntimeError, "cannot be modified after being initialized"),
}


def gpu_share():
    """Return the part of the first GPU's memory that is taken, from 0 to 1.

    The figure is the driver's, for all processes. Without a GPU it is None.
    """
    if not torch.cuda.is_available():
        return None
    free, total = torch.cuda.mem_get_info()
    return round(1 - free / total, 2)


def share_around(action):
    """Return `gpu_share()` before and after the call `action()`."""
    before = gpu_share()
    action()
    return before, gpu_share()


def first_jax_operation():
    """Make one small JAX array and wait for it."""
    return jnp.ones(1).block_until_ready()


def jax_memory():
    """Return what JAX's allocator says of the first device, in bytes, or None on a CPU."""
    stats = jax.devices()[0].memory_stats()
    return stats and {name: stats[name] for name in ("bytes_in_use", "bytes_limit")}


def gpu_options(**variables):
    """Return what JAX reads for its GPU memory from the given environment variables.

    Raises ValueError for an unknown allocator, or if both names of the fraction are set.
    """
    with mock.patch.dict(os.environ, variables):
        options = xla_client.generate_pjrt_gpu_plugin_options()
    return {name: options[name] for name in MEMORY_OPTIONS if name in options}


def both_fractions():
    """Set the fraction under its new and its old name. Raises ValueError."""
    return gpu_options(XLA_CLIENT_MEM_FRACTION="0.5", XLA_PYTHON_CLIENT_MEM_FRACTION="0.5")


def jax_change_late():
    """Use JAX, then change a setting that its start has read. Raises RuntimeError."""
    first_jax_operation()
    jax.config.update("jax_num_cpu_devices", 2)


def jax_variable_late():
    """Use JAX, then set variables that its start has read; return the devices after that."""
    first_jax_operation()
    late = {"JAX_PLATFORMS": "tpu", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    with mock.patch.dict(os.environ, late):
        return jax.devices()


def tensorflow_grow_on_demand():
    """Let TensorFlow take GPU memory as it needs it; return the setting of each GPU.

    Raises RuntimeError after TensorFlow's first operation on a machine with a GPU.
    """
    gpus = tf.config.list_physical_devices("GPU")
    for gpu in gpus:
        tf.config.experimental.set_memory_growth(gpu, True)
    return [tf.config.experimental.get_memory_growth(gpu) for gpu in gpus]


def tensorflow_change_late():
    """Use TensorFlow, then configure a device. Raises RuntimeError."""
    tf.ones(1)
    cpu = tf.config.list_physical_devices("CPU")[0]
    halves = [tf.config.LogicalDeviceConfiguration(), tf.config.LogicalDeviceConfiguration()]
    tf.config.set_logical_device_configuration(cpu, halves)


def torch_memory():
    """Return the bytes that tensors use and the bytes that PyTorch keeps, or None on a CPU."""
    if not torch.cuda.is_available():
        return None
    return torch.cuda.memory_allocated(), torch.cuda.memory_reserved()


def torch_hold_and_drop(shape):
    """Return `torch_memory()` with a float32 tensor, without it, and with the cache emptied."""
    tensor = torch.ones(shape, device="cuda" if torch.cuda.is_available() else "cpu")
    held = torch_memory()
    del tensor
    dropped = torch_memory()
    torch.cuda.empty_cache()
    return held, dropped, torch_memory()


def live_bytes():
    """Return the bytes of all JAX arrays that are alive."""
    return sum(array.nbytes for array in jax.live_arrays())


def hold_and_drop(shape):
    """Return the bytes that a float32 array adds to `live_bytes()`, and those left after it."""
    start = live_bytes()
    array = jnp.ones(shape)
    held = live_bytes() - start
    del array
    return held, live_bytes() - start


def array_bytes(shape):
    """Return the bytes of a float32 array of `shape` in JAX, PyTorch and TensorFlow."""
    tensor = tf.ones(shape)
    return {
        "jax": jnp.ones(shape).nbytes,
        "torch": torch.ones(shape).nbytes,
        "tensorflow": tensor.dtype.size * tensor.shape.num_elements(),
    }
