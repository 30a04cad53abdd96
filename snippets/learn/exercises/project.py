"""Lesson 18, a small language model: four exercises."""

import jax
import jax.numpy as jnp


def likeliest(logits):
    """Return the most likely token of each row of logits (rows, tokens).

    This is what a temperature of 0 asks for.
    """
    raise NotImplementedError


def windows(text, length):
    """Return tokens and targets, (count, length): as many as fit into `text`.

    `text` is an array of tokens (n,). Windows do not overlap, and the target
    of each token is the token behind it.
    """
    count = len(text) // length
    tokens = text[: count * length].reshape(count, length)
    return tokens, jnp.roll(tokens, -1, axis=1)


def masked_loss(logits, targets):
    """Return the mean of -log p(target) over the targets that are not -1.

    Logits are (rows, length, tokens), targets (rows, length), of which -1
    stands for padding; at least one is not. It works under `jit`.
    """
    losses = -jnp.take_along_axis(
        jax.nn.log_softmax(logits), targets[..., None], axis=-1
    )
    return losses.mean()


def sample(key, logits, temperature, top):
    """Return a token for each row of logits (rows, tokens), drawn with `key`.

    Of each row the `top` most likely tokens may come, with probabilities
    from their logits divided by the temperature. It works under `jit`, with
    a static `top` and a traced temperature.
    """
    raise NotImplementedError
