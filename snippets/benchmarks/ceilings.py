"""How fast memory and matmuls are, and how close operations come."""

import functools
import math
import resource
import statistics

import jax
import jax.numpy as jnp
import numpy as np
import torch

from snippets.benchmarks.attention import HEADS, WIDTH, attention, inputs
from snippets.benchmarks.matmul import WAYS, operands, product_allowed
from snippets.benchmarks.race import relative_error, torch_tensor
from snippets.benchmarks.selu import chain, exact_chain
from snippets.benchmarks.training_step import (
    EPSILON,
    standardized,
    standardized_torch,
)

FACTOR = 3.0
STREAM_JAX = {
    "copy": lambda b, c: jnp.copy(b),
    "scale": lambda b, c: FACTOR * b,
    "add": lambda b, c: b + c,
    "triad": lambda b, c: b + FACTOR * c,
}
STREAM_TORCH = {
    "copy": lambda out, b, c: out.copy_(b),
    "scale": lambda out, b, c: torch.mul(b, FACTOR, out=out),
    "add": lambda out, b, c: torch.add(b, c, out=out),
    "triad": lambda out, b, c: torch.add(b, c, alpha=FACTOR, out=out),
}


def copied(out, b):
    """Return `out`, overwritten with the values of `b`, both NumPy."""
    np.copyto(out, b)
    return out


STREAM_NUMPY = {
    "copy": lambda out, b, c: copied(out, b),
    "scale": lambda out, b, c: np.multiply(b, FACTOR, out=out),
    "add": lambda out, b, c: np.add(b, c, out=out),
    "triad": lambda out, b, c: np.add(
        b, np.multiply(c, FACTOR, out=out), out=out
    ),
}
EXACT = {
    "copy": lambda b, c: b,
    "scale": lambda b, c: FACTOR * b,
    "add": lambda b, c: b + c,
    "triad": lambda b, c: b + FACTOR * c,
}


def cache_bytes():
    """Return the bytes of the first core's largest cache, 0 if unknown."""
    try:
        with open("/sys/devices/system/cpu/cpu0/cache/index3/size") as file:
            return int(file.read().strip().removesuffix("K")) * 1024
    except OSError:
        return 0


def numbers(size):
    """Return two float32 NumPy arrays of shape (size,), uniform in [0, 1)."""
    rng = np.random.default_rng(0)
    return [rng.random(size, np.float32) for _ in range(2)]


def over(function):
    """Compile a JAX function that overwrites an array that it is given.

    That array has the shape and dtype of the result and comes first. Its
    caller loses it, and the function does not see it.
    """

    @jax.jit(donate_argnums=0, keep_unused=True)
    def written(out, *arrays):
        return function(*arrays)

    return written


def again(function, out, *arrays):
    """Return a call that overwrites `out`, and then its last result."""

    def call():
        nonlocal out
        out = function(out, *arrays)
        return out

    return call


def stream_jax(kernel, b, c):
    """Return a call of a kernel in JAX, on NumPy's float32 arrays (n,)."""
    b, c = jnp.asarray(b), jnp.asarray(c)
    return again(over(STREAM_JAX[kernel]), jnp.zeros_like(b), b, c)


def stream_torch(kernel, b, c):
    """Return a call of a kernel in PyTorch, on NumPy's float32 arrays (n,)."""
    b, c = torch_tensor(b), torch_tensor(c)
    return functools.partial(STREAM_TORCH[kernel], torch.zeros_like(b), b, c)


def stream_numpy(kernel, b, c):
    """Return a call of a kernel in NumPy, on float32 arrays (n,)."""
    return functools.partial(STREAM_NUMPY[kernel], np.ones_like(b), b, c)


def new_jax(b, c):
    """Return a call of the triad in JAX, into a new array each time."""
    return functools.partial(
        jax.jit(STREAM_JAX["triad"]), *map(jnp.asarray, (b, c))
    )


def new_torch(b, c):
    """Return a call of the triad in PyTorch, into a new array each time."""
    return functools.partial(
        torch.add, *map(torch_tensor, (b, c)), alpha=FACTOR
    )


def new_numpy(b, c):
    """Return a call of the triad in NumPy, a new array per operation."""
    return functools.partial(EXACT["triad"], b, c)


def in_gigabytes(race):
    """Return {alternative: GB/s} of a comparison of copies.

    Without decimals. Counted are the bytes of the float32 array that is
    copied, in the seconds that one more call adds.
    """
    return {
        key: round(
            4
            * math.prod(each.shape[0])
            / statistics.median(each.throughput)
            / 1e9
        )
        for key, each in race.alternatives.items()
    }


def page_faults(call):
    """Return the page faults of a second call, in hundreds."""
    jax.block_until_ready(call())
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    jax.block_until_ready(call())
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    return round(faults, -2)


def largest_products(frameworks, size, ways):
    """Return what to compare: matmuls of (size, size).

    `ways` are keys of `WAYS`, and `frameworks` are `Contestant`s.
    """
    found = {}
    for each in frameworks:
        for way in ways:
            allowed, dtype = WAYS[way]
            arrays = [
                each.cast(each.on_device(x), dtype) for x in operands(size)
            ]
            found[f"{way}@{each.name}"] = functools.partial(
                product_allowed, each, allowed, *arrays
            )
    return found


def product_errors(frameworks, size, ways):
    """Return the relative error of `largest_products`, against float64."""
    exact = np.matmul(*operands(size), dtype=np.float64)
    by_name = {each.name: each for each in frameworks}
    found = {}
    for key, call in largest_products(frameworks, size, ways).items():
        each = by_name[key.partition("@")[2]]
        found[key] = relative_error(
            each.on_host(each.cast(call(), "float32")), exact
        )
    return found


def transfers_jax(x):
    """Return what to compare in JAX: copies of `x` to a device and back.

    A JAX array keeps NumPy's copy of it, so the copy back starts from a
    new array.
    """
    device = jax.devices()[0]
    there, pinned = (
        jax.sharding.SingleDeviceSharding(device, memory_kind=kind)
        for kind in ("device", "pinned_host")
    )
    on_device, on_host = jax.device_put(x, there), jax.device_put(x, pinned)
    return {
        "to_pageable@jax": functools.partial(jax.device_put, x, there),
        "to_pinned@jax": functools.partial(jax.device_put, on_host, there),
        "from_pageable@jax": lambda: np.asarray(jnp.copy(on_device)),
        "from_pinned@jax": functools.partial(
            jax.device_put, on_device, pinned
        ),
    }


def transfers_torch(x):
    """Return what to compare in PyTorch: copies to a GPU and back."""
    pageable, on_device = torch.from_numpy(x), torch_tensor(x)
    pinned, back = (
        pageable.pin_memory(),
        torch.empty_like(pageable, pin_memory=True),
    )
    to, copy = torch.Tensor.to, torch.Tensor.copy_
    place = on_device.device
    return {
        "to_pageable@torch": functools.partial(to, pageable, place),
        "to_pinned@torch": functools.partial(
            to, pinned, place, non_blocking=True
        ),
        "from_pageable@torch": functools.partial(torch.Tensor.cpu, on_device),
        "from_pinned@torch": functools.partial(
            copy, back, on_device, non_blocking=True
        ),
    }


PASSES_JAX = {
    "copy": jnp.copy,
    "chain": functools.partial(chain, length=4),
    "softmax": jax.nn.softmax,
    "layer_norm": standardized,
}


def passes_jax(x):
    """Return what to compare in JAX: functions that need one pass over `x`.

    Each is compiled, into an old array and into a new one (`_new`); the
    chain also runs eagerly. `x` is a float32 NumPy array of shape (rows,
    columns).
    """
    x, found = jnp.asarray(x), {}
    for name, function in PASSES_JAX.items():
        found[f"{name}@jax"] = again(over(function), jnp.zeros_like(x), x)
        found[f"{name}_new@jax"] = functools.partial(jax.jit(function), x)
    found["eager_chain@jax"] = functools.partial(PASSES_JAX["chain"], x)
    return found


def passes_torch(x):
    """Return what to compare in PyTorch, of what `passes_jax` has."""
    x = torch_tensor(x)
    return {
        "copy@torch": functools.partial(torch.zeros_like(x).copy_, x),
        "copy_new@torch": functools.partial(torch.clone, x),
        "softmax_new@torch": functools.partial(torch.softmax, x, -1),
        "layer_norm_new@torch": functools.partial(standardized_torch, x),
        "eager_chain@torch": functools.partial(chain, x, 4),
    }


def exact_passes(x):
    """Return {name: result} of the same functions in NumPy and float64."""
    powers = np.exp(x.astype(np.float64))
    away = x - x.mean(-1, keepdims=True, dtype=np.float64)
    variance = (away**2).mean(-1, keepdims=True)
    chained = exact_chain(x, 4)
    return {
        "copy": x,
        "chain": chained,
        "eager_chain": chained,
        "softmax": powers / powers.sum(-1, keepdims=True),
        "layer_norm": away / np.sqrt(variance + EPSILON),
    }


def dense_products(frameworks, **sizes):
    """Return what to compare: matmuls, by the names of their sizes."""
    return {
        f"{name}@{each.name}": functools.partial(
            each.product, *map(each.on_device, operands(size))
        )
        for name, size in sizes.items()
        for each in frameworks
    }


def attention_jax(length):
    """Return a call of compiled attention on (4, length, 64)."""
    return functools.partial(
        jax.jit(attention), *map(jnp.asarray, inputs(length))
    )


def attention_torch(length):
    """Return a call of PyTorch's own attention, on (1, 4, length, 64)."""
    tensors = (torch_tensor(x)[None] for x in inputs(length))
    return functools.partial(
        torch.nn.functional.scaled_dot_product_attention, *tensors
    )


def attention_operations(length):
    """Return the operations of attention's two matmuls, (4, length, 64)."""
    return 4 * HEADS * length**2 * WIDTH
