import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snippets.learn import state


def test_the_object_counts_without_jit():
    counter = state.Counter()
    assert [int(counter.add(1)) for _ in range(3)] == [1, 2, 3]


def test_the_object_stops_counting_under_jit():
    counter = state.Counter()
    add = jax.jit(counter.add)
    assert [int(add(1)) for _ in range(3)] == [1, 1, 1]
    assert isinstance(counter.count, jax.core.Tracer)


def test_a_static_self_stops_counting_too():
    counter = state.Counter()
    add = jax.jit(state.Counter.add, static_argnums=0)
    assert [int(add(counter, 1)) for _ in range(3)] == [1, 1, 1]


@given(st.lists(st.integers(-100, 100), max_size=6))
@settings(deadline=None)
def test_a_count_passed_in_and_out_is_the_sum(numbers):
    count = jnp.zeros((), jnp.int32)
    for n in numbers:
        count = state.add(count, n)
    assert count == sum(numbers)


def test_a_registered_object_passes_through_jit():
    tally = start = state.Tally(jnp.zeros((), jnp.int32))
    assert start.add(1).count == 1
    for _ in range(3):
        tally = state.add_to_tally(tally, 2)
    assert isinstance(tally, state.Tally)
    assert tally.count == 6 and start.count == 0


def test_what_jit_assigns_to_a_registered_object_is_lost():
    tally = state.Tally(jnp.zeros((), jnp.int32))
    assert [int(state.assign_to_tally(tally, 1)) for _ in range(3)] == [1, 1, 1]
    assert tally.count == 0


def test_a_frozen_tally_refuses_the_assignment():
    frozen = dataclasses.dataclass(frozen=True)(
        type("Frozen", (), {"__annotations__": {"count": jax.Array}})
    )
    jax.tree_util.register_dataclass(frozen)
    # Of a shape that no other test has compiled for, or nothing would be traced.
    with pytest.raises(dataclasses.FrozenInstanceError):
        state.assign_to_tally(frozen(jnp.zeros(5, jnp.int16)), 1)


def test_a_module_of_torch_counts():
    torch_counter = state.TorchCounter()
    assert [int(torch_counter(1)) for _ in range(3)] == [1, 2, 3]


def start():
    params = state.first_params(2)
    return params, jax.tree.map(jnp.zeros_like, params)


def test_the_loss_equals_numpy():
    x = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
    params = {"w": jnp.array([1.0, -1.0]), "b": jnp.array(2.0)}
    expected = np.mean((x @ [1, -1] + 2 - np.array([0, 5])) ** 2)
    assert state.loss(params, (x, jnp.array([0, 5]))) == expected


def test_the_first_step_equals_the_closed_form():
    batch = np.array([[2.0, 0.0]], np.float32), np.array([3.0], np.float32)
    params, velocity, value = state.train_step(*start(), batch)
    assert value == 9
    np.testing.assert_allclose(velocity["w"], [-2 * 3 * 2, 0], rtol=1e-6)
    np.testing.assert_allclose(params["w"], [0.1 * 2 * 3 * 2, 0], rtol=1e-6)
    np.testing.assert_allclose(params["b"], 0.1 * 2 * 3, rtol=1e-6)


def test_loop_scan_and_torch_agree():
    batches = state.linear_batches(jax.random.key(0), steps=150)
    (params, opt_state), losses = start(), []
    for batch in zip(*batches, strict=True):
        params, opt_state, value = state.train_step(params, opt_state, batch)
        losses.append(float(value))
    scanned, velocity, of_scan = state.train_steps(*start(), batches)
    np.testing.assert_allclose(of_scan, losses, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(scanned["w"], params["w"], rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(velocity["w"], opt_state["w"], rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(scanned["w"], [3, -1], atol=0.02)
    np.testing.assert_allclose(scanned["b"], 1, atol=0.02)

    pairs = state.pairs_torch(batches)
    np.testing.assert_array_equal(pairs[149][1], batches[1][149])
    np.testing.assert_allclose(state.train_torch(pairs), losses, rtol=1e-3, atol=1e-4)


def test_a_step_leaves_the_old_state_as_it_was():
    batch = tuple(each[0] for each in state.linear_batches(jax.random.key(0), steps=1))
    params, opt_state = start()
    one, *_ = state.train_step(params, opt_state, batch)
    two, *_ = state.train_step(params, opt_state, batch)
    assert params["w"].tolist() == [0, 0]
    assert one["w"].tolist() == two["w"].tolist() != [0, 0]


def test_the_state_can_be_donated():
    batch = tuple(each[0] for each in state.linear_batches(jax.random.key(0), steps=1))
    params, opt_state = start()
    step = jax.jit(state.train_step, donate_argnums=(0, 1))
    step(params, opt_state, batch)
    assert all(leaf.is_deleted() for leaf in jax.tree.leaves((params, opt_state)))


def test_batches_follow_the_line():
    x, y = state.linear_batches(jax.random.key(0), steps=3, rows=5)
    assert x.shape == (3, 5, 2)
    np.testing.assert_allclose(y, 3 * x[..., 0] - x[..., 1] + 1, rtol=1e-6)
    assert pytest.approx(0.9) == state.MOMENTUM


def test_a_side_effect_happens_once_per_trace(monkeypatch):
    state.square_and_log.clear_cache()
    monkeypatch.setattr(state, "CALLS", [])
    assert [int(state.square_and_log(x)) for x in (1, 2, 3)] == [1, 4, 9]
    assert len(state.CALLS) == 1
    state.square_and_log(jnp.ones(3))
    assert len(state.CALLS) == 2


def test_a_count_that_is_passed_is_right():
    calls = 0
    for x in (1, 2, 3):
        square, calls = state.square_and_count(x, calls)
        assert square == x * x
    assert calls == 3
