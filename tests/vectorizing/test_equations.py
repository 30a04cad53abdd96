"""Equations against SciPy, closed forms and the gradients of their iterations."""

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from snippets.vectorizing import equations

KEY = jax.random.key(0)
START = np.array([1.0, 0.0])


def test_the_pendulum_is_scipys_and_of_fourth_order():
    with jax.enable_x64(True):
        expected = equations.swing_scipy(0.1, START, 10.0)
        errors = [
            np.abs(equations.swing(0.1, START, 10.0, steps) - expected).max() for steps in (50, 100)
        ]
    assert errors[1] < 1e-4 and 10 < errors[0] / errors[1] < 25


def test_the_adjoint_has_the_gradient_and_keeps_no_steps():
    def angle(friction, y, time, solve):
        return solve(friction, y, time, 400)[0]

    gradient = jax.jit(jax.grad(angle, argnums=(0, 1, 2)), static_argnums=3)
    with jax.enable_x64(True):
        exact, adjoint = (
            gradient(0.1, START, 10.0, solve)
            for solve in (equations.swing, equations.swing_adjoint)
        )
        kept = [
            gradient.lower(0.1, START, 10.0, solve).compile().memory_analysis().temp_size_in_bytes
            for solve in (equations.swing, equations.swing_adjoint)
        ]
    for one, other in zip(exact, adjoint, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)
    assert kept[1] < kept[0] / 10


@settings(max_examples=20, deadline=None)
@given(st.floats(0.1, 6.0), st.floats(0.0, 0.7))
def test_kepler_solves_its_equation_and_has_its_derivative(mean, eccentricity):
    E = equations.kepler(mean, eccentricity)
    np.testing.assert_allclose(E - eccentricity * np.sin(E), mean, rtol=1e-4)
    np.testing.assert_allclose(
        jax.grad(equations.kepler)(mean, eccentricity),
        1 / (1 - eccentricity * np.cos(E)),
        rtol=1e-3,
    )


def test_newton_alone_cannot_be_differentiated(raises_declared):
    raises_declared(equations.rate_of_change, 1.0, 0.3)


W = 0.04 * jax.random.normal(KEY, (100, 100))
B = jax.random.normal(jax.random.key(1), (100,))


def test_an_equilibrium_stays_and_its_gradient_is_that_of_the_iteration():
    def plain(w, b):
        return jnp.sum(equations.iterated(w, b) ** 2)

    y = equations.equilibrium(W, B, equations.by_matrix)
    np.testing.assert_allclose(equations.settle(y, W, B), y, atol=1e-5)
    np.testing.assert_allclose(equations.iterated(W, B), y, atol=1e-5)
    exact = jax.grad(plain, argnums=(0, 1))(W, B)
    programs = [jax.jit(jax.grad(plain)).lower(W, B).compile()]
    for solve in equations.by_matrix, equations.by_products:
        gradient = jax.grad(equations.equilibrium_loss, argnums=(0, 1))
        for found, one in zip(gradient(W, B, solve), exact, strict=True):
            np.testing.assert_allclose(found, one, rtol=1e-3, atol=1e-5)
        jitted = jax.jit(jax.grad(equations.equilibrium_loss), static_argnums=2)
        programs.append(jitted.lower(W, B, solve).compile())
    iterated, matrix, products = (p.memory_analysis().temp_size_in_bytes for p in programs)
    # The steps' residuals, and the matrix, are in the others.
    assert iterated >= 100 * B.nbytes and matrix >= W.nbytes
    assert products < min(iterated, matrix) / 2


def test_gmres_alone_has_no_transpose(raises_declared):
    raises_declared(equations.gradient_by_gmres, W, B)
