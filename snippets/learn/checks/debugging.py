"""Lesson 11, debugging: what answers are checked for."""

import contextlib
import io
import re

import jax
import jax.numpy as jnp
import numpy as np

from snippets.programs.practice import counting, equations_of, kind_of


def check_shares(shares):
    """Raise AssertionError unless each call prints its sum under jit."""
    assert hasattr(shares, "lower"), (
        "`shares` itself is not jitted any more; keep `jax.jit`"
    )
    jax.clear_caches()
    for weights in ([0.5, 5.0, 2.5], [4.5, 0.25, 0.25], [1.5, -4.5]):
        total = sum(weights)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            found = jax.block_until_ready(shares(jnp.array(weights)))
            jax.effects_barrier()
        said = printed.getvalue().strip()
        assert found is not None, "it returns nothing; return the shares"
        assert np.shape(found) == np.shape(weights) and np.allclose(
            found, np.array(weights) / total
        ), f"of {weights} it returns {found}, not each over the sum, {total}"
        assert said, (
            f"for {weights} it prints nothing; a call of a compiled function "
            "doesn't run `print`, but `jax.debug.print` becomes part of the "
            "program"
        )
        assert not re.search("[Tt]race[dr]", said), (
            f"it prints a tracer, {said}, because Python's `print` and "
            "f-strings run while JAX traces; `jax.debug.print` gets a text "
            "with {} in it, and the sum as another argument"
        )
        numbers = re.findall(r"-?\d+(?:\.\d*)?(?:e[-+]?\d+)?", said)
        assert any(np.isclose(float(n), total) for n in numbers), (
            f"for {weights} it prints {said!r}, without the sum, {total}"
        )


def check_cross_entropy(cross_entropy):
    """Raise AssertionError unless large logits give finite numbers."""
    small = jnp.array([[0.3, 1.0, 0.5], [2.0, -1.0, 0.2], [0.0, 0.0, 1.0]])
    labels, powers, rows = jnp.array([2, 0, 1]), np.exp(small), np.arange(3)
    shares = powers / powers.sum(axis=1, keepdims=True)
    right = -np.log(shares[rows, labels]).mean()
    found = cross_entropy(small, labels)
    assert np.shape(found) == (), (
        f"it returns the shape {np.shape(found)}, and a loss is one number"
    )
    mistakes = {
        "it returns the sum over the rows, not the mean": 3 * right,
        "a loss is minus the logarithm": -right,
        "it divides by the number of logits, not of rows": right / 3,
        "it takes the softmax over the rows; `log_softmax` has an axis": (
            -np.log(powers / powers.sum(axis=0))[rows, labels].mean()
        ),
        "it leaves out the sum over the labels": -(0.5 + 2 + 0) / 3,
    }
    for mistake, value in mistakes.items():
        assert not np.isclose(found, value, 1e-4), mistake
    assert np.isclose(found, right, 1e-4), (
        f"for {small.tolist()} it returns {found:.4f}, not {right:.4f}"
    )
    first = jnp.array([0])
    assert not np.isnan(cross_entropy(jnp.array([[1000.0, 0]]), first)), (
        "for a logit of 1000 it returns nan: its exponential is infinite, "
        "and infinity divided by itself is no number"
    )
    large, labels = jnp.array([[1000.0, 0], [0, 1]]), jnp.array([0, 1])
    assert np.isclose(cross_entropy(large, labels), 0.15663, 1e-3), (
        f"for {large.tolist()} it returns {cross_entropy(large, labels)}, not "
        "0.1566; a row is to be shifted by its own largest logit"
    )
    wrong = cross_entropy(jnp.array([[0.0, 1000]]), first)
    assert np.isfinite(wrong), (
        "where the label has a logit 1000 below another it returns infinity: "
        "the probability is rounded to 0 before the logarithm; subtract in "
        "the logarithm instead of dividing"
    )
    assert np.isclose(wrong, 1000), (
        f"where the label has a logit 1000 below another it returns {wrong}, "
        "not 1000; the numbers are to be exact, not cut off"
    )
    low = cross_entropy(jnp.array([[-1000.0, -1000]]), first)
    assert np.isclose(low, np.log(2), atol=1e-3), (
        f"where all logits are -1000 it returns {low}, not log 2"
    )
    grad = jax.grad(cross_entropy)(jnp.array([[0.0, 1000]]), first)
    assert np.allclose(grad, [[-1, 1]]), (
        f"the gradient for a logit of 1000 is {grad}, not [[-1, 1]]"
    )


def check_forward(forward):
    """Raise AssertionError unless no tracer outlives its trace."""
    kernels = [
        jnp.array([[1.0, 2], [0, 1]]),
        jnp.array([[2.0, 0], [1, -1]]),
        jnp.array([[0.5, 0], [0, 0.5]]),
    ]
    x = jnp.array([[0.1, 0.2], [-0.5, 0.2]])
    try:
        with jax.checking_leaks():
            found = forward(kernels, x)
    except Exception as error:
        assert "Leaked" not in str(error), (
            "something outside of the function keeps tracers, which are "
            "useless once the trace has ended; keep the numbers in a list "
            "inside of it, and return them"
        )
        raise
    assert isinstance(found, tuple) and len(found) == 2, (
        "it is to return two things, x and the largest numbers"
    )
    values, numbers = np.array(x), []
    for kernel in kernels:
        values = np.tanh(values @ kernel)
        numbers.append(np.abs(values).max())
    y, largest = found
    assert isinstance(largest, jax.Array), (
        f"the largest numbers are {kind_of(largest)}, not an array; "
        "`jnp.stack` makes one of a list"
    )
    assert np.shape(largest) == (3,), (
        f"three layers have three largest numbers, not the shape "
        f"{np.shape(largest)}"
    )
    assert not np.allclose(largest, numbers[::-1]), (
        "the numbers of the last layer come first"
    )
    assert np.allclose(largest, numbers), (
        f"the largest numbers are {np.array(numbers)}, not {largest}"
    )
    assert np.shape(y) == (2, 2) and np.allclose(y, values), (
        "it does not return what the layers make of x"
    )
    _, again = forward(kernels, 0 * x)
    assert np.shape(again) == (3,), (
        f"a second call returns {np.shape(again)} numbers, with those of the "
        "first"
    )
    assert not np.any(again), "for another x it returns the numbers of another"
    for rows, layers in ((3, 3), (4, 2)):
        _, others = forward(kernels[:layers], jnp.ones((rows, 2)))
        assert np.shape(others) == (layers,), (
            f"for {layers} layers and {rows} rows it returns "
            f"{np.shape(others)} numbers, with those of earlier calls"
        )
    with counting() as counts:
        forward(kernels, x)
    assert len(counts.compilations) < 3, (
        f"a call runs {len(counts.compilations)} programs, one for each "
        "operation; keep `@jax.jit`"
    )


def jitted_updates(mean_of, batches):
    """Return how many times `update` was traced for a program around it."""
    try:
        jaxpr = jax.make_jaxpr(mean_of)(batches).jaxpr
    except TypeError:
        return 0
    calls = [e.params for e in equations_of(jaxpr)]
    return len(
        {id(call["jaxpr"]) for call in calls if call.get("name") == "update"}
    )


def check_mean_of(mean_of):
    """Raise AssertionError unless the update is traced once."""
    batches = [value + jnp.arange(3.0) for value in (0.0, 1.0, 5.0, 2.0)]
    with counting() as counts:
        found = mean_of(batches)
    assert np.shape(found) == (), (
        f"it returns the shape {np.shape(found)}, and a mean is one number"
    )
    assert np.isclose(found, 3), (
        f"the mean of {np.ravel(batches)} is 3, and it returns {found}"
    )
    traces = counts.traces.count("update") or jitted_updates(mean_of, batches)
    assert traces, "no jitted `update` is called; keep its name, and its jit"
    assert traces == 1, (
        f"`update` is traced {traces} times, for arrays of one shape; "
        "`jax.explain_cache_misses` says what differs: a Python number, "
        "and `jnp.array` of one, has a weak type, and what `update` returns "
        "has not"
        if traces == 2
        else f"`update` is traced {traces} times; what changes in each "
        "iteration must not be static"
    )
    batches = [value * jnp.ones((2, 3)) for value in (1, 2, 6)]
    with counting() as counts:
        means = [mean_of(batches[:count]) for count in (3, 2)]
    assert np.allclose(means, [3, 1.5]), (
        f"of two batches (2, 3), ones and twos, it returns {means[1]}, not 1.5"
    )
    assert counts.traces.count("update") < 2, (
        "for fewer batches `update` is traced again; give it one at a time"
    )
