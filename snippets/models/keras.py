"""The transformer block in Keras, which computes with JAX."""

import jax
import keras
import numpy as np
import torch

from snippets.models.modules import (
    DECAY,
    RATE,
    STEPS,
    WARMUP,
    default_of,
    mean_squared,
)


class KerasBlock(keras.Model):
    """The block in Keras, on float32 (rows, length, width)."""

    def __init__(self, width=32, heads=4, dropout=0.1, seed=None):
        super().__init__()
        self.heads = heads
        self.norm1 = keras.layers.LayerNormalization(epsilon=1e-5)
        self.qkv = keras.layers.Dense(3 * width)
        self.out = keras.layers.Dense(width)
        self.norm2 = keras.layers.LayerNormalization(epsilon=1e-5)
        self.up = keras.layers.Dense(2 * width, "gelu")
        self.down = keras.layers.Dense(width)
        self.drop = keras.layers.Dropout(dropout, seed=seed)

    def call(self, x, training=False):
        """Return an array like `x`; dropout while training."""
        _, length, width = x.shape
        shape = -1, length, 3, self.heads, width // self.heads
        qkv = keras.ops.reshape(self.qkv(self.norm1(x)), shape)
        y = keras.ops.dot_product_attention(*keras.ops.unstack(qkv, axis=2))
        y = self.out(keras.ops.reshape(y, (-1, length, width)))
        x = x + self.drop(y, training=training)
        y = self.down(self.up(self.norm2(x)))
        return x + self.drop(y, training=training)


def into_keras(model, params):
    """Write {layer: {kind: array}} into a Keras model with these layers.

    Raises ValueError where the number of variables or a shape differs.
    """
    arrays = [array for layer in params.values() for array in layer.values()]
    for variable, array in zip(model.trainable_variables, arrays, strict=True):
        variable.assign(array)
    return model


def train_keras(model, batches):
    """Train a Keras model in place; return the losses (steps,)."""
    rate = keras.optimizers.schedules.CosineDecay(
        0.0, STEPS - WARMUP, warmup_target=RATE, warmup_steps=WARMUP
    )
    optimizer = keras.optimizers.AdamW(
        rate, weight_decay=DECAY, global_clipnorm=1.0
    )
    model.compile(optimizer, loss="mse")
    return np.array([model.train_on_batch(x, target) for x, target in batches])


def values(variables):
    """Return the arrays of Keras variables."""
    return [variable.value for variable in variables]


def gradient(model, batch):
    """Return the gradient by the trainable variables, a list of arrays."""
    x, target = batch
    others = values(model.non_trainable_variables)

    def loss(params):
        y, _ = model.stateless_call(params, others, x)
        return mean_squared(y, target)

    return jax.grad(loss)(values(model.trainable_variables))


def keras_defaults():
    """Return {setting: {library: its default}} of settings that differ."""
    norm = keras.layers.LayerNormalization()
    return {
        "epsilon of layer norm": {
            "PyTorch": torch.nn.LayerNorm(1).eps,
            "Keras": norm.epsilon,
        },
        "batch norm keeps of the old": {
            "PyTorch": 1 - torch.nn.BatchNorm1d(1).momentum,
            "Keras": keras.layers.BatchNormalization().momentum,
        },
        "weight decay of AdamW": {
            "PyTorch": default_of(torch.optim.AdamW, "weight_decay"),
            "Keras": default_of(keras.optimizers.AdamW, "weight_decay"),
        },
        "epsilon of AdamW": {
            "PyTorch": default_of(torch.optim.AdamW, "eps"),
            "Keras": default_of(keras.optimizers.AdamW, "epsilon"),
        },
    }
