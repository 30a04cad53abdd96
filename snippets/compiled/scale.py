"""A data-parallel training step, to be compiled for many devices."""

import jax

from snippets.training.data_parallel import loss

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


def train_step(params, batch):
    """Return the layers after a step of gradient descent, and the loss."""
    value, grads = jax.value_and_grad(loss)(params, batch)
    moved = jax.tree.map(lambda p, g: p - RATE * g, params, grads)
    return moved, value
