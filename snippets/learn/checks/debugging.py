"""Lesson 10, finding what is wrong: what answers are checked for."""

import jax
import jax.numpy as jnp
import numpy as np

from snippets.programs.practice import counting


def check_cross_entropy(cross_entropy):
    """Raise AssertionError unless large logits give finite numbers."""
    small = jnp.array([[0.0, 1.0], [2.0, -1.0]])
    labels = jnp.array([0, 1])
    right = np.mean(np.log([1 + np.e, 1 + np.exp(3)]))
    found = cross_entropy(small, labels)
    assert np.isclose(found, right, rtol=1e-4), (
        f"for {small.tolist()} it returns {found:.4f}, not {right:.4f}"
    )
    large = jnp.array([[1000.0, 0.0], [0.0, 1.0]])
    found = cross_entropy(large, labels)
    assert not np.isnan(found), (
        "for a logit of 1000 it returns nan: its exponential is infinite, "
        "and infinity divided by itself is no number"
    )
    wrong = cross_entropy(jnp.array([[0.0, 1000.0]]), jnp.array([0]))
    assert np.isfinite(wrong), (
        "where the label has a logit 1000 below another it returns infinity: "
        "the probability is rounded to 0 before the logarithm; subtract in "
        "the logarithm instead of dividing"
    )
    assert np.isclose(wrong, 1000), (
        f"where the label has a logit 1000 below another it returns {wrong}, "
        "not 1000; the numbers are to be exact, not cut off"
    )
    grad = jax.grad(cross_entropy)(large, labels)
    assert np.isfinite(grad).all(), "the gradient for a logit of 1000 is nan"


def check_forward(forward):
    """Raise AssertionError unless no tracer outlives its trace."""
    kernels = [jnp.eye(2), 2 * jnp.eye(2), jnp.eye(2)]
    x = jnp.array([[0.5, -1.0]])
    try:
        with jax.checking_leaks():
            y, largest = forward(kernels, x)
    except Exception as error:
        assert "Leaked" not in str(error), (
            "something outside of the function keeps tracers, which are "
            "useless once the trace has ended; keep the numbers in a list "
            "inside of it, and return them"
        )
        raise
    outs = [np.tanh(1.0)]
    outs += [np.tanh(2 * outs[0])]
    outs += [np.tanh(outs[1])]
    assert largest.shape == (3,), (
        f"three layers have three largest numbers, not the shape "
        f"{largest.shape}"
    )
    assert np.allclose(largest, outs), (
        f"the largest numbers are {outs}, not {largest}"
    )
    assert np.allclose(y, np.tanh(np.tanh(2 * np.tanh(x)))), (
        "it does not return what the layers make of x"
    )
    _, again = forward(kernels, 0 * x)
    assert not np.allclose(again, outs), (
        "for another x it returns the numbers of the first"
    )
    _, wider = forward(kernels, jnp.ones((3, 2)))
    assert wider.shape == (3,), (
        f"for more rows it returns {wider.shape} numbers, with those of "
        "earlier calls"
    )


def check_mean_of(mean_of):
    """Raise AssertionError unless the update is traced once."""
    batches = [jnp.full(3, value) for value in (1.0, 2.0, 6.0, 3.0)]
    with counting() as counts:
        found = mean_of(batches)
    assert np.isclose(found, 3), f"the mean of 1, 2, 6 and 3 is not {found}"
    traces = counts.traces.count("update")
    assert traces, "no jitted `update` is called; keep its name"
    assert traces == 1, (
        f"`update` is traced {traces} times, for arrays of one shape; "
        "`jax.explain_cache_misses` says what differs: a Python number, "
        "and `jnp.array` of one, has a weak type, and what `update` returns "
        "has not"
        if traces == 2
        else f"`update` is traced {traces} times; what changes in each "
        "iteration must not be static"
    )
