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
