"""Decoding one token at a time, with a cache of keys and values."""

import functools
import itertools
import time

import jax
import jax.numpy as jnp
import numpy as np
import torch
import torch.nn.functional as F

from snippets.benchmarks.race import has_cpp_compiler, on_host
from snippets.benchmarks.transformer import in_torch, mlp, normed, product


def empty_cache(weights, heads, batch, capacity):
    """Return zeros for keys and values.

    Each is (layers, batch, heads, capacity, width).
    """
    layers, width, _ = weights["layers"]["out"].shape
    shape = layers, batch, heads, capacity, width // heads
    dtype = weights["tokens"].dtype
    return jnp.zeros(shape, dtype), jnp.zeros(shape, dtype)


def attend(q, keys, values, position):
    """Return attention of `q` to positions up to `position`.

    `q` is (batch, heads, width), keys and values are (batch, heads,
    capacity, width); the softmax is in float32.
    """
    match = jnp.einsum(
        "bhw,bhcw->bhc", q, keys, preferred_element_type=jnp.float32
    )
    seen = jnp.arange(keys.shape[2]) <= position
    match = jnp.where(seen, match / q.shape[-1] ** 0.5, -jnp.inf)
    return jnp.einsum(
        "bhc,bhcw->bhw", jax.nn.softmax(match).astype(q.dtype), values
    )


def kept(stacked, new, number, position):
    """Return all layers' keys or values, with `new` written in.

    `new` is (batch, heads, width).
    """
    start = number, 0, 0, position, 0
    return jax.lax.dynamic_update_slice(stacked, new[None, :, :, None], start)


@jax.jit(static_argnames="heads", donate_argnames="cache")
def next_token(weights, cache, token, position, heads):
    """Return the likeliest next token and the new cache.

    `token` is int32 (batch,), and `position` its position, an int32
    scalar; the cache has room for it.
    """
    x = weights["tokens"][token] + weights["positions"][position]

    def one(carry, layer):
        x, keys, values, number = carry
        qkv = product(normed(x, layer["norm_mix"]), layer["qkv"], x.dtype)
        q, k, v = jnp.moveaxis(qkv.reshape(len(x), 3, heads, -1), 1, 0)
        keys = kept(keys, k, number, position)
        values = kept(values, v, number, position)
        mixed = attend(q, keys[number], values[number], position)
        x = x + product(mixed.reshape(x.shape), layer["out"], x.dtype)
        x = x + mlp(x, layer, x.dtype)
        return (x, keys, values, number + 1), None

    (x, *cache, _), _ = jax.lax.scan(one, (x, *cache, 0), weights["layers"])
    scores = product(normed(x, weights["norm"]), weights["tokens"].T, x.dtype)
    return scores.argmax(-1).astype(jnp.int32), tuple(cache)


def write(weights, cache, token, heads, positions):
    """Return a token for each position, int32 (batch, len(positions)).

    Each takes a call. `token` comes before them; `positions` are int32
    scalars on the device.
    """
    tokens = []
    for position in positions:
        token, cache = next_token(weights, cache, token, position, heads)
        tokens.append(token)
    return jnp.stack(tokens, axis=1), cache


@jax.jit(static_argnames=("heads", "count"), donate_argnames="cache")
def write_in_one(weights, cache, token, heads, count):
    """Return what `write` does for `count` positions, from one program."""

    def one(carry, position):
        token, cache = next_token(weights, *carry, position, heads)
        return (cache, token), token

    (cache, _), tokens = jax.lax.scan(one, (cache, token), jnp.arange(count))
    return tokens.T, cache


class CacheTorch(torch.nn.Module):
    """Keys and values of a layer, (batch, heads, capacity, width)."""

    def __init__(self, like, shape):
        """Allocate zeros, of dtype and on the device of `like`, a tensor."""
        super().__init__()
        self.register_buffer("keys", like.new_zeros(shape))
        self.register_buffer("values", like.new_zeros(shape))

    def forward(self, q, k, v, position):
        """Keep `k` and `v` at `position`, and return the attention of `q`.

        All three are (batch, heads, width), and so is the result.
        """
        self.keys[:, :, position] = k[:, :, None]
        self.values[:, :, position] = v[:, :, None]
        seen = torch.arange(self.keys.shape[2], device=q.device) <= position
        given = q[:, :, None], self.keys, self.values
        return F.scaled_dot_product_attention(*given, attn_mask=seen[None])[
            :, :, 0
        ]


class DecoderTorch(torch.nn.Module):
    """A model of PyTorch with a cache of fixed length."""

    def __init__(self, model, batch, capacity):
        """Keep `model`, and room for `capacity` positions of `batch` texts."""
        super().__init__()
        self.model, weight = model, model.tokens.weight.detach()
        heads = model.layers[0].heads
        shape = batch, heads, capacity, weight.shape[1] // heads
        caches = (CacheTorch(weight, shape) for _ in model.layers)
        self.caches = torch.nn.ModuleList(caches)

    def forward(self, token, position):
        """Return the next token, int64 (batch,); `position` is int64 (1,)."""
        model = self.model
        x = model.tokens(token) + model.positions(position)
        for layer, cache in zip(model.layers, self.caches, strict=True):
            qkv = layer.qkv(layer.norm_mix(x)).unflatten(
                -1, (3, layer.heads, -1)
            )
            x = x + layer.out(cache(*qkv.unbind(1), position).flatten(1))
            x = x + layer.mlp(x)
        return F.linear(model.norm(x), model.tokens.weight).argmax(-1)


@torch.no_grad()
def write_torch(decoder, token, count):
    """Return `count` tokens after `token`, int64 (batch, count).

    Each takes a call. A result of a CUDA graph is overwritten by the next
    call, so it is copied.
    """
    tokens = []
    for position in torch.arange(count, device=token.device).split(1):
        token = decoder(token, position).clone()
        tokens.append(token)
    return torch.stack(tokens, dim=1)


def texts_jax(weights, heads, capacity, count):
    """Return JAX's variants of generating `count` tokens, by key."""

    def keep_writing(write, number):
        cache = empty_cache(weights, heads, 1, capacity)
        first = jnp.zeros(1, jnp.int32)

        def text():
            nonlocal cache
            tokens, cache = write(weights, cache, first, heads, number)
            return tokens

        return text

    return {
        "steps@jax": keep_writing(write, list(jnp.arange(count))),
        "scan@jax": keep_writing(write_in_one, count),
    }


def decoder_torch(numbers, size, dtype, capacity):
    """Return PyTorch's decoder of a single text, weights in `dtype`."""
    model, _ = in_torch(numbers, size)
    return DecoderTorch(model.to(dtype), 1, capacity)


def decoders_torch(*args):
    """Return two such decoders: eager and, where that works, compiled.

    On a GPU the compiled one replays a CUDA graph.
    """
    decoders, gpu = (
        {"eager@torch": decoder_torch(*args)},
        torch.cuda.is_available(),
    )
    if gpu or has_cpp_compiler():
        mode = "reduce-overhead" if gpu else "default"
        compiled = torch.compile(
            decoder_torch(*args), mode=mode, fullgraph=True
        )
        decoders["compile@torch"] = compiled
    return decoders


def texts_torch(decoders, count, first):
    """Return PyTorch's variants of generating `count` tokens, by key."""
    return {
        key: functools.partial(write_torch, decoder, first, count)
        for key, decoder in decoders.items()
    }


def steps_of_jax(weights, heads, capacity, count):
    """Return a function that generates a token; it restarts after `count`."""
    token, cache = (
        jnp.zeros(1, jnp.int32),
        empty_cache(weights, heads, 1, capacity),
    )
    positions = itertools.cycle(list(jnp.arange(count)))

    def step():
        nonlocal token, cache
        token, cache = next_token(
            weights, cache, token, next(positions), heads
        )
        return token

    return step


def steps_of_torch(decoder, count, first):
    """Return the same for a decoder of PyTorch, after the token `first`."""
    token = first
    positions = itertools.cycle(
        torch.arange(count, device=first.device).split(1)
    )

    @torch.no_grad()
    def step():
        nonlocal token
        token = decoder(token, next(positions)).clone()
        return token

    return step


def latencies(step, count):
    """Return the seconds of `count` calls, each with its token on the host."""
    on_host(step())
    seconds = []
    for _ in range(count):
        start = time.perf_counter()
        on_host(step())
        seconds.append(time.perf_counter() - start)
    return seconds


def percentiles(seconds):
    """Return the median and the 99th percentile as text, in milliseconds."""
    half, most = 1e3 * np.percentile(seconds, [50, 99])
    return f"half within {half:.2f} ms, 99 of 100 within {most:.2f} ms"


def steps_that_grow(weights, heads, capacity):
    """Return a function that extends the cache and generates a token."""
    token, cache = (
        jnp.zeros(1, jnp.int32),
        empty_cache(weights, heads, 1, capacity),
    )

    def step():
        nonlocal token, cache
        cache = jax.tree.map(one_longer, cache)
        last = cache[0].shape[3] - 1
        token, cache = next_token(weights, cache, token, last, heads)
        return token

    return step


def one_longer(stacked):
    """Return keys or values, (…, capacity, width), with room for one more."""
    return jnp.pad(stacked, [(0, 0)] * (stacked.ndim - 2) + [(0, 1), (0, 0)])


def steps_that_grow_torch(decoder, first):
    """Return the same for PyTorch's eager decoder, from `first` on."""
    token = first

    @torch.no_grad()
    def step():
        nonlocal token
        for cache in decoder.caches:
            cache.keys = F.pad(cache.keys, (0, 0, 0, 1))
            cache.values = F.pad(cache.values, (0, 0, 0, 1))
        last = cache.keys.shape[2] - 1
        token = decoder(token, torch.tensor([last], device=first.device))
        return token

    return step
