"""Lesson 17, attention and the transformer block: four exercises."""

import jax
import jax.numpy as jnp


def causal_mask(length):
    """Return an array of booleans (length, length), a row for each query.

    It is True where the query may look at the key: at its own token, and at
    those before it.
    """
    return jnp.triu(jnp.ones((length, length), bool))


def attend_to_own(query, key, value, lengths):
    """Return attention (rows, length, heads, size) that sees no padding.

    `query`, `key` and `value` have this shape. The rows are padded at their
    ends, and `lengths` (rows,), at least 1, say how many tokens of each row
    are its own. A query looks at all of them, also at those after it. What
    queries of padding return doesn't matter. It works under `jit`.
    """
    is_own = jnp.arange(query.shape[1]) < lengths[:, None]
    mask = is_own[:, None, :, None]
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
    raise NotImplementedError


def is_causal(model, x):
    """Return True if no result of a model depends on a later token.

    `model` takes x, float32 (length, width), and returns (length, outputs).
    """
    changed = x.at[-1].add(1)
    return bool(jnp.array_equal(model(changed)[0], model(x)[0]))
