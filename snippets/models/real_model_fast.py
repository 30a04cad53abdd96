"""The real model at speed: shapes, buckets, vmap and bfloat16."""

import jax
import jax.numpy as jnp
import numpy as np
import torch

from snippets.models.real_model import LIBRARY, embed, torch_embed


def many_sentences(count, seed=0):
    """Return texts of one to eight sentences, most of them short."""
    rng = np.random.default_rng(seed)
    lengths = np.minimum(rng.geometric(0.6, count), 8)
    return [" ".join(rng.choice(LIBRARY, length)) for length in lengths]


def batches(items, size=8):
    """Split a list into lists of `size` items."""
    return [
        items[start : start + size] for start in range(0, len(items), size)
    ]


def padded(rows, length):
    """Return ids and mask (rows, length) of lists of token ids."""
    ids = np.zeros((len(rows), length), np.int32)
    mask = np.zeros((len(rows), length), bool)
    for n, row in enumerate(rows):
        ids[n, : len(row)] = row
        mask[n, : len(row)] = True
    return ids, mask


def to_longest(rows):
    """Pad rows to the longest of them."""
    return padded(rows, max(map(len, rows)))


def to_bucket(rows, lengths=(16, 32, 64, 128)):
    """Pad rows to the first of a few lengths that fits them all."""
    longest = max(map(len, rows))
    return padded(rows, next(n for n in lengths if n >= longest))


def count_traces(function, calls):
    """Return how often jit traces a function for these arguments.

    `eval_shape` traces as a call does, and computes nothing.
    """
    traces = 0

    def counted(*args):
        nonlocal traces
        traces += 1
        return function(*args)

    jitted = jax.jit(counted)
    for args in calls:
        jitted.eval_shape(*args)
    return traces


def padding_share(inputs):
    """Return which share of the tokens of some batches is padding."""
    real = sum(mask.sum() for _, mask in inputs)
    return 1 - real / sum(mask.size for _, mask in inputs)


def random_batch(count, length, seed=0):
    """Return ids and mask of `count` rows of `length` tokens each."""
    ids = np.random.default_rng(seed).integers(
        1000, 30000, (count, length), np.int32
    )
    return jnp.asarray(ids), jnp.ones((count, length), bool)


@jax.jit(static_argnames="config")
def embed_mapped(params, ids, mask, config):
    """Return what `embed` returns, from a function of one sentence."""

    def one(sentence, counted):
        return embed(params, sentence, counted, config)

    return jax.vmap(one)(ids, mask)


def in_bfloat16(params):
    """Return the parameters in bfloat16, half as many bytes."""
    return jax.tree.map(lambda x: x.astype(jnp.bfloat16), params)


def on_accelerator(model):
    """Return a module on the accelerator, if PyTorch sees one."""
    found = torch.accelerator.current_accelerator(check_available=True)
    return model.to(found or "cpu")


def torch_batch(ids, mask, model):
    """Return NumPy arrays as tensors where the model is."""
    return [
        torch.tensor(np.asarray(x), device=model.device) for x in (ids, mask)
    ]


@torch.inference_mode()
def torch_vectors(model, ids, mask):
    """Return what `embed` returns, from PyTorch without gradients."""
    return torch_embed(model, ids, mask)


def compile_layers(model):
    """Let PyTorch compile each layer, in place; return the module."""
    for each in model.encoder.layer:
        each.compile()
    return model
