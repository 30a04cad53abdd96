"""Causal attention in bfloat16, with and without gradients."""

import contextlib
import functools

import jax
import jax.numpy as jnp
import numpy as np
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from snippets.benchmarks.race import torch_tensor

ON_CPU = {1024: (1, 4, 64)}
ON_GPU = {1024: (16, 16, 128), 4096: (4, 16, 128), 16384: (1, 16, 128)}
LONGEST_WITH_SCORES = 4096


def shapes_here():
    """Return {length: (batch, heads, width)} that suit the device."""
    return ON_CPU if jax.devices()[0].platform == "cpu" else ON_GPU


def draw(batch, length, heads, width):
    """Return queries, keys, values and cotangents, normal, in NumPy.

    They are float32 (batch, length, heads, width); the cotangents are the
    derivatives of a loss by the result.
    """
    rng = np.random.default_rng(0)
    shape = 4, batch, length, heads, width
    return tuple(rng.standard_normal(shape, np.float32))


@jax.jit(static_argnames="implementation")
def forward(query, key, value, implementation=None):
    """Return causal attention, (batch, length, heads, width)."""
    return jax.nn.dot_product_attention(
        query, key, value, is_causal=True, implementation=implementation
    )


@jax.jit(static_argnames="implementation")
def with_gradient(query, key, value, cotangent, implementation=None):
    """Return attention, and its gradients by query, key and value."""
    attend = functools.partial(forward, implementation=implementation)
    result, backward = jax.vjp(attend, query, key, value)
    return result, backward(cotangent)


def forward_torch(query, key, value, backend=None):
    """Return causal attention, (batch, heads, length, width).

    PyTorch chooses a backend itself where none is named.
    """
    with sdpa_kernel(backend) if backend else contextlib.nullcontext():
        return F.scaled_dot_product_attention(
            query, key, value, is_causal=True
        )


def with_gradient_torch(query, key, value, cotangent, backend=None):
    """Do what `with_gradient` does; query, key, value want gradients."""
    result = forward_torch(query, key, value, backend)
    return result, torch.autograd.grad(result, (query, key, value), cotangent)


def implementations(length):
    """Return JAX's implementations here, by the keys of a race.

    `library` is cuDNN's on an NVIDIA GPU, where `xla` is there as well, up
    to a length at which all scores fit.
    """
    if jax.devices()[0].platform != "gpu":
        return {"library@jax": None}
    found = {"library@jax": "cudnn"}
    if length <= LONGEST_WITH_SCORES:
        found["xla@jax"] = "xla"
    return found


def backends(length):
    """Return PyTorch's backends by the keys of a race; `sdpa` is its own."""
    found = {"sdpa@torch": None}
    if torch.cuda.is_available():
        found["flash@torch"] = SDPBackend.FLASH_ATTENTION
        found["cudnn@torch"] = SDPBackend.CUDNN_ATTENTION
    if length <= LONGEST_WITH_SCORES:
        found["math@torch"] = SDPBackend.MATH
    return found


def in_jax(arrays, length):
    """Return two races of JAX in bfloat16, without and with gradients."""
    short = [jnp.asarray(array, jnp.bfloat16) for array in arrays]
    ways = implementations(length).items()
    return (
        {
            key: functools.partial(forward, *short[:3], way)
            for key, way in ways
        },
        {
            key: functools.partial(with_gradient, *short, way)
            for key, way in ways
        },
    )


def in_torch(arrays, length, dtype=torch.bfloat16):
    """Return the same of PyTorch, which has the heads before the positions."""
    tensors = [torch_tensor(a.swapaxes(1, 2).copy()).to(dtype) for a in arrays]
    wanted = [tensor.clone().requires_grad_() for tensor in tensors[:3]]
    own, cotangent = tensors[:3], tensors[3]
    ways = backends(length).items()
    return (
        {
            key: functools.partial(forward_torch, *own, way)
            for key, way in ways
        },
        {
            key: functools.partial(
                with_gradient_torch, *wanted, cotangent, way
            )
            for key, way in ways
        },
    )


def heads_last(tensor):
    """Return PyTorch's result in NumPy and float64.

    Its shape is (batch, length, heads, width).
    """
    return tensor.detach().cpu().double().numpy().swapaxes(1, 2)


def operations(batch, length, heads, width):
    """Return the operations of causal attention, and with its gradient.

    Two matmuls, halved by the mask; the gradient takes five (Dao 2023,
    FlashAttention-2, section 4.1).
    """
    once = 4 * batch * heads * length**2 * width // 2
    return once, once * 7 // 2


def planned(arrays, implementation):
    """Return the bytes of temporaries that XLA plans for `with_gradient`."""
    shapes = [
        jax.ShapeDtypeStruct(array.shape, jnp.bfloat16) for array in arrays
    ]
    lowered = with_gradient.lower(*shapes, implementation)
    return lowered.compile().memory_analysis().temp_size_in_bytes
