import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snippets.devices import migration

MESH = jax.make_mesh((8,), ("i",), devices=jax.devices("cpu"))
START = np.zeros(2, np.float32)


def reference(w, batch, steps):
    x, y = batch
    for _ in range(steps):
        w = w - migration.RATE * 2 * x.T @ (x @ w - y) / len(y)
    return w


@given(st.integers(1, 6), st.integers(0, 8))
@settings(deadline=None, max_examples=8)
def test_three_forms_and_numpy_give_the_same_weights(rows, steps):
    batch = migration.line_data(8 * rows)
    expected = reference(START, batch, steps)
    forms = (
        migration.train_pmap(START, batch, steps, 8),
        migration.train_jit(START, batch, steps, MESH),
        migration.train_shard_map(START, batch, steps, MESH),
    )
    for w in forms:
        np.testing.assert_allclose(w, expected, rtol=1e-4, atol=1e-5)


def test_training_finds_the_line():
    w = migration.train_jit(START, migration.line_data(64), 100, MESH)
    np.testing.assert_allclose(w, [3, -1], atol=0.1)


def test_data_are_the_same_each_time():
    for one, two in zip(migration.line_data(8), migration.line_data(8), strict=True):
        np.testing.assert_array_equal(one, two)


def test_layouts():
    x, y = migration.line_data(64)
    sharded = jax.device_put((x, y), jax.NamedSharding(MESH, jax.P("i")))
    replicated = jax.device_put(START, jax.NamedSharding(MESH, jax.P()))
    assert migration.train_step(replicated, sharded).sharding.is_fully_replicated
    each = x.reshape(8, 8, 2), y.reshape(8, 8)
    stacked = migration.train_step_pmap(np.zeros((8, 2), np.float32), each)
    assert stacked.shape == (8, 2)
    assert not stacked.sharding.is_fully_replicated


@pytest.mark.parametrize(
    ("function", "factor"),
    [
        (migration.gradient_of_all, 1),
        (migration.gradient_as_in_pmap, 8),
        (migration.gradient_of_own, 1),
    ],
)
def test_gradients_inside_of_shard_map(function, factor):
    batch = migration.line_data(64)
    expected = factor * jax.grad(migration.loss)(START, batch)
    found = migration.on_all(function, START, batch, MESH)
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_without_the_check_the_order_is_the_other_way_round():
    x, y = batch = migration.line_data(64)
    expected = jax.grad(migration.loss)(START, batch)
    inside = migration.on_all(migration.gradient_of_all, START, batch, MESH, check=False)
    shards = sorted(inside.addressable_shards, key=lambda shard: shard.device.id)
    rows = [slice(start, start + 8) for start in range(0, 64, 8)]
    own = [jax.grad(migration.loss)(START, (x[each], y[each])) for each in rows]
    np.testing.assert_allclose([shard.data for shard in shards], own, rtol=1e-4)
    outside = migration.on_all(migration.gradient_as_in_pmap, START, batch, MESH, check=False)
    np.testing.assert_allclose(outside, expected, rtol=1e-4)


def test_loss_of_all_is_the_loss_of_all_rows():
    batch = jax.device_put(migration.line_data(64), jax.NamedSharding(MESH, jax.P("i")))
    mapped = jax.shard_map(
        migration.loss_of_all, mesh=MESH, in_specs=(jax.P(), jax.P("i")), out_specs=jax.P()
    )
    np.testing.assert_allclose(mapped(START, batch), migration.loss(START, batch), rtol=1e-5)
    assert "psum" in str(jax.make_jaxpr(mapped)(START, batch))
