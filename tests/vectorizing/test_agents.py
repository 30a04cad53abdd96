"""Agents against Lagrange's equations, Python loops and PyTorch."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from snippets.models.steps import gradient_of
from snippets.vectorizing import agents

KEY = jax.random.key(0)


def lagrange(motion, force):
    """Solve the equations of motion of a cart and a uniform pole, in float64."""
    _, _, angle, spin = motion
    mass, pole, half = 1.1, 0.1, 0.5
    coupled = pole * half * np.cos(angle)
    inertia = np.array([[mass, coupled], [coupled, 4 / 3 * pole * half**2]])
    forces = force + pole * half * spin**2 * np.sin(angle), pole * 9.8 * half * np.sin(angle)
    return np.linalg.solve(inertia, forces)


def test_a_policy_acts_alike_in_both_frameworks():
    params = agents.init_agent(KEY)
    both = agents.rollouts(params, 256)
    (_, moves), in_torch = both["jit@jax"](), both["eager@torch"]()
    for name in ("before", "after", "action", "log_p", "terminated", "truncated", "reward"):
        assert tuple(in_torch[name].shape) == jnp.shape(moves[name])
    ended = [int((each["terminated"] | each["truncated"]).sum()) for each in (moves, in_torch)]
    # Some 1,500 episodes end in each, of other draws.
    assert abs(ended[0] / ended[1] - 1) < 0.1
    again = torch.tensor(np.array(moves["before"][0]))
    np.testing.assert_array_equal(in_torch["before"][0], again)


@pytest.mark.parametrize("xp", [np, jnp, torch])
def test_the_accelerations_solve_lagranges_equations(xp):
    for motion in np.random.default_rng(0).normal(size=(20, 4)):
        if xp is torch:
            motion = torch.tensor(motion)
        found = agents.accelerations(motion, 10.0, xp)
        np.testing.assert_allclose(
            found, lagrange(np.asarray(motion.tolist()), 10.0), rtol=1e-4, atol=1e-5
        )


@pytest.mark.parametrize("action", [0, 1])
def test_a_step_is_one_of_euler(action):
    for motion in np.random.default_rng(1).uniform(-0.1, 0.1, (10, 4)):
        state = {"motion": jnp.float32(motion), "time": jnp.int32(3)}
        again, move = agents.step(KEY, state, action)
        cart, pole = lagrange(motion, 20 * action - 10)
        expected = motion + 0.02 * np.array([motion[1], cart, motion[3], pole])
        np.testing.assert_allclose(move["after"], expected, rtol=1e-4, atol=1e-6)
        np.testing.assert_array_equal(again["motion"], move["after"])
        assert again["time"] == 4 == move["time"]


@pytest.mark.parametrize(
    ("where", "value", "time", "ends"),
    [
        (0, 2.5, 3, "terminated"),
        (0, -2.5, 3, "terminated"),
        (2, 0.22, 3, "terminated"),
        (2, -0.22, 3, "terminated"),
        (0, 0.0, 499, "truncated"),
        (0, 2.5, 499, "terminated"),
        (2, 0.2, 3, None),
    ],
)
def test_an_episode_ends_once_and_the_next_begins(where, value, time, ends):
    motion = np.zeros(4, np.float32)
    motion[where] = value
    state = {"motion": jnp.array(motion), "time": jnp.int32(time)}
    for run in agents.step, jax.jit(agents.step):
        again, move = run(KEY, state, 1)
        said = [name for name in ("terminated", "truncated") if move[name]]
        assert said == ([ends] if ends else [])
        expected = agents.first_state(KEY) if ends else {"motion": move["after"], "time": time + 1}
        jax.tree.map(np.testing.assert_array_equal, again, expected)
        assert abs(move["after"][where] - value) < 0.01
    with pytest.raises(ValueError, match=r"use jax\.vmap"):
        agents.step(KEY, jax.tree.map(lambda x: jnp.stack([x, x]), state), 1)


def start(count, steps, key=KEY):
    """Return params and the moves of a rollout, and the key of the rollout."""
    keys = jax.random.split(key, 3)
    params = agents.init_agent(keys[0])
    states = jax.vmap(agents.first_state)(jax.random.split(keys[1], count))
    run = jax.jit(agents.rollout, static_argnames="steps")
    states, moves = run(keys[2], params, states, steps=steps)
    return params, states, moves, keys[2]


@pytest.mark.parametrize(("count", "steps"), [(1, 60), (5, 40)])
def test_a_rollout_is_a_loop_over_environments_and_steps(count, steps):
    params, _, moves, key = start(count, steps)
    keys = jax.random.split(key, (steps, count))
    one = jax.jit(functools.partial(agents.rollout, steps=1))
    for n in range(count):
        state = {"motion": moves["before"][0, n], "time": jnp.int32(0)}
        for t in range(steps):
            reset = jax.random.split(keys[t, n])[1]
            np.testing.assert_allclose(state["motion"], moves["before"][t, n], atol=1e-6)
            state, move = agents.step(reset, state, moves["action"][t, n])
            assert move["terminated"] == moves["terminated"][t, n]
    assert moves["terminated"].any()
    assert one(KEY, params, jax.tree.map(lambda x: x[None], state))[1]["action"].shape == (1, 1)


def test_environments_differ_and_one_key_makes_them_equal():
    _, states, moves, _ = start(8, 64)
    assert len(np.unique(moves["before"][-1], axis=0)) == 8
    shared = jax.vmap(agents.first_state, in_axes=None, axis_size=8)
    with jax.debug_key_reuse(True):
        assert len(np.unique(shared(KEY)["motion"], axis=0)) == 1
    ended = moves["terminated"] | moves["truncated"]
    assert (states["time"] == 0).tolist() == ended[-1].tolist()


@pytest.mark.parametrize("discount", [0.99, 1.0])
@pytest.mark.parametrize("decay", [0.0, 0.95, 1.0])
def test_advantages_are_sums_within_an_episode(discount, decay):
    rng = np.random.default_rng(0)
    fell, late = rng.random((2, 50, 3)) < 0.1
    late &= ~fell
    reward, values, later = rng.normal(size=(3, 50, 3)).astype(np.float32)
    moves = {"reward": reward, "terminated": fell, "truncated": late}
    error = reward + discount * np.where(fell, 0, later) - values
    expected = np.zeros((50, 3))
    for n in range(3):
        for t in range(50):
            for k in range(t, 50):
                expected[t, n] += (discount * decay) ** (k - t) * error[k, n]
                if fell[k, n] or late[k, n]:
                    break
    found = jax.jit(agents.advantages)(moves, values, later, discount, decay)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    tensors = agents.to_torch(moves)
    again = agents.torch_advantages(
        tensors, torch.tensor(values), torch.tensor(later), discount, decay
    )
    np.testing.assert_allclose(again, expected, rtol=1e-4, atol=1e-4)


def test_a_truncation_keeps_the_value_of_the_last_observation():
    late = (jnp.arange(30) % 10 == 9)[:, None]
    values, never = jnp.full((30, 1), 100.0), jnp.zeros((30, 1), bool)
    right = {"reward": 1.0, "terminated": never, "truncated": late}
    wrong = {"reward": 1.0, "terminated": late, "truncated": never}
    np.testing.assert_allclose(agents.advantages(right, values, values), 0, atol=1e-4)
    assert agents.advantages(wrong, values, values).min() == pytest.approx(-99, abs=1e-3)


@pytest.mark.parametrize("moved", [0.0, 0.5])
def test_pytorch_gets_equal_returns_advantages_and_gradients(moved):
    params, _, moves, key = start(8, 100)
    known = agents.judged(params, moves)
    known["log_p"] += moved * jax.random.normal(KEY, known["log_p"].shape)
    fresh = np.array(agents.fresh_states(key, 100, 8))
    again, policy, value = agents.torch_batch(params, known, fresh)
    for name in "before", "after", "target", "advantage":
        np.testing.assert_allclose(known[name], again[name], rtol=1e-4, atol=1e-4)
    for name in "terminated", "truncated":
        np.testing.assert_array_equal(known[name], again[name])
    flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), known)
    (loss, _), grads = gradient_of(agents.clipped_loss)(params, {}, flat)
    tensors = {name: x.flatten(0, 1) for name, x in again.items()}
    assert float(loss) == pytest.approx(
        agents.torch_loss(policy, value, tensors).item(), rel=1e-4, abs=1e-4
    )
    expected = agents.torch_gradients(policy, value, again)
    errors = jax.tree.map(agents.largest_error, grads, expected)
    assert max(jax.tree.leaves(errors)) < 1e-4
    ratio = np.exp(-np.array(known["log_p"] - moves["log_p"]))
    assert (abs(ratio - 1) > 0.2).any() == bool(moved)


def test_minibatches_that_do_not_divide_are_refused():
    params, states, _, _ = start(3, 1)
    state = params, agents.OPTIMIZER.init(params), states
    with pytest.raises(ValueError, match="768 moves do not divide into rows of 500"):
        agents.improve(state, KEY, steps=256, size=500)


def test_an_agent_learns():
    _, (count, total) = agents.learn(KEY, updates=20)
    first, last = (total[part].sum() / count[part].sum() for part in (slice(0, 2), slice(-4, None)))
    assert first < 60
    assert last > 3 * first
