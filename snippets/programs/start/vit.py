"""A vision transformer, with dropout."""

import jax
from flax import nnx

from snippets.models.modules import NnxBlock


def patches(x, size=2):
    """Return images (n, 64) as squares: (n, (8 / size)², size²).

    A reshape merges only two axes where the rows are sharded.
    """
    across = 8 // size
    x = x.reshape(-1, across, size, across, size).swapaxes(2, 3)
    x = x.reshape(-1, across, across, size**2)
    return x.reshape(-1, across**2, size**2)


class NnxVit(nnx.Module):
    """Images (n, 64), as tokens of 2×2 pixels, to logits (n, 10)."""

    def __init__(self, width=32, layers=2, dropout=0.1, *, rngs):
        self.embed = nnx.Linear(4, width, rngs=rngs)
        places = jax.random.normal(rngs.params(), (16, width))
        self.positions = nnx.Param(0.02 * places)
        self.layers = nnx.List(
            [
                NnxBlock(width, heads=4, dropout=dropout, rngs=rngs)
                for _ in range(layers)
            ]
        )
        self.norm = nnx.LayerNorm(width, epsilon=1e-5, rngs=rngs)
        self.out = nnx.Linear(width, 10, rngs=rngs)

    def __call__(self, x):
        """Return the logits; dropout while training."""
        x = self.embed(patches(x)) + self.positions[...]
        for layer in self.layers:
            x = layer(x)
        return self.out(self.norm(x).mean(axis=1))


def network(rngs):
    """Return the model: images (n, 64) to logits (n, 10)."""
    return NnxVit(width=32, layers=2, dropout=0.1, rngs=rngs)
