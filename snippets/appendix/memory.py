"""How the frameworks take memory from a GPU, and how to look at it."""

import mmap
import os
import re
import shutil
import subprocess
import sys
from unittest import mock

import jax
import jax.numpy as jnp
import tensorflow as tf
import torch
from jaxlib import xla_client

EXPECTED_ERRORS = {
    "both_fractions": (ValueError, "Remove the latter one, it is deprecated"),
    "jax_change_late": (RuntimeError, "before backends are initialized"),
    "tensorflow_change_late": (RuntimeError, "modified after being initialized"),
}


def visible_gpu():
    """Return the first GPU that a program may use, or '' for none."""
    if os.environ.get("JAX_PLATFORMS") == "cpu":
        return ""
    return os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]


def used_and_total(text):
    """Read a line such as '512, 81559'; None for any other text."""
    found = re.fullmatch(r"(\d+), (\d+)\s*", text)
    return found and tuple(map(int, found.groups()))


def gpu_memory():
    """Return (used, total) memory of the GPU in MiB, or None without one.

    The driver is asked, by the program nvidia-smi that comes with it.
    """
    if not (visible_gpu() and shutil.which("nvidia-smi")):
        return None
    query = [f"--id={visible_gpu()}", "--query-gpu=memory.used,memory.total"]
    command = ["nvidia-smi", *query, "--format=csv,noheader,nounits"]
    return used_and_total(
        subprocess.run(command, capture_output=True, text=True).stdout
    )


def percent_used():
    """Return how much of the GPU's memory is taken, in whole percent."""
    used, total = gpu_memory()
    return round(100 * used / total)


WORKER = """
import sys
for line in sys.stdin:
    exec(line)
    print(flush=True)
"""
MEMORY_VARIABLES = (
    "XLA_PYTHON_CLIENT_PREALLOCATE",
    "XLA_PYTHON_CLIENT_ALLOCATOR",
    "XLA_PYTHON_CLIENT_MEM_FRACTION",
    "XLA_CLIENT_MEM_FRACTION",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
)


def without_switches():
    """Return the environment variables but those about GPU memory."""
    return {k: v for k, v in os.environ.items() if k not in MEMORY_VARIABLES}


def percent_after(lines, **variables):
    """Run `lines` in a Python of their own; return the memory taken after each.

    In whole percent of the GPU's memory, the first number before any line. Of
    the variables about memory it has only `variables`. `rows` is a twentieth of
    the memory in MiB. None without a GPU; RuntimeError if a line fails.
    """
    if gpu_memory() is None:
        return None
    percents = [percent_used()]
    with subprocess.Popen(
        [sys.executable, "-c", WORKER],
        env=without_switches() | variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as worker:
        for line in (f"rows = {gpu_memory()[1] // 20}", *lines):
            print(line, file=worker.stdin, flush=True)
            if not worker.stdout.readline():
                raise RuntimeError(f"the process ended at: {line}")
            percents.append(percent_used())
    return [percents[0], *percents[2:]]


JAX_LINES = (
    "import jax.numpy as jnp",
    "jnp.ones(1).block_until_ready()",
    "x = jnp.ones((rows, 2**18)).block_until_ready()",
    "del x",
)
JAX_SETTINGS = (
    {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"},
    {"XLA_CLIENT_MEM_FRACTION": ".50"},
    {"XLA_PYTHON_CLIENT_ALLOCATOR": "platform"},
)
TORCH_LINES = (
    "import torch",
    "torch.ones(1, device='cuda')",
    "x = torch.ones((rows, 2**18), device='cuda')",
    "del x",
    "torch.cuda.empty_cache()",
)
MEMORY_OPTIONS = ("allocator", "preallocate", "memory_fraction")


def first_jax_operation():
    """Make one small JAX array and wait for it."""
    return jnp.ones(1).block_until_ready()


def jax_memory():
    """Return what JAX's pool holds, or None on a CPU."""
    stats = jax.devices()[0].memory_stats()
    names = ("bytes_in_use", "bytes_limit")
    return stats and {name: f"{stats[name] / 2**30:.1f} GiB" for name in names}


def gpu_options(**variables):
    """Return what JAX makes of these environment variables.

    Raises ValueError for an unknown allocator and if the
    fraction is set under both names.
    """
    with mock.patch.dict(os.environ, without_switches() | variables, clear=True):
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


def process_bytes():
    """Return the bytes of main memory that this process has; needs Linux."""
    with open("/proc/self/statm") as pages:
        return int(pages.read().split()[1]) * mmap.PAGESIZE


def memory_over_time(shape):
    """Return the bytes that come and go with a float32 array of `shape`."""
    jnp.ones(shape).block_until_ready()
    arrays, process = live_bytes(), process_bytes()

    def added():
        return {
            "JAX arrays": live_bytes() - arrays,
            "the process": max(0, process_bytes() - process),
        }

    moments = {"before": added()}
    array = jnp.ones(shape).block_until_ready()
    moments["with the array"] = added()
    del array
    return moments | {"without it": added()}


def array_bytes(shape):
    """Return the bytes of a float32 array in JAX and in PyTorch."""
    return {"jax": jnp.ones(shape).nbytes, "torch": torch.ones(shape).nbytes}


def array_bytes_tensorflow(shape):
    """Return the bytes of a float32 array in TensorFlow."""
    tensor = tf.ones(shape)
    return tensor.dtype.size * tensor.shape.num_elements()
