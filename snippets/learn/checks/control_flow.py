"""Lesson 5, control flow: what answers are checked for."""

import functools

import jax
import jax.numpy as jnp
import numpy as np


def check_leaky(leaky):
    """Raise AssertionError unless each element has a branch of its own."""
    x = jnp.array([[-10.0, 2.0, 0.0], [0.4, -1.0, -20.0]])
    found = jax.jit(leaky)(x)
    assert np.shape(found) == (2, 3), (
        f"six numbers, (2, 3), become an array of shape {np.shape(found)}"
    )
    mistakes = {
        "negative elements become 0, not a tenth of what they were": [
            [0, 2, 0],
            [0.4, 0, 0],
        ],
        "the sides are exchanged: first what holds where it is true": [
            [-10, 0.2, 0],
            [0.04, -1, -20],
        ],
        "all elements are multiplied, since some are negative": 0.1 * x,
        "all elements stay as they are, since some are positive": x,
        "negative elements lose their sign": [[1, 2, 0], [0.4, 0.1, 2]],
    }
    for mistake, values in mistakes.items():
        assert not np.allclose(found, values), mistake
    right = np.array([[-1, 2, 0], [0.4, -0.1, -2]])
    assert np.allclose(found, right), f"it returns {found}, not {right}"
    for one in (jnp.array([-3.0]), jnp.array(-3.0)):
        found = jax.jit(leaky)(one)
        assert np.shape(found) == one.shape and np.allclose(found, -0.3), (
            f"of {one} it makes {found}, not {0.1 * one}"
        )


def check_unit(unit):
    """Raise AssertionError unless value and derivative are finite at zero."""
    unit = jax.jit(unit)
    zero = jnp.zeros(2)
    for other in (
        [3.0, 4.0],
        [0.0, 5.0],
        [-3.0, 0.0, 4.0],
        [3e-4, 4e-4],
        [3e-18, 4e-18],
    ):
        found, right = unit(jnp.array(other)), other / np.linalg.norm(other)
        assert np.shape(found) == right.shape, (
            f"for {other} it returns the shape {np.shape(found)}"
        )
        assert np.allclose(found, right, 1e-4), (
            f"the unit vector of {other} is not {found}; only a vector of "
            "zeros alone is an exception"
        )
    assert np.array_equal(unit(zero), [0, 0]), (
        f"for zeros it returns {unit(zero)}, where zeros are wanted"
    )
    for v in (jnp.array([3.0, 4.0]), jnp.array([5.0, 0.0])):
        jacobian = jax.jacrev(unit)(v)
        expected = np.eye(2) / 5 - np.outer(v, v) / 125
        assert np.allclose(jacobian, expected, atol=1e-5), (
            f"the derivatives at {v} are {jacobian}, not {expected}"
        )
    jacobian = jax.jacrev(unit)(zero)
    assert not np.isnan(jacobian).any(), (
        "the value at zeros is right, and the derivative is nan: that of the "
        "square root is infinite there, though `where` has chosen the other "
        "side; make its argument harmless before the square root"
    )
    assert not np.any(jacobian), (
        f"the derivatives at zeros are {jacobian}, not zeros; a step of "
        "training as large as that is lost; choose zeros with `where`"
    )


def check_smoothed(smoothed):
    """Raise AssertionError unless one iteration is compiled for all steps."""
    found = smoothed(jnp.array([1.0, 5.0, 9.0]), 0.25)
    assert not isinstance(found, tuple), (
        "it returns a pair, as `jax.lax.scan` does: the last carry and what "
        "the steps returned; the second is wanted"
    )
    assert np.shape(found) == (3,), (
        f"it has the shape {np.shape(found)}, where a value for each of 3 "
        "steps is wanted"
    )
    assert found[0] == 1, f"the first value is {found[0]}, not that of `x`, 1"
    mistakes = {
        "the rate belongs to the new element, and multiplies the value "
        "before": [1, 4, 7.75],
        "each value stands one step too late; return the new carry": [1, 1, 2],
        "each value starts from the element of `x` before it, not from the "
        "smoothed value": [1, 2, 6],
        "the value before is to be subtracted from the element": [
            1,
            2.25,
            4.5,
        ],
        "these are steps away from `x`; subtract the value before from the "
        "element": [1, 0, -2.25],
    }
    for mistake, values in mistakes.items():
        assert not np.allclose(found, values), mistake
    assert np.allclose(found, [1, 2, 3.75]), (
        f"it returns {found}, not [1, 2, 3.75]"
    )
    found = smoothed(jnp.array([4.0, 0.0, 0.0, 8.0]), 0.5)
    assert np.shape(found) == (4,) and np.allclose(found, [4, 2, 1, 4.5]), (
        f"of [4, 0, 0, 8] at a rate of 0.5 it makes {found}, not "
        "[4, 2, 1, 4.5]"
    )
    short, long = (
        jax.jit(smoothed).lower(jnp.ones(n), 0.5).as_text().count("\n")
        for n in (20, 200)
    )
    assert long < 3 * short, (
        f"the program has {short} lines for 20 steps and {long} for 200; "
        "a loop of Python, which runs while JAX traces, leaves a copy of its "
        "body for each step, and so does `unroll`; `jax.lax.scan` compiles "
        "the body once"
    )


def newton_of(root, f, *args):
    """Return what an answer finds under jit, and how many steps it says."""
    found = jax.jit(functools.partial(root, f))(*args)
    assert isinstance(found, tuple | list) and len(found) == 2, (
        "it is to return two things, the root and the steps taken"
    )
    return found


def check_root(root):
    """Raise AssertionError unless it stops in time, on the right number."""
    evaluations = []

    def square(x):
        jax.debug.callback(lambda: evaluations.append(1))
        return x**2 - 2

    x, steps = newton_of(root, square, 1.0, 1e-3, 50)
    jax.effects_barrier()
    assert x != 3, "it returns the steps first, and then the root"
    assert x != 1, (
        "it stays at 1, where x² - 2 is -1; the absolute value of f(x) is to "
        "be below the tolerance"
    )
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
    assert len(evaluations) < 40, (
        f"it says 3 steps, and evaluates the function {len(evaluations)} "
        "times; the loop itself has to end"
    )
    x, steps = newton_of(root, square, 2.0, 0.3, 50)
    assert steps == 1 and np.isclose(x, 1.5), (
        "from 2, with a tolerance of 0.3, one step leads to 1.5, where x² - 2 "
        f"is 0.25, and it says {steps} steps to {x}"
    )
    assert newton_of(root, square, 2**0.5, 1e-3, 50)[1] == 0, (
        "it takes a step although it begins at a root"
    )
    for limit in (5, 2):
        x, steps = newton_of(root, lambda x: x**20, 1.0, 1e-6, limit)
        assert steps == limit, (
            f"the limit is {limit}, and it says that it took {steps} steps"
        )
        assert np.isclose(x, 0.95**limit, atol=1e-3), (
            f"{limit} steps for x to the 20th lead from 1 to "
            f"{0.95**limit:.4f}, not {x}"
        )
    x, steps = newton_of(root, lambda x: -3 - x, 4.0, 1e-3, 50)
    assert steps == 1 and np.isclose(x, -3), (
        f"for -3 - x one step leads to -3, and it says {steps} steps to {x}"
    )
