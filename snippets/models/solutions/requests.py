"""Requests of different lengths: a solution."""

import numpy as np


def accept(target, tokens, guesses):
    """Return the guesses (n,) that the target would write, and one token more.

    `target(text)` runs the target model, and returns the likeliest token
    behind each token of a text (m,). The guesses follow tokens (k,).
    """
    written = target(np.append(tokens, guesses))[len(tokens) - 1 :]
    right = (guesses == written[:-1]).cumprod().sum()
    return written[: right + 1]
