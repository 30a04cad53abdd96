"""Lesson 17, attention and the transformer block: solutions."""

import jax
import jax.numpy as jnp


def causal_mask(length):
    """Return an array of booleans (length, length), a row for each query.

    It is True where the query may look at the key: at its own token, and at
    those before it.
    """
    return jnp.tril(jnp.ones((length, length), bool))


def attend_to_own(query, key, value, lengths):
    """Return attention (rows, length, heads, size) that sees no padding.

    `query`, `key` and `value` have this shape. The rows are padded at their
    ends, and `lengths` (rows,), at least 1, say how many tokens of each row
    are its own. A query looks at all of them, also at those after it. What
    queries of padding return doesn't matter. It works under `jit`.
    """
    is_own = jnp.arange(query.shape[1]) < lengths[:, None]
    mask = is_own[:, None, None, :]
    return jax.nn.dot_product_attention(query, key, value, mask=mask)


def multihead(state, x, heads, forbidden):
    """Return what PyTorch's module returns for x (rows, length, width):

    torch.nn.MultiheadAttention(width, heads, batch_first=True)(
        x, x, x, attn_mask=forbidden
    )[0]

    `state` is its state_dict as NumPy arrays: "in_proj_weight" (3 width,
    width) and "in_proj_bias" (3 width,), of queries, then keys, then values;
    "out_proj.weight" (width, width) and "out_proj.bias" (width,). The mask
    `forbidden` (length, length) is True where a query may NOT look.
    """
    qkv = x @ state["in_proj_weight"].T + state["in_proj_bias"]
    query, key, value = (
        part.reshape(*x.shape[:-1], heads, -1)
        for part in jnp.split(qkv, 3, axis=-1)
    )
    y = jax.nn.dot_product_attention(
        query, key, value, mask=~forbidden[None, None]
    )
    return (
        y.reshape(x.shape) @ state["out_proj.weight"].T
        + (state["out_proj.bias"])
    )


def is_causal(model, x):
    """Return True if no result of a model depends on a later token.

    `model` takes x, float32 (length, width), and returns (length, outputs).
    """
    depends = jnp.abs(jax.jacrev(model)(x)).sum(axis=(1, 3))
    return not bool(jnp.triu(depends, k=1).any())
