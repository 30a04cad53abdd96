import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snippets.devices import pmap

MESH = jax.make_mesh((8,), ("i",), devices=jax.devices("cpu"))
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


@given(numbers, st.integers(0, 3))
@settings(deadline=None, max_examples=10)
def test_power(values, exponent):
    x = np.array(values, np.float32)
    np.testing.assert_allclose(pmap.power(x, exponent), x**exponent, rtol=1e-5)


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
