"""Generation for requests of different lengths, with few programs."""

import jax
import jax.numpy as jnp
import numpy as np
import torch

from snippets.models.modules import layer_norm, linear
from snippets.project.gpt import check_room, mlp, split_heads


def grow(forward, tokens, count):
    """Return the `count` likeliest tokens behind tokens (n,).

    `forward` gives logits (1, n, tokens) of all tokens so far, (1, n).
    """
    start = len(tokens)
    for _ in range(count):
        new = np.asarray(forward(tokens[None]))[0, -1].argmax()
        tokens = np.append(tokens, new).astype(np.int32)
    return tokens[start:]


def first_cache(params, config):
    """Return zeros for the keys and the values of one request.

    Both are (layers, length, heads, size).
    """
    size = config.width // config.heads
    shape = config.layers, config.length, config.heads, size
    zeros = jnp.zeros(shape, params["embedding"].dtype)
    return zeros, zeros


@jax.jit(static_argnames="heads")
def extend(params, cache, tokens, start, heads):
    """Return logits (n, tokens) behind each of tokens (n,), and the cache.

    The cache has the `start` tokens before these, and room for n more: where
    it has not, they would overwrite others.
    """
    positions = start + jnp.arange(len(tokens))
    x = params["embedding"][tokens] + params["positions"][positions]
    seen = jnp.arange(cache[0].shape[1]) <= positions[:, None]

    def apply_layer(x, layer_and_cache):
        p, *cache = layer_and_cache
        qkv = linear(p["qkv"], layer_norm(p["norm1"], x))
        query, *new = split_heads(qkv, heads)
        keys, values = (
            jax.lax.dynamic_update_slice_in_dim(old, rows, start, axis=0)
            for old, rows in zip(cache, new, strict=True)
        )
        y = jax.nn.dot_product_attention(query, keys, values, mask=seen[None])
        x = x + linear(p["out"], y.reshape(x.shape))
        return x + mlp(p, x), (keys, values)

    x, cache = jax.lax.scan(apply_layer, x, (params["layers"], *cache))
    return layer_norm(params["norm"], x) @ params["embedding"].T, cache


@jax.jit(static_argnames="config")
def prefill(params, tokens, length, config):
    """Return logits (tokens,) behind a prompt, and its cache.

    Only the first `length` of tokens (n,) are the prompt. ValueError where
    the model has no position for each of the n.
    """
    check_room(len(tokens), 0, config)
    cache = first_cache(params, config)
    logits, cache = extend(params, cache, tokens, 0, config.heads)
    return logits[length - 1], cache


def draw(key, logits, temperature, top_k):
    """Return one of the `top_k` likeliest of logits (tokens,), an int32.

    The temperature is above 0. With a `top_k` of 1 it is the likeliest.
    ValueError where there are not as many tokens, or none is to be taken.
    """
    if not 1 <= top_k <= len(logits):
        raise ValueError(
            f"top_k is {top_k}: draw from 1 to {len(logits)} tokens"
        )
    values, tokens = jax.lax.top_k(logits, top_k)
    return tokens[jax.random.categorical(key, values / temperature)]


def draw_torch(generator, logits, temperature, top_k):
    """Return one of the `top_k` likeliest of logits (tokens,)."""
    values, tokens = torch.topk(logits, top_k)
    probabilities = torch.softmax(values / temperature, dim=0)
    place = torch.multinomial(probabilities, 1, generator=generator)
    return tokens[place][0]


@jax.jit(static_argnames=("config", "count", "top_k"))
def decode(
    params, cache, logits, start, key, config, count, temperature=1.0, top_k=1
):
    """Return `count` tokens from position `start` on, and the cache.

    `logits` are those of the first. Each position makes a key of its own.
    """

    def step(carry, position):
        cache, logits = carry
        own = jax.random.fold_in(key, position)
        token = draw(own, logits, temperature, top_k)
        logits, cache = extend(
            params, cache, token[None], position, config.heads
        )
        return (cache, logits[0]), token

    positions = start + jnp.arange(count)
    (cache, _), tokens = jax.lax.scan(step, (cache, logits), positions)
    return tokens, cache


def padded(tokens, size):
    """Return tokens (n,) with zeros behind them, (size,) int32.

    ValueError where there are more than `size`, or none: the first token that
    is generated follows one of the prompt.
    """
    if not len(tokens):
        raise ValueError("an empty prompt: begin with a token")
    if len(tokens) > size:
        raise ValueError(f"{len(tokens)} tokens do not fit into {size}")
    return np.pad(tokens, (0, size - len(tokens))).astype(np.int32)


def power_of_two(tokens):
    """Return the least power of two that is not below their number."""
    return 1 << (len(tokens) - 1).bit_length()


def respond(params, tokens, key, config, count, size, **sampling):
    """Return `count` tokens behind a prompt (n,), which is padded to `size`.

    `temperature` and `top_k` are those of `decode`. ValueError where the
    prompt is empty, or the model has no position for each token.
    """
    length = len(tokens)
    check_room(length, length + count, config)
    rows = padded(tokens, size)
    logits, cache = prefill(params, rows, length, config)
    found, _ = decode(
        params, cache, logits, length, key, config, count, **sampling
    )
    return found


@jax.jit(static_argnames=("config", "count", "top_k"))
def respond_to_all(
    params, rows, lengths, keys, config, count, temperature=1.0, top_k=1
):
    """Return `count` tokens behind each of padded prompts (rows, n).

    Each row has its length, from 1 to n, and its key, cache and position.
    ValueError where the model has no position for `count` tokens behind a row
    of n.
    """
    check_room(rows.shape[1], rows.shape[1] + count, config)

    def one(tokens, length, key):
        logits, cache = prefill(params, tokens, length, config)
        return decode(
            *(params, cache, logits, length, key, config, count),
            temperature=temperature,
            top_k=top_k,
        )[0]

    return jax.vmap(one)(rows, lengths, keys)


def propose(model, cache, last, start, ahead):
    """Return `ahead` guesses behind last (1,) at `start`, and the cache."""
    params, config = model
    logits, cache = extend(params, cache, last, start, config.heads)
    key = jax.random.key(0)
    return decode(params, cache, logits[0], start + 1, key, config, ahead)


def speculate(small, big, tokens, count, ahead=4):
    """Return the `count` likeliest tokens behind tokens (n,), by `big`.

    Also how often it runs. A model is (params, config), and the lengths have
    room for `ahead` more tokens (Leviathan et al. 2023, if none are drawn).
    ValueError where the big one has none, and for an empty prompt.
    """
    (params, config), length = big, len(tokens)
    tokens = padded(tokens, length)
    check_room(length, length + count + ahead, config)
    logits, cache = prefill(params, tokens, length, config)
    _, draft = prefill(small[0], tokens, length, small[1])
    text, runs = [int(logits.argmax())], 1
    while len(text) < count:
        start = length + len(text) - 1
        last = np.array(text[-1:], np.int32)
        guesses, draft = propose(small, draft, last, start, ahead)
        check = np.append(last, guesses)
        logits, cache = extend(params, cache, check, start, config.heads)
        likeliest = np.asarray(logits.argmax(axis=-1))
        right = (check[1:] == likeliest[:-1]).cumprod().sum()
        text += likeliest[: right + 1].tolist()
        runs += 1
    return np.array(text[:count], np.int32), runs
