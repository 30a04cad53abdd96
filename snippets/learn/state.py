"""State inside objects beside state that is passed in and out."""

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
import torch

RATE = 0.1
MOMENTUM = 0.9
CALLS = []


@jax.jit
def square_and_log(x):
    """Return x² and note the call in the global list CALLS."""
    CALLS.append("called")
    return x * x


@jax.jit
def square_and_count(x, calls):
    """Return x² and the number of calls so far, this one included."""
    return x * x, calls + 1


class Counter:
    """A counter that keeps its count in itself."""

    def __init__(self):
        self.count = jnp.zeros((), jnp.int32)

    def add(self, n):
        """Add `n` and return the new count."""
        self.count = self.count + n
        return self.count


@jax.jit
def add(count, n):
    """Return the new count."""
    return count + n


@jax.tree_util.register_dataclass
@dataclass
class Tally:
    """A counter that may pass through `jit`: a pytree of one array ()."""

    count: jax.Array

    def add(self, n):
        """Return a tally that is `n` higher."""
        return replace(self, count=self.count + n)


@jax.jit
def add_to_tally(tally, n):
    """Return the tally after `n` more."""
    return tally.add(n)


@jax.jit
def assign_to_tally(tally, n):
    """Assign to the tally, and return its count."""
    tally.count = tally.count + n
    return tally.count


class TorchCounter(torch.nn.Module):
    """A counter as a torch module keeps it: in a buffer."""

    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros((), dtype=torch.int32))

    def forward(self, n):
        """Add `n` and return a copy of the new count."""
        self.count += n
        return self.count.clone()


def first_params(features):
    """Return a weight for each feature and a bias, all zero."""
    return {"w": jnp.zeros(features), "b": jnp.zeros(())}


def loss(params, batch):
    """Return the mean squared error on x (rows, features) and y (rows,)."""
    x, y = batch
    return jnp.mean((x @ params["w"] + params["b"] - y) ** 2)


@jax.jit
def train_step(params, opt_state, batch):
    """Return params and velocities after a step, and the loss before it."""
    value, grads = jax.value_and_grad(loss)(params, batch)
    opt_state = jax.tree.map(lambda v, g: MOMENTUM * v + g, opt_state, grads)
    params = jax.tree.map(lambda p, v: p - RATE * v, params, opt_state)
    return params, opt_state, value


def train_steps(params, opt_state, batches):
    """Do a step for each batch along the first axis, in one compiled loop."""

    def step(state, batch):
        params, opt_state, value = train_step(*state, batch)
        return (params, opt_state), value

    state, losses = jax.lax.scan(step, (params, opt_state), batches)
    return *state, losses


def pairs_torch(batches):
    """Return a list of the x and y of each batch as torch tensors."""
    return list(
        zip(*(torch.tensor(np.array(b)) for b in batches), strict=True)
    )


def train_torch(batches):
    """Train with a torch module and optimizer; return the losses (steps,)."""
    model = torch.nn.Linear(batches[0][0].shape[1], 1)
    torch.nn.init.zeros_(model.weight)
    torch.nn.init.zeros_(model.bias)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=MOMENTUM)
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        loss = ((model(x)[:, 0] - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses).numpy()


def linear_batches(key, steps, rows=8):
    """Draw batches: x (steps, rows, 2), y = 3 x₀ - x₁ + 1 (steps, rows)."""
    x = jax.random.normal(key, (steps, rows, 2))
    return x, 3 * x[..., 0] - x[..., 1] + 1
