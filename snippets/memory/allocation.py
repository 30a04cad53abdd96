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
    "tensorflow_change_late": (RuntimeError, "modified after being initialized"),
}


def gpu_share():
    """Return the part of a GPU's memory that is taken, 0 to 1.

    The driver says so, for all programs. None without a GPU.
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
    """Return what JAX's pool holds, in bytes, or None on a CPU."""
    stats = jax.devices()[0].memory_stats()
    names = ("bytes_in_use", "bytes_limit")
    return stats and {name: stats[name] for name in names}


def gpu_options(**variables):
    """Return what JAX makes of these environment variables.

    Raises ValueError for an unknown allocator and if the
    fraction is set under both names.
    """
    with mock.patch.dict(os.environ, variables):
        options = xla_client.generate_pjrt_gpu_plugin_options()
    found = [name for name in MEMORY_OPTIONS if name in options]
    return {name: options[name] for name in found}


def both_fractions():
    """Set the fraction under both its names. Raises ValueError."""
    return gpu_options(
        XLA_CLIENT_MEM_FRACTION=".50",
        XLA_PYTHON_CLIENT_MEM_FRACTION=".50",
    )


def jax_change_late():
    """Use JAX, then change what its start has read. Raises RuntimeError."""
    first_jax_operation()
    jax.config.update("jax_num_cpu_devices", 2)


def jax_variable_late():
    """Use JAX, then set variables; return its devices after that."""
    first_jax_operation()
    late = {
        "JAX_PLATFORMS": "tpu",
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    }
    with mock.patch.dict(os.environ, late):
        return jax.devices()


def tensorflow_grow_on_demand():
    """Take GPU memory on demand; return the setting of each GPU.

    Raises RuntimeError after the first operation, given a GPU.
    """
    gpus = tf.config.list_physical_devices("GPU")
    for gpu in gpus:
        tf.config.experimental.set_memory_growth(gpu, True)
    return [tf.config.experimental.get_memory_growth(gpu) for gpu in gpus]


def tensorflow_change_late():
    """Use TensorFlow, then configure a device. Raises RuntimeError."""
    tf.ones(1)
    cpu = tf.config.list_physical_devices("CPU")[0]
    halves = [tf.config.LogicalDeviceConfiguration()] * 2
    tf.config.set_logical_device_configuration(cpu, halves)


def torch_memory():
    """Return the bytes in tensors and those kept, or None on a CPU."""
    if not torch.cuda.is_available():
        return None
    return torch.cuda.memory_allocated(), torch.cuda.memory_reserved()


def torch_hold_and_drop(shape):
    """Return `torch_memory()` with a tensor, without, and emptied."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    tensor = torch.ones(shape, device=device)
    held = torch_memory()
    del tensor
    dropped = torch_memory()
    torch.cuda.empty_cache()
    return held, dropped, torch_memory()


def live_bytes():
    """Return the bytes of all JAX arrays that are alive."""
    return sum(array.nbytes for array in jax.live_arrays())


def hold_and_drop(shape):
    """Return the bytes added by a float32 array, and left after it."""
    start = live_bytes()
    array = jnp.ones(shape)
    held = live_bytes() - start
    del array
    return held, live_bytes() - start


def array_bytes(shape):
    """Return the bytes of a float32 array in each framework."""
    tensor = tf.ones(shape)
    return {
        "jax": jnp.ones(shape).nbytes,
        "torch": torch.ones(shape).nbytes,
        "tensorflow": tensor.dtype.size * tensor.shape.num_elements(),
    }
