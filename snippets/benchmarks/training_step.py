"""One training step of three small models, in three frameworks."""

import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
import torch

from snippets.benchmarks.race import largest_difference, torch_tensor
from snippets.jaxprs.reading import primitives

RATE = 0.01
HEADS = 4
EPSILON = 1e-5


def mlp(params, x):
    """Return (batch, 10) for `x`, (batch, 64), through two layers of tanh."""
    x = jnp.tanh(x @ params["w1"] + params["b1"])
    x = jnp.tanh(x @ params["w2"] + params["b2"])
    return x @ params["w3"] + params["b3"]


def mlp_torch(params, x):
    """Return what `mlp` does, in PyTorch."""
    x = torch.tanh(x @ params["w1"] + params["b1"])
    x = torch.tanh(x @ params["w2"] + params["b2"])
    return x @ params["w3"] + params["b3"]


def mlp_tensorflow(params, x):
    """Return what `mlp` does, in TensorFlow."""
    x = tf.tanh(x @ params["w1"] + params["b1"])
    x = tf.tanh(x @ params["w2"] + params["b2"])
    return x @ params["w3"] + params["b3"]


def convolve(x, kernel):
    """Convolve `x`, (batch, n, n, in), with steps of 2; no padding."""
    layout = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(
        x, kernel, (2, 2), "VALID", dimension_numbers=layout
    )


def cnn(params, x):
    """Return (batch, 10) for images `x`, (batch, n, n, 3)."""
    x = jax.nn.relu(convolve(x, params["k1"]))
    x = jax.nn.relu(convolve(x, params["k2"]))
    return x.mean((1, 2)) @ params["w"] + params["b"]


def cnn_torch(params, x):
    """Do what `cnn` does, with channels first."""
    x = torch.relu(torch.conv2d(x, params["k1"], stride=2))
    x = torch.relu(torch.conv2d(x, params["k2"], stride=2))
    return x.mean((2, 3)) @ params["w"] + params["b"]


def cnn_tensorflow(params, x):
    """Return what `cnn` does, in TensorFlow."""
    x = tf.nn.relu(tf.nn.conv2d(x, params["k1"], 2, "VALID"))
    x = tf.nn.relu(tf.nn.conv2d(x, params["k2"], 2, "VALID"))
    return tf.reduce_mean(x, (1, 2)) @ params["w"] + params["b"]


def standardized(x):
    """Return `x` with mean 0 and variance 1 along its last axis."""
    return jax.nn.standardize(x, epsilon=EPSILON)


def linear(x, weights):
    """Return `x`, (…, in), times `weights`, (in, out), in one matmul."""
    rows = x.reshape(-1, x.shape[-1])
    return (rows @ weights).reshape(*x.shape[:-1], -1)


def block(params, x):
    """Return a transformer block of `x`, (batch, length, width)."""
    batch, length, _ = x.shape
    heads = linear(standardized(x), params["qkv"])
    heads = heads.reshape(batch, length, 3, HEADS, -1)
    q, k, v = jnp.moveaxis(heads, 2, 0)
    attended = jax.nn.dot_product_attention(q, k, v).reshape(x.shape)
    x = x + linear(attended, params["out"])
    hidden = jax.nn.relu(linear(standardized(x), params["up"]))
    return x + linear(hidden, params["down"])


def standardized_torch(x):
    """Return what `standardized` does, in PyTorch."""
    return torch.nn.functional.layer_norm(x, x.shape[-1:], eps=EPSILON)


def block_torch(params, x):
    """Return what `block` does, in PyTorch."""
    batch, length, _ = x.shape
    heads = (standardized_torch(x) @ params["qkv"]).view(
        batch, length, 3, HEADS, -1
    )
    q, k, v = heads.permute(2, 0, 3, 1, 4)
    attended = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    x = x + attended.transpose(1, 2).reshape(x.shape) @ params["out"]
    return (
        x + torch.relu(standardized_torch(x) @ params["up"]) @ params["down"]
    )


def standardized_tensorflow(x):
    """Return what `standardized` does, in TensorFlow."""
    mean, variance = tf.nn.moments(x, -1, keepdims=True)
    return (x - mean) * tf.math.rsqrt(variance + EPSILON)


def block_tensorflow(params, x):
    """Return what `block` does, in TensorFlow, with attention written out."""
    batch, length, _ = x.shape
    heads = standardized_tensorflow(x) @ params["qkv"]
    heads = tf.reshape(heads, (batch, length, 3, HEADS, -1))
    q, k, v = tf.unstack(tf.transpose(heads, (2, 0, 3, 1, 4)))
    weights = tf.nn.softmax(
        tf.matmul(q, k, transpose_b=True) * q.shape[-1] ** -0.5
    )
    attended = tf.transpose(weights @ v, (0, 2, 1, 3))
    x = x + tf.reshape(attended, x.shape) @ params["out"]
    hidden = tf.nn.relu(standardized_tensorflow(x) @ params["up"])
    return x + hidden @ params["down"]


MODELS = {"mlp": mlp, "cnn": cnn, "block": block}
SHAPES = {
    "mlp": {
        "w1": (64, 256),
        "b1": (256,),
        "w2": (256, 256),
        "b2": (256,),
        "w3": (256, 10),
        "b3": (10,),
    },
    "cnn": {
        "k1": (3, 3, 3, 16),
        "k2": (3, 3, 16, 32),
        "w": (32, 10),
        "b": (10,),
    },
    "block": {
        "qkv": (128, 384),
        "out": (128, 128),
        "up": (128, 512),
        "down": (512, 128),
    },
}
DATA = {
    "mlp": ((64,), (10,)),
    "cnn": ((32, 32, 3), (10,)),
    "block": ((64, 128), (64, 128)),
}


def draw(name, batch):
    """Return weights, inputs and targets of a model, float32 in NumPy.

    Weights are normal with variance 1 / (fan-in); biases are 0.
    """
    rng = np.random.default_rng(0)

    def normal(shape):
        return rng.standard_normal(shape, dtype=np.float32)

    weights = {
        key: normal(shape) / np.float32(np.sqrt(np.prod(shape[:-1])))
        if len(shape) > 1
        else np.zeros(shape, np.float32)
        for key, shape in SHAPES[name].items()
    }
    return weights, *(normal((batch, *shape)) for shape in DATA[name])


def loss(params, batch, model):
    """Return the mean squared error of `model` on a batch (x, y)."""
    x, y = batch
    return jnp.mean((model(params, x) - y) ** 2)


def train_step(params, batch, model):
    """Return the parameters after a step of gradient descent, and the loss."""
    value, grads = jax.value_and_grad(loss)(params, batch, model)
    params = jax.tree.map(lambda p, grad: p - RATE * grad, params, grads)
    return params, value


def keep_training(step, params, x, y):
    """Return a function that does a step at each call: (parameters, loss)."""
    params = jax.tree.map(jnp.copy, params)

    def next_step():
        nonlocal params
        params, value = step(params, (x, y))
        return params, value

    return next_step


def step_jax(model, numbers, **options):
    """Return a compiled step to compare; `options` are those of `jax.jit`."""
    step = jax.jit(functools.partial(train_step, model=model), **options)
    return keep_training(step, *jax.device_put(numbers))


def loss_torch(model, params, x, y):
    """Return what `loss` does, in PyTorch."""
    return torch.mean((model(params, x) - y) ** 2)


def channels_first(array):
    """Return images, (batch, n, n, channels), as PyTorch wants them."""
    return (
        np.ascontiguousarray(np.moveaxis(array, -1, 1))
        if array.ndim == 4
        else array
    )


def in_torch(numbers):
    """Return NumPy's weights, inputs and targets as tensors.

    A convolution of PyTorch has the channels first, in its kernels as well.
    """
    weights, x, y = numbers
    kernels = {
        key: np.moveaxis(array, -1, 0) if array.ndim == 4 else array
        for key, array in weights.items()
    }
    params = {
        key: torch_tensor(channels_first(array)).requires_grad_()
        for key, array in kernels.items()
    }
    return params, torch_tensor(channels_first(x)), torch_tensor(y)


def train_step_torch(loss, model, params, x, y):
    """Do one step of gradient descent in place; return the loss before it."""
    value = loss(model, params, x, y)
    grads = torch.autograd.grad(value, list(params.values()))
    with torch.no_grad():
        for p, grad in zip(params.values(), grads, strict=True):
            p.sub_(grad, alpha=RATE)
    return value.detach()


def step_torch(model, numbers, loss=loss_torch):
    """Return a step to be compared, with weights of its own."""
    return functools.partial(train_step_torch, loss, model, *in_torch(numbers))


def train_step_tensorflow(model, params, x, y):
    """Do one step of gradient descent in place; return the loss before it."""
    with tf.GradientTape() as tape:
        value = tf.reduce_mean((model(params, x) - y) ** 2)
    for key, grad in tape.gradient(value, params).items():
        params[key].assign_sub(RATE * grad)
    return value


def step_tensorflow(model, numbers):
    """Return a step to be compared, with variables of its own."""
    weights, *data = numbers
    variables = {key: tf.Variable(array) for key, array in weights.items()}
    given = model, variables, *map(tf.constant, data)
    return functools.partial(train_step_tensorflow, *given)


def error_of(loss, weights, exact):
    """Return the largest difference of loss and weights from exact ones.

    `exact` is a pair of a number and a dictionary, as `weights` of NumPy's
    arrays.
    """
    pairs = [
        (loss, exact[0]),
        *((weights[key], exact[1][key]) for key in weights),
    ]
    return max(largest_difference(ours, other) for ours, other in pairs)


def compiled_step(name, batch, **options):
    """Compile a model's step for a batch; `options` are `jax.jit`'s."""
    step = jax.jit(
        functools.partial(train_step, model=MODELS[name]), **options
    )
    weights, x, y = draw(name, batch)
    return step.lower(weights, (x, y)).compile()


def bytes_needed(program):
    """Return a program's bytes of arguments and results, and within.

    A result in the memory of a donated argument is not counted again.
    """
    needs = program.memory_analysis()
    new = needs.output_size_in_bytes - needs.alias_size_in_bytes
    return needs.argument_size_in_bytes + new, needs.temp_size_in_bytes


def bytes_kept(model, params, x, y):
    """Return the bytes of JAX's residuals, the arguments aside."""
    of_params = functools.partial(loss, batch=(x, y), model=model)
    _, backward = jax.vjp(of_params, params)
    kept = {
        array.unsafe_buffer_pointer(): array.nbytes
        for array in jax.tree.leaves(backward)
    }
    for given in (*params.values(), x, y):
        kept.pop(given.unsafe_buffer_pointer(), None)
    return sum(kept.values())


def bytes_kept_torch(model, params, x, y):
    """Return the bytes of PyTorch's residuals, the arguments aside."""
    kept = {}

    def note(tensor):
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        loss_torch(model, params, x, y)
    for given in (*params.values(), x, y):
        kept.pop(given.untyped_storage().data_ptr(), None)
    return sum(kept.values())


FREE = {"parameter", "constant", "tuple", "get-tuple-element", "bitcast"}


def steps_counted(name, batch, program):
    """Return the operations of a traced step, and of its program."""
    step = functools.partial(train_step, model=MODELS[name])
    weights, x, y = draw(name, batch)
    written = primitives(jax.make_jaxpr(step)(weights, (x, y)))
    entry = program.as_text().partition("ENTRY")[2]
    run = re.findall(r"= (?:\(.*?\)|\S+) ([\w-]+)\(", entry)
    return len(written), sum(each not in FREE for each in run)
