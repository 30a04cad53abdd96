"""Switches that find the origin of a nan, a tracer, a copy, a compilation."""

import contextlib
import io
import logging
import re
import traceback

import jax
import jax.numpy as jnp
from jax.experimental import checkify

from snippets.tracing.first_step import anew, train_step

EXPECTED_ERRORS = {
    "log_odds": (FloatingPointError, "invalid value (nan) encountered in"),
    "take_share": (ValueError, "Cannot abstractly evaluate a checkify.check"),
    "share_or_error": (checkify.JaxRuntimeError, "failed)"),
    "sine_of_numpy": (
        jax.errors.JaxRuntimeError,
        "Disallowed host-to-device transfer",
    ),
}

HISTORY = []


@jax.jit
def log_odds(p):
    """Return the logarithm of p / (1 - p), for probabilities of any shape."""
    other = 1 - p
    odds = p / other
    return jnp.log(odds)


@jax.jit
def sum_of_logs(xs):
    """Return the sum of log x over `xs`, (n,), by a compiled loop."""

    def add(total, x):
        total = total + jnp.log(x)
        return total, None

    return jax.lax.scan(add, 0.0, xs)[0]


def sum_of_roots(x):
    """Add up the roots of what is positive; the derivative at 0 is nan."""
    roots = jnp.sqrt(x)
    return jnp.where(x > 0, roots, 0.0).sum()


def log_or_zero(x):
    """Return log x, and 0 for x ≤ 0; the logarithm is computed for both."""
    return jnp.where(x > 0, jnp.log(x), 0.0)


def outcome(function, *args):
    """Return what a call returns, or type and first line of its error."""
    try:
        return function(*args)
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"


def look_in(x):
    """Print the argument when this function runs in Python; return 2 x."""
    print("x is", x)
    return 2 * x


def look_at_each(xs):
    """Apply `look_in` to each of `xs`, (n,), by a compiled loop."""
    return jax.lax.map(look_in, xs)


def take_share(weights, i):
    """Return element `i` of `weights`, (n,), divided by their sum."""
    total = weights.sum()
    checkify.check(total > 0, "the sum is {total}, not positive", total=total)
    return weights[i] / total


def share_or_error(weights, i):
    """Return `take_share(weights, i)`; raises JaxRuntimeError."""
    checked = checkify.checkify(take_share, errors=checkify.all_checks)
    error, share = jax.jit(checked)(weights, i)
    error.throw()
    return share


@jax.jit
def running_sums(xs):
    """Return the running sums of `xs`, (n,), and print each."""

    def add(total, x):
        total = total + x
        jax.debug.print("{x} makes {total}", x=x, total=total, ordered=True)
        return total, total

    return jax.lax.scan(add, 0.0, xs)[1]


@jax.jit(static_argnames="commands")
def root(x, commands=None):
    """Return the square root of `x`, and stop in a debugger.

    `commands` replaces the keyboard.
    """
    y = jnp.sqrt(x)
    stdin = io.StringIO(commands) if commands else None
    jax.debug.breakpoint(backend="cli", stdin=stdin)
    return y


@jax.jit
def remember(x):
    """Return twice `x`, which a list keeps as well: a leak."""
    HISTORY.append(x)
    return 2 * x


def who_holds(function, *args):
    """Return the name of what holds a tracer, by `checking_leaks`, or None."""
    try:
        with jax.checking_leaks():
            function(*args)
    except Exception as error:
        return re.search(r"referred to by .*(?:\['|\.)(\w+)", str(error))[1]
    return None


def log_of(function, *args):
    """Call `function` with `log_compiles`; return what it logs, in short."""
    log = io.StringIO()
    logger, handler = logging.getLogger("jax"), logging.StreamHandler(log)
    logger.addHandler(handler)
    try:
        with jax.log_compiles(True):
            function(*args)
    finally:
        logger.removeHandler(handler)
    lines = log.getvalue().splitlines()
    return [
        re.sub(r" (in [\d.]+ sec|with global .*)$", "", line) for line in lines
    ]


def sine_of_numpy(x):
    """Return the sine of a NumPy array, which JAX must copy to the device."""
    with jax.transfer_guard("disallow"):
        return jnp.sin(x)


def under_guard(**actions):
    """Call functions under the guard; return {name: whether it may pass}."""
    with jax.transfer_guard("disallow"):
        outcomes = {name: outcome(action) for name, action in actions.items()}
    return {
        name: not isinstance(found, str) for name, found in outcomes.items()
    }


def frames(mode, function, *args):
    """Return the functions in the traceback of a call, from outside in.

    `mode` is one of jax_traceback_filtering: "off", "remove_frames", ...
    """
    before = jax.config.jax_traceback_filtering
    jax.config.update("jax_traceback_filtering", mode)
    try:
        function(*args)
    except Exception as error:
        return [
            frame.name for frame in traceback.extract_tb(error.__traceback__)
        ]
    finally:
        jax.config.update("jax_traceback_filtering", before)


def switched_on(switch, function):
    """Return `function`, called under a switch such as `jax.debug_nans(True)`.

    `switch` makes the context of a call, without arguments.
    """

    def call(*args):
        with switch():
            return function(*args)

    return call


def thrown(function, errors):
    """Return `function`, jitted with checks, that raises if one fails."""
    checked = anew(checkify.checkify(function, errors=errors))

    def call(*args):
        error, result = checked(*args)
        error.throw()
        return result

    return call


def checked_step(weights, x, y):
    """Return `train_step(weights, x, y)`, checked to be finite."""
    weights = train_step(weights, x, y)
    checkify.check(jnp.isfinite(weights).all(), "the weights are not finite")
    return weights


def printing(function):
    """Return `function`, jitted, that prints an element to nowhere."""

    def print_first(*args):
        result = function(*args)
        jax.debug.print("{}", result.ravel()[0])
        return result

    jitted = jax.jit(print_first)

    def call(*args):
        with contextlib.redirect_stdout(io.StringIO()):
            result = jitted(*args)
            jax.effects_barrier()
        return result

    return call


@contextlib.contextmanager
def silent_log():
    """Hide what JAX logs."""
    logger = logging.getLogger("jax")
    propagate, handlers = logger.propagate, logger.handlers[:]
    logger.propagate, logger.handlers[:] = False, [logging.NullHandler()]
    try:
        yield
    finally:
        logger.propagate, logger.handlers[:] = propagate, handlers
