"""Which frameworks work here: each is imported, and JAX asked for ten results, before anything is measured.

A process of its own for each, `python -m jax_measured.probing NAME`, because an import can end its
process. It answers with the reason why the framework cannot be used, and with what is to be said of
it, both in words or null, as JSON in the last line.
"""

import importlib
import importlib.util
import json
import os
import subprocess
import sys

import numpy as np

from .process import reason_of

# Seconds for an import and ten results, on a slow disk, too.
LIMIT = 180
# Of the largest number: TF32 and bfloat16 are coarser than float32, and stay within it.
TOLERANCE = 0.02
# What platforms and kinds of devices are called, in small letters, by what JAX reaches them.
PLUGINS = {
    "Metal, on an Apple GPU": ("metal", "mps", "apple"),
    "ROCm, on an AMD GPU": ("rocm", "amd", "radeon", "gfx"),
    "oneAPI, on an Intel GPU": ("oneapi", "sycl", "intel", "xpu"),
}
# The book has measured on such.
KNOWN = ("cpu", "tpu", "cuda", "nvidia")
# Each is asked once.
ANSWERED = {}


def results(jax):
    """Yield ten results of JAX beside NumPy's: what was computed, and the two.

    Operation by operation, in one process: that is how some GPUs gave wrong results with JAX 0.11
    and CUDA 13, what was compiled being right (jax-ml/jax#40633).
    """
    jnp, draw = jax.numpy, np.random.default_rng(0)
    x = np.linspace(-3, 3, 1001, dtype=np.float32)
    a, b = draw.standard_normal((2, 64, 64), dtype=np.float32)
    order = draw.permutation(1001)
    y, here = jnp.asarray(x), jnp.asarray(x[order])
    yield "sqrt(512)", jnp.sqrt(jnp.float32(512)), np.sqrt(512)
    yield "ones(4) + 1", jnp.ones(4) + 1, np.ones(4) + 1
    yield "a chain of operations", y * y - 2 * y + 1, x * x - 2 * x + 1
    yield "exp", jnp.exp(y), np.exp(x)
    yield "where", jnp.where(y > 0, y, 7), np.where(x > 0, x, 7)
    yield "sum", jnp.sum(y * y), np.sum(x * x)
    yield "cumsum", jnp.cumsum(y), np.cumsum(x)
    yield "sort", jnp.sort(here), x
    yield "take", jnp.take(y, order), x[order]
    yield "matmul", jnp.matmul(a, b), a @ b


def wrong(pairs):
    """Return which results are not NumPy's, in words, or None."""
    for name, found, expected in pairs:
        found, largest = np.asarray(found), np.max(np.abs(expected))
        is_far = ~np.isclose(found, expected, rtol=0, atol=TOLERANCE * largest)
        if is_far.any():
            one, other = found[is_far][0], np.asarray(expected)[is_far][0]
            return f"it computes wrong here: {name} gives {one:g} where NumPy gives {other:g}"
    return None


def plugin(platform, kind):
    """Return what to expect of a device that JAX reaches by a plug-in, or None."""
    said = f"{platform} {kind}".lower()
    if any(name in said for name in KNOWN):
        return None
    known = (
        name
        for name, words in PLUGINS.items()
        if any(word in said for word in words)
    )
    by = next(known, f"the plug-in {platform.split()[0]}")
    return (
        f"JAX computes on {kind} by {by}. This book has measured on none: operations that are "
        "missing there are listed as not measured, and the last column compares with the book's "
        "GPU. JAX_PLATFORMS=cpu measures the CPU"
    )


def answer(name):
    """Return why a framework cannot be used, and what is to be said of it; None is nothing."""
    try:
        framework = importlib.import_module(name)
        if name != "jax":
            return None, None
        device = framework.devices()[0]
        platform = f"{device.client.platform} {device.client.platform_version}"
        return wrong(results(framework)), plugin(platform, device.device_kind)
    # Whatever it is, this framework is not to be used.
    except Exception as error:
        asked = os.environ.get("JAX_PLATFORMS") if name == "jax" else None
        return reason_of(error) + (
            f" (JAX_PLATFORMS is {asked})" if asked else ""
        ), None


def answered(process):
    """Return what a process answered, or how it ended."""
    try:
        text, errors = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return f"to import it takes longer than {LIMIT} seconds", None
    if process.returncode == 0:
        return json.loads(text.splitlines()[-1])
    said = (errors.strip().splitlines() or ["it said nothing"])[-1]
    return (
        f"to import it ends its process with status {process.returncode}: {said}",
        None,
    )


def answers(names):
    """Return {framework: (reason, notice)} of what is installed: `names`, and what was asked before.

    They are asked side by side.
    """
    new = [
        each
        for each in names
        if each not in ANSWERED and importlib.util.find_spec(each)
    ]
    words = [sys.executable, "-P", "-m", f"{__package__}.probing"]
    places = [
        os.environ.get("PYTHONPATH"),
        os.path.dirname(os.path.dirname(__file__)),
    ]
    known = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, places))}
    options = {
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
        "env": known,
    }
    options |= {"encoding": "utf8", "errors": "replace"}
    processes = [subprocess.Popen([*words, name], **options) for name in new]
    try:
        ANSWERED.update(zip(new, map(answered, processes), strict=True))
    finally:
        for process in processes:
            process.kill()
            process.wait()
    return ANSWERED


if __name__ == "__main__":
    print(f"\n{json.dumps(answer(sys.argv[1]))}")
