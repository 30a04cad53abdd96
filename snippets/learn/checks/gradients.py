"""Lesson 4, gradients: what answers are checked for."""

import jax
import jax.numpy as jnp
import numpy as np


def check_penalised_gradient(penalised_gradient):
    """Raise AssertionError unless it is the gradient of the whole loss."""
    x, y = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 5.0])
    params = {"w": jnp.array([1.0, -1.0]), "b": jnp.array(0.5)}
    grads = penalised_gradient(params, x, y, 0.25)
    structure = jax.tree.structure(params)
    assert jax.tree.structure(grads) == structure, (
        f"it returns a {type(grads).__name__}, where a dictionary with a "
        "gradient for w and one for b is wanted"
    )
    w, b = np.array([1.0, -1.0]), 0.5
    error = x @ w + b - y
    for_w, for_b = x.T @ error, error.sum()
    assert not np.allclose(grads["w"], for_w), (
        "the gradient for w is that of the error alone, without the penalty"
    )
    assert not np.allclose(grads["b"], for_b + 0.5 * b), (
        "the bias is penalised as well; only w is to be"
    )
    assert np.allclose(grads["w"], for_w + 0.5 * w), (
        f"the gradient for w is {grads['w']}, and should be "
        f"{for_w + 0.5 * w}, of which {0.5 * w} is the penalty's"
    )
    assert np.allclose(grads["b"], for_b), (
        f"the gradient for b is {grads['b']}, and should be {for_b}"
    )


def check_td_gradient(td_gradient):
    """Raise AssertionError unless the target counts as a constant."""
    params, state = jnp.array([1.0, 2.0]), jnp.array([1.0, 0.0])
    next_state = jnp.array([0.0, 1.0])
    grad = td_gradient(params, state, 1.0, next_state, 0.5)
    error = 1.0 - (1.0 + 0.5 * 2.0)
    right = 2 * error * np.array([1.0, 0.0])
    through_target = 2 * error * np.array([1.0, -0.5])
    assert not np.allclose(grad, through_target), (
        "the gradient also goes through the target, which changes with the "
        "parameters; stop it there"
    )
    assert not np.allclose(grad, 0), (
        "the gradient is zero: the value itself must not be a constant"
    )
    assert not np.allclose(grad, through_target - right), (
        "the gradient goes through the target alone; it is the value that "
        "has to move"
    )
    assert np.allclose(grad, right), f"it returns {grad}, not {right}"


def check_curvature(curvature):
    """Raise AssertionError if it needs the whole Hessian."""

    def f(x):
        return jnp.sum(x**3) + jnp.sum(x) ** 2 / 2

    x, v = jnp.array([1.0, 2.0, 3.0]), jnp.array([1.0, 1.0, -1.0])
    hessian = np.diag(6 * x) + 1
    right = hessian @ v
    found = curvature(f, x, v)
    assert not isinstance(found, tuple), (
        f"it returns {len(found)} values; `jax.jvp` returns the gradient and "
        "how it changes, and the change is wanted"
    )
    assert not np.allclose(found, np.diag(hessian) * v), (
        "only the diagonal of the Hessian is used"
    )
    assert found.shape == (3,), (
        f"it has the shape {found.shape}, where one number for each of 3 "
        "inputs is wanted"
    )
    assert np.allclose(found, right), f"it returns {found}, not {right}"
    many = jax.ShapeDtypeStruct((2000,), jnp.float32)
    compiled = jax.jit(curvature, static_argnums=0).lower(f, many, many)
    size = compiled.compile().memory_analysis().temp_size_in_bytes
    assert size < 1_000_000, (
        f"right, but with 2000 inputs it needs {size:,} bytes beside them, "
        f"and the Hessian has {4 * 2000**2:,}; differentiate the gradient in "
        "the direction of v instead"
    )
