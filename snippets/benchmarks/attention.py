"""Softmax attention, as a formula and from libraries, in three frameworks."""

import functools
import math
import resource

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
import torch

from snippets.benchmarks.race import torch_tensor

HEADS = 4
WIDTH = 64


def attention(query, key, value):
    """Return softmax(query keyᵀ / √width) value.

    All are arrays (heads, length, width).
    """
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    return jax.nn.softmax(scores) @ value


def attention_torch(query, key, value):
    """Return the same of PyTorch tensors (heads, length, width)."""
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    return torch.softmax(scores, -1) @ value


def attention_tensorflow(query, key, value):
    """Return the same of TensorFlow tensors (heads, length, width)."""
    products = tf.matmul(query, key, transpose_b=True)
    return tf.nn.softmax(products / math.sqrt(query.shape[-1])) @ value


def exact_attention(query, key, value, causal=False):
    """Return the same of NumPy arrays (heads, length, width), in float64.

    If causal, a position attends to itself and to those before it.
    """
    query, key, value = (
        np.asarray(x, np.float64) for x in (query, key, value)
    )
    scores = query @ np.swapaxes(key, 1, 2) / math.sqrt(query.shape[-1])
    if causal:
        scores = np.where(
            np.tri(scores.shape[-1], dtype=bool), scores, -np.inf
        )
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True) @ value


def causal_attention(query, key, value):
    """Return attention of (heads, length, width) to no later position."""
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    seen = jnp.tri(query.shape[1], dtype=bool)
    return jax.nn.softmax(jnp.where(seen, scores, -jnp.inf)) @ value


def inputs(length):
    """Return query, key and value, normal.

    They are float32 NumPy arrays (4, length, 64).
    """
    shape = 3, HEADS, length, WIDTH
    return tuple(
        np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
    )


def positions_first(arrays):
    """Return arrays (heads, length, width) as (1, length, heads, width)."""
    return [np.ascontiguousarray(np.swapaxes(x, 0, 1))[None] for x in arrays]


def heads_first(result):
    """Return a result in either layout as (heads, length, width), in NumPy."""
    array = np.asarray(result)
    if array.ndim == 4 and array.shape[1] == HEADS:
        return array[0]
    return np.swapaxes(array[0], 0, 1) if array.ndim == 4 else array


def in_jax(length):
    """Return what to compare in JAX, by key, for sequences of `length`."""
    own = [jnp.asarray(x) for x in inputs(length)]
    turned = [jnp.asarray(x) for x in positions_first(inputs(length))]
    library = jax.jit(jax.nn.dot_product_attention)
    return {
        "jit@jax": functools.partial(jax.jit(attention), *own),
        "eager@jax": functools.partial(attention, *own),
        "library@jax": functools.partial(library, *turned),
    }


def in_torch(length, tensor):
    """Return what to compare in PyTorch, by key, for sequences of `length`.

    `tensor` makes a tensor of a NumPy array.
    """
    own = [tensor(x) for x in inputs(length)]
    library = torch.nn.functional.scaled_dot_product_attention
    batched = [x[None] for x in own]
    return {
        "eager@torch": functools.partial(attention_torch, *own),
        "sdpa@torch": functools.partial(library, *batched),
    }


def in_tensorflow(length):
    """Return what to compare in TensorFlow, by key, at `length`."""
    own = [tf.constant(x) for x in inputs(length)]
    turned = [tf.constant(x) for x in positions_first(inputs(length))]
    graph, library = map(
        tf.function, (attention_tensorflow, tf.keras.ops.dot_product_attention)
    )
    return {
        "eager@tensorflow": functools.partial(attention_tensorflow, *own),
        "graph@tensorflow": functools.partial(graph, *own),
        "keras@tensorflow": functools.partial(library, *turned),
    }


def causal_in_jax(length):
    """Return what to compare in JAX, by key, with later positions masked."""
    own = [jnp.asarray(x) for x in inputs(length)]
    turned = [jnp.asarray(x) for x in positions_first(inputs(length))]
    library = jax.jit(
        jax.nn.dot_product_attention, static_argnames="is_causal"
    )
    return {
        "jit@jax": functools.partial(jax.jit(causal_attention), *own),
        "library@jax": functools.partial(library, *turned, is_causal=True),
    }


def causal_in_torch(length, tensor):
    """Return what to compare in PyTorch, with later positions masked.

    `tensor` makes a tensor of a NumPy array.
    """
    batched = [tensor(x)[None] for x in inputs(length)]
    library = torch.nn.functional.scaled_dot_product_attention
    return {"sdpa@torch": functools.partial(library, *batched, is_causal=True)}


def one_head(length):
    """Return an empty float32 array (length, 64), the shape in the records."""
    return np.empty((length, WIDTH), np.float32)


def cpu_program(function, *args):
    """Compile a function for a CPU, for arrays shaped like `args`."""
    cpu = jax.sharding.SingleDeviceSharding(jax.devices("cpu")[0])
    shapes = [
        jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=cpu) for x in args
    ]
    return jax.jit(function).lower(*shapes).compile()


def scores_kept(function, *args):
    """Return the temporaries that a program plans on a CPU.

    In arrays of all scores, for a function of arrays with (heads, length,
    width) or (1, length, heads, width).
    """
    plan = cpu_program(function, *args).memory_analysis()
    length = math.prod(args[0].shape) // (HEADS * WIDTH)
    return round(plan.temp_size_in_bytes / (4 * HEADS * length**2), 1)


def program_parts(function, *args):
    """Return how many kernels a program has on a CPU, and YNNPACK's."""
    text = cpu_program(function, *args).as_text()
    return text.count(" fusion("), text.count('"kind":"__ynn_fusion"')


def fresh_scores(call, length, calls=1):
    """Return the new memory of a call, in arrays of all scores.

    It is the number of page faults times the size of a page.
    """
    jax.block_until_ready(call())
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(calls):
        jax.block_until_ready(call())
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    size = 4 * HEADS * length**2
    return round(faults / calls * resource.getpagesize() / size, 1)


def torch_choice(length):
    """Name the implementation that PyTorch picks, by its backward node."""
    query = torch_tensor(np.ones((1, HEADS, length, WIDTH), np.float32))
    query.requires_grad_()
    result = torch.nn.functional.scaled_dot_product_attention(
        query, query, query
    )
    return result.grad_fn.name()
