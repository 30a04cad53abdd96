import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from snippets.benchmarks import ceilings, race
from snippets.benchmarks.attention import exact_attention, heads_first, inputs
from snippets.benchmarks.matmul import JAX, TORCH
from tests.book.pages import costs

FRAMEWORKS = ("jax", "torch", "numpy")


@pytest.fixture
def arrays():
    return ceilings.numbers(1000)


def address(result):
    if isinstance(result, torch.Tensor):
        return result.data_ptr()
    return result.ctypes.data if isinstance(result, np.ndarray) else result.unsafe_buffer_pointer()


def test_numbers_are_two_different_float32_arrays(arrays):
    b, c = arrays
    assert b.dtype == c.dtype == np.float32
    assert b.shape == c.shape == (1000,)
    assert not np.allclose(b, c)
    assert 0 <= min(b.min(), c.min()) and max(b.max(), c.max()) < 1


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("kernel", ceilings.STREAM_JAX)
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


def test_gigabytes_are_rounded_and_of_the_throughput():
    found = {
        key: types.SimpleNamespace(throughput=throughput, shape=[[10, 10]])
        for key, throughput in {"a": [1e-9], "b": [1e-9, 8e-9, 4e-9]}.items()
    }
    assert ceilings.in_gigabytes(types.SimpleNamespace(alternatives=found)) == {"a": 400, "b": 100}


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


def test_matmuls_are_right_to_the_precision_of_their_dtype():
    errors = ceilings.product_errors([JAX, TORCH], 64, ("full", "bfloat16"))
    assert set(errors) == {"full@jax", "full@torch", "bfloat16@jax", "bfloat16@torch"}
    for key, error in errors.items():
        low, high = (0, 1e-6) if key.startswith("full") else (1e-4, 1e-2)
        assert low <= error < high, key


def test_matmuls_have_the_size_that_is_asked_for():
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


def test_functions_of_one_pass_are_exact():
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


def test_both_attentions_are_the_exact_one():
    exact = exact_attention(*inputs(10))
    for call in (ceilings.attention_jax(10), ceilings.attention_torch(10)):
        assert race.largest_difference(heads_first(call()), exact) < 5e-6


def test_attention_counts_its_two_matmuls():
    q, k, v = map(jnp.asarray, inputs(10))
    jaxpr = str(jax.make_jaxpr(ceilings.attention)(q, k, v))
    # Each of (4, 10, 64) with (4, 64, 10), or the other way round.
    assert ceilings.attention_operations(10) == jaxpr.count("dot_general") * 2 * 4 * 10 * 10 * 64


def test_the_page_declares_what_kernels_read_write_and_compute():
    x, page = jax.ShapeDtypeStruct((1000,), np.float32), costs("benchmarks/ceilings")
    for kernel, function in ceilings.STREAM_JAX.items():
        jaxpr = jax.make_jaxpr(function)(x, x).jaxpr
        read = {id(each) for equation in jaxpr.eqns for each in equation.invars}
        arrays = 1 + sum(id(each) in read for each in jaxpr.invars)
        assert page.declared(f"ceilings/{kernel}")[0] == arrays, kernel
        if kernel != "copy":
            cost = arrays, len(jaxpr.eqns)
            assert page.declared(f"ceilings/{kernel}") == cost, kernel


def test_the_page_declares_one_pass_for_the_compiled_chain():
    x = jnp.ones((64, 128))
    cost = jax.jit(ceilings.PASSES_JAX["chain"]).lower(x).compile().cost_analysis()
    arrays, operations = costs("benchmarks/ceilings").declared("ceilings/pass/chain")
    assert cost["bytes accessed"] == arrays * x.nbytes
    assert cost["flops"] == operations * x.size
