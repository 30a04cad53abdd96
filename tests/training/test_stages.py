"""Pipeline, context and expert parallelism, against the same on one device."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snippets.training import stages

WEIGHTS = jax.random.normal(jax.random.key(0), (8, 16, 16)) / 4
SIXTEEN = jax.random.normal(jax.random.key(0), (16, 16, 16)) / 4
MESHES = pytest.mark.parametrize(
    ("axes", "shape"), [("stages", (8,)), ("stages", (4,)), ("data stages", (2, 4))]
)


@pytest.fixture(params=["Explicit", "Auto"])
def axis_type(request):
    """Return each type of axis that pages use."""
    return jax.sharding.AxisType[request.param]


def mesh(axes, shape=(8,), axis_type=jax.sharding.AxisType.Explicit):
    """Set a mesh of so many of the virtual devices."""
    names = tuple(axes.split())
    devices = jax.devices("cpu")[: np.prod(shape)]
    return jax.set_mesh(jax.make_mesh(shape, names, (axis_type,) * len(names), devices=devices))


def close(found, expected, dtype=jnp.float32):
    """Compare to the rounding of a dtype, which stays."""
    assert found.dtype == dtype
    found, expected = (np.asarray(each, np.float64) for each in (found, expected))
    rounding = 40 * float(jnp.finfo(dtype).eps)
    np.testing.assert_allclose(found, expected, rtol=rounding, atol=rounding * abs(expected).max())


@pytest.mark.parametrize("microbatches", [1, 3, 11])
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
@MESHES
def test_a_pipeline_computes_what_all_its_layers_do_in_a_row(
    axes, shape, axis_type, dtype, microbatches
):
    layers = SIXTEEN.astype(dtype)
    x = jax.random.normal(jax.random.key(1), (microbatches, 2, 16), dtype)
    batch_axis = "data" if "data" in axes else None
    loss = lambda w, x: jnp.sum(jnp.sin(stages.pipeline(w, x, batch_axis)))  # noqa: E731
    with mesh(axes, shape, axis_type):
        weights = jax.device_put(layers, jax.P("stages"))
        rows = jax.device_put(x, jax.P(None, batch_axis))
        found = jax.jit(stages.pipeline, static_argnames="batch_axis")(weights, rows, batch_axis)
        gradient = jax.jit(jax.grad(loss))(weights, rows)
    close(found, stages.in_a_row(layers, x), dtype)
    expected = jax.grad(lambda w: jnp.sum(jnp.sin(stages.in_a_row(w, x))))(layers)
    close(gradient, expected, dtype)


def test_layers_that_do_not_divide_and_no_microbatch_are_refused(axis_type):
    x = jnp.ones((3, 2, 16))
    with mesh("stages", axis_type=axis_type):
        with pytest.raises(ValueError, match="not evenly divisible"):
            stages.pipeline(jnp.ones((12, 16, 16)), x)
        with pytest.raises(ValueError, match="at least one microbatch"):
            stages.pipeline(jnp.ones((8, 16, 16)), x[:0])


def test_rows_sharded_over_an_axis_that_is_not_named_are_refused():
    with mesh("data stages", (2, 4)):
        weights = jax.device_put(WEIGHTS, jax.P("stages"))
        x = jax.device_put(jnp.ones((3, 2, 16)), jax.P(None, "data"))
        with pytest.raises(ValueError, match="does not match the specs of the input"):
            stages.pipeline(weights, x)


@pytest.mark.parametrize(("count", "microbatches"), [(4, 8), (4, 3), (8, 1)])
def test_the_schedule_is_what_the_stages_of_the_pipeline_compute(monkeypatch, count, microbatches):
    computed, advance, now = {}, stages.advance, []

    def write_down(stage, iteration, x):
        computed[int(stage), int(iteration)] = int(x[0, 0]) - 1

    def advance_at(weights, x, state, iteration):
        now.append(iteration)
        return advance(weights, x, state, iteration)

    def pass_on(weights, x):
        jax.debug.callback(write_down, jax.lax.axis_index("stages"), now[-1], x)
        return x

    monkeypatch.setattr(stages, "advance", advance_at)
    monkeypatch.setattr(stages, "in_a_row", pass_on)
    # A microbatch is its number, counted from 1: 0 is what nobody has sent.
    x = 1.0 + jnp.arange(microbatches)[:, None, None]
    with mesh("stages", (count,)):
        weights = jax.device_put(jnp.ones((count, 1, 1)), jax.P("stages"))
        np.testing.assert_array_equal(stages.pipeline(weights, x), x)
        jax.effects_barrier()
    expected = np.full((count, count - 1 + microbatches), -1)
    for (stage, iteration), number in sorted(computed.items()):
        # Once the first stage has had all microbatches, it repeats the last one.
        if number not in expected[stage]:
            expected[stage, iteration] = number
    assert len(computed) == expected.size
    found = stages.schedule(count, microbatches)
    np.testing.assert_array_equal(found, expected)
    assert (found < 0).mean() == pytest.approx(stages.idle_share(count, microbatches))


def test_the_idle_share_is_counted():
    # Of three stages and four microbatches: six iterations, in which each stage has four.
    busy = [sum(0 <= tick - stage < 4 for tick in range(6)) for stage in range(3)]
    assert busy == [4, 4, 4]
    assert stages.idle_share(3, 4) == pytest.approx(1 - 4 / 6)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
@pytest.mark.parametrize(
    ("axes", "shape", "leading"),
    [("time", (8,), ()), ("time", (4,), (3,)), ("data time", (2, 4), (4, 3))],
)
def test_attention_in_a_ring_is_attention(axes, shape, leading, axis_type, dtype, causal):
    query, key, value = qkv = jax.random.normal(jax.random.key(2), (3, *leading, 32, 16), dtype)
    batch_axis = "data" if "data" in axes else None
    spec = jax.P(*(batch_axis, None)[: len(leading)], "time")

    def ring(query, key, value):
        return stages.ring_attention(query, key, value, causal, batch_axis)

    with mesh(axes, shape, axis_type):
        sharded = jax.device_put(list(qkv), spec)
        found = jax.jit(ring)(*sharded)
        gradient = jax.jit(jax.grad(lambda *qkv: jnp.sum(jnp.sin(ring(*qkv))), 1))(*sharded)
    close(found, stages.attention(query, key, value, causal), dtype)
    loss = lambda key: jnp.sum(jnp.sin(stages.attention(query, key, value, causal)))  # noqa: E731
    close(gradient, jax.grad(loss)(key), dtype)


@pytest.mark.parametrize(
    ("axes", "shape", "of_row"), [("time", (4,), False), ("data time", (2, 4), True)]
)
def test_a_ring_with_segments_and_fewer_key_heads(axes, shape, of_row, axis_type):
    query, key, value = jax.random.normal(jax.random.key(2), (3, 2, 4, 32, 16))
    key, value = key[:, :2], value[:, :2]
    ids = np.repeat([0, 1, 2], [5, 17, 10])
    if of_row:
        ids = np.stack([ids, ids[::-1]])
    batch_axis = "data" if "data" in axes else None
    spec = jax.P(*(batch_axis, "time")[-ids.ndim :])

    def ring(query, key, value, ids):
        return stages.ring_attention(query, key, value, True, batch_axis, ids)

    with mesh(axes, shape, axis_type):
        sharded = jax.device_put([query, key, value], jax.P(batch_axis, None, "time"))
        found = jax.jit(ring)(*sharded, jax.device_put(ids, spec))
    same = ids[..., :, None] == ids[..., None, :]
    expected = jax.nn.dot_product_attention(
        *(jnp.moveaxis(each, 1, 2) for each in (query, key, value)),
        mask=jnp.array(same.reshape(-1, 1, 32, 32)),
        is_causal=True,
    )
    close(found, jnp.moveaxis(expected, 2, 1))


def test_the_formula_is_the_attention_of_jax():
    query, key, value = jax.random.normal(jax.random.key(2), (3, 2, 32, 3, 16))
    heads = [jnp.moveaxis(each, 1, 2) for each in (query, key, value)]
    for causal in False, True:
        expected = jax.nn.dot_product_attention(query, key, value, is_causal=causal)
        close(stages.attention(*heads, causal), jnp.moveaxis(expected, 1, 2))


def test_what_a_ring_cannot_attend_to_is_refused():
    with mesh("time"):
        with pytest.raises(ValueError, match="16 queries and 24 keys"):
            stages.ring_attention(*map(jnp.ones, [(16, 4), (24, 4), (24, 4)]), causal=True)
        with pytest.raises(ValueError, match="not evenly divisible"):
            stages.ring_attention(*[jnp.ones((12, 4))] * 3)


def test_the_gradient_of_a_ring_keeps_no_scores():
    def temporaries(length):
        arrays = [jax.ShapeDtypeStruct((length, 16), jnp.float32, sharding=sharding)] * 3
        loss = lambda *qkv: jnp.sum(stages.ring_attention(*qkv))  # noqa: E731
        return jax.jit(jax.grad(loss)).lower(*arrays).compile().memory_analysis().temp_size_in_bytes

    with mesh("time"):
        sharding = jax.NamedSharding(jax.sharding.get_mesh(), jax.P("time"))
        # Scores of all blocks would be eight times those of one.
        assert temporaries(1024) < 4 * (1024 // 8) ** 2 * 4 * 2


SOME = jax.random.normal(jax.random.key(0), (16, 16, 16)) / 4
PLACES = pytest.mark.parametrize(
    ("axes", "shape", "top_k"),
    [("experts", (8,), 1), ("experts", (4,), 2), ("data experts", (2, 4), 2)],
)


def rows_and_gate(dtype=jnp.float32):
    x = jax.random.normal(jax.random.key(1), (64, 16), dtype)
    gate = jax.random.normal(jax.random.key(3), (16, 16), dtype)
    # One expert gets no row, and one gets most.
    return x, gate.at[:, 0].set(0).at[:, 1].multiply(8)


def placed(axes, x, gate, weights):
    names = tuple(axes.split())
    return (
        jax.device_put(weights, jax.P("experts")),
        jax.device_put(gate, jax.P()),
        jax.device_put(x, jax.P(names)),
        "data" if "data" in names else None,
    )


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
@PLACES
def test_experts_with_enough_seats_lose_no_row(axes, shape, top_k, axis_type, dtype):
    (x, gate), some = rows_and_gate(dtype), SOME.astype(dtype)
    exact = stages.every_expert(some, gate, x, top_k)
    with mesh(axes, shape, axis_type):
        weights, columns, rows, batch_axis = placed(axes, x, gate, some)

        @functools.partial(jax.jit, static_argnames="capacity")
        def mixed(weights, columns, rows, capacity):
            return stages.capacity_experts(weights, columns, rows, capacity, top_k, batch_axis)

        found, lost = mixed(weights, columns, rows, len(x))
        few, lost_of_few = mixed(weights, columns, rows, 1)
    assert lost == 0
    close(found, exact, dtype)
    assert lost_of_few > 0
    if top_k == 1:
        # What has a seat is right, and what has none is zero.
        few = np.asarray(few)
        gone = np.all(few == 0, axis=1)
        assert gone.sum() == lost_of_few
        close(jnp.asarray(few[~gone]), exact[~gone], dtype)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
@PLACES
def test_ragged_experts_lose_no_row_and_have_the_gradients_of_one_device(
    axes, shape, top_k, axis_type, dtype
):
    (x, gate), some = rows_and_gate(dtype), SOME.astype(dtype)
    picked, _ = stages.chosen(gate, x, top_k)
    assert np.bincount(picked.ravel()).max() > 2 * picked.size / 16
    assert top_k > 1 or len(np.unique(picked)) < 16
    with mesh(axes, shape, axis_type):
        weights, columns, rows, batch_axis = placed(axes, x, gate, some)

        @jax.jit
        def mixed(weights, rows):
            send = stages.send_padded
            return stages.ragged_experts(weights, columns, rows, top_k, batch_axis, send)

        found = mixed(weights, rows)
        loss = lambda w, x: jnp.sum(jnp.sin(mixed(w, x)))  # noqa: E731
        gradients = jax.jit(jax.grad(loss, argnums=(0, 1)))(weights, rows)
    close(found, stages.every_expert(some, gate, x, top_k), dtype)
    whole = lambda w, x: jnp.sum(jnp.sin(stages.every_expert(w, gate, x, top_k)))  # noqa: E731
    for ours, expected in zip(gradients, jax.grad(whole, (0, 1))(some, x), strict=True):
        close(ours, expected, dtype)


def test_experts_without_a_column_of_the_gate_are_refused():
    x, gate = rows_and_gate()
    with mesh("experts"):
        for experts in (
            stages.ragged_experts,
            functools.partial(stages.capacity_experts, capacity=1),
        ):
            with pytest.raises(ValueError, match="among 7 experts, but there are weights of 16"):
                experts(SOME, gate[:, :7], x)


@pytest.mark.parametrize("top_k", [0, -1, 17])
def test_more_experts_than_there_are_or_none_are_refused(top_k):
    x, gate = rows_and_gate()
    sends = functools.partial(stages.ragged_experts, send=stages.send_padded)
    with mesh("experts"):
        placed_ones = placed("experts", x, gate, SOME)[:3]
        for experts in (
            stages.every_expert,
            sends,
            functools.partial(stages.capacity_experts, capacity=1),
            lambda weights, *of, **options: stages.balance_loss(gate, x, **options),
        ):
            for call in experts, jax.jit(experts, static_argnames="top_k"):
                with pytest.raises(ValueError, match=f"top_k is {top_k}: choose from 1 to 16"):
                    call(*placed_ones, top_k=top_k)


@pytest.mark.parametrize("capacity", [0, -1])
def test_experts_without_a_seat_are_refused(capacity):
    x, gate = rows_and_gate()
    with mesh("experts"), pytest.raises(ValueError, match=f"a capacity of {capacity}: give"):
        stages.capacity_experts(*placed("experts", x, gate, SOME)[:3], capacity)


def test_the_balance_loss_is_one_where_experts_have_as_much_to_do():
    even = jnp.eye(8) * 9
    assert stages.balance_loss(even, jnp.eye(8)) == pytest.approx(1)
    # All rows go to one expert, of which the gate is sure.
    assert stages.balance_loss(even, jnp.eye(8)[:1]) == pytest.approx(8, rel=0.01)


def test_a_ragged_collective_is_lowered_for_others_and_refused_by_a_cpu(raises_declared):
    x, gate = rows_and_gate()
    with mesh("experts"):
        sharded, rows = jax.device_put((SOME, x), jax.P("experts"))
        traced = jax.jit(stages.ragged_experts).trace(sharded, gate, rows)
        for platform in "tpu", "cuda":
            text = traced.lower(lowering_platforms=(platform,)).as_text()
            # The rows and their experts, and the results.
            assert text.count("@ragged_all_to_all(") == 3
        raises_declared(stages.send_ragged, sharded, gate, rows)


def test_seats_are_given_in_order_and_once():
    found = stages.seats(jnp.array([1, 0, 1, 1]), 2, 2)
    assert found.shape == (4, 2, 2)
    expected = np.zeros((4, 2, 2))
    expected[[0, 1, 2], [1, 0, 1], [0, 0, 1]] = 1
    np.testing.assert_array_equal(found, expected)
