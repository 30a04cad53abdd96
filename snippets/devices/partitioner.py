"""What the partitioner prints, what it means, and what it costs."""

import contextlib
import os
import re
import tempfile

import jax
import jax.numpy as jnp
from jax import P, lax, reshard

from snippets.devices.layouts import communication
from snippets.devices.resharding import bytes_to_receive


@contextlib.contextmanager
def standard_error(lines):
    """Append to a list what this process prints to stderr in the block.

    It includes what code in C++ prints.
    """
    with tempfile.TemporaryFile() as file:
        stderr = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
            file.seek(0)
            lines += file.read().decode(errors="replace").splitlines()


def partitioned(function, *args):
    """Compile a function; return it, and the partitioner's lines.

    ValueError if the level of the log hides them.
    """
    if os.environ.get("TF_CPP_MIN_LOG_LEVEL", "1") not in ("0", "1"):
        raise ValueError(
            "TF_CPP_MIN_LOG_LEVEL hides warnings: set it to 1 before you "
            "import JAX"
        )
    lowered, lines = jax.jit(function).lower(*args), []
    with standard_error(lines):
        compiled = lowered.compile()
    by = re.compile(
        r"(?:spmd_partition\w+|fft_handler|sharding_\w+)\.cc:\d+\] "
    )
    return compiled, [by.split(line)[-1] for line in lines if by.search(line)]


def in_steps(*specs):
    """Return a function that brings an array into one layout after another."""

    def change(x):
        for spec in specs:
            x = reshard(x, spec)
        return x

    return change


def bytes_received(compiled, sizes):
    """Return the bytes of float32 that each device receives at least.

    `sizes` are those of the mesh.
    """
    return sum(size for *_, size in communication(compiled.as_text(), sizes))


def cost(x, *specs):
    """Return how many lines are printed to lay x out so, and the bytes.

    A device receives so many, lacks so many, and needs so many temporaries.
    x is float32, on a mesh of explicit axes; TypeError for other dtypes.
    """
    if x.dtype != jnp.float32:
        raise TypeError(f"bytes of {x.dtype} aren't counted: pass float32")
    mesh = x.sharding.mesh
    compiled, lines = partitioned(in_steps(*specs), x)
    lacking = bytes_to_receive(x, jax.device_put(x, specs[-1]))
    return {
        "lines": len(lines),
        "received": bytes_received(compiled, mesh.axis_sizes),
        "lacking": lacking // mesh.size,
        "temporaries": compiled.memory_analysis().temp_size_in_bytes,
    }


def transform(x):
    """Return the Fourier transform of each row of x (n, m), complex64."""
    return jnp.fft.fft(x)


def transform_by_rows(x):
    """Do the same, with whole rows on each device, on automatic axes."""
    x = lax.with_sharding_constraint(x, P("x"))
    return lax.with_sharding_constraint(jnp.fft.fft(x), P("x"))
