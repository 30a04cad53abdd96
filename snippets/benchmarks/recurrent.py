"""One recurrent loop, in many variants and three frameworks."""

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
import torch

BATCH = 16
WIDTH = 64
LENGTHS = (16, 64, 256)


def step(h, x, w, u):
    """Return the next state, (batch, width), of a plain recurrent network.

    `h` and `x` are (batch, width), `w` and `u` (width, width). It is the
    cell of Elman 1990 without biases.
    """
    return jnp.tanh(h @ w + x @ u)


def python_loop(xs, w, u):
    """Return all states, (length, batch, width), by a loop of Python."""
    h = jnp.zeros(xs.shape[1:])
    states = []
    for x in xs:
        h = step(h, x, w, u)
        states.append(h)
    return jnp.stack(states)


def scan(xs, w, u, unroll=1):
    """Return all states, (length, batch, width), by a loop in the program."""

    def body(h, x):
        h = step(h, x, w, u)
        return h, h

    return jax.lax.scan(body, jnp.zeros(xs.shape[1:]), xs, unroll=unroll)[1]


def scan_inputs_first(xs, w, u):
    """Do what `scan` does, with the inputs' matmul before the loop."""

    def body(h, xu):
        h = jnp.tanh(h @ w + xu)
        return h, h

    return jax.lax.scan(body, jnp.zeros(xs.shape[1:]), xs @ u)[1]


def torch_loop(xs, w, u):
    """Return all states, (length, batch, width), by a loop of Python."""
    h = torch.zeros_like(xs[0])
    states = []
    for x in xs:
        h = torch.tanh(h @ w + x @ u)
        states.append(h)
    return torch.stack(states)


def torch_rnn(w, u):
    """Return PyTorch's own loop with these weights, as a function.

    It takes (length, batch, width), ignores further arguments, and returns
    all states.
    """
    rnn = torch.nn.RNN(*u.shape, bias=False, device=u.device).requires_grad_(
        False
    )
    rnn.weight_ih_l0.copy_(u.T)
    rnn.weight_hh_l0.copy_(w.T)
    return lambda xs, *weights: rnn(xs)[0]


def tensorflow_loop(xs, w, u):
    """Return all states, (length, batch, width), by a loop of Python."""
    h = tf.zeros_like(xs[0])
    states = []
    for x in tf.unstack(xs):
        h = tf.tanh(h @ w + x @ u)
        states.append(h)
    return tf.stack(states)


def tensorflow_scan(xs, w, u):
    """Return all states, (length, batch, width), by a loop in the graph."""
    return tf.scan(
        lambda h, x: tf.tanh(h @ w + x @ u), xs, tf.zeros_like(xs[0])
    )


def draw(length):
    """Return float32 inputs (length, batch, width), weights (width, width)."""
    random = np.random.default_rng(0)
    w, u = (
        random.standard_normal((2, WIDTH, WIDTH), dtype=np.float32)
        / WIDTH**0.5
    )
    return (
        random.standard_normal((length, BATCH, WIDTH), dtype=np.float32),
        w,
        u,
    )


def exact_states(xs, w, u):
    """Return all states, (length, batch, width), in NumPy's float64."""
    xs, w, u = (array.astype(np.float64) for array in (xs, w, u))
    h, states = np.zeros(xs.shape[1:]), []
    for x in xs:
        h = np.tanh(h @ w + x @ u)
        states.append(h)
    return np.stack(states)


def operations(function, length):
    """Count the operations of the program that JAX hands to its compiler."""
    program = jax.jit(function).lower(*draw(length)).as_text()
    return program.count("stablehlo.")
