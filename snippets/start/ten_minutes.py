"""A first regression in three frameworks; then grad, jit and vmap on it."""

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
import torch

from snippets.devices.arrays import COLOURS, label, picture

EXPECTED_ERRORS = {
    "write_first": (TypeError, "JAX arrays are immutable"),
}


def write_first(x):
    """Write 1 to the first element; raises TypeError for a JAX array."""
    x[0] = 1
    return x


def noisy_curve(count):
    """Return random x, and sin(2x) with noise: float32, (count, 1)."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, (count, 1))
    y = np.sin(2 * x) + 0.1 * rng.standard_normal((count, 1))
    return x.astype(np.float32), y.astype(np.float32)


def first_weights(hidden):
    """Return float32 weights for one hidden layer and inputs of size 1."""
    rng = np.random.default_rng(1)
    weights = {
        "w1": rng.standard_normal((1, hidden)),
        "b1": rng.standard_normal(hidden),
        "w2": rng.standard_normal((hidden, 1)) / hidden**0.5,
        "b2": np.zeros(1),
    }
    return {name: w.astype(np.float32) for name, w in weights.items()}


def loss_torch(params, batch):
    """Return the mean squared error on a batch of x and y, both (count, 1)."""
    x, y = batch
    hidden = torch.tanh(x @ params["w1"] + params["b1"])
    return ((hidden @ params["w2"] + params["b2"] - y) ** 2).mean()


def train_step_torch(params, batch, rate):
    """Change `params` by a gradient step; return the loss before it."""
    loss = loss_torch(params, batch)
    loss.backward()
    with torch.no_grad():
        for p in params.values():
            p -= rate * p.grad
            p.grad = None
    return loss.detach()


def in_torch(weights, batch):
    """Return NumPy arrays as tensors, on the accelerator if there is one."""
    found = torch.accelerator.current_accelerator(check_available=True)

    def tensor(array):
        return torch.tensor(np.asarray(array), device=found or "cpu")

    params = {name: tensor(w).requires_grad_() for name, w in weights.items()}
    return params, tuple(map(tensor, batch))


def train_torch(weights, batch, steps, rate):
    """Return the loss before each step, (steps,); all arrays are NumPy's."""
    params, batch = in_torch(weights, batch)
    losses = [train_step_torch(params, batch, rate) for _ in range(steps)]
    return torch.stack(losses).cpu().numpy()


def loss_tensorflow(params, batch):
    """Return the mean squared error on a batch of x and y, both (count, 1)."""
    x, y = batch
    hidden = tf.tanh(x @ params["w1"] + params["b1"])
    return tf.reduce_mean((hidden @ params["w2"] + params["b2"] - y) ** 2)


def train_step_tensorflow(params, batch, rate):
    """Change `params` by a gradient step; return the loss before it."""
    with tf.GradientTape() as tape:
        loss = loss_tensorflow(params, batch)
    grads = tape.gradient(loss, params)
    for name, p in params.items():
        p.assign_sub(rate * grads[name])
    return loss


def in_tensorflow(weights, batch):
    """Return NumPy arrays as tensors, and the weights as variables."""
    params = {name: tf.Variable(w) for name, w in weights.items()}
    return params, tuple(map(tf.constant, batch))


def train_tensorflow(weights, batch, steps, rate):
    """Return the loss before each step, (steps,); all arrays are NumPy's."""
    params, batch = in_tensorflow(weights, batch)
    losses = [train_step_tensorflow(params, batch, rate) for _ in range(steps)]
    return tf.stack(losses).numpy()


def loss(params, batch):
    """Return the mean squared error on a batch of x and y, both (count, 1)."""
    x, y = batch
    hidden = jnp.tanh(x @ params["w1"] + params["b1"])
    return ((hidden @ params["w2"] + params["b2"] - y) ** 2).mean()


@jax.jit(donate_argnames="params")
def train_step(params, batch, rate):
    """Return new params after a step of gradient descent, and the loss before.

    The arrays of `params` are donated: they are gone after the call.
    """
    value, grads = jax.value_and_grad(loss)(params, batch)
    params = {name: p - rate * grads[name] for name, p in params.items()}
    return params, value


def train(weights, batch, steps, rate):
    """Return the last params, and the loss before each step, (steps,)."""
    params, batch = jax.tree.map(jnp.array, (weights, batch))
    losses = []
    for _ in range(steps):
        params, value = train_step(params, batch, rate)
        losses.append(value)
    return params, np.array(losses)


def draw_fit(batch, xs, ys):
    """Draw the points of a batch, and a curve through xs and ys, (n, 1)."""

    def places(x, y):
        right = np.ravel(40 + 100 * (np.asarray(x) + 2)).round().astype(int)
        down = np.ravel(130 - 80 * np.asarray(y)).round().astype(int)
        return zip(right, down, strict=True)

    look = 'fill="none" stroke="currentColor" opacity=".3"'
    parts = [f'<path d="M40 130H440M240 10V250" {look}/>']
    parts += [label(40 + 100 * (x + 2), 146, x) for x in (-2, -1, 1, 2)]
    parts += [label(232, 135 - 80 * y, y, "end") for y in (-1, 1)]
    parts += [
        f'<circle cx="{x}" cy="{y}" r="2" fill="{COLOURS[7]}"/>'
        for x, y in places(*batch)
    ]
    curve = " ".join(f"{x},{y}" for x, y in places(xs, ys))
    look = f'fill="none" stroke="{COLOURS[1]}" stroke-width="3"'
    parts.append(f'<polyline points="{curve}" {look}/>')
    some = range(0, len(xs), max(1, len(xs) // 8))
    values = ", ".join(f"{ys[i, 0]:.1f} at {xs[i, 0]:.1f}" for i in some)
    meaning = f"{len(batch[0])} points, and a curve: {values}"
    return picture(480, 260, parts, meaning)


step_rates = jax.jit(
    jax.vmap(train_step, in_axes=(0, None, 0)), donate_argnums=0
)


def copies(params, count):
    """Return `count` copies of each array, along a new first axis."""
    return jax.tree.map(lambda p: jnp.stack([p] * count), params)
