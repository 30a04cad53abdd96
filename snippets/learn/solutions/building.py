"""Lesson 18, a small language model: solutions."""

import jax
import jax.numpy as jnp
import optax


def bigram(params, tokens):
    """Return logits (rows, length, tokens) of tokens (rows, length), int32.

    `params["table"]` (tokens, tokens) has a row for each token: the logits
    of the token that follows it.
    """
    return params["table"][tokens]


def one_head(params, x):
    """Return what a head of causal attention gives, (rows, length, size).

    `x` is (rows, length, width), and `params` has "query", "key" and
    "value", each (width, size). A token scores itself and those before it:
    its query times their keys, summed, and divided by the square root of the
    size. The softmax of its scores weighs their values.
    """
    query, key, value = (
        x @ params[name] for name in ("query", "key", "value")
    )
    scores = query @ key.swapaxes(1, 2) / jnp.sqrt(query.shape[-1])
    seen = jnp.tri(x.shape[1], dtype=bool)
    return jax.nn.softmax(jnp.where(seen, scores, -jnp.inf)) @ value


def heads_and_mlp(params, x):
    """Return an array like x (rows, length, width): several heads, an MLP.

    The arrays of `params["heads"]` are those of `one_head`, stacked:
    (heads, width, size). The results lie next to each other, those of head 0
    first, (rows, length, heads * size). Then `params["up"]`
    (heads * size, hidden), `jax.nn.gelu`, `params["down"]` (hidden, width).
    """
    y = jax.vmap(one_head, in_axes=(0, None), out_axes=2)(params["heads"], x)
    y = y.reshape(*x.shape[:2], -1)
    return jax.nn.gelu(y @ params["up"]) @ params["down"]


def block(params, x):
    """Return an array like x (rows, length, width) after a block.

    Add to x the heads of x normalized, times `params["out"]`
    (heads * size, width). Then add to that the MLP of that normalized,
    with "up" (width, hidden) and "down" (hidden, width). "heads" and the MLP
    are those of `heads_and_mlp`, whose two halves you write again, because
    "out" lies between them. To normalize is `jax.nn.standardize` with an
    epsilon of 1e-5, times "norm1" and then "norm2", each (width,).
    """
    y = params["norm1"] * jax.nn.standardize(x, epsilon=1e-5)
    y = jax.vmap(one_head, in_axes=(0, None), out_axes=2)(params["heads"], y)
    x = x + y.reshape(*x.shape[:2], -1) @ params["out"]
    y = params["norm2"] * jax.nn.standardize(x, epsilon=1e-5)
    return x + jax.nn.gelu(y @ params["up"]) @ params["down"]


def whole(params, tokens):
    """Return logits (rows, length, tokens) of tokens (rows, length).

    The sum of "embedding" (tokens, width) and "positions" (longest, width),
    of which a text may have fewer, goes through the blocks. The arrays of
    "layers" are those of `block`, stacked: (layers, ...). What comes out is
    normalized as in a block, by "norm", and multiplied by "logits"
    (width, tokens). The logits of `bigram` are added.
    """
    x = params["embedding"][tokens] + params["positions"][: tokens.shape[1]]

    def apply_block(x, layer):
        return block(layer, x), None

    x, _ = jax.lax.scan(apply_block, x, params["layers"])
    x = params["norm"] * jax.nn.standardize(x, epsilon=1e-5)
    return bigram(params, tokens) + x @ params["logits"]


def optimizer(steps):
    """Return an optimizer of Optax for a run of so many steps."""
    rate = optax.warmup_cosine_decay_schedule(0.0, 0.03, steps // 10, steps)
    return optax.adam(rate, b2=0.95)


def write(params, prompt, count):
    """Return prompt (rows, length), and the likeliest tokens: (rows, count).

    `params` are those of `small`. `count`, which includes the prompt, is at
    most the number of positions.
    """
    rows, length = prompt.shape
    heads, size = params["query"].shape[1:]
    cache = jnp.zeros((2, rows, count, heads, size))

    def step(state, place):
        cache, token = state
        x = params["embedding"][token] + params["positions"][place]
        query, key, value = (
            jnp.einsum("rw,whs->rhs", x, params[name])
            for name in ("query", "key", "value")
        )
        cache = cache.at[:, :, place].set(jnp.stack([key, value]))
        y = jax.nn.dot_product_attention(
            query[:, None],
            *cache,
            key_value_seq_lengths=jnp.full(rows, place + 1),
        )
        x = x + jnp.einsum("rhs,hsw->rw", y[:, 0], params["out"])
        logits = params["table"][token] + x @ params["logits"]
        given = prompt[:, jnp.minimum(place + 1, length - 1)]
        last = jnp.where(place + 1 < length, given, logits.argmax(axis=-1))
        return (cache, last), last

    first = prompt[:, 0]
    _, rest = jax.lax.scan(step, (cache, first), jnp.arange(count - 1))
    return jnp.concatenate([first[:, None], rest.T], axis=1)


def grouped(params, x):
    """Return an array like x (rows, length, width): grouped, rotary attention.

    "query" is (width, heads, size), "key" and "value" (width, groups, size),
    "out" (heads, size, width). The first heads // groups heads share group 0,
    the next ones group 1. At place p, elements i and i + size / 2 of queries
    and keys, as the pair (a, b), become (a cos - b sin, a sin + b cos) of the
    angle p / 10000 ** (2 i / size). Attention is that of `one_head`.
    """
    half = params["query"].shape[-1] // 2
    angles = jnp.arange(x.shape[1])[:, None, None] / 10000 ** (
        jnp.arange(half) / half
    )
    cos, sin = jnp.cos(angles), jnp.sin(angles)

    def rotated(y):
        a, b = jnp.split(y, 2, axis=-1)
        return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], axis=-1)

    query, key, value = (
        jnp.einsum("rlw,whs->rlhs", x, params[name])
        for name in ("query", "key", "value")
    )
    y = jax.nn.dot_product_attention(
        rotated(query), rotated(key), value, is_causal=True
    )
    return jnp.einsum("rlhs,hsw->rlw", y, params["out"])


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
        return -chosen.mean()

    def step(state, batch):
        params, opt_state = state
        loss, grads = jax.value_and_grad(loss_of)(params, batch)
        updates, opt_state = optimizer.update(grads, opt_state)
        return (optax.apply_updates(params, updates), opt_state), loss

    state = params, optimizer.init(params)
    (params, _), losses = jax.lax.scan(step, state, batches)
    return params, losses
