"""A decoder-only transformer and its training step, in two frameworks."""

import functools
import re
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import torch
import torch.nn.functional as F

from snippets.benchmarks.race import torch_tensor

RATE = 3e-4
DECAY = 0.01
EPSILON = 1e-5
OPTIMIZER = optax.adamw(RATE, weight_decay=DECAY)


class Size(NamedTuple):
    """The sizes of model and batch; `length` counts the tokens of a text."""

    layers: int
    width: int
    heads: int
    vocabulary: int
    length: int
    batch: int


SMALL = Size(layers=2, width=128, heads=4, vocabulary=512, length=64, batch=8)
LARGE = Size(
    layers=12, width=768, heads=12, vocabulary=50304, length=1024, batch=16
)


def size_here():
    """Return a size that suits the device: SMALL on a CPU, GPT-2's else."""
    return SMALL if jax.devices()[0].platform == "cpu" else LARGE


def draw(size):
    """Return weights, float32, and tokens, int32 (batch, length + 1).

    All are NumPy arrays. Matmuls have weights (layers, in, out), normal
    with variance 1 / in. The embedding (vocabulary, width) is also the
    head.
    """
    rng = np.random.default_rng(0)
    layers, width, _, vocabulary, length, batch = size

    def normal(*shape, added):
        return rng.standard_normal(shape, np.float32) / np.float32(added**0.5)

    return {
        "tokens": normal(vocabulary, width, added=width),
        "positions": normal(length, width, added=width),
        "layers": {
            "norm_mix": np.ones((layers, width), np.float32),
            "qkv": normal(layers, width, 3 * width, added=width),
            "out": normal(layers, width, width, added=width),
            "norm_mlp": np.ones((layers, width), np.float32),
            "up": normal(layers, width, 4 * width, added=width),
            "down": normal(layers, 4 * width, width, added=4 * width),
        },
        "norm": np.ones(width, np.float32),
    }, rng.integers(vocabulary, size=(batch, length + 1), dtype=np.int32)


def normed(x, scale):
    """Return `x` with mean 0 and variance 1 on its last axis, times `scale`.

    The result is float32, whatever `x` is.
    """
    return jax.nn.standardize(x.astype(jnp.float32), epsilon=EPSILON) * scale


def rows(x):
    """Return `x`, (…, width), as a matrix of rows."""
    return x.reshape(-1, x.shape[-1])


def product(x, weights, dtype):
    """Return `x` (…, in) times `weights` (in, out), computed in `dtype`.

    The matmul has two axes, for the sake of its gradient on a CPU.
    """
    found = rows(x).astype(dtype) @ weights.astype(dtype)
    return found.reshape(*x.shape[:-1], -1)


def mlp(x, layer, dtype):
    """Return what a layer adds after attention to `x`, (…, width)."""
    hidden = product(normed(x, layer["norm_mlp"]), layer["up"], dtype)
    return product(jax.nn.gelu(hidden), layer["down"], dtype)


def block(x, layer, heads, dtype, implementation=None):
    """Return a layer's result for `x`, float32 (batch, length, width).

    `implementation` is that of `jax.nn.dot_product_attention`.
    """
    qkv = product(normed(x, layer["norm_mix"]), layer["qkv"], dtype)
    q, k, v = jnp.moveaxis(qkv.reshape(*x.shape[:2], 3, heads, -1), 2, 0)
    mixed = jax.nn.dot_product_attention(
        q, k, v, is_causal=True, implementation=implementation
    )
    x = x + product(mixed.reshape(x.shape), layer["out"], dtype)
    return x + mlp(x, layer, dtype)


def logits(weights, tokens, heads, dtype, implementation=None):
    """Return the logits, (batch, length, vocabulary), in `dtype`."""
    x = weights["tokens"][tokens] + weights["positions"][: tokens.shape[1]]

    def one(x, layer):
        return block(x, layer, heads, dtype, implementation), None

    x, _ = jax.lax.scan(one, x, weights["layers"])
    return product(normed(x, weights["norm"]), weights["tokens"].T, dtype)


def loss(params, batch, heads, dtype, implementation=None):
    """Return the mean cross entropy of a batch's next tokens, in nats."""
    precision = "highest" if dtype == jnp.float32 else "default"
    with jax.default_matmul_precision(precision):
        found = logits(params, batch[:, :-1], heads, dtype, implementation)
    return optax.softmax_cross_entropy_with_integer_labels(
        found.astype(jnp.float32), batch[:, 1:]
    ).mean()


@jax.jit(
    static_argnames=("heads", "dtype", "implementation"),
    donate_argnames=("params", "opt_state"),
)
def train_step(params, opt_state, batch, heads, dtype, implementation=None):
    """Return parameters and state after a step of AdamW, and the loss."""
    value, grads = jax.value_and_grad(loss)(
        params, batch, heads, dtype, implementation
    )
    updates, opt_state = OPTIMIZER.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, value


def keep_training(numbers, heads, dtype, implementation=None):
    """Return a function that does a step and returns the loss before it."""
    weights, tokens = jax.device_put(numbers)
    weights = jax.tree.map(jnp.copy, weights)
    state = OPTIMIZER.init(weights)

    def next_step():
        nonlocal weights, state
        weights, state, value = train_step(
            weights, state, tokens, heads, dtype, implementation
        )
        return value

    return next_step


def ways():
    """Return dtype and implementation of attention of JAX's steps, by key.

    On an NVIDIA GPU `jit` uses cuDNN's attention, which has no float32,
    and `xla` does without.
    """
    gpu = jax.devices()[0].platform == "gpu"
    found = {"jit@jax": (jnp.bfloat16, "cudnn" if gpu else None)}
    found["float32@jax"] = jnp.float32, None
    return found | ({"xla@jax": (jnp.bfloat16, None)} if gpu else {})


class BlockTorch(torch.nn.Module):
    """A layer as `block` computes it."""

    def __init__(self, width, heads):
        """Make a layer of untrained weights."""
        super().__init__()
        linear = functools.partial(torch.nn.Linear, bias=False)
        norm = functools.partial(torch.nn.LayerNorm, eps=EPSILON, bias=False)
        self.heads = heads
        self.norm_mix, self.norm_mlp = norm(width), norm(width)
        self.qkv, self.out = linear(width, 3 * width), linear(width, width)
        self.up, self.down = linear(width, 4 * width), linear(4 * width, width)

    def mlp(self, x):
        """Return what the layer adds after attention to `x`, (…, width)."""
        return self.down(F.gelu(self.up(self.norm_mlp(x)), approximate="tanh"))

    def forward(self, x):
        """Return the result for `x`, (batch, length, width)."""
        qkv = self.qkv(self.norm_mix(x)).unflatten(-1, (3, self.heads, -1))
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.mlp(x)


class TransformerTorch(torch.nn.Module):
    """The model of `logits`."""

    def __init__(self, size):
        """Make a model of untrained weights."""
        super().__init__()
        self.tokens = torch.nn.Embedding(size.vocabulary, size.width)
        self.positions = torch.nn.Embedding(size.length, size.width)
        self.layers = torch.nn.ModuleList(
            BlockTorch(size.width, size.heads) for _ in range(size.layers)
        )
        self.norm = torch.nn.LayerNorm(size.width, eps=EPSILON, bias=False)

    def forward(self, tokens):
        """Return the logits for `tokens`, int64 (batch, length)."""
        x = self.tokens(tokens) + self.positions.weight[: tokens.shape[1]]
        for layer in self.layers:
            x = layer(x)
        return F.linear(self.norm(x), self.tokens.weight)


def in_torch(numbers, size):
    """Return NumPy's weights as a model of PyTorch, and the tokens, int64."""
    weights, tokens = numbers
    named = {
        f"layers.{n}.{key}.weight": stacked[n].T
        for key, stacked in weights["layers"].items()
        for n in range(size.layers)
    }
    for key in ("tokens", "positions", "norm"):
        named[f"{key}.weight"] = weights[key]
    with torch.device("meta"):
        model = TransformerTorch(size)
    tensors = {key: torch_tensor(array.copy()) for key, array in named.items()}
    model.load_state_dict(tensors, assign=True)
    return model, torch_tensor(tokens.astype(np.int64))


def loss_torch(model, tokens, dtype):
    """Return what `loss` does, under autocast where `dtype` is bfloat16."""
    short = dtype == torch.bfloat16
    with torch.autocast(tokens.device.type, torch.bfloat16, enabled=short):
        logits = model(tokens[:, :-1])
    return F.cross_entropy(
        logits.float().flatten(0, 1), tokens[:, 1:].flatten()
    )


def train_step_torch(model, optimizer, tokens, dtype, loss=loss_torch):
    """Do one step of AdamW in place; return the loss before it."""
    value = loss(model, tokens, dtype)
    value.backward()
    optimizer.step()
    optimizer.zero_grad()
    return value.detach()


def keep_training_torch(numbers, size, dtype, loss=loss_torch):
    """Return what `keep_training` does; `loss` may be compiled."""
    model, tokens = in_torch(numbers, size)
    optimizer = torch.optim.AdamW(
        model.parameters(), RATE, weight_decay=DECAY, fused=True
    )
    return functools.partial(
        train_step_torch, model, optimizer, tokens, dtype, loss
    )


def steps_torch(numbers, size):
    """Return PyTorch's eager steps to be compared, by their keys."""
    keep = functools.partial(keep_training_torch, numbers, size)
    return {
        "eager@torch": keep(torch.bfloat16),
        "float32@torch": keep(torch.float32),
    }


def compiled_torch(numbers, size):
    """Return PyTorch's compiled steps to compare, by key.

    The whole loss on a GPU, also in a CUDA graph; on a CPU each layer by
    itself, also in float32.
    """
    keep = functools.partial(
        keep_training_torch, numbers, size, torch.bfloat16
    )
    if torch.cuda.is_available():
        whole = torch.compile(loss_torch, fullgraph=True)
        graphs = torch.compile(
            loss_torch, fullgraph=True, mode="reduce-overhead"
        )
        return {"compile@torch": keep(whole), "graphs@torch": keep(graphs)}
    short = keep()
    exact = keep_training_torch(numbers, size, torch.float32)
    for layer in (*short.args[0].layers, *exact.args[0].layers):
        layer.compile(fullgraph=True)
    return {"compile@torch": short, "compile_float32@torch": exact}


def operations(size):
    """Count the operations of a step that a model of this size needs.

    Six for each weight of a matmul and token, and 12 × width × length in
    each layer for attention, the masked half included (Chowdhery et al.
    2022, PaLM, appendix B).
    """
    layers, width, _, vocabulary, length, batch = size
    weights = vocabulary * width + layers * 12 * width**2
    return batch * length * (6 * weights + 12 * layers * width * length)


@jax.jit
def weights_gradient(x, weights, change):
    """Return the gradient of `weights`, (in, out), from one of the result.

    `x` is (…, in), and `change` is like `x @ weights`.
    """
    _, backward = jax.vjp(lambda weights: x @ weights, weights)
    return backward(change)[0]


def multiplied_in(*args):
    """Return the dtype in which XLA itself multiplies for this gradient."""
    text = weights_gradient.lower(*args).compile().as_text()
    found = re.search(r"= (\w+)\[\S+ dot\(", text)
    return found[1] if found else "a library's"


def planned(numbers, heads, dtype, implementation=None):
    """Return the bytes of temporaries that XLA plans for a step."""
    weights, tokens = numbers
    state = jax.eval_shape(OPTIMIZER.init, weights)
    step = train_step.lower(
        weights, state, tokens, heads, dtype, implementation
    )
    return step.compile().memory_analysis().temp_size_in_bytes


def peak_torch(step):
    """Return the peak bytes of a step beyond what was there; None on a CPU."""
    if not torch.cuda.is_available():
        return None
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    step()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before


def tokens_a_second(measurement, size):
    """Return how many tokens a measured step takes in each second."""
    samples = measurement.throughput or measurement.latency
    return size.batch * size.length / float(np.median(samples))
