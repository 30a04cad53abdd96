"""What makes JAX trace a function again, counted."""

import functools
import io
import logging
import re

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
import torch

EXPECTED_ERRORS = {"strict_means": (RuntimeError, "'no_tracing' is set")}


def counted(function):
    """Return a function like `function` whose `traces` counts the runs of its body."""

    @functools.wraps(function)
    def body(*args, **kwargs):
        body.traces += 1
        return function(*args, **kwargs)

    body.traces = 0
    return body


def count_traces(function, calls, **jit_options):
    """Return how often JAX traces `function` while it serves all `calls`.

    A call is a tuple of positional arguments or a dict of named ones.
    """
    body = counted(function)
    jitted = jax.jit(body, **jit_options)
    for call in calls:
        jitted(**call) if isinstance(call, dict) else jitted(*call)
    return body.traces


def scale(x, factor=2.0):
    """Return x times factor."""
    return x * factor


def same_function(times):
    """Return the traces when one function is wrapped in jit again for each call."""
    body = counted(scale)
    for _ in range(times):
        jax.jit(body)(np.ones(3))
    return body.traces


def fresh_lambda(times):
    """Return the traces when each call wraps a lambda written at that moment."""
    body = counted(scale)
    for _ in range(times):
        jax.jit(lambda x: body(x))(np.ones(3))
    return body.traces


def fresh_partial(times):
    """Return the traces when each call wraps a new partial of one function."""
    body = counted(scale)
    for _ in range(times):
        jax.jit(functools.partial(body, factor=3.0))(np.ones(3))
    return body.traces


class Layer:
    """A layer whose `apply` scales its input, with a trace counter inside."""

    def __init__(self):
        self.body = counted(scale)

    def apply(self, x):
        """Return the scaled x."""
        return self.body(x)


def bound_method(times):
    """Return the traces when each call wraps the same object's method."""
    layer = Layer()
    for _ in range(times):
        jax.jit(layer.apply)(np.ones(3))
    return layer.body.traces


def changed_setting(precisions):
    """Return the traces when each call comes under a matmul precision of its own."""
    body = counted(scale)
    jitted = jax.jit(body)
    for precision in precisions:
        with jax.default_matmul_precision(precision):
            jitted(np.ones(3))
    return body.traces


def four_calls():
    """Return {what differs between four calls: number of traces}."""
    x = np.ones(3)
    dtypes = ("float32", "float16", "int32", "bool")
    scalars = (2, 2.0, True, np.float32(2))
    return {
        "nothing": count_traces(scale, [(x,)] * 4),
        "the values in the array": count_traces(scale, [(x * n,) for n in range(4)]),
        "the shape": count_traces(scale, [(np.ones(n),) for n in range(4)]),
        "the dtype": count_traces(scale, [(x.astype(t),) for t in dtypes]),
        "the kind of scalar": count_traces(scale, [(x, s) for s in scalars]),
        "the value of a traced scalar": count_traces(scale, [(x, n) for n in range(4)]),
        "the value of a static scalar": count_traces(
            scale, [(x, n) for n in range(4)], static_argnames="factor"
        ),
        "twice by position, twice by name": count_traces(
            scale, [(x, 2.0), {"x": x, "factor": 2.0}] * 2
        ),
        "a setting, on and off": changed_setting(["highest", "bfloat16"] * 2),
        "jax.jit(f) written again": same_function(4),
        "a new lambda": fresh_lambda(4),
        "a new partial": fresh_partial(4),
        "a bound method": bound_method(4),
    }


def reasons(jitted, *args):
    """Call `jitted` and return why JAX had to trace, as it logs it.

    Lines that name a place in a file are left out.
    """
    log = io.StringIO()
    logger, handler = logging.getLogger("jax"), logging.StreamHandler(log)
    logger.addHandler(handler)
    try:
        with jax.explain_cache_misses(True):
            jitted(*args)
    finally:
        logger.removeHandler(handler)
    lines = [line.strip() for line in log.getvalue().splitlines()]
    return [line for line in lines if not re.search("(MISS|defined) at ", line)]


def batch_mean(batch):
    """Return the mean of all entries."""
    return jnp.mean(batch)


def strict_means(batches):
    """Return the mean of each batch; raise RuntimeError if a later one is traced."""
    jitted = jax.jit(batch_mean)
    means = [jitted(batches[0])]
    with jax.no_tracing(True):
        for batch in batches[1:]:
            means.append(jitted(batch))
    return means


def hoisted_lambda(times):
    """Return the traces when the lambda is wrapped once, before the loop."""
    body = counted(scale)
    jitted = jax.jit(lambda x: body(x))
    for _ in range(times):
        jitted(np.ones(3))
    return body.traces


def hoisted_partial(times):
    """Return the traces when the partial is made and wrapped once, before the loop."""
    body = counted(scale)
    jitted = jax.jit(functools.partial(body, factor=3.0))
    for _ in range(times):
        jitted(np.ones(3))
    return body.traces


def hoisted_method(times):
    """Return the traces when the bound method is wrapped once, before the loop."""
    layer = Layer()
    jitted = jax.jit(layer.apply)
    for _ in range(times):
        jitted(np.ones(3))
    return layer.body.traces


def padded_length(length):
    """Return the smallest power of two that is `length` or more, for length ≥ 1."""
    return 1 << (length - 1).bit_length()


def pad(values):
    """Return `values` (n,) with zeros appended up to `padded_length(n)`."""
    return np.pad(values, (0, padded_length(len(values)) - len(values)))


def padded_mean(padded, length):
    """Return the mean of the first `length` entries of `padded`."""
    valid = jnp.arange(padded.shape[0]) < length
    return jnp.sum(jnp.where(valid, padded, 0.0)) / length


def tensorflow_traces(function, calls):
    """Return how often tf.function traces `function` to serve all `calls`."""
    compiled = tf.function(function)
    for call in calls:
        compiled(*call)
    return compiled.experimental_get_tracing_count()


def torch_compiles(function, calls):
    """Return how often torch.compile compiles `function` to serve all `calls`."""
    compiles = 0

    def backend(graph, inputs):
        nonlocal compiles
        compiles += 1
        return graph.forward

    torch.compiler.reset()
    compiled = torch.compile(function, backend=backend)
    for call in calls:
        compiled(*call)
    return compiles


def double(x):
    """Return x times two."""
    return x * 2


FOUR_SHAPES = (3, 4, 5, 6)
FOUR_NUMBERS = (2, 3, 4, 5)


def four_of_each(count, ones):
    """Return {what differs between four calls: traces or compiles by `count`}.

    `ones` makes an array of ones of a given length.
    """
    return {
        "the shape": count(double, [(ones(n),) for n in FOUR_SHAPES]),
        "a Python number": count(scale, [(ones(3), n) for n in FOUR_NUMBERS]),
    }
