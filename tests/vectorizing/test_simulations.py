"""Simulations against NumPy, SciPy and closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snippets.vectorizing import simulations

KEY = jax.random.key(0)
START = np.array([1.0, 0.0])


def test_a_walk_ends_at_the_level_or_at_the_limit():
    position, step = 0.0, 0
    while abs(position) < 3:
        position += float(simulations.noise(KEY, 7, step))
        step += 1
    assert simulations.steps_to_exit(KEY, 7, 3.0, 1000) == step
    assert simulations.steps_to_exit(KEY, 7, 1e9, 12) == 12


@pytest.mark.parametrize("lanes", [1, 7, 64])
def test_refilled_lanes_take_the_same_walks_and_fewer_steps(lanes):
    walks = jax.vmap(simulations.steps_to_exit, in_axes=(None, 0, None, None))
    lengths = walks(KEY, jnp.arange(64), 4.0, 500)
    again, iterations = simulations.refilled(KEY, 64, lanes, 4.0, 500)
    np.testing.assert_array_equal(lengths, again)
    assert lengths.sum() <= lanes * iterations
    if lanes == 1:
        assert iterations == lengths.sum()
    if lanes == 7:
        assert lanes * iterations < 64 * lengths.max()


def test_the_pendulum_is_scipys_and_of_fourth_order():
    with jax.enable_x64(True):
        expected = simulations.swing_scipy(0.1, START, 10.0)
        errors = [
            np.abs(simulations.swing(0.1, START, 10.0, steps) - expected).max()
            for steps in (50, 100)
        ]
    assert errors[1] < 1e-4 and 10 < errors[0] / errors[1] < 25


def test_the_adjoint_has_the_gradient_and_keeps_no_steps():
    def angle(friction, y, time, solve):
        return solve(friction, y, time, 400)[0]

    gradient = jax.jit(jax.grad(angle, argnums=(0, 1, 2)), static_argnums=3)
    with jax.enable_x64(True):
        exact, adjoint = (
            gradient(0.1, START, 10.0, solve)
            for solve in (simulations.swing, simulations.swing_adjoint)
        )
        kept = [
            gradient.lower(0.1, START, 10.0, solve).compile().memory_analysis().temp_size_in_bytes
            for solve in (simulations.swing, simulations.swing_adjoint)
        ]
    for one, other in zip(exact, adjoint, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)
    assert kept[1] < kept[0] / 10


@settings(max_examples=20, deadline=None)
@given(st.floats(0.1, 6.0), st.floats(0.0, 0.7))
def test_kepler_solves_its_equation_and_has_its_derivative(mean, eccentricity):
    E = simulations.kepler(mean, eccentricity)
    np.testing.assert_allclose(E - eccentricity * np.sin(E), mean, rtol=1e-4)
    np.testing.assert_allclose(
        jax.grad(simulations.kepler)(mean, eccentricity),
        1 / (1 - eccentricity * np.cos(E)),
        rtol=1e-3,
    )


def test_newton_alone_cannot_be_differentiated(raises_declared):
    raises_declared(simulations.rate_of_change, 1.0, 0.3)


W = 0.04 * jax.random.normal(KEY, (100, 100))
B = jax.random.normal(jax.random.key(1), (100,))


def test_an_equilibrium_stays_and_its_gradient_is_that_of_the_iteration():
    def plain(w, b):
        return jnp.sum(simulations.iterated(w, b) ** 2)

    y = simulations.equilibrium(W, B, simulations.by_matrix)
    np.testing.assert_allclose(simulations.settle(y, W, B), y, atol=1e-5)
    np.testing.assert_allclose(simulations.iterated(W, B), y, atol=1e-5)
    exact = jax.grad(plain, argnums=(0, 1))(W, B)
    programs = [jax.jit(jax.grad(plain)).lower(W, B).compile()]
    for solve in simulations.by_matrix, simulations.by_products:
        gradient = jax.grad(simulations.equilibrium_loss, argnums=(0, 1))
        for found, one in zip(gradient(W, B, solve), exact, strict=True):
            np.testing.assert_allclose(found, one, rtol=1e-3, atol=1e-5)
        jitted = jax.jit(jax.grad(simulations.equilibrium_loss), static_argnums=2)
        programs.append(jitted.lower(W, B, solve).compile())
    iterated, matrix, products = (p.memory_analysis().temp_size_in_bytes for p in programs)
    # The steps' residuals, and the matrix, are in the others.
    assert iterated >= 100 * B.nbytes and matrix >= W.nbytes
    assert products < min(iterated, matrix) / 2


def test_gmres_alone_has_no_transpose(raises_declared):
    raises_declared(simulations.gradient_by_gmres, W, B)


@given(st.integers(1, 50), st.integers(0, 99))
@settings(max_examples=20, deadline=None)
def test_a_recurrence_by_pairs(length, seed):
    a, b = np.random.default_rng(seed).uniform(size=(2, length)).astype(np.float32)
    h, expected = 0.0, []
    for x, y in zip(a, b, strict=True):
        h = x * h + y
        expected.append(h)
    np.testing.assert_allclose(simulations.recurrence(a, b), expected, rtol=1e-4)
    np.testing.assert_allclose(simulations.recurrence_by_pairs(a, b), expected, rtol=1e-3)
