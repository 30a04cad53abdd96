"""Lesson 4, gradients: what answers are checked for."""

import jax
import jax.numpy as jnp
import numpy as np

from snippets.programs.practice import equations_of


def check_gradient_for_y(gradient_for_y):
    """Raise AssertionError unless it is the gradient for the second."""

    def f(x, y):
        return jnp.sum(x) * jnp.sum(y**2) + jnp.sum(x**3)

    x, y = jnp.array([1.0, 2.0, 3.0]), jnp.array([4.0, -1.0, 0.5])
    of_x, of_y = jnp.sum(y**2) + 3 * x**2, 2 * jnp.sum(x) * y
    found = gradient_for_y(f, x, y)
    assert found is not None, "it returns nothing; return the gradient"
    assert not callable(found), (
        "it returns a function; call it with `x` and `y`"
    )
    assert isinstance(found, jax.Array) and found.shape == (3,), (
        f"it returns {found}, where the gradient with respect to `y` is "
        "wanted, one array of its shape"
    )
    assert not np.allclose(found, of_x), (
        "this is the gradient with respect to `x`, the first argument; "
        "`argnums` chooses another"
    )
    assert np.allclose(found, of_y), f"it returns {found}, not {of_y}"


def check_penalised_gradient(penalised_gradient):
    """Raise AssertionError unless it is the gradient of the whole loss."""
    draw = np.random.default_rng(0).normal
    for w, b, strength, rows in (
        ([1.0, -1.0], 0.5, 0.25, 3),
        ([0.0, 2.0, 1.0], -1.0, 2, 4),
        ([0.0, 0.0], 0.5, 0.25, 3),
    ):
        x = draw(size=(rows, len(w))).astype("f")
        y = draw(size=rows).astype("f")
        params = {"w": jnp.array(w), "b": jnp.array(b)}
        grads = penalised_gradient(params, x, y, strength)
        assert grads is not None, "it returns nothing; return the gradient"
        assert jax.tree.map(jnp.shape, grads) == {"w": (len(w),), "b": ()}, (
            "what it returns is not a dictionary with a gradient for w and "
            "one for b, each in the shape of its parameter"
        )
        error = x @ np.array(w) + b - y
        for_w, for_b = 2 * x.T @ error / rows, 2 * error.mean()
        penalty = 2 * strength * np.array(w)
        assert any(w) or np.all(np.isfinite(grads["w"])), (
            f"for w = {w} the gradient is {grads['w']}, because the norm has "
            "no derivative there; its square is a sum of squares"
        )
        assert not (any(w) and np.allclose(grads["w"], for_w)), (
            "the gradient for w is that of the error alone, without the "
            "penalty"
        )
        assert not np.allclose(grads["b"], for_b + 2 * strength * b), (
            "the bias is penalised as well; only w is to be"
        )
        assert np.allclose(grads["w"], for_w + penalty, atol=1e-4), (
            f"the gradient for w is {grads['w']}, and should be "
            f"{for_w + penalty}, of which {penalty} is the penalty's"
        )
        assert np.allclose(grads["b"], for_b, atol=1e-4), (
            f"the gradient for b is {grads['b']}, and should be {for_b}"
        )


def check_td_gradient(td_gradient):
    """Raise AssertionError unless the target counts as a constant."""
    params = jnp.array([1.0, 2.0])
    for state, reward, following, discount in (
        ([1.0, 0.0], 2.0, [0.0, 1.0], 0.75),
        ([2.0, -1.0], 3.0, [1.0, 0.5], 0.25),
    ):
        state, following = jnp.array(state), jnp.array(following)
        grad = td_gradient(params, state, reward, following, discount)
        assert jax.tree.map(np.shape, grad) == (2,), (
            f"it returns {grad}, where an array of shape (2,) is wanted, the "
            "gradient"
        )
        error = state @ params - reward - discount * (following @ params)
        right = 2 * error * state
        through_target = -2 * error * discount * following
        assert not np.allclose(grad, right + through_target), (
            "the gradient also goes through the target, which changes with "
            "the parameters; stop it there"
        )
        assert not np.allclose(grad, 0), (
            "the gradient is zero: the value itself must not be a constant"
        )
        assert not np.allclose(grad, through_target), (
            "the gradient goes through the target alone; it is the value that "
            "has to move"
        )
        assert np.allclose(grad, right), (
            f"with a state of {state} and an error of {error}, it returns "
            f"{grad}, not {right}"
        )
    try:
        jax.jit(td_gradient)(params, state, reward, following, discount)
    except jax.errors.ConcretizationTypeError:
        raise AssertionError(
            "right, but not under `jax.jit`, where `float` and `.item()` have "
            "no number to return; stop the gradient at an array"
        ) from None


def check_curvature(curvature):
    """Raise AssertionError if it needs the whole Hessian."""

    def f(x):
        return jnp.sum(jnp.exp(x)) + jnp.sum(x) ** 2 / 2

    x, v = jnp.array([0.5, 1.0, 1.5]), jnp.array([1.0, 1.0, -1.0])
    hessian = np.diag(np.exp(x)) + 1
    found = curvature(f, x, v)
    assert found is not None, "it returns nothing; return the product"
    assert not isinstance(found, tuple), (
        f"it returns {len(found)} values; `jax.jvp` returns the gradient and "
        "how it changes, and the change is wanted"
    )
    assert isinstance(found, jax.Array) and found.shape == (3,), (
        f"it returns {found}, where an array with one number for each of 3 "
        "inputs is wanted"
    )
    assert not np.allclose(found, np.diag(hessian) * v), (
        "only the diagonal of the Hessian is used"
    )
    assert not np.allclose(found, jax.grad(f)(x)), (
        "this is the gradient, not how it changes in the direction of v"
    )
    right = hessian @ v
    assert np.allclose(found, right, rtol=1e-2), (
        f"it returns {found}, not {right}"
    )
    error = np.abs(found / right - 1).max()
    assert error < 2e-6, (
        f"the product is {error:.0e} off, as a difference of two gradients "
        "is; differentiate the gradient in the direction of v instead"
    )
    many = jnp.ones(400)
    program = jax.make_jaxpr(lambda x, v: curvature(f, x, v))(many, many)
    equations = list(equations_of(program))
    made = sum(out.aval.size for each in equations for out in each.outvars)
    assert made < 100 * 400, (
        f"right, but with 400 inputs it computes {made:,} numbers, and the "
        f"Hessian has {400**2:,}; differentiate the gradient in the direction "
        "of v instead"
    )
    names = {each.primitive.name for each in equations}
    assert not names & {"scan", "while"}, (
        "right, but it computes the Hessian one row after the other, in a "
        "loop; differentiate the gradient in the direction of v instead"
    )
