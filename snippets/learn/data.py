"""Batches for a step: random numbers by its number, and a file of tokens."""

import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def mirrored(key, step, pixels):
    """Return pixels (rows, height, width, 3), about half of the rows mirrored.

    Which ones follows from the key and the number of the step, int32.
    """
    own = jax.random.fold_in(key, step)
    chosen = jax.random.bernoulli(own, 0.5, (len(pixels), 1, 1, 1))
    return jnp.where(chosen, pixels[:, :, ::-1], pixels)


class Windows:
    """Windows of a file of tokens, each with the tokens that come next."""

    def __init__(self, path, length):
        """Take the path of a NumPy file (tokens,), and open it."""
        self.tokens, self.length = np.load(path, mmap_mode="r"), length

    def __len__(self):
        """Return how many windows have a token after their last."""
        return (len(self.tokens) - 1) // self.length

    def __getitem__(self, i):
        """Return tokens and targets, both int32 (length,)."""
        start = i * self.length
        piece = self.tokens[start : start + self.length + 1].astype(np.int32)
        return {"tokens": piece[:-1], "targets": piece[1:]}
