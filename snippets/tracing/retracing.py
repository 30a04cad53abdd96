"""What makes JAX trace and compile a function again, counted."""

import contextlib
import dataclasses
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

COMPILED = "/jax/core/compile/backend_compile_duration"


def counted(function):
    """Return `function` with an attribute `traces`: how often its body ran."""

    @functools.wraps(function)
    def body(*args, **kwargs):
        body.traces += 1
        return function(*args, **kwargs)

    body.traces = 0
    return body


def count_traces(function, calls, **jit_options):
    """Return how often JAX traces `function` to serve all `calls`.

    A call is a tuple of positional arguments or a dict of named ones.
    """
    body = counted(function)
    jitted = jax.jit(body, **jit_options)
    for call in calls:
        jitted(**call) if isinstance(call, dict) else jitted(*call)
    return body.traces


@contextlib.contextmanager
def compilations():
    """Yield a list to which each compilation appends its seconds."""
    durations = []

    def listen(event, seconds, **details):
        if event == COMPILED:
            durations.append(seconds)

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield durations
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)


def count_both(function, calls, **jit_options):
    """Return how often JAX traces and compiles `function` for all `calls`."""
    with compilations() as compiled:
        traces = count_traces(function, calls, **jit_options)
    return traces, len(compiled)


def scale(x, factor=2.0):
    """Return x times factor."""
    return x * factor


def same_function(times):
    """Return the traces when each call wraps one function in jit again."""
    body = counted(scale)
    for _ in range(times):
        jax.jit(body)(np.ones(3))
    return body.traces


def fresh_lambda(times):
    """Return the traces when each call wraps a new lambda."""
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
    """Return the traces when each call has a matmul precision of its own."""
    body = counted(scale)
    jitted = jax.jit(body)
    for precision in precisions:
        with jax.default_matmul_precision(precision):
            jitted(np.ones(3))
    return body.traces


def scale_all(arrays):
    """Return the arrays of a pytree, each times two, in the same structure."""
    return jax.tree.map(scale, arrays)


def four_calls(devices):
    """Return (what four calls differ in, traces, compilations) of each row.

    devices: four of them, for the arrays of the rows on devices and layouts.
    """
    x, matrix = np.ones(3), np.ones((4, 4))
    dtypes = ("float32", "float16", "int32", "bool")
    scalars = (2, 2.0, True, np.float32(2))
    mesh = jax.make_mesh((2, 2), ("i", "j"), devices=devices)
    layouts = (jax.P(), jax.P("i"), jax.P("j"), jax.P("i", "j"))
    loose = jnp.ones(3)
    held = jax.device_put(loose, loose.device)

    def placed(array, places):
        return [(jax.device_put(array, place),) for place in places]

    of_arrays = {
        "nothing": [(x,)] * 4,
        "the values": [(x * n,) for n in range(4)],
        "the shape": [(np.ones(n),) for n in range(4)],
        "the dtype": [(x.astype(dtype),) for dtype in dtypes],
        "kind of scalar": [(x, scalar) for scalar in scalars],
        "value of a traced scalar": [(x, n) for n in range(4)],
        "by position or by name": [(x, 2.0), {"x": x, "factor": 2.0}] * 2,
        "committed or not": [(loose,), (held,)] * 2,
        "the device": placed(x, devices),
        "the layout on a mesh": placed(
            matrix, [jax.NamedSharding(mesh, layout) for layout in layouts]
        ),
    }
    keys = [({name: x, "b": x},) for name in "acde"]
    static = functools.partial(count_traces, static_argnames="factor")
    counts = {
        what: (count_traces, scale, calls) for what, calls in of_arrays.items()
    }
    counts |= {
        "the keys of a dictionary": (count_traces, scale_all, keys),
        "value of a static scalar": (
            static,
            scale,
            [(x, n) for n in range(4)],
        ),
        "a setting, on and off": (
            changed_setting,
            ["highest", "bfloat16"] * 2,
        ),
        "jax.jit(f) written again": (same_function, 4),
        "a new lambda": (fresh_lambda, 4),
        "a new partial": (fresh_partial, 4),
        "a bound method": (bound_method, 4),
    }
    rows = []
    for what, (count, *args) in counts.items():
        with compilations() as compiled:
            traces = count(*args)
        rows.append((what, traces, len(compiled)))
    return rows


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
    return [
        line for line in lines if not re.search("(MISS|defined) at ", line)
    ]


def batch_mean(batch):
    """Return the mean of all entries."""
    return jnp.mean(batch)


def strict_means(batches):
    """Return the mean of each batch; raises RuntimeError on a later trace."""
    jitted = jax.jit(batch_mean)
    means = [jitted(batches[0])]
    with jax.no_tracing(True):
        for batch in batches[1:]:
            means.append(jitted(batch))
    return means


def tensorflow_traces(function, calls, **options):
    """Return how often tf.function traces `function` to serve all `calls`."""
    compiled = tf.function(function, **options)
    for call in calls:
        compiled(*call)
    return compiled.experimental_get_tracing_count()


def torch_compiles(function, calls):
    """Return how often torch.compile compiles `function` for all `calls`."""
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


def count_loop(loop, function, *args, **options):
    """Return how often loop(function, ...) traces and compiles it, as a text.

    The loop runs twice. What it does outside `function` is compiled the
    first time.
    """
    loop(counted(function), *args, **options)
    body = counted(function)
    with compilations() as compiled:
        loop(body, *args, **options)
    return f"traces: {body.traces}, compilations: {len(compiled)}"


def descend(weights, gradient, rate):
    """Return the weights, of any shape, after a step of gradient descent."""
    return weights - rate * gradient


def track(mean, batch):
    """Return the running mean, float32 (), after one more batch of float32."""
    return 0.9 * mean + 0.1 * jnp.mean(batch)


def over_batches(function, start, batches):
    """Return the carry after jitted `function` has taken all batches."""
    step, carry = jax.jit(function), start
    for batch in batches:
        carry = step(carry, batch)
    return carry


def descend_bfloat16(weights, gradient):
    """Return the weights after a step with a float32 gradient."""
    return weights - 0.1 * gradient


def descend_same_dtype(weights, gradient):
    """Return the weights, in their own dtype, after such a step."""
    return (weights - 0.1 * gradient).astype(weights.dtype)


class Optimizer:
    """Gradient descent; two objects with the same rate are not equal."""

    def __init__(self, rate):
        self.rate = rate


@dataclasses.dataclass(frozen=True)
class FrozenOptimizer:
    """Gradient descent; objects with equal rates are equal."""

    rate: float


def apply_optimizer(optimizer, weights):
    """Return the weights after a step against themselves."""
    return weights - optimizer.rate * weights


def with_momentum(state, gradient):
    """Return the state after a step; its momentum may be None."""
    momentum = state["momentum"]
    momentum = gradient if momentum is None else 0.9 * momentum + gradient
    return {"weights": state["weights"] - 0.1 * momentum, "momentum": momentum}


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=["weights"],
    meta_fields=["step"],
)
@dataclasses.dataclass
class CountingState:
    """Weights, and the number of the step as metadata."""

    weights: jax.Array
    step: int


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class State:
    """Weights and the number of the step, both as data."""

    weights: jax.Array
    step: int


def decay(state):
    """Return the state after a step."""
    return dataclasses.replace(
        state, weights=0.9 * state.weights, step=state.step + 1
    )


def repeat(function, start, times):
    """Return the carry after jitted `function` was applied `times` times."""
    step, carry = jax.jit(function), start
    for _ in range(times):
        carry = step(carry)
    return carry


def in_layout(function, weights, gradient, steps, result=None):
    """Train on several devices; `result` is the sharding of new weights."""
    step = jax.jit(function, out_shardings=result)
    for _ in range(steps):
        weights = step(weights, gradient, 0.1)
    return weights
