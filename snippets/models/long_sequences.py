"""Attention over long sequences, in blocks, without all of its scores."""

import functools
import math

import jax
import jax.numpy as jnp

from snippets.compiled.kernels import whole_blocks
from snippets.training.stages import ring_attention


def near(queries, keys, causal, window):
    """Return which position (rows) may see which (columns), by distance.

    `causal` hides later positions, and `window` those farther away.
    """
    distance = queries[:, None] - keys
    mask = jnp.full(distance.shape, True)
    if causal:
        mask &= distance >= 0
    if window is not None:
        mask &= abs(distance) <= window
    return mask


def by_queries(
    query, key, value, block, causal=False, window=None, segment_ids=None
):
    """Return attention; a block of queries at a time sees all keys.

    The arguments are those of `attention_in_blocks`. `block` need not divide
    the number of positions.
    """
    ids = segments_or_zeros(query, key, value, segment_ids)
    positions, window = jnp.arange(query.shape[1]), whole_window(window)

    @jax.checkpoint
    def of_query(own):
        at, query, own_ids = own
        mask = near(at[None], positions, causal, window)
        mask &= own_ids[:, None] == ids
        return jax.nn.dot_product_attention(
            query[:, None], key, value, mask=mask[:, None, None]
        )[:, 0]

    queries = positions, jnp.moveaxis(query, 1, 0), ids.T
    found = jax.lax.map(of_query, queries, batch_size=block)
    return jnp.moveaxis(found, 0, 1)


def whole_window(window):
    """Return a window, a number of positions or None; ValueError for others.

    With a window of 0, a position sees itself.
    """
    if window is not None and not (isinstance(window, int) and window >= 0):
        raise ValueError(f"window is {window}: pass one int, from 0 on")
    return window


def segments_or_zeros(query, key, value, segment_ids):
    """Return the ids (batch, time), 0 without any; ValueError for shapes."""
    shape = query.shape[:2]
    if key.shape != value.shape or key.shape[:2] != shape:
        shapes = f"{query.shape}, {key.shape} and {value.shape}"
        raise ValueError(
            f"no attention of {shapes}: pass as many keys and values as "
            "queries, as (batch, time, heads, width)"
        )
    if segment_ids is None:
        return jnp.zeros_like(query[:, :, 0, 0], int)
    if segment_ids.shape != shape:
        raise ValueError(
            f"segment_ids of shape {segment_ids.shape}: pass one for each "
            f"position, {shape}"
        )
    return segment_ids


def add_keys(query, mask, state, key, value):
    """Add what a block of keys and values contributes to each query.

    The state is the largest score so far, the sum of the exponentials, and
    that of the values weighted by them (Dao et al. 2022, algorithm 1).
    """
    top, total, found = state
    scores = jnp.dot(query, key.T, preferred_element_type=top.dtype)
    scores = scores / math.sqrt(query.shape[-1])
    scores = jnp.where(mask, scores, jnp.finfo(top.dtype).min)
    highest = jnp.maximum(top, scores.max(axis=-1, keepdims=True))
    exps, before = jnp.exp(scores - highest), jnp.exp(top - highest)
    total = before * total + exps.sum(axis=-1, keepdims=True)
    added = jnp.dot(exps, value, preferred_element_type=top.dtype)
    return highest, total, before * found + added


def attend_to(query, positions, ids, keys, causal, window):
    """Return attention of queries (block, width) to several blocks of keys.

    `keys` are positions, keys, values and ids, each (blocks, block, ...).
    """

    @jax.checkpoint
    def step(state, block):
        places, key, value, key_ids = block
        mask = near(positions, places, causal, window)
        seen = mask & (ids[:, None] == key_ids)
        return jax.lax.cond(
            mask.any(),
            lambda state: add_keys(query, seen, state, key, value),
            lambda state: state,
            state,
        ), None

    sums = jnp.promote_types(query.dtype, jnp.float32)
    top = jnp.full((len(query), 1), jnp.finfo(sums).min, sums)
    found = jnp.zeros((len(query), query.shape[1]), sums)
    state = top, jnp.zeros_like(top), found
    (_, total, found), _ = jax.lax.scan(step, state, keys)
    return (found / total).astype(query.dtype)


def one_head(query, key, value, ids, block, causal, window):
    """Return attention of one head, all arrays (time, width)."""
    blocks = whole_blocks(len(query), block)
    reach = blocks if window is None else -(-window // block)
    count = min(blocks, reach + 1 if causal else 2 * reach + 1)
    positions = jnp.arange(len(query))

    @jax.checkpoint
    def of_block(number):
        own = [
            jax.lax.dynamic_slice_in_dim(x, number * block, block)
            for x in (query, positions, ids)
        ]
        first = block * jnp.clip(number - reach, 0, blocks - count)
        keys = [
            jax.lax.dynamic_slice_in_dim(x, first, count * block)
            for x in (positions, key, value, ids)
        ]
        keys = [x.reshape(count, block, *x.shape[1:]) for x in keys]
        return attend_to(*own, keys, causal, window)

    found = jax.lax.map(of_block, jnp.arange(blocks))
    return found.reshape(query.shape)


def attention_in_blocks(
    query, key, value, block, causal=False, window=None, segment_ids=None
):
    """Return attention, (batch, time, heads, width), in blocks of positions.

    `key` and `value` may have fewer heads, each for as many query heads in a
    row. With `causal`, a position sees no later one. With a `window`, it sees
    positions at most as far away; with `segment_ids`, int (batch, time), only
    those of its own segment. Sums have at least float32, the result the
    query's dtype. ValueError for other shapes and windows, or where `block`
    does not divide the number of positions.
    """
    ids = segments_or_zeros(query, key, value, segment_ids)
    window = whole_window(window)
    batch, time, heads, width = query.shape
    groups = key.shape[2]
    if heads % groups:
        raise ValueError(f"{heads} query heads and {groups} key heads")
    attend = functools.partial(
        one_head, block=block, causal=causal, window=window
    )
    of_group = jax.vmap(attend, (1, None, None, None), 1)
    of_heads = jax.vmap(of_group, (1, 1, 1, None), 1)
    query = query.reshape(batch, time, groups, -1, width)
    found = jax.vmap(of_heads)(query, key, value, ids)
    return found.reshape(batch, time, heads, width)


def plain(
    query, key, value, block=None, causal=False, window=None, segment_ids=None
):
    """Return the same from JAX's function, with all scores at once."""
    mask = None
    if segment_ids is not None:
        same = segment_ids[:, :, None] == segment_ids[:, None]
        mask = same[:, None]
    return jax.nn.dot_product_attention(
        query,
        key,
        value,
        mask=mask,
        is_causal=causal,
        local_window_size=window,
    )


def temporaries(attend, length, shards=None):
    """Return the planned bytes of temporaries, and those of a gradient.

    Of causal attention to 4 heads of width 64, float32, on each device.
    `shards` is the sharding of arrays (1, length, 4, 64).
    """
    array = jax.ShapeDtypeStruct(
        (1, length, 4, 64), jnp.float32, sharding=shards
    )

    def loss(*qkv):
        return jnp.sum(attend(*qkv))

    programs = jax.jit(attend), jax.jit(jax.grad(loss, (0, 1, 2)))
    return [
        program.lower(*[array] * 3)
        .compile()
        .memory_analysis()
        .temp_size_in_bytes
        for program in programs
    ]


def in_ring(query, key, value, causal=False, segment_ids=None):
    """Return `ring_attention` of arrays (batch, time, heads, width)."""
    heads = [jnp.moveaxis(x, 2, 1) for x in (query, key, value)]
    found = ring_attention(*heads, causal, segment_ids=segment_ids)
    return jnp.moveaxis(found, 1, 2)


def with_gradients(attend, *qkv):
    """Return attention, and the gradients of the sum of its sines."""

    def loss(*qkv):
        found = attend(*qkv)
        return jnp.sum(jnp.sin(found)), found

    gradient = jax.grad(loss, (0, 1, 2), has_aux=True)
    grads, found = jax.jit(gradient)(*qkv)
    return found, *grads
