import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from snippets.benchmarks import ceilings, race
from snippets.benchmarks.attention import exact_attention, heads_first, inputs
from snippets.benchmarks.matmul import JAX, TORCH

FRAMEWORKS = ("jax", "torch", "numpy")


@pytest.fixture
def arrays():
    return ceilings.numbers(1000)


def address(result):
    if isinstance(result, torch.Tensor):
        return result.data_ptr()
    return result.ctypes.data if isinstance(result, np.ndarray) else result.unsafe_buffer_pointer()


def measurement(*latency, throughput=None, shape=((10, 10),), **more):
    return types.SimpleNamespace(
        latency=list(latency), throughput=throughput, shape=list(map(list, shape)), **more
    )


def comparison(**alternatives):
    return types.SimpleNamespace(alternatives=alternatives)


def test_numbers_are_two_different_float32_arrays(arrays):
    b, c = arrays
    assert b.dtype == c.dtype == np.float32
    assert b.shape == c.shape == (1000,)
    assert not np.allclose(b, c)
    assert 0 <= min(b.min(), c.min()) and max(b.max(), c.max()) < 1


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("kernel", ceilings.ARRAYS)
def test_every_kernel_computes_the_same_each_time_and_in_place(arrays, kernel, framework):
    exact = ceilings.EXACT[kernel](*(each.astype(np.float64) for each in arrays))
    call = getattr(ceilings, f"stream_{framework}")(kernel, *arrays)
    first = address(call())
    for _ in range(2):
        result = call()
        assert address(result) == first
        assert race.largest_difference(result, exact) < 5e-7


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_stream_leaves_its_inputs_alone(arrays, framework):
    before = [each.copy() for each in arrays]
    getattr(ceilings, f"stream_{framework}")("triad", *arrays)()
    np.testing.assert_array_equal(arrays, before)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_new_array_is_another_one(arrays, framework):
    call = getattr(ceilings, f"new_{framework}")(*arrays)
    kept = [call(), call()]
    assert len(set(map(address, kept))) == 2
    exact = ceilings.EXACT["triad"](*(each.astype(np.float64) for each in arrays))
    for each in kept:
        assert race.largest_difference(each, exact) < 5e-7


def test_what_is_written_over_is_gone_and_was_not_read():
    out, x = jnp.full(4, np.nan), jnp.arange(4.0)
    result = ceilings.over(lambda x: x + 1)(out, x)
    assert out.is_deleted() and not x.is_deleted()
    np.testing.assert_array_equal(result, [1, 2, 3, 4])


def test_the_count_of_arrays_is_that_of_what_a_kernel_reads_and_writes():
    x = jax.ShapeDtypeStruct((1000,), np.float32)
    for kernel, function in ceilings.STREAM_JAX.items():
        jaxpr = jax.make_jaxpr(function)(x, x).jaxpr
        read = {
            variable
            for each in jaxpr.eqns
            for variable in each.invars
            if not hasattr(variable, "val")
        }
        inputs_read = [each for each in jaxpr.invars if each in read]
        assert len(inputs_read) + 1 == ceilings.ARRAYS[kernel], kernel


def test_bandwidth_takes_the_throughput_where_there_is_one():
    assert ceilings.bandwidth(measurement(1.0, 2.0, 4.0), 3) == 3 * 4 * 100 / 2
    assert ceilings.bandwidth(measurement(2.0, throughput=[0.5]), 2) == 2 * 4 * 100 / 0.5


def test_gigabytes_are_rounded():
    race_of_two = comparison(a=measurement(1e-9), b=measurement(4e-9))
    assert ceilings.in_gigabytes(race_of_two, 2) == {"a": 800, "b": 200}


def test_the_fastest_kernel_is_that_of_the_device():
    races = {
        "copy": comparison(
            a=measurement(1.0, device_kind="gpu"), b=measurement(0.1, device_kind="cpu")
        ),
        "add": comparison(a=measurement(0.5, device_kind="gpu")),
    }
    assert ceilings.fastest(races, "gpu") == 3 * 400 / 0.5
    assert ceilings.fastest(races, "cpu") == 2 * 400 / 0.1


def test_the_fastest_product_is_in_full_float32():
    found = {
        "full@jax": measurement(2.0, work=100),
        "full@torch": measurement(1.0, work=100),
        "bfloat16@jax": measurement(0.1, work=100),
    }
    assert ceilings.fastest_product(comparison(**found)) == 100


def test_page_faults_are_those_of_new_memory():
    small = np.ones(10, np.float32)
    assert ceilings.page_faults(lambda: small + 1) == 0
    size = 400 * ceilings.resource.getpagesize()
    assert ceilings.page_faults(lambda: bytearray(size) * 100) >= 100


@pytest.mark.parametrize(("text", "size"), [("32768K\n", 2**25), ("1024K", 2**20)])
def test_the_size_of_the_cache_is_read(monkeypatch, tmp_path, text, size):
    path = tmp_path / "size"
    path.write_text(text)
    real = open
    monkeypatch.setattr("builtins.open", lambda name: real(path))
    assert ceilings.cache_bytes() == size


def test_without_a_known_cache_its_size_is_0(monkeypatch):
    def absent(name):
        raise FileNotFoundError

    monkeypatch.setattr("builtins.open", absent)
    assert ceilings.cache_bytes() == 0


def test_products_are_right_to_the_digits_of_their_dtype():
    errors = ceilings.product_errors([JAX, TORCH], 64, ("full", "bfloat16"))
    assert set(errors) == {"full@jax", "full@torch", "bfloat16@jax", "bfloat16@torch"}
    for key, error in errors.items():
        low, high = (0, 1e-6) if key.startswith("full") else (1e-4, 1e-2)
        assert low <= error < high, key


def test_products_have_the_size_that_is_asked_for():
    calls = ceilings.dense_products([JAX, TORCH], small=4, large=8)
    assert {key: tuple(call().shape) for key, call in calls.items()} == {
        "small@jax": (4, 4),
        "small@torch": (4, 4),
        "large@jax": (8, 8),
        "large@torch": (8, 8),
    }


def test_copies_there_and_back_hold_the_same_numbers(arrays):
    calls = ceilings.transfers_jax(arrays[0])
    for key, call in calls.items():
        np.testing.assert_array_equal(call(), arrays[0], err_msg=key)
    assert calls["from_pinned@jax"]().sharding.memory_kind == "pinned_host"
    assert isinstance(calls["from_pageable@jax"](), np.ndarray)
    assert calls["from_pageable@jax"]() is not calls["from_pageable@jax"]()


def test_copies_of_torch_hold_the_same_numbers(arrays, monkeypatch):
    asked = []

    def pinned(tensor):
        asked.append(tensor)
        return tensor.clone()

    real = torch.empty_like
    monkeypatch.setattr(torch.Tensor, "pin_memory", pinned)
    monkeypatch.setattr(torch, "empty_like", lambda x, pin_memory: real(x) if pin_memory else None)
    calls = ceilings.transfers_torch(arrays[0])
    assert len(asked) == 1
    assert list(calls) == [key.replace("jax", "torch") for key in ceilings.transfers_jax(arrays[0])]
    for key, call in calls.items():
        np.testing.assert_array_equal(call(), arrays[0], err_msg=key)


def test_every_pass_is_the_exact_one():
    x = np.random.default_rng(1).standard_normal((20, 30), dtype=np.float32)
    exact = ceilings.exact_passes(x)
    calls = ceilings.passes_jax(x) | ceilings.passes_torch(x)
    assert len(calls) == 14
    for key, call in calls.items():
        name = key.partition("@")[0].removesuffix("_new")
        assert race.largest_difference(call(), exact[name]) < 3e-6, key


def test_a_pass_writes_over_and_into_new_memory():
    x = np.ones((20, 30), np.float32)
    calls = ceilings.passes_jax(x) | ceilings.passes_torch(x)
    for key in ("copy@jax", "chain@jax", "softmax@jax", "layer_norm@jax", "copy@torch"):
        assert address(calls[key]()) == address(calls[key]()), key
    for key in calls:
        if "_new" in key:
            kept = [calls[key](), calls[key]()]
            assert address(kept[0]) != address(kept[1]), key


def test_the_compiled_chain_is_one_pass():
    x = jnp.ones((64, 128))
    cost = jax.jit(ceilings.PASSES_JAX["chain"]).lower(x).compile().cost_analysis()
    assert cost["bytes accessed"] == ceilings.cost_of_pass(x, 4).moved
    assert cost["flops"] == ceilings.cost_of_pass(x, 4).operations


def test_both_attentions_are_the_exact_one():
    exact = exact_attention(*inputs(10))
    for call in (ceilings.attention_jax(10), ceilings.attention_torch(10)):
        assert race.largest_difference(heads_first(call()), exact) < 5e-6


def test_costs_are_those_of_the_formulas():
    x = np.ones((5, 7), np.float32)
    found = ceilings.costs(x, small=3, large=6, length=2)
    assert found["chain"] == found["eager_chain"] == (140, 280)
    assert found["softmax"] == found["layer_norm"] == (175, 280)
    assert found["small"] == (54, 108)
    assert found["large"] == (432, 432)
    assert found["attention"] == (4 * 4 * 4 * 64, 4 * 4 * 4 * 2 * 64)


@pytest.mark.parametrize(("moved", "limit"), [(100, 50), (10, 200), (400, 12.5)])
def test_the_roof_is_the_lower_of_two_limits(moved, limit):
    assert ceilings.roof(ceilings.Cost(1000, moved), 5, 200) == limit


def test_shares_are_printed_of_what_has_a_cost(capsys):
    found = {
        "softmax_new@jax": measurement(2.0),
        "copy@jax": measurement(1.0),
        "large@torch": measurement(1.0, throughput=[4.0]),
    }
    costs = {"softmax": ceilings.Cost(10**10, 10**10), "large": ceilings.Cost(10**12, 10**9)}
    ceilings.print_shares(found, costs, 2e10, 5e11)
    head, first, second = capsys.readouterr().out.splitlines()
    assert head.split() == ["FLOP/byte", "roof", "reached", "share"]
    assert first.split() == ["softmax_new@jax", "1.00", "20.0", "5.0", "25%"]
    assert second.split() == ["large@torch", "1000.00", "500.0", "250.0", "50%"]
