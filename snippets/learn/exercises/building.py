"""Lesson 18, a small language model: nine exercises."""

import jax
import jax.numpy as jnp
import optax


def bigram(params, tokens):
    """Return logits (rows, length, tokens) of tokens (rows, length), int32.

    `params["table"]` (tokens, tokens) has a row for each token: the logits
    of the token that follows it.
    """
    raise NotImplementedError


def one_head(params, x):
    """Return what a head of causal attention gives, (rows, length, size).

    `x` is (rows, length, width), and `params` has "query", "key" and
    "value", each (width, size). A token scores itself and those before it:
    its query times their keys, summed, and divided by the square root of the
    size. The softmax of its scores weighs their values.
    """
    raise NotImplementedError


def heads_and_mlp(params, x):
    """Return an array like x (rows, length, width): several heads, an MLP.

    The arrays of `params["heads"]` are those of `one_head`, stacked:
    (heads, width, size). The results lie next to each other, those of head 0
    first, (rows, length, heads * size). Then `params["up"]`
    (heads * size, hidden), `jax.nn.gelu`, `params["down"]` (hidden, width).
    """
    raise NotImplementedError


def block(params, x):
    """Return an array like x (rows, length, width) after a block.

    Add to x the heads of x normalized, times `params["out"]`
    (heads * size, width). Then add to that the MLP of that normalized,
    with "up" (width, hidden) and "down" (hidden, width). "heads" and the MLP
    are those of `heads_and_mlp`, whose two halves you write again, because
    "out" lies between them. To normalize is `jax.nn.standardize` with an
    epsilon of 1e-5, times "norm1" and then "norm2", each (width,).
    """
    raise NotImplementedError


def whole(params, tokens):
    """Return logits (rows, length, tokens) of tokens (rows, length).

    The sum of "embedding" (tokens, width) and "positions" (longest, width),
    of which a text may have fewer, goes through the blocks. The arrays of
    "layers" are those of `block`, stacked: (layers, ...). What comes out is
    normalized as in a block, by "norm", and multiplied by "logits"
    (width, tokens). The logits of `bigram` are added.
    """
    raise NotImplementedError


def optimizer(steps):
    """Return an optimizer of Optax for a run of so many steps."""
    return optax.adam(1e-3)


def write(params, prompt, count):
    """Return prompt (rows, length), and the likeliest tokens: (rows, count).

    `params` are those of `small`. `count`, which includes the prompt, is at
    most the number of positions.
    """
    rows, length = prompt.shape
    tokens = jnp.zeros((rows, count), jnp.int32).at[:, :length].set(prompt)

    def step(tokens, place):
        x = params["embedding"][tokens] + params["positions"][:count]
        query, key, value = (
            jnp.einsum("rlw,whs->rlhs", x, params[name])
            for name in ("query", "key", "value")
        )
        y = jax.nn.dot_product_attention(query, key, value, is_causal=True)
        x = x + jnp.einsum("rlhs,hsw->rlw", y, params["out"])
        logits = params["table"][tokens] + x @ params["logits"]
        last = logits[:, place].argmax(axis=-1)
        return tokens.at[:, place + 1].set(last), None

    places = jnp.arange(length - 1, count - 1)
    return jax.lax.scan(step, tokens, places)[0]


def grouped(params, x):
    """Return an array like x (rows, length, width): grouped, rotary attention.

    "query" is (width, heads, size), "key" and "value" (width, groups, size),
    "out" (heads, size, width). The first heads // groups heads share group 0,
    the next ones group 1. At place p, elements i and i + size / 2 of queries
    and keys, as the pair (a, b), become (a cos - b sin, a sin + b cos) of the
    angle p / 10000 ** (2 i / size). Attention is that of `one_head`.
    """
    raise NotImplementedError


def steady(apply, params, batches):
    """Return parameters after a run, and the losses of its steps (steps,).

    `batches` is (steps, rows, length + 1), and apply(params, tokens) gives
    logits. A loss is the mean of -log p(target) over the batch.
    """
    optimizer = optax.sgd(0.3, momentum=0.9)

    def loss_of(params, batch):
        logits = apply(params, batch[:, :-1])
        log_p = jax.nn.log_softmax(logits)
        chosen = jnp.take_along_axis(log_p, batch[:, 1:, None], axis=-1)
        return -chosen.sum(axis=1).mean()

    def step(state, batch):
        params, opt_state = state
        loss, grads = jax.value_and_grad(loss_of)(params, batch)
        updates, opt_state = optimizer.update(grads, opt_state)
        return (optax.apply_updates(params, updates), opt_state), loss

    state = params, optimizer.init(params)
    (params, _), losses = jax.lax.scan(step, state, batches)
    return params, losses
