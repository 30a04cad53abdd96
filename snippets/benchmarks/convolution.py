"""One convolution in three frameworks, and the libraries that compute it."""

import functools
import re

import jax
import numpy as np
import tensorflow as tf
import torch

from snippets.benchmarks.matmul import printed
from snippets.benchmarks.race import on_host

IMAGES = 8
CHANNELS = 32


def convolve(images, kernel):
    """Convolve images (n, height, width, in) with a kernel (3, 3, in, out)."""
    return jax.lax.conv_general_dilated(
        images,
        kernel,
        (1, 1),
        "SAME",
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )


def convolve_channels_first(images, kernel):
    """Convolve images (n, in, height, width) with a kernel (3, 3, in, out)."""
    return jax.lax.conv_general_dilated(
        images,
        kernel,
        (1, 1),
        "SAME",
        dimension_numbers=("NCHW", "HWIO", "NCHW"),
    )


def convolve_torch(images, kernel):
    """Convolve images (n, in, height, width) with a kernel (out, in, 3, 3)."""
    return torch.nn.functional.conv2d(images, kernel, padding=1)


def convolve_tensorflow(images, kernel):
    """Convolve images (n, height, width, in) with a kernel (3, 3, in, out)."""
    return tf.nn.conv2d(images, kernel, 1, "SAME")


def images_and_kernel(size):
    """Return float32 NumPy arrays (8, size, size, 32) and (3, 3, 32, 32).

    The kernel is scaled so that the results are of the size of the images.
    """
    draw = np.random.default_rng(0)
    images = draw.standard_normal(
        (IMAGES, size, size, CHANNELS), dtype=np.float32
    )
    kernel = draw.standard_normal((3, 3, CHANNELS, CHANNELS), dtype=np.float32)
    return images, kernel / np.float32((9 * CHANNELS) ** 0.5)


def exact_convolution(images, kernel):
    """Return what `convolve` does, as nine matmuls in float64."""
    images, kernel = (
        np.asarray(images, np.float64),
        np.asarray(kernel, np.float64),
    )
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0)))
    height, width = images.shape[1:3]
    return sum(
        padded[:, row : row + height, column : column + width]
        @ kernel[row, column]
        for row in range(3)
        for column in range(3)
    )


def operations(size):
    """Count multiplications and additions, those at the border included."""
    return 2 * IMAGES * size**2 * 9 * CHANNELS**2


def channels_first(images):
    """Return NumPy images (n, height, width, in) as (n, in, height, width)."""
    return np.ascontiguousarray(np.moveaxis(images, -1, 1))


def torch_operands(images, kernel, tensor):
    """Return images and kernel of `convolve` as `convolve_torch` takes them.

    `tensor` makes a tensor of a NumPy array.
    """
    turned = np.ascontiguousarray(kernel.transpose(3, 2, 0, 1))
    return tensor(channels_first(images)), tensor(turned)


def channels_last(tensors):
    """Return tensors of four axes with channels adjacent in memory."""
    return [each.to(memory_format=torch.channels_last) for each in tensors]


def in_order(result):
    """Return a result of any framework and order as NumPy (n, size, size, 32).

    ValueError where the size is 32, which leaves open what is a channel.
    """
    array = on_host(result)
    if array.shape.count(CHANNELS) > 1:
        raise ValueError(f"one of the axes {array.shape} must be the channels")
    return array if array.shape[-1] == CHANNELS else np.moveaxis(array, 1, -1)


def in_jax(size):
    """Return what to compare in JAX, by key, for images of (size, size)."""
    images, kernel = images_and_kernel(size)
    operands = jax.numpy.asarray(images), jax.numpy.asarray(kernel)
    turned = jax.numpy.asarray(channels_first(images)), operands[1]
    compiled, first = jax.jit(convolve), jax.jit(convolve_channels_first)
    return {
        "jit@jax": functools.partial(compiled, *operands),
        "eager@jax": functools.partial(convolve, *operands),
        "channels_first@jax": functools.partial(first, *turned),
    }


def in_torch(size, tensor):
    """Return what to compare in PyTorch, by key, for images of (size, size).

    `tensor` makes a tensor of a NumPy array.
    """
    operands = torch_operands(*images_and_kernel(size), tensor)
    return {
        "eager@torch": functools.partial(convolve_torch, *operands),
        "channels_last@torch": functools.partial(
            convolve_torch, *channels_last(operands)
        ),
    }


def in_tensorflow(size):
    """Return what to compare in TensorFlow, by key, for (size, size)."""
    operands = [tf.constant(each) for each in images_and_kernel(size)]
    graph, xla = (
        tf.function(convolve_tensorflow, jit_compile=compiled)
        for compiled in (None, True)
    )
    return {
        "eager@tensorflow": functools.partial(convolve_tensorflow, *operands),
        "graph@tensorflow": functools.partial(graph, *operands),
        "xla@tensorflow": functools.partial(xla, *operands),
    }


def plane(size):
    """Return an empty float32 array (size, size), the shape in the records."""
    return np.empty((size, size), np.float32)


def steps(text):
    """Return the operations of a compiled program, fusions by their kind."""
    found = []
    for line in text[text.index("ENTRY") :].splitlines():
        if match := re.search(r"%([\w.]+) = \S+ ([\w-]+)\(", line):
            name, operation = match.groups()
            kind = re.search(r'"kind":"(__\w+)"', line)
            fused = kind.group(1) if kind else name.rstrip(".0123456789")
            found.append(fused if operation == "fusion" else operation)
    return [each for each in found if each != "parameter"]


def program(function, *args):
    """Return the steps of what JAX compiles for a CPU, for such `args`."""
    cpu = jax.sharding.SingleDeviceSharding(jax.devices("cpu")[0])
    shapes = [
        jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=cpu) for x in args
    ]
    return steps(jax.jit(function).lower(*shapes).compile().as_text())


def xla_of_tensorflow(images, kernel):
    """Return the steps of what TensorFlow's XLA compiles for a CPU."""
    function = tf.function(convolve_tensorflow, jit_compile=True)
    with tf.device("/CPU:0"):
        describe = function.experimental_get_compiler_ir(
            tf.constant(images), tf.constant(kernel)
        )
        return steps(describe(stage="optimized_hlo"))


def torch_log(images, kernel):
    """Return what oneDNN logs for `convolve_torch`: steps and kernels."""
    onednn = torch.backends.mkldnn
    switch = onednn.verbose(onednn.VERBOSE_ON)
    log = printed(switch, convolve_torch, images, kernel)
    steps = re.findall(r"exec,cpu,(reorder|convolution),([^,]+),", log)
    return [" ".join(each) for each in steps]


def tensorflow_kernels(size):
    """Return the kernels that a graph with one convolution runs."""
    images, kernel = images_and_kernel(size)
    v1 = tf.compat.v1
    options = v1.RunOptions(output_partition_graphs=True)
    metadata = v1.RunMetadata()
    with tf.Graph().as_default(), v1.Session() as session, tf.device("/CPU:0"):
        holders = [
            v1.placeholder(tf.float32, x.shape) for x in (images, kernel)
        ]
        result = convolve_tensorflow(*holders)
        values = dict(zip(holders, (images, kernel), strict=True))
        session.run(result, values, options=options, run_metadata=metadata)
    nodes = [
        node.op for graph in metadata.partition_graphs for node in graph.node
    ]
    return [op for op in nodes if not op.startswith(("_Arg", "_Retval"))]
