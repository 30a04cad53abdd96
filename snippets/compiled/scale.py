"""A data-parallel training step, to be compiled for many devices."""

import jax
import jax.numpy as jnp

RATE = 0.001

LAYERS = [
    {"weights": "float32[1024,4096]", "biases": "float32[4096]"},
    {"weights": "float32[4096,4096]", "biases": "float32[4096]"},
    {"weights": "float32[4096,16]", "biases": "float32[16]"},
]

SCALED = {
    "train_step": {
        "the batch stays": [
            LAYERS,
            ["float32[8192@data,1024]", "int32[8192@data]"],
        ],
        "the batch grows": [
            LAYERS,
            ["float32[512*chips@data,1024]", "int32[512*chips@data]"],
        ],
    },
}


def scores(params, images):
    """Return the logits (n, classes) of images (n, inputs)."""
    x = images
    for layer in params[:-1]:
        x = jnp.tanh(x @ layer["weights"] + layer["biases"])
    return x @ params[-1]["weights"] + params[-1]["biases"]


def loss(params, batch):
    """Return the mean of -log p(label) over images and labels."""
    images, labels = batch
    log_p = jax.nn.log_softmax(scores(params, images))
    return -jnp.take_along_axis(log_p, labels[:, None], axis=1).mean()


def train_step(params, batch):
    """Return the layers after a step of gradient descent, and the loss."""
    value, grads = jax.value_and_grad(loss)(params, batch)
    moved = jax.tree.map(lambda p, g: p - RATE * g, params, grads)
    return moved, value
