"""Lesson 7, vmap: what answers are checked for."""

import jax
import jax.numpy as jnp
import numpy as np


def check_distances(distances):
    """Raise AssertionError unless few operations give all distances."""
    xs = jnp.array([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]])
    ys = jnp.array([[0.0, 0.0], [6.0, 8.0]])
    right = np.array([[0, 10], [5, 5], [1, 85**0.5]])
    found = distances(xs, ys)
    assert found.shape != (2, 3), (
        "it has a row for each of `ys`; the rows are to be those of `xs`"
    )
    assert found.shape == (3, 2), (
        f"three points and two have six distances, (3, 2), not {found.shape}"
    )
    assert not np.allclose(found, right**2), "it returns squared distances"
    assert np.allclose(found, right), f"it returns {found}, not {right}"
    few, many = (
        len(jax.make_jaxpr(distances)(jnp.ones((n, 2)), jnp.ones((n, 2))).eqns)
        for n in (3, 30)
    )
    assert many == few, (
        f"three points need {few} operations, thirty {many}; `jax.vmap` needs "
        "as many for all as for one"
    )


def check_prefix_means(prefix_means):
    """Raise AssertionError unless padding does not count."""
    sequences = jnp.array([[1.0, 3.0, 9.0, 9.0], [4.0, 4.0, 4.0, 0.0]])
    found = prefix_means(sequences, jnp.array([2, 4]))
    assert found.shape == (2,), (
        f"two sequences have two means, not the shape {found.shape}"
    )
    assert not np.allclose(found, [1.0, 3.0]), (
        "the sum is right, and it is divided by the padded length; divide by "
        "the sequence's own"
    )
    assert not np.allclose(found, [5.5, 3.0]), (
        "the padding counts as well, the two 9 at the end of the first"
    )
    assert np.allclose(found, [2.0, 3.0]), f"it returns {found}, not [2. 3.]"
    few, many = (
        len(jax.make_jaxpr(prefix_means)(jnp.ones((n, 4)), jnp.arange(n)).eqns)
        for n in (3, 30)
    )
    assert many == few, (
        f"three sequences need {few} operations, thirty {many}; map one "
        "function over all of them"
    )


def check_gradient_norms(gradient_norms):
    """Raise AssertionError unless each example has a norm of its own."""

    def loss(params, example):
        x, y = example
        return (x @ params["w"] + params["b"] - y) ** 2

    params = {"w": jnp.array([1.0, -1.0]), "b": jnp.array(0.5)}
    x, y = np.array([[1.0, 2.0], [3.0, 1.0]]), np.array([0.0, 1.0])
    batch = jnp.array(x), jnp.array(y)
    error = 2 * (x @ [1.0, -1.0] + 0.5 - y)
    gradients = error[:, None] * np.concatenate([x, np.ones((2, 1))], axis=1)
    right = np.linalg.norm(gradients, axis=1)
    found = gradient_norms(loss, params, batch)
    assert found.shape == (2,), (
        f"it has the shape {found.shape}, where one norm for each of two "
        "examples is wanted"
    )
    assert not np.allclose(found, right**2), (
        "these are the squares of the norms"
    )
    without_b = np.linalg.norm(gradients[:, :2], axis=1)
    assert not np.allclose(found, without_b), (
        "only the gradient for w is counted; a norm takes all leaves"
    )
    assert np.allclose(found, right), (
        f"the norms are {right}, and it returns {found}"
    )
    few, many = (
        len(
            jax.make_jaxpr(gradient_norms, static_argnums=0)(
                loss, params, (jnp.ones((n, 2)), jnp.ones(n))
            ).eqns
        )
        for n in (3, 30)
    )
    assert many == few, (
        f"three examples need {few} operations, thirty {many}; let `jax.vmap` "
        "map the gradient of one"
    )
