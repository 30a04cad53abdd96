"""How much memory the frameworks take, and when."""

import mmap
import os
import shutil
import subprocess
import sys
from unittest import mock

import jax
import jax.numpy as jnp
import tensorflow as tf
from jaxlib import xla_client

EXPECTED_ERRORS = {
    "both_fractions": (ValueError, "Remove the latter one, it is deprecated"),
    "jax_change_late": (RuntimeError, "before backends are initialized"),
    "tensorflow_change_late": (
        RuntimeError,
        "modified after being initialized",
    ),
}


def visible_gpu():
    """Return the first GPU that a program may use, or '' for none."""
    if os.environ.get("JAX_PLATFORMS") == "cpu":
        return ""
    return os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]


def gpu_bytes():
    """Return the bytes taken of the GPU, by whomever, or None without one.

    The driver is asked, by the program nvidia-smi that comes with it.
    """
    if not (visible_gpu() and shutil.which("nvidia-smi")):
        return None
    query = [f"--id={visible_gpu()}", "--query-gpu=memory.used"]
    command = ["nvidia-smi", *query, "--format=csv,noheader,nounits"]
    answer = subprocess.run(
        command, capture_output=True, text=True
    ).stdout.strip()
    return int(answer) * 2**20 if answer.isdecimal() else None


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


def process_bytes(process="self"):
    """Return the bytes of main memory that a process has; needs Linux."""
    with open(f"/proc/{process}/statm") as pages:
        return int(pages.read().split()[1]) * mmap.PAGESIZE


def taken(process):
    """Return a process's bytes of main memory, and of a GPU's, if any."""
    main, gpu = process_bytes(process), gpu_bytes()
    return {"main memory": main} | ({} if gpu is None else {"GPU memory": gpu})


def memory_after(steps, **variables):
    """Run lines of Python in a new process; return the memory after each.

    steps: {what a line does: the line}. The result is {what: {memory: bytes}}.
    `variables` are added to its environment. RuntimeError if a line fails.
    """
    after = {}
    with subprocess.Popen(
        [sys.executable, "-c", WORKER],
        env=without_switches() | variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as worker:
        for what, line in steps.items():
            print(line, file=worker.stdin, flush=True)
            if not worker.stdout.readline():
                raise RuntimeError(f"the process ended at: {line}")
            after[what] = taken(worker.pid)
    return after


def memory_by_switch(steps, switches):
    """Return the memory after each line but the first, by set of variables.

    switches: {name: {variable: value}}. Returns {name and line: {memory:
    bytes}}.
    """
    return {
        f"{name}: {what}": memory
        for name, variables in switches.items()
        for what, memory in list(memory_after(steps, **variables).items())[1:]
    }


JAX_STEPS = {
    "import": "import jax.numpy as jnp",
    "one number": "jnp.ones(1).block_until_ready()",
    "256 MiB": "x = jnp.ones((2**13, 2**13)).block_until_ready()",
    "deleted": "del x",
}
JAX_SWITCHES = {
    "on demand": {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"},
    "a half": {"XLA_CLIENT_MEM_FRACTION": ".50"},
    "platform": {"XLA_PYTHON_CLIENT_ALLOCATOR": "platform"},
    "cuda_async": {"XLA_PYTHON_CLIENT_ALLOCATOR": "cuda_async"},
}
TORCH_STEPS = {
    "import": "import torch; "
    "device = 'cuda' if torch.cuda.is_available() else 'cpu'",
    "one number": "torch.ones(1, device=device)",
    "256 MiB": "x = torch.ones((2**13, 2**13), device=device)",
    "deleted": "del x",
}
TENSORFLOW_STEPS = {
    "import": "import tensorflow as tf",
    "one number": "tf.ones(1)",
    "256 MiB": "x = tf.ones((2**13, 2**13))",
    "deleted": "del x",
    "256 MiB again": "x = tf.ones((2**13, 2**13))",
}
MEMORY_OPTIONS = ("allocator", "preallocate", "memory_fraction")


def first_jax_operation():
    """Make one small JAX array and wait for it."""
    return jnp.ones(1).block_until_ready()


def gpu_options(**variables):
    """Return what JAX makes of these environment variables.

    Raises ValueError for an unknown allocator and if the
    fraction is set under both names.
    """
    with mock.patch.dict(
        os.environ, without_switches() | variables, clear=True
    ):
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


def tensorflow_change_late():
    """Use TensorFlow, then configure a device. Raises RuntimeError."""
    tf.ones(1)
    cpu = tf.config.list_physical_devices("CPU")[0]
    halves = [tf.config.LogicalDeviceConfiguration()] * 2
    tf.config.set_logical_device_configuration(cpu, halves)


def live_bytes():
    """Return the bytes of all JAX arrays that are alive."""
    return sum(array.nbytes for array in jax.live_arrays())


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
