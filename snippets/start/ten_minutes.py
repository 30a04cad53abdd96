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
    """Return the loss before each step; all arrays come from NumPy."""
    x, y = torch.tensor(x), torch.tensor(y)
    params = {n: torch.tensor(w) for n, w in weights.items()}
    for p in params.values():
        p.requires_grad_()
    return [float(step_torch(params, x, y, rate)) for _ in range(steps)]


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
    """Return the loss before each step; all arrays come from NumPy."""
    params = {n: tf.Variable(w) for n, w in weights.items()}
    x, y = tf.constant(x), tf.constant(y)
    return [float(step_tensorflow(params, x, y, rate)) for _ in range(steps)]


def loss_fn(params, x, y):
    """Return the mean squared error on `x` and `y`, both (count, 1)."""
    hidden = jnp.tanh(x @ params["w1"] + params["b1"])
    return ((hidden @ params["w2"] + params["b2"] - y) ** 2).mean()


def step(params, x, y, rate):
    """Return new params after one step of descent, and the loss before."""
    loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
    params = {n: p - rate * grads[n] for n, p in params.items()}
    return params, loss


def train(weights, x, y, steps, rate):
    """Return the loss before each step; all arrays come from NumPy."""
    params = {n: jnp.array(w) for n, w in weights.items()}
    x, y = jnp.array(x), jnp.array(y)
    losses = []
    for _ in range(steps):
        params, loss = step(params, x, y, rate)
        losses.append(float(loss))
    return losses


step_jit = jax.jit(step)

loss_jit = jax.jit(loss_fn)

loss_and_grads_jit = jax.jit(jax.value_and_grad(loss_fn))

step_rates = jax.jit(jax.vmap(step, in_axes=(0, None, None, 0)))


def copies(params, count):
    """Return `count` copies of each array, along a new first axis."""
    return jax.tree.map(lambda p: jnp.stack([p] * count), params)


def train_rates(params, x, y, steps, rates):
    """Return the loss before the last step for each of `rates`, (count,)."""
    params = copies(params, len(rates))
    for _ in range(steps):
        params, losses = step_rates(params, x, y, rates)
    return losses


def step_each_rate(params, x, y, rates):
    """Return new params and the loss for each rate, one call after another."""
    return [step_jit(params, x, y, rate) for rate in rates]
