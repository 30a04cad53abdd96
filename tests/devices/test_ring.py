import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snippets.devices import resharding, ring, shard_map

MESH = jax.make_mesh((8,), ("i",), devices=jax.devices("cpu"))


@pytest.fixture(autouse=True)
def mesh():
    with jax.set_mesh(MESH):
        yield


def rows(x):
    return jax.device_put(x, jax.P("i"))


def heat_numpy(u, steps):
    for _ in range(steps):
        padded = np.pad(u, 1)
        u = u + ring.SPEED * (padded[:-2] - 2 * u + padded[2:])
    return u


@given(st.integers(1, 4), st.integers(0, 20))
@settings(deadline=None, max_examples=8)
def test_heat_is_the_same_on_eight_devices_on_one_and_in_numpy(cells, steps):
    u = np.random.default_rng(cells).normal(size=8 * cells).astype(np.float32)
    with jax.set_mesh(MESH):
        on_eight = ring.heat(rows(u), steps=steps)
    np.testing.assert_allclose(on_eight, heat_numpy(u, steps), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(on_eight, ring.heat_on_one(u, steps=steps), rtol=1e-5, atol=1e-6)
    assert str(jax.typeof(on_eight)) == f"float32[{8 * cells}@i]"


def test_a_step_by_hand():
    assert ring.spread_heat(np.array([0.0, 4.0, 0.0])).tolist() == [2]
    u = ring.first_heat(64)
    assert u.argmax() in (31, 32)
    assert ring.heat_on_one(u, steps=10).max() < u.max()


def test_without_halos_the_result_is_wrong():
    u = ring.first_heat(64)
    wrong = ring.heat_without_halo(rows(u), steps=50)
    assert np.abs(wrong - heat_numpy(u, 50)).max() > 1


def test_halos_hold_the_neighbours():
    u = np.arange(1, 17)
    padded = np.pad(u, 1)
    expected = [padded[2 * d : 2 * d + 4].tolist() for d in range(8)]
    halos = shard_map.held(ring.show_halo(rows(u)))
    assert [block.tolist() for block in halos] == expected


def test_collectives_do_not_grow_with_the_steps():
    u = rows(ring.first_heat(64))
    for steps in (1, 50):
        found = resharding.collectives(lambda u, n=steps: ring.heat(u, steps=n), u)
        assert found == {"collective-permute": 2}


@given(st.integers(1, 2), st.integers(1, 3), st.integers(1, 9), st.integers(0, 9))
@settings(deadline=None, max_examples=8)
def test_matmuls_are_equal(m, k, n, seed):
    generator = np.random.default_rng(seed)
    a = generator.integers(-9, 9, (8 * m, 8 * k)).astype(np.float32)
    b = generator.integers(-9, 9, (8 * k, n)).astype(np.float32)
    with jax.set_mesh(MESH):
        for matmul in (ring.ring_matmul, ring.gathered_matmul):
            result = matmul(rows(a), rows(b))
            np.testing.assert_array_equal(result, a @ b)
            assert str(jax.typeof(result)) == f"float32[{8 * m}@i,{n}]"


def test_only_one_of_the_matmuls_gathers():
    a, b = rows(np.ones((16, 32), np.float32)), rows(np.ones((32, 8), np.float32))
    assert resharding.collectives(ring.ring_matmul, a, b) == {"collective-permute": 1}
    assert resharding.collectives(ring.gathered_matmul, a, b) == {"all-gather": 1}


def test_owners_follow_the_ring():
    owners = ring.owners_of_blocks(8)
    assert sorted(owners[3]) == list(range(8))
    passed_on = jax.shard_map(ring.pass_on, in_specs=jax.P("i"), out_specs=jax.P("i"))
    block = rows(np.arange(8))
    for iteration in range(8):
        np.testing.assert_array_equal(block, owners[:, iteration])
        block = passed_on(block)
