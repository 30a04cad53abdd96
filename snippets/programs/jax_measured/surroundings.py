"""What would spoil times on this machine, in words, before anything is measured."""

import contextlib
import glob
import os
import shutil
import subprocess
import time

from . import timer

# Seconds for which the machine is watched: many of the hundredths in which it counts.
LOOK = 0.5
SWITCHES = tuple(
    """
JAX_DEBUG_NANS JAX_DEBUG_INFS JAX_DISABLE_JIT JAX_LOG_COMPILES JAX_CHECK_TRACER_LEAKS
JAX_EXPLAIN_CACHE_MISSES JAX_ENABLE_CHECKS JAX_TRANSFER_GUARD JAX_COMPILATION_CACHE_DIR
TORCH_LOGS CUDA_LAUNCH_BLOCKING PYTHONTRACEMALLOC PYTHONDEVMODE PYTHONPROFILEIMPORTTIME
""".split()
)
# They change what is measured, in place of how long it takes.
CHANGED = ("JAX_ENABLE_X64", "JAX_DEFAULT_MATMUL_PRECISION")
OFF = ("", "0", "false", "off", "no")


def load():
    """Yield a warning where other programs keep cores busy."""
    before = timer.taken_by_others()
    time.sleep(LOOK)
    if timer.disturbed_since(before):
        yield "others keep the processor busy, programs or virtual machines"
    elif (
        before == (0.0, 0.0)
        and hasattr(os, "getloadavg")
        and os.getloadavg()[0] > 1
    ):
        yield "other programs keep the processor busy: end them"


def battery():
    """Yield a warning where the machine runs on a battery."""
    states = [
        timer.text_of(path)
        for path in glob.glob("/sys/class/power_supply/*/status")
    ]
    if shutil.which("pmset"):
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            command = ["pmset", "-g", "batt"]
            states.append(
                subprocess.run(command, capture_output=True, text=True).stdout
            )
    if any(
        "Discharging" in state or "Battery Power" in state for state in states
    ):
        yield "the machine runs on its battery, and may be slowed down: plug it in"


def threads():
    """Yield a warning for each limit of threads and cores."""
    for name in timer.VARIABLES:
        if name in os.environ:
            yield f"{name} is set to {os.environ[name]!r}, and the book's is not"
    usable, all_cores = timer.usable_cores(), os.cpu_count()
    if usable < all_cores:
        yield f"this process may run on {usable} of {all_cores} cores"
    quota, _, period = timer.text_of("/sys/fs/cgroup/cpu.max").partition(" ")
    if quota.isdigit() and int(quota) / int(period) < usable:
        yield f"this container may use {int(quota) / int(period):g} of {usable} cores"


def switched():
    """Return the switches of the environment that are on, as records have them.

    A value that is a path, which may name somebody, is left out.
    """
    values = {
        name: " ".join(os.environ.get(name, "").split())
        for name in (*SWITCHES, *CHANGED)
    }
    return {
        name: "set" if os.sep in value else value[:300]
        for name, value in values.items()
        if value.lower() not in OFF
    }


def switches():
    """Yield a warning for each switch in the environment that changes times."""
    for name, value in switched().items():
        if name in CHANGED:
            yield f"{name} is {value}, so other things are measured than the book's"
        else:
            yield f"{name} is set, and slows calls down or changes first ones: unset it"
    # Where it ran a record says by its device.
    if value := os.environ.get("JAX_PLATFORMS"):
        yield f"JAX_PLATFORMS is {value}: JAX is to compute there, and on nothing else"


def warnings():
    """Return what would spoil the numbers, in words."""
    return [*load(), *battery(), *threads(), *switches()]
