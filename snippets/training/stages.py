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


def advance(last, x, weights, state, tick):
    """Compute one microbatch on each stage, and pass the results on."""
    incoming, done = state
    stage = jax.lax.axis_index("stages")
    first = x[jnp.minimum(tick, len(x) - 1)]
    y = layer(weights[0], jnp.where(stage == 0, first, incoming))
    number = tick - last
    finished = (stage == last) & (number >= 0)
    done = jnp.where(finished, done.at[number].set(y), done)
    forward = [(n, n + 1) for n in range(last)]
    return (jax.lax.ppermute(y, "stages", forward), done), None


@jax.shard_map(in_specs=(jax.P("stages"), jax.P()), out_specs=jax.P())
def pipeline(weights, x):
    """Apply one layer on each device to microbatches (n, rows, width)."""
    last = jax.lax.axis_size("stages") - 1
    start = (jnp.zeros_like(x[0]), jnp.zeros_like(x))
    start = jax.lax.pcast(start, "stages", to="varying")
    step = functools.partial(advance, last, x, weights)
    _, done = jax.lax.scan(step, start, jnp.arange(len(x) + last))[0]
    at_end = jax.lax.axis_index("stages") == last
    return jax.lax.psum(jnp.where(at_end, done, 0), "stages")


def idle_share(stages, microbatches):
    """Return the share of the time in which a stage has no microbatch."""
    return (stages - 1) / (stages - 1 + microbatches)


def attention(query, key, value):
    """Return softmax(q kᵀ / √width) v of arrays (time, width)."""
    scores = query @ key.T / math.sqrt(query.shape[-1])
    return jax.nn.softmax(scores) @ value


def add_block(query, state, _):
    """Add one block of keys and values, and pass it to the next device."""
    key, value, top, total, found = state
    scores = query @ key.T / math.sqrt(query.shape[-1])
    new_top = jnp.maximum(top, scores.max(axis=-1, keepdims=True))
    exps, before = jnp.exp(scores - new_top), jnp.exp(top - new_top)
    total = before * total + exps.sum(axis=-1, keepdims=True)
    found = before * found + exps @ value
    devices = jax.lax.axis_size("time")
    ring = [(n, (n + 1) % devices) for n in range(devices)]
    key, value = jax.lax.ppermute((key, value), "time", ring)
    return (key, value, new_top, total, found), None


@jax.shard_map(in_specs=jax.P("time"), out_specs=jax.P("time"))
def ring_attention(query, key, value):
    """Return `attention`, of which each device has some positions.

    Keys and values go round in a ring (Liu et al. 2023).
    """
    rows, width = query.shape
    top = jnp.full((rows, 1), -jnp.inf)
    start = top, jnp.zeros((rows, 1)), jnp.zeros((rows, width))
    start = jax.lax.pcast(start, "time", to="varying")
    step = functools.partial(add_block, query)
    devices = jnp.arange(jax.lax.axis_size("time"))
    state, _ = jax.lax.scan(step, (key, value, *start), devices)
    return state[-1] / state[-2]


def chosen(gate, x):
    """Return for each row its expert, an integer, and its probability."""
    probabilities = jax.nn.softmax(x @ gate)
    return probabilities.argmax(axis=-1), probabilities.max(axis=-1)


def every_expert(weights, gate, x):
    """Return what the chosen expert makes of each row, computing all."""
    expert, probability = chosen(gate, x)
    results = jax.vmap(layer, in_axes=(0, None))(weights, x)
    own = results[expert, jnp.arange(len(x))]
    return probability[:, None] * own


def seats(expert, experts, capacity):
    """Return which row has which seat, (rows, experts, capacity) of 0 and 1.

    A row whose expert has no seat left gets none.
    """
    wanted = jax.nn.one_hot(expert, experts)
    number = (jnp.cumsum(wanted, axis=0) * wanted).sum(axis=-1) - 1
    number = number.astype(int)
    return wanted[:, :, None] * jax.nn.one_hot(number, capacity)[:, None]


def experts_by(capacity):
    """Return `every_expert` with one expert, and a shard of x, on each device.

    Each device sends each expert at most `capacity` rows. It also returns
    how many rows found no seat (Fedus et al. 2021, section 2.2).
    """
    x_specs = jax.P("experts")

    @jax.shard_map(
        in_specs=(x_specs, jax.P(), x_specs), out_specs=(x_specs, jax.P())
    )
    def mixed(weights, gate, x):
        expert, probability = chosen(gate, x)
        seat = seats(expert, gate.shape[1], capacity)
        rows = jnp.einsum("rec,rd->ecd", seat, x)
        rows = jax.lax.all_to_all(rows, "experts", 0, 0)
        results = layer(weights[0], rows)
        results = jax.lax.all_to_all(results, "experts", 0, 0)
        found = jnp.einsum("rec,ecd->rd", seat, results)
        lost = len(x) - seat.sum()
        return probability[:, None] * found, jax.lax.psum(lost, "experts")

    return mixed


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


def routes(expert, experts):
    """Return an order of rows by their expert, and where they go and return.

    Both ways are the offsets and sizes that `jax.lax.ragged_all_to_all` takes.
    """
    order = jnp.argsort(expert)
    sizes = jax.nn.one_hot(expert, experts, dtype=int).sum(axis=0)
    arriving = number_from_each(sizes)
    starts, places = (jnp.cumsum(n) - n for n in (sizes, arriving))
    there = starts, sizes, number_from_each(places), arriving
    back = places, arriving, number_from_each(starts), sizes
    return order, there, back


def ragged_experts(send):
    """Return `every_expert` as `experts_by` does, without a capacity.

    `send` is `jax.lax.ragged_all_to_all`, or `send_padded`.
    """
    x_specs = jax.P("experts")

    @jax.shard_map(in_specs=(x_specs, jax.P(), x_specs), out_specs=x_specs)
    def mixed(weights, gate, x):
        expert, probability = chosen(gate, x)
        order, there, back = routes(expert, gate.shape[1])
        room = jnp.zeros((gate.shape[1] * len(x), x.shape[1]))
        room = jax.lax.pcast(room, "experts", to="varying")
        rows = send(x[order], room, *there, axis_name="experts")
        results = layer(weights[0], rows)
        rows = send(results, x, *back, axis_name="experts")
        found = jnp.zeros_like(x).at[order].set(rows)
        return probability[:, None] * found

    return mixed


def send_ragged(weights, gate, x):
    """Compute `ragged_experts`; raises JaxRuntimeError on a CPU."""
    mixed = ragged_experts(jax.lax.ragged_all_to_all)
    return jax.jit(mixed)(weights, gate, x)
