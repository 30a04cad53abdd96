"""A layer of attention, to be compiled."""

import jax.numpy as jnp

from snippets.compiled.fusion import softmax

COMPILED = {
    "attention_layer": [
        {
            "query": "float32[512,8,64]",
            "key": "float32[512,8,64]",
            "value": "float32[512,8,64]",
            "out": "float32[8,64,512]",
        },
        "float32[8,128,512]",
    ],
}


def attention_layer(weights, x):
    """Return multi-head self-attention of `x`, (batch, time, width).

    The weights of query, key and value have shape (width, heads, size), those
    of out (heads, size, width) (Vaswani et al. 2017, section 3.2).
    """
    query = jnp.einsum("btw,whs->bhts", x, weights["query"])
    key = jnp.einsum("btw,whs->bhts", x, weights["key"])
    value = jnp.einsum("btw,whs->bhts", x, weights["value"])
    scores = jnp.einsum("bhts,bhus->bhtu", query, key) / query.shape[-1] ** 0.5
    mixed = jnp.einsum("bhtu,bhus->bhts", softmax(scores), value)
    return jnp.einsum("bhts,hsw->btw", mixed, weights["out"])
