"""A matmul and a convolution, to be compiled."""

import jax

COMPILED = {
    "matrix_product": ["float32[3000,3000]", "float32[3000,3000]"],
    "convolution": ["float32[32,56,56,64]", "float32[3,3,64,128]"],
}


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
