"""Lesson 6, control flow: what answers are checked for."""

import functools

import jax
import jax.numpy as jnp
import numpy as np


def check_unit(unit):
    """Raise AssertionError unless value and derivative are finite at zero."""
    v, zero = jnp.array([3.0, 4.0]), jnp.zeros(2)
    assert np.allclose(unit(v), [0.6, 0.8]), (
        f"the unit vector of {v} is not {unit(v)}"
    )
    for other in ([0.0, 5.0], [3e-4, 4e-4], [3e-18, 4e-18]):
        length = np.linalg.norm(other)
        assert np.allclose(unit(jnp.array(other)), other / length, 1e-4), (
            f"the unit vector of {other} is not {unit(jnp.array(other))}; "
            "only a vector of zeros alone is an exception"
        )
    assert np.array_equal(unit(zero), [0, 0]), (
        f"for zeros it returns {unit(zero)}, where zeros are wanted"
    )
    jacobian = jax.jacrev(unit)(v)
    expected = np.eye(2) / 5 - np.outer(v, v) / 125
    assert np.allclose(jacobian, expected, atol=1e-5), (
        f"the derivatives at {v} are {jacobian}, not {expected}"
    )
    assert np.isfinite(jax.jacrev(unit)(zero)).all(), (
        "the value at zeros is right, and the derivative is nan: that of the "
        "square root is infinite there, though `where` has chosen the other "
        "side; make its argument harmless before the square root"
    )


def check_smoothed(smoothed):
    """Raise AssertionError unless one iteration is compiled for all steps."""
    x = jnp.array([1.0, 3.0, 3.0])
    found = smoothed(x, 0.5)
    assert found.shape == (3,), (
        f"it has the shape {found.shape}, where a value for each of 3 steps "
        "is wanted"
    )
    assert found[0] == 1, f"the first value is {found[0]}, not that of `x`, 1"
    assert np.allclose(found, [1.0, 2.0, 2.5]), (
        f"it returns {found}, not [1. 2. 2.5]"
    )
    short, long = (
        jax.jit(smoothed).lower(jnp.ones(n), 0.5).as_text().count("\n")
        for n in (10, 100)
    )
    assert long < 2 * short, (
        f"the program has {short} lines for 10 steps and {long} for 100; "
        "Python's loop runs while JAX traces, and leaves a copy of its body "
        "for each step, where `jax.lax.scan` compiles it once"
    )


def check_root(root):
    """Raise AssertionError unless it stops in time, on the right number."""
    evaluations = []

    def square(x):
        jax.debug.callback(lambda: evaluations.append(1))
        return x**2 - 2

    def flat(x):
        return x**20

    found = jax.jit(functools.partial(root, square))
    x, steps = found(1.0, 1e-3, 50)
    assert np.isclose(x, 2**0.5, atol=1e-3), (
        f"from 1 it finds {x} as a root of x² - 2, not {2**0.5:.4f}"
    )
    assert steps != 50, (
        "it goes on to the limit, long after the tolerance is met"
    )
    assert steps == 3, (
        f"it says that it took {steps} steps; the first value below the "
        "tolerance comes after 3"
    )
    jax.effects_barrier()
    assert len(evaluations) < 40, (
        f"it says 3 steps, and evaluates the function {len(evaluations)} "
        "times; the loop itself has to end"
    )
    assert found(2**0.5, 1e-3, 50)[1] == 0, (
        "it takes a step although it begins at a root"
    )
    _, steps = jax.jit(functools.partial(root, flat))(1.0, 1e-6, 5)
    assert steps == 5, (
        f"the limit is 5, and it says that it took {steps} steps"
    )
