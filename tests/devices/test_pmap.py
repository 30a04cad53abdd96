import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snippets.devices import pmap

MESH = jax.make_mesh((8,), ("i",), devices=jax.devices("cpu"))
START = np.zeros(2, np.float32)
numbers = st.lists(st.integers(1, 99), min_size=8, max_size=8)


def test_convolve_on_each_device():
    xs = np.random.default_rng(0).normal(size=(8, 5)).astype(np.float32)
    ws = np.random.default_rng(1).normal(size=(8, 3)).astype(np.float32)
    expected = [np.correlate(x, w) for x, w in zip(xs, ws, strict=True)]
    on_devices = jax.pmap(pmap.convolve, backend="cpu")(xs, ws)
    np.testing.assert_allclose(on_devices, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(jax.vmap(pmap.convolve)(xs, ws), on_devices, rtol=1e-5)
    assert {shard.data.shape for shard in on_devices.addressable_shards} == {(1, 3)}
    shared = jax.pmap(pmap.convolve, in_axes=(0, None), backend="cpu")(xs, ws[0])
    expected = [np.correlate(x, ws[0]) for x in xs]
    np.testing.assert_allclose(shared, expected, rtol=1e-4, atol=1e-5)


@given(numbers)
@settings(deadline=None, max_examples=10)
def test_share_of_total(values):
    x = np.array(values, np.float32)
    np.testing.assert_allclose(pmap.share_of_total(x), x / x.sum(), rtol=1e-5)


@pytest.mark.parametrize("exponent", [0, 3])
def test_a_static_argument_is_compiled_into_the_program(exponent):
    power = jax.pmap(lambda x, n: x**n, static_broadcasted_argnums=1, backend="cpu")
    x = np.arange(8, dtype=np.float32)
    np.testing.assert_allclose(power(x, exponent), x**exponent, rtol=1e-5)


def test_arguments_have_equally_many_rows():
    with pytest.raises(ValueError, match="implies that array axis 0 is partitioned") as error:
        pmap.add(np.ones(4), np.ones(3))
    assert error.typename == "IndivisibleError"
    assert pmap.add(np.ones(4), np.ones(4)).tolist() == [2, 2, 2, 2]


def test_more_rows_than_devices():
    with pytest.raises(ValueError, match="cannot select an axis to squeeze out"):
        pmap.double(np.arange(16.0))


def test_several_rows_on_each_device_are_one_call_of_pmap():
    x = np.arange(48.0, dtype=np.float32).reshape(16, 3)
    doubled = pmap.double_rows(x, devices=8)
    np.testing.assert_array_equal(doubled, 2 * x)
    assert {shard.data.shape for shard in doubled.addressable_shards} == {(2, 3)}
    text = str(jax.make_jaxpr(lambda x: pmap.double_rows(x, devices=8))(x))
    assert text.count("shard_map[") == 1
    assert "concatenate" not in text


def test_fewer_rows_than_devices_are_fine():
    x = pmap.double(np.arange(4.0))
    assert x.tolist() == [0, 2, 4, 6]
    assert len(x.sharding.device_set) == 4


def test_unbound_names(raises_declared):
    raises_declared(pmap.share_of_total_unnamed, np.arange(8.0))
    raises_declared(pmap.total_outside, np.arange(8.0))


def test_a_mesh_that_is_set_disturbs_pmap(raises_declared):
    raises_declared(pmap.double_under_mesh, np.arange(8.0), MESH)


def test_pmap_is_jit_and_shard_map():
    text = str(jax.make_jaxpr(pmap.double)(np.arange(8.0)))
    assert "jit[" in text
    assert "shard_map[" in text
    assert isinstance(pmap.double(np.arange(8.0)).sharding, jax.NamedSharding)


def reference(w, batch, steps):
    x, y = batch
    for _ in range(steps):
        w = w - pmap.RATE * 2 * x.T @ (x @ w - y) / len(y)
    return w


@given(st.integers(1, 6), st.integers(0, 8))
@settings(deadline=None, max_examples=8)
def test_three_forms_and_numpy_give_the_same_weights(rows, steps):
    batch = pmap.line_data(8 * rows)
    expected = reference(START, batch, steps)
    forms = (
        pmap.train_pmap(START, batch, steps, 8),
        pmap.train_jit(START, batch, steps, MESH),
        pmap.train_shard_map(START, batch, steps, MESH),
    )
    for w in forms:
        np.testing.assert_allclose(w, expected, rtol=1e-4, atol=1e-5)


def test_training_finds_the_line():
    w = pmap.train_jit(START, pmap.line_data(64), 100, MESH)
    np.testing.assert_allclose(w, [3, -1], atol=0.1)


def test_data_are_the_same_each_time():
    for one, two in zip(pmap.line_data(8), pmap.line_data(8), strict=True):
        np.testing.assert_array_equal(one, two)


def test_layouts():
    x, y = pmap.line_data(64)
    sharded = jax.device_put((x, y), jax.NamedSharding(MESH, jax.P("i")))
    replicated = jax.device_put(START, jax.NamedSharding(MESH, jax.P()))
    assert pmap.train_step(replicated, sharded).sharding.is_fully_replicated
    each = x.reshape(8, 8, 2), y.reshape(8, 8)
    stacked = pmap.train_step_pmap(np.zeros((8, 2), np.float32), each)
    assert stacked.shape == (8, 2)
    assert not stacked.sharding.is_fully_replicated


@pytest.mark.parametrize(
    ("function", "factor"),
    [
        (pmap.gradient_of_all, 1),
        (pmap.gradient_as_in_pmap, 8),
        (pmap.gradient_of_own, 1),
    ],
)
def test_gradients_inside_of_shard_map(function, factor):
    batch = pmap.line_data(64)
    expected = factor * jax.grad(pmap.loss)(START, batch)
    found = pmap.on_all(function, START, batch, MESH)
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_without_the_check_the_order_is_the_other_way_round():
    x, y = batch = pmap.line_data(64)
    expected = jax.grad(pmap.loss)(START, batch)
    inside = pmap.on_all(pmap.gradient_of_all, START, batch, MESH, check=False)
    shards = sorted(inside.addressable_shards, key=lambda shard: shard.device.id)
    rows = [slice(start, start + 8) for start in range(0, 64, 8)]
    own = [jax.grad(pmap.loss)(START, (x[each], y[each])) for each in rows]
    np.testing.assert_allclose([shard.data for shard in shards], own, rtol=1e-4)
    outside = pmap.on_all(pmap.gradient_as_in_pmap, START, batch, MESH, check=False)
    np.testing.assert_allclose(outside, expected, rtol=1e-4)


def test_loss_of_all_is_the_loss_of_all_rows():
    batch = jax.device_put(pmap.line_data(64), jax.NamedSharding(MESH, jax.P("i")))
    mapped = jax.shard_map(
        pmap.loss_of_all, mesh=MESH, in_specs=(jax.P(), jax.P("i")), out_specs=jax.P()
    )
    np.testing.assert_allclose(mapped(START, batch), pmap.loss(START, batch), rtol=1e-5)
    assert "psum" in str(jax.make_jaxpr(mapped)(START, batch))
