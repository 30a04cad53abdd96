"""A gradient for each example: in a loop, with vmap, and by hand."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import torch


def some_params(inputs, hidden):
    """Return float32 parameters of a network with one hidden layer."""
    first, second = jax.random.split(jax.random.key(0))
    return {
        "w1": jax.random.normal(first, (inputs, hidden)) / inputs**0.5,
        "b1": jnp.zeros(hidden),
        "w2": jax.random.normal(second, (hidden,)) / hidden**0.5,
        "b2": jnp.zeros(()),
    }


def some_examples(count, inputs):
    """Return inputs, (count, inputs), and the sine of their sums, (count,)."""
    xs = jax.random.normal(jax.random.key(1), (count, inputs))
    return xs, jnp.sin(xs.sum(1))


def predict(params, x):
    """Return the network's output () for one example `x`, (inputs,)."""
    hidden = jnp.tanh(x @ params["w1"] + params["b1"])
    return hidden @ params["w2"] + params["b2"]


def loss(params, x, y):
    """Return the squared error for one `x`, (inputs,), and its target `y`."""
    return (predict(params, x) - y) ** 2


def mean_loss(params, xs, ys):
    """Return the mean of `loss` over a batch, (count, inputs) and (count,)."""
    return jax.vmap(loss, in_axes=(None, 0, 0))(params, xs, ys).mean()


def shapes(tree):
    """Return the shape of each array in a dictionary."""
    return {name: array.shape for name, array in tree.items()}


gradient = jax.grad(loss)

gradients = jax.vmap(gradient, in_axes=(None, 0, 0))


def largest_difference(tree, other):
    """Return the largest difference between two dictionaries of arrays."""
    pairs = [(np.asarray(tree[name]), other[name]) for name in tree]
    return max(float(np.abs(one - two).max()) for one, two in pairs)


def gradients_in_a_loop(params, xs, ys, gradient=gradient):
    """Return the gradient of each example, stacked, from one call for each."""
    each = [gradient(params, x, y) for x, y in zip(xs, ys, strict=True)]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *each)


def gradients_by_hand(params, xs, ys):
    """Return the gradient of each example, by formulas for a whole batch."""
    hidden = jnp.tanh(xs @ params["w1"] + params["b1"])
    d_prediction = 2 * (hidden @ params["w2"] + params["b2"] - ys)
    d_hidden = d_prediction[:, None] * params["w2"] * (1 - hidden**2)
    return {
        "w1": xs[:, :, None] * d_hidden[:, None, :],
        "b1": d_hidden,
        "w2": d_prediction[:, None] * hidden,
        "b2": d_prediction,
    }


def norms(tree):
    """Return the norm of each example's whole gradient, (count,)."""
    rows = [array.reshape(len(array), -1) for array in tree.values()]
    return jnp.linalg.norm(jnp.concatenate(rows, axis=1), axis=1)


def clipped_mean(tree, limit):
    """Clip each example's gradient to a norm of `limit`; return the mean."""
    factors = jnp.minimum(1, limit / norms(tree)) / len(tree["b2"])
    return {name: jnp.tensordot(factors, g, 1) for name, g in tree.items()}


def memory(function, *args):
    """Return the bytes of the result of compiled `function`, and within it."""
    needs = jax.jit(function).lower(*args).compile().memory_analysis()
    return {
        "result": needs.output_size_in_bytes,
        "within": needs.temp_size_in_bytes,
    }


def clipped_gradient(params, xs, ys):
    """Return the mean of the examples' gradients, each clipped to norm 1."""
    return clipped_mean(gradients(params, xs, ys), limit=1.0)


def in_torch(tree):
    """Return a dictionary of arrays as tensors, on a GPU if there is one."""
    device = (
        torch.accelerator.current_accelerator(check_available=True) or "cpu"
    )
    return {
        name: torch.tensor(np.asarray(x), device=device)
        for name, x in tree.items()
    }


def loss_torch(params, x, y):
    """Return the squared error for one example, as `loss` does, in PyTorch."""
    hidden = torch.tanh(x @ params["w1"] + params["b1"])
    return (hidden @ params["w2"] + params["b2"] - y) ** 2


gradient_torch = torch.func.grad(loss_torch)

gradients_torch = torch.func.vmap(gradient_torch, in_dims=(None, 0, 0))


def compiled_copies(function, *args):
    """Return the shapes that compiled `function` copies, in float32."""
    text = jax.jit(function).lower(*args).compile().as_text()
    return re.findall(r"= f32(\[[\d,]+\])\S* copy\(", text)
