"""Pipeline, context and expert parallelism, against the same on one device."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snippets.training import stages

WEIGHTS = jax.random.normal(jax.random.key(0), (8, 16, 16)) / 4


def mesh(axis):
    return jax.set_mesh(jax.make_mesh((8,), (axis,), devices=jax.devices("cpu")))


@pytest.mark.parametrize("microbatches", [1, 3, 8, 11])
def test_a_pipeline_computes_what_its_layers_do_in_a_row(microbatches):
    x = jax.random.normal(jax.random.key(1), (microbatches, 2, 16))
    with mesh("stages"):
        weights = jax.device_put(WEIGHTS, jax.P("stages"))
        found = jax.jit(stages.pipeline)(weights, x)
        gradient = jax.jit(jax.grad(lambda w: jnp.sum(jnp.sin(stages.pipeline(w, x)))))(weights)
    np.testing.assert_allclose(found, stages.in_a_row(WEIGHTS, x), rtol=1e-4, atol=1e-5)
    expected = jax.grad(lambda w: jnp.sum(jnp.sin(stages.in_a_row(w, x))))(WEIGHTS)
    np.testing.assert_allclose(gradient, expected, rtol=1e-3, atol=1e-4)


def test_the_idle_share_is_counted():
    # Of three stages and four microbatches: six iterations, in which each stage has four.
    busy = [sum(0 <= tick - stage < 4 for tick in range(6)) for stage in range(3)]
    assert busy == [4, 4, 4]
    assert stages.idle_share(3, 4) == pytest.approx(1 - 4 / 6)


def test_attention_in_a_ring_is_attention():
    query, key, value = 3 * jax.random.normal(jax.random.key(2), (3, 32, 16))
    with mesh("time"):
        q, k, v = jax.device_put([query, key, value], jax.P("time"))
        found = jax.jit(stages.ring_attention)(q, k, v)
        gradient = jax.jit(jax.grad(lambda k: jnp.sum(stages.ring_attention(q, k, v) ** 2)))(k)
    np.testing.assert_allclose(found, stages.attention(query, key, value), rtol=1e-4, atol=1e-5)
    expected = jax.grad(lambda k: jnp.sum(stages.attention(query, k, value) ** 2))(key)
    np.testing.assert_allclose(gradient, expected, rtol=1e-3, atol=1e-4)


def test_experts_with_enough_seats_lose_no_token():
    x = jax.random.normal(jax.random.key(1), (64, 16))
    gate = jax.random.normal(jax.random.key(3), (16, 8))
    exact = stages.every_expert(WEIGHTS, gate, x)
    with mesh("experts"):
        sharded, rows = jax.device_put((WEIGHTS, x), jax.P("experts"))
        found, lost = jax.jit(stages.experts_by(8))(sharded, gate, rows)
        few, lost_of_few = jax.jit(stages.experts_by(1))(sharded, gate, rows)
    assert lost == 0
    np.testing.assert_allclose(found, exact, rtol=1e-4, atol=1e-5)
    # What has a seat is right, and what has none is zero.
    few = np.asarray(few)
    gone = np.all(few == 0, axis=1)
    assert gone.sum() == lost_of_few > 0
    np.testing.assert_allclose(few[~gone], exact[~gone], rtol=1e-4, atol=1e-5)


def experts():
    x = jax.random.normal(jax.random.key(1), (64, 16))
    return x, jax.random.normal(jax.random.key(3), (16, 8))


def test_ragged_experts_lose_no_token_and_have_the_gradients_of_one_device():
    x, gate = experts()
    # One expert gets no token, and one gets most.
    gate = gate.at[:, 0].set(0).at[:, 1].multiply(8)
    chosen, _ = stages.chosen(gate, x)
    assert len(set(chosen.tolist())) < 8 and np.bincount(chosen).max() > 16
    mixed = jax.jit(stages.ragged_experts(stages.send_padded))
    with mesh("experts"):
        sharded, rows = jax.device_put((WEIGHTS, x), jax.P("experts"))
        found = mixed(sharded, gate, rows)
        loss = lambda w, x: jnp.sum(jnp.sin(mixed(w, gate, x)))  # noqa: E731
        gradients = jax.jit(jax.grad(loss, argnums=(0, 1)))(sharded, rows)
    np.testing.assert_allclose(found, stages.every_expert(WEIGHTS, gate, x), rtol=1e-4, atol=1e-5)
    whole = lambda w, x: jnp.sum(jnp.sin(stages.every_expert(w, gate, x)))  # noqa: E731
    for ours, expected in zip(gradients, jax.grad(whole, (0, 1))(WEIGHTS, x), strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-3, atol=1e-4)


def test_a_ragged_collective_is_lowered_for_others_and_refused_by_a_cpu(raises_declared):
    x, gate = experts()
    with mesh("experts"):
        sharded, rows = jax.device_put((WEIGHTS, x), jax.P("experts"))
        traced = jax.jit(stages.ragged_experts(jax.lax.ragged_all_to_all)).trace(
            sharded, gate, rows
        )
        for platform in "tpu", "cuda":
            text = traced.lower(lowering_platforms=(platform,)).as_text()
            assert text.count("@ragged_all_to_all(") == 2
        raises_declared(stages.send_ragged, sharded, gate, rows)


def test_seats_are_given_in_order_and_once():
    found = stages.seats(jnp.array([1, 0, 1, 1]), 2, 2)
    assert found.shape == (4, 2, 2)
    expected = np.zeros((4, 2, 2))
    expected[[0, 1, 2], [1, 0, 1], [0, 0, 1]] = 1
    np.testing.assert_array_equal(found, expected)
