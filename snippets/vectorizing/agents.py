"""Agents: a simulator that resets itself, and PPO in one program."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import optax
import torch
from jax import lax

from snippets.models.optimizers import torch_mlp
from snippets.models.steps import gradient_of, init_mlp, make_step, mlp

GRAVITY = 9.8
CART = 1.0
POLE = 0.1
HALF = 0.5
FORCE = 10.0
SECONDS = 0.02
LIMIT = 500


def accelerations(motion, force, xp=jnp):
    """Return the accelerations of the cart and of the angle.

    `motion` is position (m), velocity, angle from upright (rad) and its
    velocity, each of any shape; the force is in N. Source: Barto, Sutton and
    Anderson, 1983, "Neuronlike adaptive elements that can solve difficult
    learning control problems", appendix, here without friction. `xp` is
    `jax.numpy`, `numpy` or `torch`.
    """
    _, _, angle, spin = motion
    sine, cosine, mass = xp.sin(angle), xp.cos(angle), CART + POLE
    push = (force + POLE * HALF * spin**2 * sine) / mass
    inertia = HALF * (4 / 3 - POLE * cosine**2 / mass)
    angular = (GRAVITY * sine - cosine * push) / inertia
    return push - POLE * HALF * angular * cosine / mass, angular


def first_state(key):
    """Return an upright pole: motion float32 (4,), time int32 ()."""
    motion = jax.random.uniform(key, 4, minval=-0.05, maxval=0.05)
    return {"motion": motion, "time": jnp.int32(0)}


def step(key, state, action):
    """Push the cart left (0) or right (1); return a state and a move.

    If the episode ends, the state is the first of the next episode.
    ValueError where the state is of several environments.
    """
    x, time = state["motion"], state["time"] + 1
    if x.shape != (4,):
        raise ValueError(f"motion is {x.shape}, not (4,): use jax.vmap")
    cart, pole = accelerations(x, FORCE * (2 * action - 1))
    after = x + SECONDS * jnp.stack([x[1], cart, x[3], pole])
    fell = (abs(after[0]) > 2.4) | (abs(after[2]) > jnp.radians(12))
    late = ~fell & (time == LIMIT)
    state = jax.tree.map(
        lambda new, old: jnp.where(fell | late, new, old),
        first_state(key),
        {"motion": after, "time": time},
    )
    move = {"before": x, "after": after, "reward": 1.0, "time": time}
    return state, move | {"terminated": fell, "truncated": late}


def rollout(key, params, states, steps):
    """Let the policy act in each environment for `steps` steps.

    `states` are those of n environments. Returns new ones, and the moves:
    arrays (steps, n, ...).
    """

    def act(key, state):
        draw, reset = jax.random.split(key)
        logits = jax.nn.log_softmax(mlp(params["policy"], state["motion"]))
        action = jax.random.categorical(draw, logits)
        state, move = step(reset, state, action)
        return state, move | {"action": action, "log_p": logits[action]}

    def together(states, keys):
        return jax.vmap(act)(keys, states)

    keys = jax.random.split(key, (steps, len(states["time"])))
    return lax.scan(together, states, keys)


def advantages(moves, values, later_values, discount=0.99, decay=0.95):
    """Return the advantages (steps, n) of moves, by a scan backward in time.

    The values (steps, n) are those before and after each move. Source:
    Schulman et al., 2016, "High-dimensional continuous control using
    generalized advantage estimation", equation 16.
    """
    later = jnp.where(moves["terminated"], 0, later_values)
    error = moves["reward"] + discount * later - values
    ended = moves["terminated"] | moves["truncated"]

    def back(advantage, at):
        error, ended = at
        advantage = error + discount * decay * jnp.where(ended, 0, advantage)
        return advantage, advantage

    start = jnp.zeros_like(error[0])
    return lax.scan(back, start, (error, ended), reverse=True)[1]


def clipped_loss(params, stats, batch):
    """Return PPO's loss, added up over the rows of a batch of moves.

    Source: Schulman et al., 2017, "Proximal policy optimization algorithms",
    equations 7 and 9, with a clip of 0.2 and an entropy bonus of 0.01.
    """
    logits = jax.nn.log_softmax(mlp(params["policy"], batch["before"]))
    action = batch["action"][:, None]
    chosen = jnp.take_along_axis(logits, action, axis=1)[:, 0]
    ratio, advantage = jnp.exp(chosen - batch["log_p"]), batch["advantage"]
    bounded = jnp.clip(ratio, 0.8, 1.2)
    gain = jnp.minimum(ratio * advantage, bounded * advantage)
    value = mlp(params["value"], batch["before"])[:, 0]
    error = (value - batch["target"]) ** 2 / 2
    entropy = -(jnp.exp(logits) * logits).sum(axis=1)
    return (error - gain - 0.01 * entropy).sum(), (len(gain), stats)


OPTIMIZER = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(1e-3))


def judged(params, moves):
    """Return the moves with an advantage and a target of the value."""
    values, later = (
        mlp(params["value"], moves[name])[..., 0]
        for name in ("before", "after")
    )
    advantage = advantages(moves, values, later)
    scaled = jax.nn.standardize(advantage, axis=None)
    return moves | {"advantage": scaled, "target": values + advantage}


def take_minibatch(state, batch):
    """Train on a minibatch; `state` is params and opt_state."""
    train_step = make_step(gradient_of(clipped_loss), OPTIMIZER)
    params, _, opt_state, loss = train_step(state[0], {}, state[1], batch)
    return (params, opt_state), loss


def improve(state, key, steps=128, epochs=4, size=256):
    """Roll out, train on shuffled minibatches, and count what ended.

    `state` is params, opt_state and the states of n environments. Also
    returns the number of ended episodes, and the sum of their lengths.
    ValueError where `size` doesn't divide steps * n.
    """
    keys = jax.random.split(key, epochs + 1)
    states, moves = rollout(keys[0], state[0], state[2], steps)
    rows = moves["reward"].size
    if rows % size:
        raise ValueError(f"{rows} moves do not divide into rows of {size}")
    flat = jax.tree.map(
        lambda x: x.reshape(rows, *x.shape[2:]), judged(state[0], moves)
    )

    def epoch(trained, key):
        order = jax.random.permutation(key, rows).reshape(-1, size)
        batches = jax.tree.map(lambda x: x[order], flat)
        return lax.scan(take_minibatch, trained, batches)

    trained, _ = lax.scan(epoch, state[:2], keys[1:])
    ended = moves["terminated"] | moves["truncated"]
    lengths = jnp.where(ended, moves["time"], 0)
    return (*trained, states), (ended.sum(), lengths.sum())


def init_agent(key):
    """Return the parameters of a policy and of a value."""
    keys = jax.random.split(key)
    sizes = {"policy": (4, 64, 64, 2), "value": (4, 64, 64, 1)}
    return {
        name: init_mlp(own, sizes[name])
        for own, name in zip(keys, sizes, strict=True)
    }


@jax.jit(static_argnames=("updates", "count"))
def learn(key, updates, count=16):
    """Train an agent in `count` environments.

    Returns its parameters, and for each update how many episodes ended and
    the sum of their lengths.
    """
    keys = jax.random.split(key, 3)
    params = init_agent(keys[0])
    states = jax.vmap(first_state)(jax.random.split(keys[1], count))
    state = params, OPTIMIZER.init(params), states
    (params, *_), ended = lax.scan(
        improve, state, jax.random.split(keys[2], updates)
    )
    return params, ended


def fresh_states(key, steps, count):
    """Return the first states that `rollout` drew: motion (steps, n, 4)."""
    keys = jax.random.split(key, (steps, count))
    resets = jax.vmap(jax.vmap(jax.random.split))(keys)[..., 1]
    return jax.vmap(jax.vmap(first_state))(resets)["motion"]


class TorchPoles:
    """Carts in eager PyTorch: motion float32 (n, 4), time int64 (n,)."""

    def __init__(self, motion):
        self.motion = motion
        self.time = torch.zeros(len(motion), dtype=torch.int64)

    def step(self, actions, fresh):
        """Push each cart; an ended episode goes on from `fresh` (n, 4)."""
        before, x = self.motion, self.motion.T
        cart, pole = accelerations(x, FORCE * (2 * actions - 1), torch)
        speeds = torch.stack([x[1], cart, x[3], pole], dim=1)
        after = before + SECONDS * speeds
        self.time = self.time + 1
        fell = after[:, 0].abs() > 2.4
        fell = fell | (after[:, 2].abs() > math.radians(12))
        late = ~fell & (self.time == LIMIT)
        ended = fell | late
        self.motion = torch.where(ended[:, None], fresh, after)
        self.time = torch.where(ended, 0, self.time)
        move = {"before": before, "after": after}
        return move | {"terminated": fell, "truncated": late}


def torch_rollout(poles, actions, fresh):
    """Replay actions (steps, n); return the moves, stacked over time."""
    moves = [
        poles.step(*at) | {"reward": torch.ones(len(poles.time))}
        for at in zip(actions, fresh, strict=True)
    ]
    return {name: torch.stack([m[name] for m in moves]) for name in moves[0]}


@torch.no_grad()
def torch_acting(policy, motion, steps):
    """Let a module act as `rollout` does, from motion float32 (n, 4).

    Returns the moves, stacked over time.
    """
    poles, moves = TorchPoles(motion), []
    for _ in range(steps):
        logits = policy(poles.motion).log_softmax(1)
        action = torch.multinomial(logits.exp(), 1)
        fresh = torch.rand(motion.shape) * 0.1 - 0.05
        move = poles.step(action[:, 0], fresh)
        log_p = logits.gather(1, action)[:, 0]
        move |= {"reward": torch.ones(len(motion))}
        moves.append(move | {"action": action[:, 0], "log_p": log_p})
    return {name: torch.stack([m[name] for m in moves]) for name in moves[0]}


def rollouts(params, count, steps=128):
    """Return functions of both frameworks that run a rollout.

    Each lets the policy of `params` act in `count` environments.
    """
    keys = jax.random.split(jax.random.key(0), count + 1)
    starts = jax.vmap(first_state)(keys[1:])
    policy = torch_mlp(params["policy"])
    motion = torch.tensor(np.array(starts["motion"]))
    compiled = jax.jit(rollout, static_argnames="steps")
    return {
        "jit@jax": lambda: compiled(keys[0], params, starts, steps=steps),
        "eager@torch": lambda: torch_acting(policy, motion, steps),
    }


def torch_advantages(moves, values, later, discount=0.99, decay=0.95):
    """Return what `advantages` does, by a loop backward in time."""
    later = torch.where(moves["terminated"], 0, later)
    error = moves["reward"] + discount * later - values
    ended = moves["terminated"] | moves["truncated"]
    advantage, found = torch.zeros_like(error[0]), []
    for at in reversed(range(len(error))):
        going = torch.where(ended[at], 0, advantage)
        advantage = error[at] + discount * decay * going
        found.append(advantage)
    return torch.stack(found[::-1])


def torch_loss(policy, value, batch):
    """Return the mean of what `clipped_loss` adds up, for two modules."""
    logits = policy(batch["before"]).log_softmax(1)
    chosen = logits.gather(1, batch["action"][:, None])[:, 0]
    ratio = (chosen - batch["log_p"]).exp()
    gain = torch.minimum(
        ratio * batch["advantage"],
        ratio.clamp(0.8, 1.2) * batch["advantage"],
    )
    error = (value(batch["before"])[:, 0] - batch["target"]) ** 2 / 2
    entropy = -(logits.exp() * logits).sum(1)
    return (error - gain - 0.01 * entropy).mean()


def to_torch(tree):
    """Return a dict of arrays as tensors; integers become int64."""
    tensors = {name: torch.tensor(np.array(x)) for name, x in tree.items()}
    return {
        name: x.long() if x.dtype == torch.int32 else x
        for name, x in tensors.items()
    }


def torch_batch(params, moves, fresh):
    """Replay the moves of a rollout in PyTorch; return moves and modules.

    The moves (steps, n, ...) have the advantage and the target of `judged`.
    """
    policy, value = map(torch_mlp, (params["policy"], params["value"]))
    known = to_torch(moves)
    poles = TorchPoles(known["before"][0])
    again = torch_rollout(poles, known["action"], torch.tensor(fresh))
    with torch.no_grad():
        values, later = (
            value(again[name])[..., 0] for name in ("before", "after")
        )
    advantage = torch_advantages(again, values, later)
    scaled = (advantage - advantage.mean()) / advantage.std(correction=0)
    again |= {"advantage": scaled, "target": values + advantage}
    return known | again, policy, value


def torch_gradients(policy, value, moves):
    """Return PyTorch's gradients of the loss, laid out as the parameters."""
    batch = {name: x.flatten(0, 1) for name, x in moves.items()}
    torch_loss(policy, value, batch).backward()

    def layers(module):
        linear = [part for part in module if hasattr(part, "weight")]
        return [
            {
                "kernel": part.weight.grad.T.numpy(),
                "bias": part.bias.grad.numpy(),
            }
            for part in linear
        ]

    return {"policy": layers(policy), "value": layers(value)}


def largest_error(found, expected):
    """Return the largest difference, relative to the largest element."""
    found, expected = np.asarray(found), np.asarray(expected)
    return float(abs(found - expected).max() / abs(expected).max())
