"""Lesson 3, pure functions and state: what answers are checked for."""

import jax
import jax.numpy as jnp
import numpy as np

from snippets.programs.practice import counting


def check_entries(entries):
    """Raise AssertionError unless the number is that of the traces."""
    log = []

    @jax.jit
    def total(x):
        log.append(x.shape)
        return x.sum()

    for length in (3, 4, 3, 4, 3):
        total(jnp.ones(length))
    answer = entries()
    assert not isinstance(answer, str), (
        f"it returns the text {answer!r}; return a number"
    )
    assert answer != 5, (
        "5 would be one for each call; `append` runs while JAX traces, and "
        "later calls run the compiled program"
    )
    assert answer != 1, (
        "1 would be a single trace; an array of another length needs a "
        "program of its own"
    )
    assert answer == len(log), (
        f"it is not {answer}; which calls find a program that was compiled "
        "before them?"
    )


def check_average(average):
    """Raise AssertionError unless each leaf becomes the moving average."""
    means = {
        "layers": [jnp.zeros(3), {"b": jnp.ones(2)}],
        "scale": jnp.ones(()),
    }
    params = jax.tree.map(lambda mean: mean + 4, means)
    before = jax.tree.map(jnp.array, means)
    found = average(means, params, 0.75)
    unchanged = jax.tree.map(jnp.array_equal, means, before)
    assert all(jax.tree.leaves(unchanged)), (
        "it changes `means`, which its caller may need; return new arrays"
    )
    assert jax.tree.structure(found) == jax.tree.structure(means), (
        f"it returns {jax.tree.structure(found)}, where the structure of "
        f"`means` is wanted, {jax.tree.structure(means)}"
    )
    scale = float(found["scale"])
    assert scale != 4, (
        "an average of 1 and a parameter of 5 become 4 with a decay of 0.75; "
        "the decay belongs to the average before"
    )
    assert scale == 2, (
        f"an average of 1 and a parameter of 5 become {scale} with a decay of "
        "0.75, and should be 0.75 * 1 + 0.25 * 5"
    )


def check_train(train):
    """Raise AssertionError unless velocities last from step to step."""
    x = np.array([[1.0, 0.0], [0.0, 2.0]], np.float32)
    batches = [(x, np.array([1.0, 1.0], np.float32))] * 3
    w, v, plain = np.zeros(2), np.zeros(2), np.zeros(2)
    for inputs, y in batches:
        v = 0.9 * v + inputs.T @ (inputs @ w - y)
        w = w - 0.1 * v
        plain = plain - 0.1 * inputs.T @ (inputs @ plain - y)
    params = {"w": jnp.zeros(2)}
    with counting() as counts:
        found = train(params, batches, 0.1, 0.9)
    assert jax.tree.structure(found) == jax.tree.structure(params), (
        f"it returns {jax.tree.structure(found)}, not the parameters"
    )
    assert not np.allclose(found["w"], plain), (
        "the parameters are those of SGD without momentum: the velocities "
        "that a step computes are gone after it, because `jit` passes the "
        "function a dictionary of its own; return them"
    )
    assert np.allclose(found["w"], w), (
        f"after three steps the parameters are {found['w']}, not {w}; the "
        "velocity is updated first, and the parameter with the new velocity"
    )
    assert counts.traces.count("step") == 1, (
        "right, but no jitted `step` is traced once for all batches; keep "
        "`jax.jit`, and the name"
    )
