"""What JAX's documentation says of speed, memory and compiling, run."""

import os
import pathlib
import subprocess
import sys
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import export

from snippets.tracing.first_step import programs_kept_in
from snippets.tracing.retracing import compilations

EXPECTED_ERRORS = {"read_donated": (RuntimeError, "Array has been deleted")}


def programs(function, *args):
    """Return how many programs JAX compiles during one call of `function`."""
    with compilations() as compiled:
        jax.block_until_ready(function(*args))
    return len(compiled)


def to_integers(x):
    """Return x scaled to integers between -127 and 127, float32."""
    return jnp.round(x * (127 / jnp.max(jnp.abs(x))))


def instructions(function, *args):
    """Return the number of instructions in the program compiled for `args`."""
    text = jax.jit(function).lower(*args).compile().as_text()
    return text.count(" = ")


def for_any_length(function):
    """Return `function` of float32[n, 3], exported once for every n."""
    (rows,) = export.symbolic_shape("rows")
    argument = jax.ShapeDtypeStruct((rows, 3), jnp.float32)
    return jax.jit(export.export(jax.jit(function))(argument).call)


def lengths(x):
    """Return the Euclidean length of each row of x, float32[n, 3]."""
    return jnp.sqrt(jnp.sum(x * x, axis=1))


def read_donated(x):
    """Give the memory of x to a result, then read x; raises RuntimeError."""
    jax.jit(jnp.negative, donate_argnums=0)(x)
    return np.asarray(x)


@jax.jit
def increase(ref):
    """Add one to every number of a ref, in its memory; return the first."""
    ref[...] = ref[...] + 1
    return ref[0]


def two_layers(weights, x):
    """Return two tanh layers of x, with weights [m, n] and [m, m]."""
    first, second = weights
    return jnp.tanh(second @ jnp.tanh(first @ x))


def jacobian_operations(jacobian, inputs, outputs):
    """Return the operations that XLA counts in a Jacobian of `two_layers`."""
    weights = jnp.ones((outputs, inputs)), jnp.ones((outputs, outputs))
    compiled = jax.jit(jacobian(partial(two_layers, weights)))
    return int(
        compiled.lower(jnp.ones(inputs)).compile().cost_analysis()["flops"]
    )


def starts_with_flags(*flags):
    """Say whether JAX finds its devices in a process with these XLA_FLAGS."""
    environment = os.environ | {"XLA_FLAGS": " ".join(flags)}
    command = [sys.executable, "-c", "import jax; jax.devices()"]
    return not subprocess.run(
        command, env=environment, capture_output=True
    ).returncode


PRECISIONS = (
    "default",
    "highest",
    "F32_F32_F32",
    "BF16_BF16_F32",
    "BF16_BF16_F32_X3",
    "BF16_BF16_F32_X6",
    "BF16_BF16_F32_X9",
    "TF32_TF32_F32",
)


def squared(x, precision):
    """Return x·x, for a square float32 matrix, by one of JAX's precisions."""
    return jnp.dot(x, x, precision=precision)


def largest_error(x, precision):
    """Return the largest error of `squared` against float64, as text.

    It is relative to the largest value. The text is "refused" where the
    device has no such precision.
    """
    try:
        result = jax.jit(squared, static_argnums=1)(x, precision)
    except (ValueError, RuntimeError):
        return "refused"
    exact = np.asarray(x, np.float64) @ np.asarray(x, np.float64)
    return f"{np.max(np.abs(result - exact)) / np.max(np.abs(exact)):.0e}"


def sines(count):
    """Return a function that applies sin `count` times."""

    def repeated(x):
        for _ in range(count):
            x = jnp.sin(x)
        return x

    return repeated


def checkpointed_sines(count):
    """Return the function, checkpointed around the first half of each half."""
    if count <= 2:
        return sines(count)
    half = checkpointed_sines(count // 2)
    return lambda x: half(jax.checkpoint(half)(x))


def gradient_of(function):
    """Return a function of x that returns the gradient of sum(function(x))."""
    return jax.grad(lambda x: jnp.sum(function(x)))


def arrays_kept(function, x):
    """Return how many arrays `jax.vjp` keeps for the backward pass."""
    return len(jax.tree.leaves(jax.vjp(function, x)[1]))


def sines_asked_for(function, x):
    """Return how many sines and cosines a gradient takes per element of x.

    That is the count before XLA optimizes.
    """
    cost = jax.jit(gradient_of(function)).lower(x).cost_analysis()
    return round(cost["transcendentals"] / x.size)


def temporaries(function, x):
    """Return how many arrays like x XLA plans for results in between."""
    plan = jax.jit(function).lower(x).compile().memory_analysis()
    return round(plan.temp_size_in_bytes / x.nbytes)


@jax.jit
def element(x, i):
    """Return x[i]."""
    return x[i]


def add_array(total, backward):
    """Return `total` plus the gradient of `element`, which is one-hot."""
    return total + backward(1.0)[0]


def add_in_place(ref, backward):
    """Add the gradient of `element` to a ref; return its first element."""
    backward.with_refs(ref, jax.ad.GradValue())(1.0)
    return ref[0]


def squares(x, order):
    """Return the sum of x[i]² over `order`, int32[n], in a loop."""
    return jax.lax.scan(
        lambda total, i: (total + x[i] ** 2, None), 0.0, order
    )[0]


def squares_from_ref(x, order):
    """Return the same sum, read from a ref."""
    return squares(jax.new_ref(x), order)


def fill(folder, limit, count=8):
    """Compile `count` programs, with a compilation cache of `limit` bytes.

    Return how many are in it at the end, and their bytes; -1 is no limit.
    """
    before = jax.config.jax_compilation_cache_max_size
    jax.config.update("jax_compilation_cache_max_size", limit)
    try:
        with programs_kept_in(folder):
            for n in range(count):
                jax.jit(lambda x: jnp.sin(x) @ x)(np.ones((20 + n, 20 + n)))
    finally:
        jax.config.update("jax_compilation_cache_max_size", before)
    kept = list(pathlib.Path(folder).glob("*-cache"))
    return len(kept), sum(path.stat().st_size for path in kept)
