import functools
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from snippets.benchmarks import attention, race

CPU_ONLY = pytest.mark.skipif(jax.default_backend() != "cpu", reason="of a CPU's compiler")


@pytest.fixture
def arrays():
    return attention.inputs(10)


def test_inputs_are_three_different_float32_arrays(arrays):
    query, key, value = arrays
    assert query.shape == key.shape == value.shape == (4, 10, 64)
    assert query.dtype == np.float32
    assert not np.allclose(query, key)
    assert not np.allclose(key, value)


def test_the_exact_attention_of_one_position_is_its_value(arrays):
    one = [x[:, :1] for x in arrays]
    np.testing.assert_allclose(attention.exact_attention(*one), one[2])


def test_the_exact_attention_of_equal_keys_is_the_mean_of_the_values(arrays):
    query, key, value = arrays
    mean = np.broadcast_to(value.mean(1, keepdims=True, dtype=np.float64), value.shape)
    np.testing.assert_allclose(attention.exact_attention(query, 0 * key, value), mean)


def test_a_causal_position_sees_nothing_later(arrays):
    exact = attention.exact_attention(*arrays, causal=True)
    for position in (0, 4, 9):
        seen = [x[:, : position + 1] for x in arrays]
        expected = attention.exact_attention(*seen)[:, -1]
        np.testing.assert_allclose(exact[:, position], expected)


def test_every_contender_is_the_exact_attention(arrays):
    exact = attention.exact_attention(*arrays)
    contenders = (
        attention.in_jax(10) | attention.in_torch(10, torch.tensor) | attention.in_tensorflow(10)
    )
    assert len(contenders) == 8
    for key, function in contenders.items():
        result = attention.heads_first(function())
        assert race.largest_difference(result, exact) < 5e-6, key


def test_every_causal_contender_is_the_exact_one(arrays):
    exact = attention.exact_attention(*arrays, causal=True)
    contenders = attention.causal_in_jax(10) | attention.causal_in_torch(10, torch.tensor)
    assert len(contenders) == 3
    for key, function in contenders.items():
        result = attention.heads_first(function())
        assert race.largest_difference(result, exact) < 5e-6, key


def test_both_layouts_are_brought_to_one(arrays):
    query = arrays[0]
    (turned,) = attention.positions_first([query])
    assert turned.shape == (1, 10, 4, 64)
    for array in (query, query[None], turned):
        np.testing.assert_array_equal(attention.heads_first(array), query)


@CPU_ONLY
def test_the_compiler_plans_for_scores_in_one_layout_and_fuses_them_in_the_other():
    own = attention.inputs(1024)
    turned = attention.positions_first(own)
    assert attention.scores_kept(attention.attention, *own) == 0
    assert attention.program_parts(attention.attention, *own) == (1, 1)
    library = jax.nn.dot_product_attention
    assert attention.scores_kept(library, *turned) >= 1
    assert attention.program_parts(library, *turned)[0] > 1


def test_planned_memory_is_counted_in_arrays_of_all_scores(monkeypatch):
    plan = types.SimpleNamespace(temp_size_in_bytes=3 * 4 * 4 * 10**2)
    program = types.SimpleNamespace(memory_analysis=lambda: plan)
    monkeypatch.setattr(attention, "cpu_program", lambda *args: program)
    assert attention.scores_kept(None, np.ones((4, 10, 64))) == 3
    assert attention.scores_kept(None, np.ones((1, 10, 4, 64))) == 3


def test_new_memory_is_counted_in_arrays_of_all_scores_for_one_call(monkeypatch):
    counts = iter([100, 100 + 2 * 3 * 16])
    usage = lambda who: types.SimpleNamespace(ru_minflt=next(counts))  # noqa: E731
    monkeypatch.setattr(attention.resource, "getrusage", usage)
    monkeypatch.setattr(attention.resource, "getpagesize", lambda: 4096)
    called = []
    call = functools.partial(called.append, jnp.ones(1))
    assert attention.fresh_scores(call, length=64, calls=2) == 3 * 16 * 4096 / (4 * 4 * 64**2)
    assert len(called) == 3


def test_torch_says_what_it_picked():
    assert attention.torch_choice(16).startswith("ScaledDotProduct")


def test_the_shape_in_the_records_is_that_of_one_head():
    assert attention.one_head(7).shape == (7, 64)
