"""Side effects in traced functions, and what to write instead."""

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
import torch
from jax.experimental import io_callback

EXPECTED_ERRORS = {
    "sines_of_rows": (
        NotImplementedError,
        "vmap is only supported for the pure_callback primitive when "
        "vmap_method",
    ),
    "gradient_of_host_sine": (ValueError, "Pure callbacks do not support JVP"),
    "log_rows_ordered": (ValueError, "ordered IO callback"),
    "hand_to_numpy": (
        jax.errors.TracerArrayConversionError,
        "called on traced array",
    ),
}

SETTINGS = {"factor": 2.0}


def total_with_print(xs):
    """Return the sum of `xs` (n,), printing in the body of the loop."""

    def step(total, x):
        print("adding", x, "to", total)
        return total + x, None

    return jax.lax.scan(step, 0.0, xs)[0]


def total_with_debug_print(xs):
    """Return the sum of `xs` (n,), printing in each iteration."""

    def step(total, x):
        jax.debug.print("adding {} to {}", x, total)
        return total + x, None

    return jax.lax.scan(step, 0.0, xs)[0]


def collect_by_append(xs):
    """Return the list to which a loop over `xs` (n,) appends its sums."""
    seen = []

    def step(total, x):
        seen.append(total + x)
        return total + x, None

    jax.lax.scan(step, 0.0, xs)
    return seen


def collect_by_scan(xs):
    """Return the running sums of `xs`, (n,)."""

    def step(total, x):
        return total + x, total + x

    return jax.lax.scan(step, 0.0, xs)[1]


def count_in_closure(rounds):
    """Count the iterations of a compiled loop in a variable outside it."""
    count = 0

    def body(i, x):
        nonlocal count
        count += 1
        return x + i

    jax.lax.fori_loop(0, rounds, body, 0)
    return count


def count_in_carry(rounds):
    """Count the iterations of a compiled loop in its carry."""

    def body(i, carry):
        x, count = carry
        return x + i, count + 1

    return jax.lax.fori_loop(0, rounds, body, (0, 0))[1]


def shift_by_table(table):
    """Return a jitted function of x (n,) that adds NumPy's `table` (n,)."""
    return jax.jit(lambda x: x + table)


def steps_that_call_next(batches, steps):
    """Add the next batch to 0 in each of `steps` calls; return the sums."""

    @jax.jit
    def step(x):
        return x + next(batches)

    return [float(step(0.0)) for _ in range(steps)]


def log_losses(losses):
    """Return the list that a callback fills with `losses` (n,), as floats."""
    seen = []

    @jax.jit
    def step(loss):
        jax.debug.callback(lambda value: seen.append(float(value)), loss)
        return loss

    for loss in losses:
        step(loss)
    jax.effects_barrier()
    return seen


def host_sine(x, **options):
    """Return sin x, computed by NumPy; `options` of pure_callback."""
    result = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return jax.pure_callback(np.sin, result, x, **options)


def count_host_calls(function, x):
    """Count how often the jitted `function` calls NumPy on the host.

    Its arguments are a sine made with `jax.pure_callback`, and `x`.
    """
    calls, result = [], jax.ShapeDtypeStruct(x.shape, x.dtype)

    def sine_on_host(x):
        calls.append(x.shape)
        return np.sin(x)

    def sine(x):
        return jax.pure_callback(sine_on_host, result, x)

    jax.jit(lambda x: function(sine, x))(x).block_until_ready()
    return len(calls)


def five_sines(sine, x):
    """Add sin x to `x` five times, in a loop."""
    return jax.lax.fori_loop(0, 5, lambda i, y: y + sine(x), x)


def unused_sine(sine, x):
    """Compute sin x, and return `x`."""
    sine(x)
    return x


def sines_of_rows(rows):
    """Map a pure callback over `rows` (n, m); raises NotImplementedError."""
    return jax.vmap(host_sine)(rows)


def sines_of_rows_at_once(rows):
    """Map a pure callback over `rows` (n, m), with one call for all rows."""
    return jax.vmap(lambda row: host_sine(row, vmap_method="broadcast_all"))(
        rows
    )


def gradient_of_host_sine(x):
    """Differentiate through a pure callback; raises ValueError."""
    return jax.grad(host_sine)(x)


@jax.custom_jvp
def sine_with_derivative(x):
    """Return sin x, computed on the host."""
    return host_sine(x)


@sine_with_derivative.defjvp
def sine_with_derivative_jvp(primals, tangents):
    """Return sin x and its tangent cos x · dx."""
    (x,), (dx,) = primals, tangents
    return sine_with_derivative(x), jnp.cos(x) * dx


def log_in_order(values):
    """Return the sum of `values` (n,), and a list that a callback fills."""
    seen = []

    @jax.jit
    def total(values):
        def step(total, value):
            io_callback(
                lambda v: seen.append(float(v)), None, value, ordered=True
            )
            return total + value, None

        return jax.lax.scan(step, 0.0, values)[0]

    return total(values), seen


def log_rows_ordered(rows):
    """Map an ordered callback over `rows` (n,); raises ValueError."""
    return jax.vmap(lambda x: io_callback(print, None, x, ordered=True))(rows)


@jax.jit
def scaled(x):
    """Return x times the factor of SETTINGS."""
    return x * SETTINGS["factor"]


@torch.compile(backend="eager")
def scaled_torch(x):
    """Return x times the factor of SETTINGS."""
    return x * SETTINGS["factor"]


@tf.function
def scaled_tensorflow(x):
    """Return x times the factor of SETTINGS."""
    return x * SETTINGS["factor"]


@jax.jit
def hand_to_numpy(x):
    """Raise TracerArrayConversionError: NumPy needs values, and x has none."""
    return np.sin(x)


@jax.jit
def frozen_noise(x):
    """Return x plus a NumPy random number, drawn only while tracing."""
    return x + np.random.default_rng().normal()
