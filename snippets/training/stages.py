"""Three more ways to share a model out: stages, positions, experts."""

import functools
import math

import jax
import jax.numpy as jnp

EXPECTED_ERRORS = {
    "send_ragged": (
        jax.errors.JaxRuntimeError,
        "is not supported by XLA:CPU",
    ),
}


def layer(weights, x):
    """Return tanh of x (..., width) times weights (width, width)."""
    return jnp.tanh(x @ weights)


def in_a_row(weights, x):
    """Apply layers (layers, width, width) one after the other."""
    return jax.lax.scan(lambda x, w: (layer(w, x), None), x, weights)[0]


def advance(weights, x, state, tick):
    """Compute one microbatch on each stage, and pass the results on."""
    incoming, done = state
    stage = jax.lax.axis_index("stages")
    last = jax.lax.axis_size("stages") - 1
    first = x[jnp.minimum(tick, len(x) - 1)]
    y = in_a_row(weights, jnp.where(stage == 0, first, incoming))
    number = tick - last
    finished = (stage == last) & (number >= 0)
    done = jnp.where(finished, done.at[number].set(y), done)
    forward = [(n, n + 1) for n in range(last)]
    return (jax.lax.ppermute(y, "stages", forward), done), None


def run_stages(weights, x):
    """Apply the layers of all devices, one after the other, to all of x."""
    last = jax.lax.axis_size("stages") - 1
    start = (jnp.zeros_like(x[0]), jnp.zeros_like(x))
    start = jax.lax.pcast(start, "stages", to="varying")
    step = functools.partial(advance, weights, x)
    _, done = jax.lax.scan(step, start, jnp.arange(len(x) + last))[0]
    at_end = jax.lax.axis_index("stages") == last
    return jax.lax.psum(jnp.where(at_end, done, 0), "stages")


def pipeline(weights, x, batch_axis=None):
    """Return `in_a_row` of microbatches, with the layers on several devices.

    `weights` (layers, width, width) are sharded over the axis "stages" of
    the mesh, so each device has as many layers: ValueError where they do not
    divide. x has shape (microbatches, rows, width). Where its rows are
    sharded over another axis of the mesh, that is the `batch_axis`.
    """
    if not len(x):
        raise ValueError("a pipeline needs at least one microbatch")
    rows = jax.P(None, batch_axis)
    return jax.shard_map(
        run_stages, in_specs=(jax.P("stages"), rows), out_specs=rows
    )(weights, x)


def schedule(stages, microbatches):
    """Return which microbatch each stage has in each iteration, -1 for none.

    int32 (stages, iterations): each stage is one iteration later than the
    stage before it.
    """
    iteration = jnp.arange(stages - 1 + microbatches)
    number = iteration - jnp.arange(stages)[:, None]
    return jnp.where((number >= 0) & (number < microbatches), number, -1)


def idle_share(stages, microbatches):
    """Return the share of the time in which a stage has no microbatch."""
    return (stages - 1) / (stages - 1 + microbatches)


def scores_of(query, key, causal, behind=0):
    """Return q kᵀ / √width (..., queries, keys).

    Where it is `causal`, a query sees keys up to its own position alone. The
    first query stands so many positions `behind` the first key.
    """
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    if not causal:
        return scores
    seen = jnp.tri(*scores.shape[-2:], behind, dtype=bool)
    return jnp.where(seen, scores, -jnp.inf)


def attention(query, key, value, causal=False):
    """Return softmax(q kᵀ / √width) v of arrays (..., time, width)."""
    return jax.nn.softmax(scores_of(query, key, causal)) @ value


def same_segment(scores, ids, key_ids):
    """Return scores (..., queries, keys), -inf between different segments.

    The ids have shape (time,) or (batch, time); None masks nothing.
    """
    if ids is None:
        return scores
    same = ids[..., :, None] == key_ids[..., None, :]
    between = (1,) * (scores.ndim - same.ndim)
    same = same.reshape(*same.shape[:-2], *between, *same.shape[-2:])
    return jnp.where(same, scores, -jnp.inf)


def add_block(query, ids, causal, state, iteration):
    """Add one block of keys and values, and pass it to the next device."""
    (key, value, key_ids), top, total, found = state
    devices, own = jax.lax.axis_size("time"), jax.lax.axis_index("time")
    behind = (own - (own - iteration) % devices) * query.shape[-2]
    scores = scores_of(query, key, causal, behind)
    scores = same_segment(scores, ids, key_ids)
    new_top = jnp.maximum(top, scores.max(axis=-1, keepdims=True))
    exps, before = jnp.exp(scores - new_top), jnp.exp(top - new_top)
    total = before * total + exps.sum(axis=-1, keepdims=True)
    found = before * found + exps @ value
    ring = [(n, (n + 1) % devices) for n in range(devices)]
    block = jax.lax.ppermute((key, value, key_ids), "time", ring)
    return (block, new_top, total, found), None


def grouped(query, key, value):
    """Return the arrays, with an axis for query heads that share a key head.

    ValueError where heads (axis -3) do not divide.
    """
    heads, groups = query.shape[:-2], key.shape[:-2]
    if heads == groups:
        return query, key, value
    if len(heads) != 2 or heads[0] != groups[0] or heads[1] % groups[1]:
        raise ValueError(f"queries have heads {heads}, and keys {groups}")
    query = query.reshape(*groups, -1, *query.shape[2:])
    return query, key[:, :, None], value[:, :, None]


def attend_in_ring(query, key, value, ids, causal):
    """Return `attention` of own queries, while keys and values go round."""
    shape = *query.shape[:-1], value.shape[-1]
    query, key, value = grouped(query, key, value)
    sums = jnp.promote_types(query.dtype, jnp.float32)
    top = jnp.full_like(query[..., :1], -jnp.inf, sums)
    found = jnp.zeros_like(top * value[..., :1, :])
    start = (key, value, ids), top, jnp.zeros_like(top), found
    step = jax.checkpoint(functools.partial(add_block, query, ids, causal))
    count = jnp.arange(jax.lax.axis_size("time"))
    (*_, total, found), _ = jax.lax.scan(step, start, count)
    return (found / total).astype(query.dtype).reshape(shape)


def check_positions(query, key, same):
    """Raise ValueError where queries and keys lack the `same` positions."""
    queries, keys = query.shape[-2], key.shape[-2]
    if same and queries != keys:
        raise ValueError(
            f"{queries} queries and {keys} keys: causal attention and "
            "segments need one of each for a position"
        )


def ring_attention(
    query, key, value, causal=False, batch_axis=None, segment_ids=None
):
    """Return `attention`, of which each device has some positions.

    Arrays (time, width), (batch, time, width) or (batch, heads, time, width)
    are sharded over the axis "time" of the mesh, as are the `segment_ids`,
    int (time,) or (batch, time): ValueError where it does not divide. Keys
    and values go round in a ring (Liu et al. 2023). They may have fewer
    heads, each for as many query heads in a row. A position sees only its own
    segment. Where the batch is sharded over another axis of the mesh, that is
    the `batch_axis`. Sums have at least float32, the result the query's
    dtype.
    """
    check_positions(query, key, causal or segment_ids is not None)
    spec = jax.P(*(batch_axis, None)[: query.ndim - 2], "time")
    of_ids = None
    if segment_ids is not None:
        of_ids = jax.P(*(batch_axis, "time")[-segment_ids.ndim :])
    return jax.shard_map(
        functools.partial(attend_in_ring, causal=causal),
        in_specs=(spec, spec, spec, of_ids),
        out_specs=spec,
    )(query, key, value, segment_ids)


def chosen(gate, x, top_k=1):
    """Return for each row its experts (rows, top_k), and how likely each is.

    `gate` has shape (width, experts). ValueError where a row gets no expert,
    or more than there are.
    """
    experts = gate.shape[1]
    if not 1 <= top_k <= experts:
        raise ValueError(
            f"top_k is {top_k}: choose from 1 to {experts} experts for a row"
        )
    probabilities, expert = jax.lax.top_k(jax.nn.softmax(x @ gate), top_k)
    return expert, probabilities


def every_expert(weights, gate, x, top_k=1):
    """Return what the chosen experts make of each row, computing all.

    Each result counts as much as its expert is likely. `weights` has shape
    (experts, width, width), x (rows, width).
    """
    expert, probability = chosen(gate, x, top_k)
    results = jax.vmap(layer, in_axes=(0, None))(weights, x)
    own = results[expert, jnp.arange(len(x))[:, None]]
    return (probability[..., None] * own).sum(axis=1)


def balance_loss(gate, x, top_k=1):
    """Return 1 where each expert gets as many rows, and more where not.

    The mean probability of an expert counts as often as it was chosen (Fedus
    et al. 2021, equations 4 to 6). ValueError where there are no rows, and as
    `chosen` raises it.
    """
    if not len(x):
        raise ValueError("the balance of no rows: pass at least one")
    probabilities = jax.nn.softmax(x @ gate)
    experts = gate.shape[1]
    picks = jax.nn.one_hot(chosen(gate, x, top_k)[0], experts)
    share = picks.mean(axis=(0, 1))
    return experts * jnp.sum(share * probabilities.mean(axis=0))


def seats(expert, experts, capacity):
    """Return which row has which seat, (rows, experts, capacity) of 0 and 1.

    A row whose expert has no seat left gets none. ValueError where no expert
    has a seat.
    """
    if capacity < 1:
        raise ValueError(f"a capacity of {capacity}: give experts a seat each")
    wanted = jax.nn.one_hot(expert, experts)
    number = (jnp.cumsum(wanted, axis=0) * wanted).sum(axis=-1) - 1
    number = number.astype(int)
    return wanted[:, :, None] * jax.nn.one_hot(number, capacity)[:, None]


def check_experts(weights, gate):
    """Raise ValueError where there is not one column of the gate for each."""
    if len(weights) != gate.shape[1]:
        raise ValueError(
            f"the gate chooses among {gate.shape[1]} experts, but there are "
            f"weights of {len(weights)}"
        )


def row_axes(batch_axis):
    """Return the axes of the mesh that shard the rows sent to experts."""
    return ("experts",) if batch_axis is None else (batch_axis, "experts")


def weighted(probability, found):
    """Return what each row has from its experts, of rows for each pick."""
    found = found.reshape(*probability.shape, -1)
    return (probability[..., None] * found).sum(axis=1)


def seated(weights, gate, x, capacity, top_k):
    """Return what experts make of own rows, and how many found no seat."""
    expert, probability = chosen(gate, x, top_k)
    seat = seats(expert.ravel(), gate.shape[1], capacity).astype(x.dtype)
    rows = jnp.einsum("rec,rd->ecd", seat, jnp.repeat(x, top_k, axis=0))
    rows = jax.lax.all_to_all(rows, "experts", 0, 1, tiled=True)
    results = jax.vmap(layer)(weights, rows)
    results = jax.lax.all_to_all(results, "experts", 1, 0, tiled=True)
    found = jnp.einsum("rec,ecd->rd", seat, results)
    return weighted(probability, found), expert.size - (seat != 0).sum()


def capacity_experts(weights, gate, x, capacity, top_k=1, batch_axis=None):
    """Return `every_expert`, and how many picks of an expert found no seat.

    `weights` are sharded over the axis "experts" of the mesh, x over the
    same, or over another `batch_axis` and "experts". Each device sends each
    expert at most `capacity` rows (Fedus et al. 2021, section 2.2).
    ValueError where experts or rows do not divide, and as `chosen` and
    `seats` raise it.
    """
    check_experts(weights, gate)
    axes = row_axes(batch_axis)

    def mixed(weights, gate, x):
        found, lost = seated(weights, gate, x, capacity, top_k)
        return found, jax.lax.psum(lost, axes)

    return jax.shard_map(
        mixed,
        in_specs=(jax.P("experts"), jax.P(), jax.P(axes)),
        out_specs=(jax.P(axes), jax.P()),
    )(weights, gate, x)


def send_padded(
    operand,
    output,
    input_offsets,
    send_sizes,
    output_offsets,
    recv_sizes,
    *,
    axis_name,
):
    """Return what `jax.lax.ragged_all_to_all` does, on any device.

    An `all_to_all` sends each device as many rows as the operand has; those
    beyond `send_sizes` are dropped.
    """
    number = jnp.arange(len(operand))
    rows = operand.at[input_offsets[:, None] + number].get(mode="clip")
    rows = jax.lax.all_to_all(rows, axis_name, 0, 0)
    starts = jax.lax.all_to_all(output_offsets, axis_name, 0, 0, tiled=True)
    places = starts[:, None] + number
    places = jnp.where(number < recv_sizes[:, None], places, len(output))
    return output.at[places].set(rows, mode="drop")


def number_from_each(numbers):
    """Return the numbers (devices,) that all devices have for this one."""
    return jax.lax.all_to_all(numbers, "experts", 0, 0, tiled=True)


def routes(device, devices):
    """Return an order of rows by their device, and where they go and return.

    Both ways are the offsets and sizes that `jax.lax.ragged_all_to_all` takes.
    """
    order = jnp.argsort(device)
    sizes = jax.nn.one_hot(device, devices, dtype=int).sum(axis=0)
    arriving = number_from_each(sizes)
    starts, places = (jnp.cumsum(n) - n for n in (sizes, arriving))
    there = starts, sizes, number_from_each(places), arriving
    back = places, arriving, number_from_each(starts), sizes
    return order, there, back


def ragged_layers(weights, expert, x):
    """Return what the expert of each row makes of it, and 0 where it has none.

    `weights` has shape (experts, width, width). An `expert` beyond them is
    none.
    """
    order = jnp.argsort(expert)
    sizes = jax.nn.one_hot(expert, len(weights), dtype=jnp.int32).sum(axis=0)
    results = jnp.tanh(jax.lax.ragged_dot(x[order], weights, sizes))
    results = jnp.zeros_like(x).at[order].set(results)
    return jnp.where(expert[:, None] < len(weights), results, 0)


def sent(weights, gate, x, top_k, send):
    """Return what experts make of own rows, each sent to its expert."""
    devices = jax.lax.axis_size("experts")
    expert, probability = chosen(gate, x, top_k)
    device, number = jnp.divmod(expert.ravel(), len(weights))
    order, there, back = routes(device, devices)
    rows = jnp.repeat(x, top_k, axis=0)[order]
    room = jnp.zeros_like(rows, shape=(devices * len(rows), x.shape[1]))
    none = jnp.full_like(number, len(weights), shape=len(room))
    arrived = send(rows, room, *there, axis_name="experts")
    number = send(number[order], none, *there, axis_name="experts")
    results = ragged_layers(weights, number, arrived)
    rows = send(results, rows, *back, axis_name="experts")
    return weighted(probability, jnp.zeros_like(rows).at[order].set(rows))


def ragged_experts(
    weights,
    gate,
    x,
    top_k=1,
    batch_axis=None,
    send=jax.lax.ragged_all_to_all,
):
    """Return `every_expert` as `capacity_experts` does, and lose no row.

    `send` is `jax.lax.ragged_all_to_all`, or `send_padded`.
    """
    check_experts(weights, gate)
    rows = jax.P(row_axes(batch_axis))
    return jax.shard_map(
        functools.partial(sent, top_k=top_k, send=send),
        in_specs=(jax.P("experts"), jax.P(), rows),
        out_specs=rows,
    )(weights, gate, x)


def send_ragged(weights, gate, x):
    """Compute `ragged_experts`; raises JaxRuntimeError on a CPU."""
    return jax.jit(ragged_experts)(weights, gate, x)
