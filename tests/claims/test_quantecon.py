from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snippets.claims import quantecon

GRID = jnp.linspace(-3, 3, 41)
MESH = np.meshgrid(GRID, GRID)


def test_a_ripple():
    assert quantecon.ripple(1.0, 2.0, np) == pytest.approx(np.cos(5) / 6)


def test_all_ways_find_the_highest_ripple():
    expected = quantecon.ripple(*MESH, np).max()
    assert quantecon.highest_of_mesh(*MESH) == pytest.approx(expected)
    assert quantecon.highest_by_vmap(GRID) == pytest.approx(expected)


def test_the_mesh_needs_memory_that_vmap_does_not():
    grid = jnp.linspace(-3, 3, 512)
    assert quantecon.mebibytes(quantecon.ripple, *jnp.meshgrid(grid, grid)) == (2.0, 1.0, 0.0)
    by_vmap = jax.vmap(quantecon.ripple, in_axes=(None, 0))
    assert quantecon.mebibytes(by_vmap, grid, grid) == (0.0, 1.0, 0.0)
    fused = jax.__version_info__ >= (0, 11, 2)

    def highest_of_rows(grid):
        return jnp.max(jax.vmap(lambda y: jnp.max(quantecon.ripple_jit(grid, y)))(grid))

    assert (quantecon.mebibytes(highest_of_rows, grid)[2] < 1.0) == fused


def test_waves_are_one_function_in_jax_and_numpy():
    x = np.linspace(0, 3, 9, dtype=np.float32)
    np.testing.assert_allclose(quantecon.waves(x), quantecon.waves(x, np), rtol=1e-4, atol=1e-5)


def test_the_values_of_choices():
    rng = np.random.default_rng(0)
    v, transition = rng.random((3, 2)), rng.random((2, 2))
    wealth, income = np.array([1.0, 2.0, 3.0]), np.array([0.5, 1.0])
    values = quantecon.bellman(*map(jnp.asarray, (v, wealth, income, transition)))
    assert values.shape == (3, 2, 3)
    left = 1.03 * wealth[2] + income[1] - wealth[0]
    expected = left**-1.5 / -1.5 + 0.96 * v[0] @ transition[1]
    assert values[2, 1, 0] == pytest.approx(expected, rel=1e-5)
    assert values[0, 0, 2] == -np.inf


def test_the_operator_is_a_product_of_three():
    rng = np.random.default_rng(1)
    g, parts = rng.random((2, 2, 2)), rng.random((3, 2, 2))
    expected = 0.9 * np.einsum("ia,jb,kc,abc->ijk", *parts, g)
    np.testing.assert_allclose(quantecon.discounted(g, *parts), expected, rtol=1e-5)
    n = 12
    arguments = jnp.ones((n, n, n)), *[jnp.ones((n, n))] * 3
    assert quantecon.mebibytes(quantecon.discounted, *arguments)[2] < n**6 * 4 / 2**20 / 10


def test_firms_take_the_same_shocks_before_the_loop_or_in_it():
    key = jax.random.key(0)
    before, within = (quantecon.firms(key, 5, 9, all_at_once) for all_at_once in (True, False))
    np.testing.assert_allclose(before, within, rtol=1e-6)
    few, many = (
        quantecon.mebibytes(partial(quantecon.firms, number=10_000, all_at_once=True, steps=n), key)
        for n in (5, 50)
    )
    assert many[2] > 5 * few[2]


def test_a_path_is_written_in_place():
    key = jax.random.key(0)
    path = quantecon.path(key, 4)
    assert path[0] == 0 and len(set(path.tolist())) == 4
    _, result, temporary = quantecon.mebibytes(partial(quantecon.path, steps=1_000_000), key)
    assert result > 3 and temporary < 0.1
