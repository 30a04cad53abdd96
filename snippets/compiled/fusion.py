"""Functions that each become one program, from SELU to a gradient."""

import jax
import jax.numpy as jnp

ALPHA = 1.6732632423543772
SCALE = 1.0507009873554805

COMPILED = {
    "selu": ["float32[4096,4096]"],
    "softmax": ["float32[4096,4096]"],
    "matrix_product": ["float32[3000,3000]", "float32[3000,3000]"],
    "convolution": ["float32[32,56,56,64]", "float32[3,3,64,128]"],
    "attention_layer": [
        {
            "query": "float32[512,8,64]",
            "key": "float32[512,8,64]",
            "value": "float32[512,8,64]",
            "out": "float32[8,64,512]",
        },
        "float32[8,128,512]",
    ],
    "running_average": ["float32[1000,256]"],
    "gradient": ["float32[512,512]", "float32[1024,512]", "float32[1024,512]"],
}


def selu(x):
    """Return SELU of `x`, any shape (Klambauer et al. 2017, equation 2)."""
    return SCALE * jnp.where(x > 0, x, ALPHA * jnp.exp(x) - ALPHA)


def softmax(x):
    """Return exp(x), divided by its sum over the last axis. x: any shape."""
    powers = jnp.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def matrix_product(a, b):
    """Return a @ b. a: (n, m), b: (m, k)."""
    return a @ b


def convolution(images, kernel):
    """Return images (n, h, w, out) from images (n, h, w, in).

    The kernel has shape (height, width, in, out). Borders are padded with
    zeros.
    """
    return jax.lax.conv_general_dilated(
        images,
        kernel,
        window_strides=(1, 1),
        padding="SAME",
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )


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


def running_average(x):
    """Return the running averages of the rows of `x`, (n, m).

    Each is 0.9 times the one before plus 0.1 times the row; the first is zero.
    """

    def step(average, row):
        average = 0.9 * average + 0.1 * row
        return average, average

    return jax.lax.scan(step, jnp.zeros(x.shape[1:]), x)[1]


def squared_error(weights, x, y):
    """Return the mean of (tanh(x @ weights) - y)**2 over all of `y`."""
    return jnp.mean((jnp.tanh(x @ weights) - y) ** 2)


def gradient(weights, x, y):
    """Return the gradient of the squared error with respect to the weights."""
    return jax.grad(squared_error)(weights, x, y)
