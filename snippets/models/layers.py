"""Layers of today's transformers: RMSNorm, RoPE, grouped queries, SwiGLU."""

import functools

import jax
import jax.numpy as jnp
import torch
from flax import nnx

EXPECTED_ERRORS = {
    "odd_size": (ValueError, "rotary needs an even size of a head"),
    "position_of_a_token": (ValueError, "rotary needs a position for each"),
    "heads_that_do_not_divide": (
        ValueError,
        "The number of query heads must be a multiple of key/value heads",
    ),
}


def rms_norm(params, x, epsilon=1e-6):
    """Return x (..., width) over its root mean square, times a scale (width,).

    Epsilon is added to the mean of the squares, below the root. All is
    computed in float32, and has the dtype of x at the end; integers become
    float32.
    """
    dtype = jnp.result_type(x, 1.0)
    x = jnp.asarray(x, jnp.promote_types(dtype, jnp.float32))
    square = jnp.mean(x**2, axis=-1, keepdims=True)
    y = x * jax.lax.rsqrt(square + epsilon) * params["scale"]
    return y.astype(dtype)


class RmsNorm(nnx.Module):
    """`rms_norm` in Flax NNX, of any (..., width); its scale is float32."""

    def __init__(self, width, epsilon=1e-6):
        self.epsilon = epsilon
        self.scale = nnx.Param(jnp.ones(width))

    def __call__(self, x):
        """Return an array like `x`."""
        return rms_norm({"scale": self.scale[...]}, x, self.epsilon)


class ClassToken(nnx.Module):
    """The input of a vision transformer: a known mean, a learned token."""

    def __init__(self, mean, *, rngs):
        drawn = jax.random.normal(rngs.params(), mean.shape)
        self.token = nnx.Param(0.02 * drawn)
        self.mean = nnx.Variable(mean)

    def __call__(self, x):
        """Return (rows, 1 + length, width) of x (rows, length, width)."""
        token = self.token[...] + jnp.zeros_like(x[:, :1])
        return jnp.concatenate([token, x - self.mean[...]], axis=1)


class TorchClassToken(torch.nn.Module):
    """`ClassToken` in PyTorch."""

    def __init__(self, mean):
        super().__init__()
        drawn = torch.randn(mean.shape)
        self.token = torch.nn.Parameter(0.02 * drawn)
        self.register_buffer("mean", mean)

    def forward(self, x):
        """Return (rows, 1 + length, width) of x (rows, length, width)."""
        token = self.token.expand_as(x[:, :1])
        return torch.cat([token, x - self.mean], dim=1)


def rotary(x, positions, base=10_000.0):
    """Return x (..., length, heads, size), rotated by its positions.

    Elements i and i + size / 2 are a pair, a point of a plane. It is rotated
    by the angle position * base ** (-2 i / size), in float32; the result has
    the dtype of x.

    Positions are integers, (length,), or (rows, length) where rows differ.
    ValueError for an odd size, or another number of positions.
    """
    *_, length, _, size = x.shape
    if size % 2:
        raise ValueError(f"rotary needs an even size of a head, not {size}")
    if jnp.shape(positions)[-1:] != (length,):
        raise ValueError(
            f"rotary needs a position for each of {length} tokens; these "
            f"have the shape {jnp.shape(positions)}"
        )
    dtype = jnp.result_type(x, 1.0)
    frequencies = base ** (-jnp.arange(0, size, 2) / size)
    angles = positions[..., None, None] * frequencies
    cos, sin = jnp.cos(angles), jnp.sin(angles)
    first, second = jnp.split(x, 2, axis=-1)
    y = first * cos - second * sin, second * cos + first * sin
    return jnp.concatenate(y, axis=-1).astype(dtype)


def torch_rotary(x, positions, base=10_000.0):
    """Return x (rows, length, heads, size), rotated as in Meta's Llama.

    Elements 2 i and 2 i + 1 are a pair, one complex number.
    """
    size = x.shape[-1]
    frequencies = base ** (-torch.arange(0, size, 2) / size)
    angles = positions[:, None, None] * frequencies
    rotation = torch.polar(torch.ones_like(angles), angles)
    pairs = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)))
    return torch.view_as_real(pairs * rotation).flatten(-2).type_as(x)


def as_halves(x):
    """Return x (..., size): elements 0, 2, 4, …, and then 1, 3, 5, …"""
    pairs = x.reshape(*x.shape[:-1], -1, 2)
    return pairs.swapaxes(-1, -2).reshape(x.shape)


def as_heads(x, size):
    """Return (..., heads, size) of x (..., heads size)."""
    return x.reshape(*x.shape[:-1], -1, size)


def kernel_as_halves(kernel, size):
    """Return a kernel (inputs, heads size), each head in the order of halves.

    `rotary` then computes what `torch_rotary` did. Biases go as well.
    """
    return as_halves(as_heads(kernel, size)).reshape(kernel.shape)


def odd_size():
    """Rotate heads of size 5; raises ValueError."""
    return rotary(jnp.ones((1, 3, 2, 5)), jnp.arange(3))


def position_of_a_token():
    """Rotate three tokens by one position; raises ValueError."""
    return rotary(jnp.ones((1, 3, 2, 4)), jnp.arange(1))


def heads_that_do_not_divide():
    """Attend with 6 query heads and 4 key heads; raises ValueError."""
    queries, keys = jnp.ones((1, 3, 6, 8)), jnp.ones((1, 3, 4, 8))
    return jax.nn.dot_product_attention(queries, keys, keys)


class SwiGlu(nnx.Module):
    """The MLP of Llama in Flax NNX, on x (..., width), without biases."""

    def __init__(self, width, hidden, *, rngs):
        linear = functools.partial(nnx.Linear, use_bias=False, rngs=rngs)
        self.gate, self.up = linear(width, hidden), linear(width, hidden)
        self.down = linear(hidden, width)

    def __call__(self, x):
        """Return an array like x."""
        return self.down(nnx.silu(self.gate(x)) * self.up(x))


class TorchSwiGlu(torch.nn.Module):
    """`SwiGlu` in PyTorch."""

    def __init__(self, width, hidden):
        super().__init__()
        linear = functools.partial(torch.nn.Linear, bias=False)
        self.gate, self.up = linear(width, hidden), linear(width, hidden)
        self.down = linear(hidden, width)

    def forward(self, x):
        """Return a tensor like x."""
        return self.down(torch.nn.functional.silu(self.gate(x)) * self.up(x))


class GroupedAttention(nnx.Module):
    """Causal attention with rotary positions, on x (rows, length, width).

    `heads` is a multiple of `key_heads`, and width // heads is even.
    """

    def __init__(self, width, heads, key_heads, *, rngs):
        self.size = width // heads
        linear = functools.partial(nnx.Linear, use_bias=False, rngs=rngs)
        of_keys = key_heads * self.size
        self.query = linear(width, heads * self.size)
        self.key, self.value = linear(width, of_keys), linear(width, of_keys)
        self.out = linear(heads * self.size, width)

    def inputs(self, x, positions):
        """Return rotated queries and keys, and values."""
        layers = self.query, self.key, self.value
        query, key, value = (as_heads(f(x), self.size) for f in layers)
        return rotary(query, positions), rotary(key, positions), value

    def __call__(self, x):
        """Return an array like x."""
        inputs = self.inputs(x, jnp.arange(x.shape[1]))
        y = jax.nn.dot_product_attention(*inputs, is_causal=True)
        return self.out(y.reshape(*x.shape[:-1], -1))


class TorchGroupedAttention(torch.nn.Module):
    """`GroupedAttention` in PyTorch, which rotates as Meta's Llama."""

    def __init__(self, width, heads, key_heads):
        super().__init__()
        self.size = width // heads
        linear = functools.partial(torch.nn.Linear, bias=False)
        of_keys = key_heads * self.size
        self.query = linear(width, heads * self.size)
        self.key, self.value = linear(width, of_keys), linear(width, of_keys)
        self.out = linear(heads * self.size, width)

    def forward(self, x):
        """Return a tensor like x (rows, length, width)."""
        layers, heads = (self.query, self.key, self.value), (-1, self.size)
        query, key, value = (f(x).unflatten(-1, heads) for f in layers)
        positions = torch.arange(x.shape[1])
        query, key = (torch_rotary(y, positions) for y in (query, key))
        y = torch.nn.functional.scaled_dot_product_attention(
            *(y.transpose(1, 2) for y in (query, key, value)),
            is_causal=True,
            enable_gqa=True,
        )
        return self.out(y.transpose(1, 2).flatten(2))


class LlamaBlock(nnx.Module):
    """A block as in Llama, in Flax NNX, on x (rows, length, width)."""

    def __init__(self, width=32, heads=4, key_heads=2, hidden=64, *, rngs):
        self.norm1, self.norm2 = RmsNorm(width), RmsNorm(width)
        self.attention = GroupedAttention(width, heads, key_heads, rngs=rngs)
        self.mlp = SwiGlu(width, hidden, rngs=rngs)

    def __call__(self, x):
        """Return an array like x."""
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class TorchLlamaBlock(torch.nn.Module):
    """`LlamaBlock` in PyTorch."""

    def __init__(self, width=32, heads=4, key_heads=2, hidden=64):
        super().__init__()
        self.norm1 = torch.nn.RMSNorm(width, eps=1e-6)
        self.norm2 = torch.nn.RMSNorm(width, eps=1e-6)
        self.attention = TorchGroupedAttention(width, heads, key_heads)
        self.mlp = TorchSwiGlu(width, hidden)

    def forward(self, x):
        """Return a tensor like x (rows, length, width)."""
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


def empty_cache(block, x, length):
    """Return zeros as keys and values (rows, length, key heads, size).

    Rows, dtype and layout are those of the block's keys for x (rows, n,
    width).
    """
    _, *like = block.attention.inputs(x[:, :1], jnp.arange(1))
    return [jnp.repeat(jnp.zeros_like(y), length, axis=1) for y in like]


def next_token(block, x, position, cache):
    """Return what a block makes of x (rows, 1, width), and the new cache.

    `position` is an integer below the length of the cache.
    """
    query, *new = block.attention.inputs(
        block.norm1(x), jnp.reshape(position, 1)
    )
    cache = [
        jax.lax.dynamic_update_slice_in_dim(old, own, position, axis=1)
        for old, own in zip(cache, new, strict=True)
    ]
    known = jnp.full(len(x), position + 1)
    y = jax.nn.dot_product_attention(
        query, *cache, key_value_seq_lengths=known
    )
    x = x + block.attention.out(y.reshape(*x.shape[:-1], -1))
    return x + block.mlp(block.norm2(x)), cache


def token_by_token(block, x):
    """Return what a block makes of x (rows, length, width), in steps."""

    def step(cache, position):
        token = jax.lax.dynamic_slice_in_dim(x, position, 1, axis=1)
        y, cache = next_token(block, token, position, cache)
        return cache, y[:, 0]

    positions = jnp.arange(x.shape[1])
    _, y = jax.lax.scan(step, empty_cache(block, x, len(positions)), positions)
    return y.swapaxes(0, 1)
