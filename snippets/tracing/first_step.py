"""What the first training step pays for, and how to pay for it elsewhere."""

import contextlib
import itertools
import time

import jax
import jax.numpy as jnp
from jax.experimental.compilation_cache import compilation_cache

from snippets.jaxprs.reading import primitives


def network(weights, x):
    """Apply tanh(x @ w) for each w of (depth, n, n) weights. x: (batch, n)."""
    for layer in weights:
        x = jnp.tanh(x @ layer)
    return x


def loss(weights, x, y):
    """Return the mean squared error of the network against y: (batch, n)."""
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


def anew(function):
    """Return `function`, jitted as a new function that JAX has not seen."""
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


def stage_times(function, *args):
    """Run each stage up to the first result; return pairs (stage, seconds)."""
    moments = [time.perf_counter()]
    traced = anew(function).trace(*args)
    moments.append(time.perf_counter())
    lowered = traced.lower()
    moments.append(time.perf_counter())
    compiled = lowered.compile()
    moments.append(time.perf_counter())
    jax.block_until_ready(compiled(*args))
    moments.append(time.perf_counter())
    times = [
        round(end - start, 6) for start, end in itertools.pairwise(moments)
    ]
    return list(zip(("trace", "lower", "compile", "run"), times, strict=True))


def scanned_network(weights, x):
    """Compute what `network` does, with a loop in the compiled program."""

    def apply_layer(x, layer):
        return jnp.tanh(x @ layer), None

    return jax.lax.scan(apply_layer, x, weights)[0]


def checkpointed_network(weights, x):
    """Compute what `scanned_network` does; gradients recompute each layer."""

    @jax.checkpoint
    def apply_layer(x, layer):
        return jnp.tanh(x @ layer), None

    return jax.lax.scan(apply_layer, x, weights)[0]


def gradient_of(forward):
    """Return the gradient of the sum of `forward`(weights, x)."""
    return jax.grad(lambda weights, x: forward(weights, x).sum())


def count_equations(forward, depth):
    """Return the number of primitives in the jaxpr of `depth` layers."""
    weights, x, _ = example(depth, width=8, batch=4)
    return len(primitives(jax.make_jaxpr(forward)(weights, x)))


def compile_ahead(step, depth, width, batch):
    """Compile a step for float32 arrays of the given sizes."""
    weights = jax.ShapeDtypeStruct((depth, width, width), jnp.float32)
    data = jax.ShapeDtypeStruct((batch, width), jnp.float32)
    return jax.jit(step).lower(weights, data, data).compile()


@contextlib.contextmanager
def programs_kept_in(folder, shortest=0.0):
    """Let JAX keep compiled programs in `folder`, and load them from there.

    `shortest` is the compile time in seconds from which on a program is kept.
    """
    settings = {
        "jax_compilation_cache_dir": str(folder),
        "jax_persistent_cache_min_compile_time_secs": shortest,
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


def compile_kept(folder, function, *args):
    """Compile `function` as if in a new process, with programs in `folder`."""
    with programs_kept_in(folder):
        compile_anew(function, *args)
