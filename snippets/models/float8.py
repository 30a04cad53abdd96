"""Precision below bfloat16: float8 with scales, and random rounding."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

E4M3 = jnp.float8_e4m3fn
E5M2 = jnp.float8_e5m2


def scale_of(x, dtype, axis=None):
    """Return the scale that makes the largest |x| the dtype's largest.

    One for the array, or one along an axis, float32; 1 where all elements are
    0. It is at least 2**-126, because smaller numbers count as 0.
    """
    largest = jnp.abs(x).max(axis=axis, keepdims=axis is not None)
    scale = largest.astype(jnp.float32) / float(jnp.finfo(dtype).max)
    return jnp.where(largest > 0, jnp.maximum(scale, 2.0**-126), 1)


def to_float8(x, dtype, scale):
    """Return x / scale in a float8 dtype; beyond its range, the largest."""
    largest = float(jnp.finfo(dtype).max)
    return jnp.clip(x / scale, -largest, largest).astype(dtype)


def matmul_8(a, b, dtypes=(E4M3, E4M3), axes=(None, None), out_sharding=None):
    """Return a @ b, (m, k) @ (k, n), in float32, of float8 arrays.

    Each array has a scale, or one for each row of a (axis 1) and each column
    of b (axis 0). ValueError for other axes. If explicit axes shard k, pass
    `out_sharding`.
    """
    if axes[0] not in (None, 1) or axes[1] not in (None, 0):
        raise ValueError(f"axes are {axes}: 1 for a, 0 for b, or None")
    scales = [
        scale_of(x, *how) for x, *how in zip((a, b), dtypes, axes, strict=True)
    ]
    small = map(to_float8, (a, b), dtypes, scales)
    found = jax.lax.dot(
        *small, preferred_element_type=jnp.float32, out_sharding=out_sharding
    )
    return found * scales[0] * scales[1]


def matmul_mx(a, b, block=32):
    """Return a @ b, (m, k) @ (k, n), in float32, of mxfp8 arrays.

    Each `block` elements along k share a scale, which is a power of two as in
    the Microscaling Formats specification. Raises ValueError unless k divides
    by `block`.
    """
    if a.shape[1] % block:
        raise ValueError(f"k is {a.shape[1]}, no multiple of {block}")

    def rounded(x):
        blocks = x.reshape(len(x), -1, block)
        power = jnp.ceil(jnp.log2(scale_of(blocks, E4M3, axis=2)))
        scale = jnp.ldexp(jnp.float32(1), power.astype(int))
        small = to_float8(blocks, E4M3, scale)
        return (small.astype(jnp.float32) * scale).reshape(x.shape)

    return rounded(a) @ rounded(b.T).T


def layout_of(x):
    """Return the sharding of x on explicit axes, or None."""
    explicit = jax.sharding.get_abstract_mesh().explicit_axes
    return jax.typeof(x).sharding if explicit else None


@functools.partial(jax.custom_vjp, nondiff_argnums=(2,))
def linear_8(x, weights, of_gradient=E5M2):
    """Return x @ weights, (m, k) @ (k, n), from float8_e4m3fn, in float32.

    The backward pass has its matmuls in float8 as well, with the incoming
    gradient in the dtype `of_gradient`. Gradients have the dtypes and the
    layouts of x and of the weights. Explicit axes may not shard k.
    """
    return matmul_8(x, weights)


def linear_8_forward(x, weights, of_gradient):
    """Return the result, and what the backward pass needs."""
    return matmul_8(x, weights), (x, weights)


def linear_8_backward(of_gradient, kept, g):
    """Return the gradients of x and of the weights."""
    x, weights = kept
    mixed = of_gradient, E4M3
    like_x, like_weights = map(layout_of, kept)
    of_x = matmul_8(g, weights.T, mixed, out_sharding=like_x)
    of_weights = matmul_8(x.T, g, mixed[::-1], out_sharding=like_weights)
    return of_x.astype(x.dtype), of_weights.astype(weights.dtype)


def unscaled_8(x, weights):
    """Return x @ weights from float8_e4m3fn without a scale, in float32.

    JAX's gradients of x and of the weights are float8_e4m3fn as well.
    """
    small = x.astype(E4M3), weights.astype(E4M3)
    return jax.lax.dot(*small, preferred_element_type=jnp.float32)


def mlp_of(matmul):
    """Return the function `mlp`, with another matmul."""

    def apply(params, x):
        for n, layer in enumerate(params):
            x = matmul(x, layer["kernel"]) + layer["bias"]
            x = jnp.tanh(x) if n < len(params) - 1 else x
        return x

    return apply


def weighted(loss, weight):
    """Return a loss times a weight, as one of several terms may have."""

    def small(params, stats, batch):
        total, aux = loss(params, stats, batch)
        return weight * total, aux

    return small


def remembered(history, x):
    """Return the largest |x| of the last steps, with that of this one."""
    return jnp.append(history[1:], jnp.abs(x).max())


def error(found, a, b):
    """Return the largest error of a @ b, relative to its largest element."""
    exact = np.float64(a) @ np.float64(b)
    return float(abs(np.float64(found) - exact).max() / abs(exact).max())


def counted_in(dtype, add, parts, part=0.01):
    """Return the sum of so many equal parts; `add` rounds after each."""

    def body(n, total):
        return add(total.astype(jnp.float32) + part, n).astype(dtype)

    return jax.lax.fori_loop(0, parts, body, jnp.zeros((), dtype))


def rounded_by_chance(x, dtype, key):
    """Return float32 x in a dtype of fewer bits, rounded up or down at random.

    The probabilities make the mean exact, if |x| is at most the largest
    number of the dtype; beyond it, that number is returned. The dtype has at
    most 16 bits. No step is smaller than that of bfloat16 at 2**-110.
    """
    info = jnp.finfo(dtype)
    exponent = jnp.maximum(jnp.frexp(x)[1] - 1, max(info.minexp, -110))
    step = jnp.ldexp(jnp.float32(1), exponent - info.nmant)
    below = jnp.floor(x / step)
    up = jax.random.uniform(key, x.shape) < x / step - below
    largest = float(info.max)
    rounded = (below + up) * step
    return jnp.clip(rounded, -largest, largest).astype(dtype)
