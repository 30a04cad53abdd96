"""A first regression in three frameworks; then grad, jit and vmap on it."""

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
import torch

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


def loss_torch(params, x, y):
    """Return the mean squared error on `x` and `y`, both (count, 1)."""
    hidden = torch.tanh(x @ params["w1"] + params["b1"])
    return ((hidden @ params["w2"] + params["b2"] - y) ** 2).mean()


def step_torch(params, x, y, rate):
    """Change `params` by one step of descent; return the loss before."""
    loss = loss_torch(params, x, y)
    loss.backward()
    with torch.no_grad():
        for p in params.values():
            p -= rate * p.grad
            p.grad = None
    return loss.detach()


def in_torch(weights, x, y):
    """Return arrays of NumPy or JAX as tensors, on the accelerator if there is one."""
    found = torch.accelerator.current_accelerator(check_available=True)

    def tensor(array):
        return torch.tensor(np.asarray(array), device=found or "cpu")

    params = {name: tensor(w).requires_grad_() for name, w in weights.items()}
    return params, tensor(x), tensor(y)


def train_torch(weights, x, y, steps, rate):
    """Return the loss before each step, (steps,); all arrays come from NumPy."""
    params, x, y = in_torch(weights, x, y)
    losses = [step_torch(params, x, y, rate) for _ in range(steps)]
    return torch.stack(losses).cpu().numpy()


@torch.no_grad()
def pure_step_torch(params, x, y, rate):
    """Return new params after one step of descent, and the loss before."""
    grads, loss = torch.func.grad_and_value(loss_torch)(params, x, y)
    return {name: p - rate * grads[name] for name, p in params.items()}, loss


def loss_tensorflow(params, x, y):
    """Return the mean squared error on `x` and `y`, both (count, 1)."""
    hidden = tf.tanh(x @ params["w1"] + params["b1"])
    return tf.reduce_mean((hidden @ params["w2"] + params["b2"] - y) ** 2)


def step_tensorflow(params, x, y, rate):
    """Change `params` by one step of descent; return the loss before."""
    with tf.GradientTape() as tape:
        loss = loss_tensorflow(params, x, y)
    grads = tape.gradient(loss, params)
    for name, p in params.items():
        p.assign_sub(rate * grads[name])
    return loss


def in_tensorflow(weights, x, y):
    """Return NumPy arrays as tensors, and the weights as variables."""
    params = {name: tf.Variable(w) for name, w in weights.items()}
    return params, tf.constant(x), tf.constant(y)


def train_tensorflow(weights, x, y, steps, rate):
    """Return the loss before each step, (steps,); all arrays come from NumPy."""
    params, x, y = in_tensorflow(weights, x, y)
    losses = [step_tensorflow(params, x, y, rate) for _ in range(steps)]
    return tf.stack(losses).numpy()


def loss_fn(params, x, y):
    """Return the mean squared error on `x` and `y`, both (count, 1)."""
    hidden = jnp.tanh(x @ params["w1"] + params["b1"])
    return ((hidden @ params["w2"] + params["b2"] - y) ** 2).mean()


@jax.jit(donate_argnames="params")
def step(params, x, y, rate):
    """Return new params after one step of descent, and the loss before.

    The arrays of `params` are donated: they are gone after the call.
    """
    loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
    params = {n: p - rate * grads[n] for n, p in params.items()}
    return params, loss


def train(weights, x, y, steps, rate):
    """Return the loss before each step, (steps,); all arrays come from NumPy."""
    params, x, y = jax.tree.map(jnp.array, (weights, x, y))
    losses = []
    for _ in range(steps):
        params, loss = step(params, x, y, rate)
        losses.append(loss)
    return np.array(losses)


def stepper(step, params, *rest):
    """Return a function that makes the next step in each call, and returns its loss."""

    def next_step():
        nonlocal params
        params, loss = step(params, *rest)
        return loss

    return next_step


step_rates = jax.jit(
    jax.vmap(step, in_axes=(0, None, None, 0)), donate_argnums=0
)


def copies(params, count):
    """Return `count` copies of each array, along a new first axis."""
    return jax.tree.map(lambda p: jnp.stack([p] * count), params)


def train_rates(weights, x, y, steps, rates):
    """Return the loss before the last step for each of `rates`, (count,)."""
    params = copies(weights, len(rates))
    for _ in range(steps):
        params, losses = step_rates(params, x, y, rates)
    return losses


def step_each_rate(runs, x, y, rates):
    """Do `step` for each of a list of params, one call after another."""
    pairs = [
        step(params, x, y, rate)
        for params, rate in zip(runs, rates, strict=True)
    ]
    return [params for params, _ in pairs], [loss for _, loss in pairs]
