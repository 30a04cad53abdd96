"""A small GPT on the source of Python's standard library."""

import pathlib
import sysconfig
from typing import NamedTuple

import grain
import jax
import jax.numpy as jnp
import numpy as np
import optax
import torch

from snippets.models.modules import (
    first_linear,
    first_norm,
    layer_norm,
    linear,
)
from snippets.models.steps import (
    cross_entropy,
    gradient_of,
    make_step,
    stateless,
)

MODULES = (
    *(
        "argparse",
        "ast",
        "bisect",
        "calendar",
        "cmd",
        "codecs",
        "configparser",
    ),
    *(
        "contextlib",
        "copy",
        "csv",
        "dataclasses",
        "datetime",
        "difflib",
        "dis",
    ),
    *("doctest", "enum", "fileinput", "fractions", "ftplib", "functools"),
    *("getopt", "glob", "gzip", "heapq", "inspect", "ipaddress", "locale"),
    *("mailbox", "mimetypes", "optparse", "pdb", "pickle", "platform"),
    *("pprint", "queue", "random", "sched", "selectors", "shelve", "shlex"),
    *("shutil", "smtplib", "socket", "statistics", "string", "subprocess"),
    *("tarfile", "tempfile", "textwrap", "threading", "timeit", "tokenize"),
    *(
        "traceback",
        "turtle",
        "typing",
        "uuid",
        "warnings",
        "weakref",
        "zipapp",
    ),
)


class Config(NamedTuple):
    """The sizes of a model; tokens are the characters of ASCII."""

    tokens: int = 128
    length: int = 128
    width: int = 128
    heads: int = 4
    layers: int = 4


def source():
    """Return the text of `MODULES`, (characters,) uint8 below 128."""
    folder = pathlib.Path(sysconfig.get_path("stdlib"))
    paths = (folder / f"{name}.py" for name in MODULES)
    text = "".join(p.read_text("utf8") for p in paths if p.exists())
    return np.frombuffer(text.encode("ascii", "replace"), np.uint8)


class Windows:
    """Pieces of a text, each with the text one character later."""

    def __init__(self, text, length):
        self.text, self.length = text, length

    def __len__(self):
        return (len(self.text) - 1) // self.length

    def __getitem__(self, i):
        """Return tokens and targets, both int32 (length,)."""
        start = i * self.length
        window = self.text[start : start + self.length + 1].astype(np.int32)
        return window[:-1], window[1:]


def batches(text, length, size, seed=0):
    """Return an endless data set of batches, each epoch in a new order."""
    data = grain.MapDataset.source(Windows(text, length)).seed(seed).shuffle()
    return data.batch(size, drop_remainder=True).repeat()


def init_layer(key, config):
    """Return the parameters of one layer."""
    keys, width = jax.random.split(key, 4), config.width
    return {
        "norm1": first_norm(width),
        "qkv": first_linear(keys[0], width, 3 * width),
        "out": first_linear(keys[1], width, width),
        "norm2": first_norm(width),
        "up": first_linear(keys[2], width, 4 * width),
        "down": first_linear(keys[3], 4 * width, width),
    }


def init_gpt(key, config):
    """Return float32 parameters; those of all layers are stacked.

    The embedding (tokens, width) also makes the logits.
    """
    own, *keys = jax.random.split(key, config.layers + 1)
    embedding, positions = jax.random.split(own)
    return {
        "embedding": 0.02
        * jax.random.normal(embedding, (config.tokens, config.width)),
        "positions": 0.02
        * jax.random.normal(positions, (config.length, config.width)),
        "layers": jax.vmap(init_layer, in_axes=(0, None))(
            jnp.stack(keys), config
        ),
        "norm": first_norm(config.width),
    }


def split_heads(qkv, heads):
    """Return queries, keys and values (..., heads, size) of (..., 3 width)."""
    qkv = qkv.reshape(*qkv.shape[:-1], 3, heads, -1)
    return jnp.unstack(qkv, axis=-3)


def mlp(params, x):
    """Return what a layer adds to x (..., width) behind its attention."""
    y = linear(params["up"], layer_norm(params["norm2"], x))
    return linear(params["down"], jax.nn.gelu(y, approximate=False))


def layer(params, x, heads):
    """Return an array like x (rows, length, width) after one layer."""
    qkv = linear(params["qkv"], layer_norm(params["norm1"], x))
    y = jax.nn.dot_product_attention(*split_heads(qkv, heads), is_causal=True)
    x = x + linear(params["out"], y.reshape(x.shape))
    return x + mlp(params, x)


def gpt(params, tokens, heads):
    """Return logits (rows, length, tokens) of tokens (rows, length)."""
    x = params["embedding"][tokens] + params["positions"][: tokens.shape[1]]

    def apply_layer(x, params):
        return layer(params, x, heads), None

    x, _ = jax.lax.scan(apply_layer, x, params["layers"])
    return layer_norm(params["norm"], x) @ params["embedding"].T


def make_schedule(steps, rate):
    """Return the rate by the step: a warmup, then a cosine to a tenth."""
    return optax.warmup_cosine_decay_schedule(
        0.0, rate, steps // 10, steps, rate / 10
    )


def make_optimizer(steps, rate=3e-3, decay=0.1):
    """Return AdamW with a schedule and clipped gradients.

    Kernels alone are decayed.
    """

    def kernels(params):
        return jax.tree.map_with_path(
            lambda path, _: path[-1].key == "kernel", params
        )

    return optax.chain(
        optax.clip_by_global_norm(1.0),
        optax.adamw(
            make_schedule(steps, rate),
            b2=0.95,
            weight_decay=decay,
            mask=kernels,
        ),
    )


def train_gpt(first, data, validation, config, steps):
    """Train for a number of steps; return parameters and a loss curve.

    The curve has (step, loss of training, loss of validation) some ten times.
    """
    optimizer = make_optimizer(steps)
    loss = cross_entropy(stateless(lambda p, x: gpt(p, x, config.heads)))
    step = make_step(gradient_of(loss), optimizer)
    params = jax.tree.map(jnp.copy, first)
    state, curve = (params, {}, optimizer.init(params)), []
    held_back = batches(validation, config.length, size=64)[0]
    of_validation = jax.jit(loss)
    for number in range(steps):
        *state, value = step(*state, data[number])
        if number % max(steps // 10, 1) == 0 or number == steps - 1:
            other, _ = of_validation(state[0], {}, held_back)
            curve.append((number, float(value), float(other)))
    return state[0], curve


def make_torch_optimizer(model, decay=0.1):
    """Return PyTorch's AdamW for `TorchGpt`, which decays kernels alone."""
    decayed = {True: [], False: []}
    for name, param in model.params.items():
        decayed[name.endswith("kernel")].append(param)
    groups = [
        {"params": decayed[True], "weight_decay": decay},
        {"params": decayed[False], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, betas=(0.9, 0.95))


def train_torch(model, data, steps, rate=3e-3):
    """Take a step for each batch of a run of `steps`; return the losses."""
    optimizer, schedule = (
        make_torch_optimizer(model),
        make_schedule(steps, rate),
    )
    losses = []
    for number, (tokens, targets) in enumerate(data):
        for group in optimizer.param_groups:
            group["lr"] = float(schedule(number))
        optimizer.zero_grad()
        logits = model(torch.tensor(tokens).long()).flatten(0, 1)
        right = torch.tensor(targets).long().flatten()
        loss = torch.nn.functional.cross_entropy(logits, right)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return np.array(losses, np.float32)


def empty_cache(params, config, rows):
    """Return zeros as keys and values: (layers, rows, length, heads, size)."""
    size = config.width // config.heads
    shape = config.layers, rows, config.length, config.heads, size
    zeros = jnp.zeros(shape, params["embedding"].dtype)
    return zeros, zeros


def next_logits(params, cache, token, position, heads):
    """Return logits (rows, tokens) behind token (rows,), and the new cache."""
    x = params["embedding"][token] + params["positions"][position]
    known = jnp.full(len(token), position + 1)

    def apply_layer(x, layer_and_cache):
        p, keys, values = layer_and_cache
        q, key, value = split_heads(
            linear(p["qkv"], layer_norm(p["norm1"], x)), heads
        )
        keys = keys.at[:, position].set(key)
        values = values.at[:, position].set(value)
        y = jax.nn.dot_product_attention(
            q[:, None], keys, values, key_value_seq_lengths=known
        )
        x = x + linear(p["out"], y.reshape(x.shape))
        return x + mlp(p, x), (keys, values)

    x, cache = jax.lax.scan(apply_layer, x, (params["layers"], *cache))
    return layer_norm(params["norm"], x) @ params["embedding"].T, cache


@jax.jit(static_argnames=("config", "count"))
def generate(params, prompt, key, temperature, config, count):
    """Return prompt (rows, length) and what follows, `count` tokens in all.

    With temperature 0 each token is the most likely one; else it is drawn.
    """

    def step(carry, position):
        cache, token = carry
        logits, cache = next_logits(
            params, cache, token, position, config.heads
        )
        own = jax.random.fold_in(key, position)
        scaled = logits / jnp.where(temperature > 0, temperature, 1.0)
        drawn = jax.random.categorical(own, scaled)
        new = jnp.where(temperature > 0, drawn, logits.argmax(axis=-1))
        given = prompt[:, jnp.minimum(position + 1, prompt.shape[1] - 1)]
        token = jnp.where(position + 1 < prompt.shape[1], given, new)
        return (cache, token), token

    first = empty_cache(params, config, len(prompt)), prompt[:, 0]
    _, tokens = jax.lax.scan(step, first, jnp.arange(count - 1))
    return jnp.concatenate([prompt[:, :1], tokens.T], axis=1)


def encode(text):
    """Return the tokens of a text, int32 (1, characters)."""
    return np.frombuffer(text.encode("ascii"), np.uint8).astype(np.int32)[None]


def decode(tokens):
    """Return the text of tokens (characters,)."""
    return bytes(np.asarray(tokens, np.uint8)).decode("ascii")


class TorchGpt(torch.nn.Module):
    """The same model in PyTorch, with copies of the parameters."""

    def __init__(self, params, config):
        super().__init__()
        self.heads = config.heads
        self.params = torch.nn.ParameterDict(
            {
                jax.tree_util.keystr(path, simple=True, separator="_"): (
                    torch.nn.Parameter(torch.tensor(np.array(x)))
                )
                for path, x in jax.tree.leaves_with_path(params)
            }
        )
        self.layers = config.layers

    def linear(self, name, n, x):
        """Apply layer `n` of those called `name`."""
        kernel = self.params[f"layers_{name}_kernel"][n]
        return x @ kernel + self.params[f"layers_{name}_bias"][n]

    def norm(self, name, x, n=...):
        """Apply a layer norm."""
        scale, bias = (
            self.params[f"{name}_{k}"][n] for k in ("scale", "bias")
        )
        return torch.nn.functional.layer_norm(x, x.shape[-1:], scale, bias)

    def forward(self, tokens):
        """Return logits (rows, length, tokens) of tokens (rows, length)."""
        embedding = self.params["embedding"]
        x = embedding[tokens] + self.params["positions"][: tokens.shape[1]]
        for n in range(self.layers):
            qkv = self.linear("qkv", n, self.norm("layers_norm1", x, n))
            qkv = qkv.unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
            y = torch.nn.functional.scaled_dot_product_attention(
                *qkv, is_causal=True
            )
            x = x + self.linear("out", n, y.transpose(1, 2).flatten(2))
            y = self.linear("up", n, self.norm("layers_norm2", x, n))
            x = x + self.linear("down", n, torch.nn.functional.gelu(y))
        return self.norm("norm", x) @ embedding.T


def greedy_torch(model, prompt, count):
    """Return prompt (1, length) and the most likely tokens behind it."""
    tokens = torch.tensor(prompt).long()
    with torch.no_grad():
        while tokens.shape[1] < count:
            last = model(tokens)[:, -1].argmax(dim=-1)
            tokens = torch.cat([tokens, last[:, None]], dim=1)
    return tokens.numpy()
