"""Requests of different lengths: an exercise."""

import numpy as np


def accept(target, tokens, guesses):
    """Return the guesses (n,) that the target would write, and one token more.

    `target(text)` runs the target model, and returns the likeliest token
    behind each token of a text (m,). The guesses follow tokens (k,).
    """
    text = tokens
    for guess in guesses:
        text = np.append(text, target(text)[-1])
        if text[-1] != guess:
            break
    return text[len(tokens) :]
