"""Lesson 5, jit and tracing: what answers are checked for."""

import jax.numpy as jnp
import numpy as np

from snippets.programs.practice import counting


def check_limited(limited):
    """Raise AssertionError unless one program serves all limits."""
    assert hasattr(limited, "lower"), (
        "`limited` itself is not jitted any more; keep `jax.jit`"
    )
    x = jnp.array([-1.0, 0.5, 3.0])
    found = limited(x, kind="relu", limit=2.0)
    assert np.array_equal(found, [0.0, 0.5, 2.0]), (
        f"the relu of {x}, up to 2, is not {found}"
    )
    assert np.allclose(limited(x, kind="tanh", limit=9.0), np.tanh(x)), (
        'with `kind` "tanh" it does not return the tanh'
    )
    with counting() as counts:
        for limit in (0.5, 1.0, 4.0):
            limited(x, kind="relu", limit=limit)
    compiled = len(counts.compilations)
    assert compiled == 1, (
        f"three limits need {compiled} compilations; what is a number in the "
        "computation need not be static"
    )


def check_descend(descend):
    """Raise AssertionError unless one program serves all steps and rates."""
    x = jnp.linspace(-1.0, 1.0, 7)
    expected = np.linspace(-1.0, 1.0, 7)
    for _ in range(4):
        expected = expected - 0.5 * np.tanh(expected)
    with counting() as counts:
        found = descend(x, 0.5, 4)
    compiled = len(counts.compilations)
    assert np.allclose(found, expected, atol=1e-6), (
        f"after four steps it returns {found}, not {expected}"
    )
    assert compiled < 4, (
        f"four steps need {compiled} compilations; one is enough, but the "
        "lambda of each iteration is another function to JAX"
    )
    assert compiled == 1, (
        f"a step consists of {compiled} programs; compile it as one"
    )
    with counting() as counts:
        descend(x, 0.25, 4)
        descend(x, 0.125, 4)
    compiled = len(counts.compilations)
    assert compiled == 1, (
        f"two calls with different rates need {compiled} compilations; define "
        "the jitted function once, outside, and pass the rate"
    )
    with counting() as counts:
        descend(x, 0.5, 4)
        descend(x, 0.5, 5)
    compiled = len(counts.compilations)
    assert compiled == 1, (
        f"four steps and five need {compiled} compilations; compile the step, "
        "and not the loop around it"
    )


def check_evaluate(evaluate):
    """Raise AssertionError unless all batches run one program."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(10, 3)).astype(np.float32)
    y = generator.normal(size=10).astype(np.float32)
    w = jnp.ones(3)
    right = float(np.mean((x @ np.ones(3) - y) ** 2))
    with counting() as counts:
        found = float(evaluate(w, x, y, 4))
    without_last = float(np.mean((x[:8] @ np.ones(3) - y[:8]) ** 2))
    assert not np.isclose(found, without_last), (
        "the last two of ten rows are left out, since they fill no batch of "
        "four"
    )
    assert np.isclose(found, right, rtol=1e-4), (
        f"the mean over ten rows is {right:.4f}, not {found:.4f}; rows that "
        "only fill up a batch must not count"
    )
    programs = [name for name in counts.compilations if "summed" in name]
    assert programs, (
        "no `summed_error` is compiled; keep its name and `jax.jit`"
    )
    assert len(programs) == 1, (
        f"`summed_error` is compiled {len(programs)} times; give all batches "
        "one shape"
    )
