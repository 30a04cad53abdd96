"""One function for every device, and what still differs between devices."""

import re

import jax
import jax.numpy as jnp
import torch
from jax import export

EXPECTED_ERRORS = {
    "add_positions_cpu_torch": (RuntimeError, "is not on the expected device"),
    "ask_device_inside_jit": (
        jax.errors.ConcretizationTypeError,
        "devices() method was called",
    ),
    "export_halves": (
        jax.errors.InconclusiveDimensionOperation,
        "Cannot divide evenly",
    ),
    "run_elsewhere": (ValueError, "was exported for platforms"),
    "too_large_integer": (OverflowError, "too large"),
}


def standardise(x):
    """Return `x` (rows, features), each column with mean 0, deviation 1."""
    return (x - x.mean(axis=0)) / x.std(axis=0)


def add_positions(x):
    """Add 0, 1, 2, ... to the elements of a vector."""
    return x + jnp.arange(x.shape[0])


def add_positions_cpu_torch(x):
    """Add 0, 1, 2, ... made on the CPU; RuntimeError for `x` elsewhere."""
    return x + torch.arange(x.shape[0])


def add_positions_torch(x):
    """Add 0, 1, 2, ... made on the device of `x`."""
    return x + torch.arange(x.shape[0], device=x.device)


def lowered_text(function, x, platform):
    """Return the StableHLO of `function` for a platform, such as "tpu"."""
    return (
        jax.jit(function)
        .trace(x)
        .lower(lowering_platforms=(platform,))
        .as_text()
    )


def export_for_all(function, x):
    """Return `function` for arguments like `x`, for CPU, GPU and TPU."""
    return export.export(jax.jit(function), platforms=("cpu", "cuda", "tpu"))(
        x
    )


def run_elsewhere(function, x):
    """Run here what was exported for another platform; raises ValueError."""
    other = "cpu" if jax.default_backend() == "tpu" else "tpu"
    return export.export(jax.jit(function), platforms=(other,))(x).call(x)


def export_open(function, length="n"):
    """Return `function` of a float32 vector, exported for each such `length`.

    `length` is a formula of integers that are 1 or more, such as "2*n".
    """
    shape = export.symbolic_shape(length)
    return export.export(jax.jit(function))(
        jax.ShapeDtypeStruct(shape, jnp.float32)
    )


def halves(x):
    """Return the two halves of a vector as rows. x: (n,), n even."""
    return x.reshape(2, -1)


def export_halves():
    """Export `halves` for odd sizes too; InconclusiveDimensionOperation."""
    return export_open(halves)


def constants(text):
    """Return the floating-point constants in StableHLO text, sorted."""
    return sorted(
        {
            float(number)
            for number in re.findall(r"dense<([-\d.e+]+)> : tensor<f32>", text)
        }
    )


def add_by_backend(x):
    """Add 1 on CPU and 2 elsewhere, decided by Python while tracing."""
    return x + (1.0 if jax.default_backend() == "cpu" else 2.0)


def add_by_platform(x):
    """Add 1 on CPU and 2 elsewhere, decided for the platform that runs it."""
    return jax.lax.platform_dependent(
        x, cpu=lambda x: x + 1.0, default=lambda x: x + 2.0
    )


@jax.jit
def ask_device_inside_jit(x):
    """Ask a traced array for its devices; raises ConcretizationTypeError."""
    return x + len(x.devices())


def double_precision(function, *args):
    """Call `function` with 64-bit types switched on."""
    with jax.enable_x64(True):
        return function(*args)


def too_large_integer():
    """Make an array of 2³¹ without 64-bit types; raises OverflowError."""
    return jnp.array(2**31)
