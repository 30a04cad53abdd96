"""Simulations against Python, NumPy and closed forms."""

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snippets.vectorizing import simulations

KEY = jax.random.key(0)


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


X = jnp.linspace(0, 10, 20)
Y = 1 + 0.5 * X + jax.random.normal(KEY, 20)


def log_density(params):
    return simulations.log_posterior(params, X, Y)


def test_the_posterior_has_its_mean_where_the_density_is_largest():
    mean, deviations = simulations.exact_posterior(X, Y)
    np.testing.assert_allclose(jax.grad(log_density)(mean), 0, atol=1e-2)
    precision = -jax.hessian(log_density)(mean)
    np.testing.assert_allclose(jnp.diag(jnp.linalg.inv(precision)) ** 0.5, deviations, rtol=1e-3)


@pytest.mark.parametrize("name", ["nuts", "hmc"])
def test_chains_find_the_posterior_and_nuts_waits(name):
    options = {"num_integration_steps": 10} if name == "hmc" else {}
    sampler = getattr(blackjax, name)(log_density, 0.05, jnp.ones(2), **options)
    starts = jax.random.normal(KEY, (8, 2))
    samples, steps = simulations.chains(KEY, sampler, starts, 600)
    mean, deviations = simulations.exact_posterior(X, Y)
    kept = samples[:, 100:]
    assert (jnp.abs(kept.mean((0, 1)) - mean) < 0.2 * deviations).all()
    assert blackjax.rhat(kept).max() < 1.1
    assert (steps == 10).all() if name == "hmc" else steps.max(0).sum() * 8 > 1.3 * steps.sum()


def test_chains_in_turn_are_the_same_chains():
    sampler = blackjax.hmc(log_density, 0.05, jnp.ones(2), 10)
    starts = jax.random.normal(KEY, (3, 2))
    together, in_turn = (
        run(KEY, sampler, starts, 20) for run in (simulations.chains, simulations.chains_in_turn)
    )
    np.testing.assert_allclose(together[0], in_turn[0], rtol=1e-3, atol=1e-3)
    np.testing.assert_array_equal(together[1], in_turn[1])


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


def test_pairs_of_pairs_wait_for_twice_as_many_steps_as_there_are_powers_of_two():
    jaxpr = jax.make_jaxpr(simulations.recurrence_by_pairs)(jnp.ones(4096), jnp.ones(4096)).jaxpr
    depths = {}
    for equation in jaxpr.eqns:
        before = max(depths.get(str(variable), 0) for variable in equation.invars)
        for variable in equation.outvars:
            depths[str(variable)] = before + (equation.primitive.name == "mul")
    assert max(depths.values()) == 24
