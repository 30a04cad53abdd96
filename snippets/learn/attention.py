"""Attention by hand: one head, several heads, and a head that copies."""

import math

import jax
import jax.numpy as jnp


def attention_weights(query, key, mask=True):
    """Return the weights of one head, (queries, keys).

    query (queries, size), key (keys, size). `mask` (queries, keys) is True
    where a query may look at a key. A row sums to 1; without any True it
    is NaN.
    """
    scores = query @ key.T / math.sqrt(query.shape[-1])
    return jax.nn.softmax(jnp.where(mask, scores, -jnp.inf), axis=-1)


def head(query, key, value, mask=True):
    """Return the weighted sums of values (keys, size), (queries, size)."""
    return attention_weights(query, key, mask) @ value


def many_heads(query, key, value, mask=True):
    """Return attention of arrays (rows, length, heads, size), like these."""

    def of_head(query, key, value):
        return head(query, key, value, mask)

    of_row = jax.vmap(of_head, in_axes=1, out_axes=1)
    return jax.vmap(of_row)(query, key, value)


def copying_head(text):
    """Return query, key and value of a text of a to z, (letters, 26).

    A query is the letter of its token, a key the letter before its token,
    and a value the letter of its token.
    """
    codes = jnp.array(list(text.encode())) - ord("a")
    letters = jax.nn.one_hot(codes, 26)
    before = jnp.roll(letters, 1, axis=0).at[0].set(0)
    return 6 * letters, 6 * before, letters


def next_letters(text, mask):
    """Return how many next letters the head names, and the mean loss.

    What the head returns, times 8, are the logits.
    """
    query, key, value = copying_head(text)
    logits = 8 * head(query, key, value, mask)[:-1]
    log_p = jnp.sum(jax.nn.log_softmax(logits) * value[1:], axis=-1)
    right = logits.argmax(axis=-1) == value[1:].argmax(axis=-1)
    return int(right.sum()), float(-log_p.mean())
