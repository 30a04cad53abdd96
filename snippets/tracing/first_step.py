"""What the first step of a training loop pays for, and how to pay it elsewhere."""

import contextlib
import itertools
import os
import tempfile
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.compilation_cache import compilation_cache

from snippets.jaxprs.reading import primitives
from snippets.timing.timer import measure


def network(weights, x):
    """Apply tanh(x @ layer) for each layer. weights: (depth, n, n), x: (batch, n)."""
    for layer in weights:
        x = jnp.tanh(x @ layer)
    return x


def loss(weights, x, y):
    """Return the mean squared error of the network's result against y: (batch, n)."""
    return jnp.mean((network(weights, x) - y) ** 2)


def train_step(weights, x, y):
    """Return the weights after one step of gradient descent with rate 0.1."""
    return weights - 0.1 * jax.grad(loss)(weights, x, y)


def example(depth, width, batch):
    """Return float32 weights (depth, width, width), x and y (batch, width)."""
    keys = jax.random.split(jax.random.key(0), 3)
    weights = jax.random.normal(keys[0], (depth, width, width)) / width**0.5
    x = jax.random.normal(keys[1], (batch, width))
    y = jnp.tanh(jax.random.normal(keys[2], (batch, width)))
    return weights, x, y


def measure_steps(step, *args):
    """Measure a training step: its first call, then the later ones."""
    measure("first_step/step", jax.jit(step), *args)


def anew(function):
    """Return a jitted function that JAX has not seen and that does as `function`."""
    return jax.jit(lambda *args: function(*args))


def trace_anew(function, *args):
    """Trace `function` as if for the first time."""
    anew(function).trace(*args)


def lower_anew(function, *args):
    """Trace `function` and lower it to StableHLO, as if for the first time."""
    anew(function).lower(*args)


def compile_anew(function, *args):
    """Trace, lower and compile `function`, as if for the first time."""
    anew(function).lower(*args).compile()


def run_anew(function, *args):
    """Call `function` jitted, as if for the first time, and return its result."""
    return anew(function)(*args)


def stage_times(function, *args):
    """Bring a function to its first result; return (stage, seconds) of each step."""
    moments = [time.perf_counter()]
    traced = anew(function).trace(*args)
    moments.append(time.perf_counter())
    lowered = traced.lower()
    moments.append(time.perf_counter())
    compiled = lowered.compile()
    moments.append(time.perf_counter())
    jax.block_until_ready(compiled(*args))
    moments.append(time.perf_counter())
    times = [round(end - start, 6) for start, end in itertools.pairwise(moments)]
    return list(zip(("trace", "lower", "compile", "run"), times, strict=True))


def measure_stages(step, *args):
    """Measure how long it takes to bring an unseen step to each stage."""
    measure("first_step/traced", trace_anew, step, *args, framework="jax")
    measure("first_step/lowered", lower_anew, step, *args, framework="jax")
    measure("first_step/compiled", compile_anew, step, *args, framework="jax")
    measure("first_step/run", run_anew, step, *args)


def scanned_network(weights, x):
    """Compute what `network` does, with a loop that is part of the compiled program."""

    def apply_layer(x, layer):
        return jnp.tanh(x @ layer), None

    return jax.lax.scan(apply_layer, x, weights)[0]


def count_equations(forward, depth):
    """Return how many primitives the jaxpr of a network of `depth` layers holds."""
    weights, x, _ = example(depth, width=8, batch=4)
    return len(primitives(jax.make_jaxpr(forward)(weights, x)))


def measure_loops(depth, width, batch):
    """Measure compiling a network with a Python loop and one with a scan."""
    args = example(depth, width, batch)[:2]
    measure("first_step/loop", compile_anew, network, *args, framework="jax")
    measure("first_step/scan", compile_anew, scanned_network, *args, framework="jax")


def compile_ahead(step, depth, width, batch):
    """Compile a step for float32 arrays of the given sizes, before there are any."""
    weights = jax.ShapeDtypeStruct((depth, width, width), jnp.float32)
    data = jax.ShapeDtypeStruct((batch, width), jnp.float32)
    return jax.jit(step).lower(weights, data, data).compile()


def measure_ahead(step, weights, x, y):
    """Measure a step that was compiled before its first call."""
    compiled = compile_ahead(step, len(weights), x.shape[1], len(x))
    measure("first_step/ahead", compiled, weights, x, y)


@contextlib.contextmanager
def programs_kept_in(folder):
    """Let JAX keep every compiled program in `folder` and look for it there first."""
    settings = {
        "jax_compilation_cache_dir": str(folder),
        "jax_persistent_cache_min_compile_time_secs": 0.0,
    }
    before = {name: getattr(jax.config, name) for name in settings}
    try:
        for name, value in settings.items():
            jax.config.update(name, value)
        compilation_cache.reset_cache()
        yield
    finally:
        for name, value in before.items():
            jax.config.update(name, value)
        compilation_cache.reset_cache()


def measure_kept(step, *args):
    """Measure compiling where a folder keeps programs; return how many files it has."""
    with tempfile.TemporaryDirectory() as folder, programs_kept_in(folder):
        measure("first_step/kept", compile_anew, step, *args, framework="jax")
        return len(os.listdir(folder))


def batches(x, y, size):
    """Return (x, y) cut into pairs of `size` rows; the last may have fewer."""
    return [(x[i : i + size], y[i : i + size]) for i in range(0, len(x), size)]


def padded_batches(x, y, size):
    """Return (x, y, valid) of exactly `size` rows each.

    Rows of zeros fill up the last. valid: (size,), 1 for a real row, else 0.
    """
    full = []
    for part_x, part_y in batches(x, y, size):
        missing = size - len(part_x)
        valid = np.arange(size) < len(part_x)
        rows = ((0, missing), (0, 0))
        full.append(
            (jnp.pad(part_x, rows), jnp.pad(part_y, rows), valid.astype(np.float32))
        )
    return full


def masked_loss(weights, x, y, valid):
    """Return the mean squared error over the rows where valid is 1."""
    per_row = jnp.mean((network(weights, x) - y) ** 2, axis=1)
    return jnp.sum(per_row * valid) / jnp.sum(valid)


def traces_of_an_epoch(function, weights, parts):
    """Return how often `function` is traced when each part of the data is used once."""
    traces = 0

    def body(*args):
        nonlocal traces
        traces += 1
        return function(*args)

    jitted = jax.jit(body)
    for part in parts:
        jitted(weights, *part)
    return traces
