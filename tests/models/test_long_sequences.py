"""Attention in blocks, against NumPy in float64 and against JAX's own attention."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snippets.models import long_sequences
from snippets.models.memory import largest_difference
from snippets.training import stages

TIME = 24
TEXTS = np.array([[0] * 5 + [1] * 12 + [2] * 7, [3] * 24])
WAYS = {
    "queries": functools.partial(long_sequences.by_queries, block=7),
    "blocks": functools.partial(long_sequences.attention_in_blocks, block=8),
    "plain": long_sequences.plain,
}
MASKS = [
    {},
    {"causal": True},
    {"causal": True, "window": 9, "segment_ids": TEXTS},
    {"window": 3},
    {"window": 40},
    {"window": 0},
    {"causal": True, "window": 0},
    {"causal": True, "window": 1000},
]


def some(groups, dtype=jnp.float32):
    """Return queries of four heads, and keys and values of so many."""
    shapes = [(2, TIME, heads, 8) for heads in (4, groups, groups)]
    keys = jax.random.split(jax.random.key(0), 3)
    return [2 * jax.random.normal(k, s, dtype) for k, s in zip(keys, shapes, strict=True)]


def in_float64(query, key, value, causal=False, window=None, segment_ids=None):
    """Return attention by its definition, one query after the other."""
    query, key, value = (np.float64(x) for x in (query, key, value))
    found = np.zeros(query.shape)
    for row, time, head in np.ndindex(query.shape[:3]):
        group = head * key.shape[2] // query.shape[2]
        seen = [
            other
            for other in range(TIME)
            if not (causal and other > time)
            and not (window is not None and abs(time - other) > window)
            and (segment_ids is None or segment_ids[row, time] == segment_ids[row, other])
        ]
        scores = key[row, seen, group] @ query[row, time, head] / np.sqrt(8)
        exps = np.exp(scores - scores.max())
        found[row, time, head] = exps @ value[row, seen, group] / exps.sum()
    return found


@pytest.mark.parametrize("mask", MASKS, ids=range(len(MASKS)))
@pytest.mark.parametrize("way", WAYS)
def test_each_way_is_attention(way, mask):
    mask = {name: jnp.array(x) if name == "segment_ids" else x for name, x in mask.items()}
    for groups, dtype, rounding in (2, jnp.float32, 2e-6), (1, jnp.bfloat16, 2e-2):
        qkv = some(groups, dtype)
        found = jax.jit(functools.partial(WAYS[way], **mask))(*qkv)
        assert found.dtype == dtype
        expected = in_float64(*qkv, **mask)
        np.testing.assert_allclose(np.float64(found), expected, atol=rounding * 4, rtol=0)


@pytest.mark.parametrize("mask", MASKS[1:4], ids=range(3))
@pytest.mark.parametrize("way", ["queries", "blocks"])
def test_gradients_are_those_of_jax(way, mask):
    mask = {name: jnp.array(x) if name == "segment_ids" else x for name, x in mask.items()}
    found, expected = (
        long_sequences.with_gradients(functools.partial(f, **mask), *some(2))
        for f in (WAYS[way], WAYS["plain"])
    )
    assert largest_difference(found, expected) < 2e-5


def test_scores_that_overflow_an_exponential():
    query, key, value = (30 * x for x in some(4))
    expected = in_float64(query, key, value, causal=True)
    found = WAYS["blocks"](query, key, value, causal=True)
    np.testing.assert_allclose(found, expected, atol=1e-3)


@pytest.mark.parametrize("way", ["queries", "blocks"])
@pytest.mark.parametrize("axis_type", ["Explicit", "Auto"])
def test_blocks_of_a_sharded_batch(axis_type, way):
    axis_type = (jax.sharding.AxisType[axis_type],)
    mesh = jax.make_mesh((2,), ("data",), axis_type, devices=jax.devices("cpu")[:2])
    attend = functools.partial(WAYS[way], causal=True)
    expected = attend(*some(2))
    with jax.set_mesh(mesh):
        qkv = jax.device_put(some(2), jax.NamedSharding(mesh, jax.P("data")))
        found = jax.jit(attend)(*qkv)
    assert found.sharding.spec[0] == "data"
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_the_ring_is_attention_with_segments_and_fewer_key_heads():
    mesh = jax.make_mesh((4,), ("time",), devices=jax.devices("cpu")[:4])
    shards = jax.NamedSharding(mesh, jax.P(None, "time"))
    with jax.set_mesh(mesh):
        qkv, texts = jax.device_put((some(2), TEXTS), shards)
        attend = functools.partial(long_sequences.in_ring, causal=True, segment_ids=texts)
        found = long_sequences.with_gradients(attend, *qkv)
    attend = functools.partial(WAYS["plain"], causal=True, segment_ids=jnp.array(TEXTS))
    assert largest_difference(found, long_sequences.with_gradients(attend, *some(2))) < 2e-5


@pytest.mark.parametrize("way", ["queries", "blocks"])
def test_what_no_way_can_attend_to_is_refused(way):
    query, key, value = some(2)
    with pytest.raises(ValueError, match="as many keys and values"):
        WAYS[way](query, key[:, 1:], value[:, 1:])
    with pytest.raises(ValueError, match="pass one for each position"):
        WAYS[way](query, key, value, segment_ids=jnp.zeros(TIME, int))
    with pytest.raises(ValueError, match=r"key heads|multiple of"):
        WAYS[way](query[:, :, :3], key, value)
    for window in -1, (2, 3), 2.0:
        with pytest.raises(ValueError, match="pass one int, from 0 on"):
            WAYS[way](query, key, value, window=window)
    with pytest.raises(ValueError, match="do not fill"):
        long_sequences.attention_in_blocks(query, key, value, block=7)


def grown(attend, length=512):
    """Return how much more a gradient needs for twice the length."""
    attend = functools.partial(attend, block=32, causal=True)
    short, long = (long_sequences.temporaries(attend, n)[1] for n in (length, 2 * length))
    return long / short


def test_temporaries_grow_with_the_length_and_not_with_its_square(monkeypatch):
    assert grown(long_sequences.plain, 1024) > 3.5
    ways = long_sequences.by_queries, long_sequences.attention_in_blocks
    for way in ways:
        assert grown(way) < 2.2
    windowed = functools.partial(long_sequences.attention_in_blocks, window=64)
    assert grown(windowed) < 1.7
    # The page says that both checkpoints are needed.
    monkeypatch.setattr(jax, "checkpoint", lambda f: f)
    for way in ways:
        assert grown(way) > 3


def test_the_outer_checkpoint_is_needed_as_well(monkeypatch):
    monkeypatch.setattr(
        jax, "checkpoint", lambda f, real=jax.checkpoint: real(f) if f.__name__ == "step" else f
    )
    assert grown(long_sequences.attention_in_blocks) > 3


def test_segments_of_a_ring_need_one_key_for_each_query():
    with pytest.raises(ValueError, match="segments need one of each"):
        stages.ring_attention(
            *[jnp.ones((n, 4)) for n in (8, 16, 16)], segment_ids=jnp.zeros(8, int)
        )
    with pytest.raises(ValueError, match=r"queries have heads \(1, 3\)"):
        stages.grouped(*[jnp.ones((1, n, 8, 4)) for n in (3, 2, 2)])


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_cudnn_is_for_a_gpu_and_16_bits(dtype):
    query = jnp.ones((1, 8, 2, 8), dtype)
    with pytest.raises((RuntimeError, ValueError, NotImplementedError)):
        jax.nn.dot_product_attention(query, query, query, implementation="cudnn")
