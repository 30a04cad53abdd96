"""A small GPT on plays of Shakespeare."""

import functools
import os
import pathlib
import signal
import urllib.request
from typing import NamedTuple

import grain
import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
import torch
from flax import nnx
from jax import export
from safetensors.numpy import save_file

from snippets.models.modules import (
    dotted,
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
from snippets.programs.launcher import launch
from snippets.training.data_parallel import axis_of_devices
from snippets.training.sharded_parameters import (
    gathered,
    in_shards,
    sharded_over,
)

ADDRESS = (
    "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/"
    "tinyshakespeare/input.txt"
)


class Config(NamedTuple):
    """The sizes of a model; tokens are the characters of ASCII."""

    tokens: int = 128
    length: int = 64
    width: int = 128
    heads: int = 4
    layers: int = 4


def source(path="tiny_shakespeare.txt"):
    """Return a text as tokens, (characters,) uint8 below 128.

    Characters beyond ASCII become "?". The plays are fetched from ADDRESS
    where there is no file; OSError where that cannot be.
    """
    if not (path := pathlib.Path(path)).exists():
        urllib.request.urlretrieve(ADDRESS, path)
    text = path.read_text("utf8")
    return np.frombuffer(text.encode("ascii", "replace"), np.uint8)


class Windows:
    """The pieces of a text, each with the text one character later."""

    def __init__(self, text, length):
        """Take a text (characters,); ValueError where no piece fits."""
        self.text, self.length = text, length
        if len(text) <= length:
            raise ValueError(
                f"a text of {len(text)} characters has no window of {length} "
                "with a character behind it"
            )

    def __len__(self):
        return len(self.text) - self.length

    def __getitem__(self, i):
        """Return tokens and targets from character i, int32 (length,)."""
        window = self.text[i : i + self.length + 1].astype(np.int32)
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


def look_up(table, tokens):
    """Return the rows (..., width) of tokens, sharded as the tokens are."""
    sharding = jax.typeof(tokens).sharding
    rows = jax.NamedSharding(sharding.mesh, jax.P(*sharding.spec, None))
    return table.at[tokens].get(out_sharding=rows)


def gpt(params, tokens, heads, remat=False):
    """Return logits (rows, length, tokens) of tokens (rows, length).

    With `remat` a backward pass computes each layer again.
    """
    x = look_up(params["embedding"], tokens)
    x = x + params["positions"][: tokens.shape[1]]

    def apply_layer(x, params):
        return layer(params, x, heads), None

    body = jax.checkpoint(apply_layer) if remat else apply_layer
    x, _ = jax.lax.scan(body, x, params["layers"])
    return layer_norm(params["norm"], x) @ params["embedding"].T


class NnxLayer(nnx.Module):
    """One layer in Flax NNX: x (rows, length, width) to an array like it."""

    def __init__(self, config, *, rngs):
        width = config.width
        self.heads = config.heads
        self.norm1 = nnx.LayerNorm(width, epsilon=1e-5, rngs=rngs)
        self.qkv = nnx.Linear(width, 3 * width, rngs=rngs)
        self.out = nnx.Linear(width, width, rngs=rngs)
        self.norm2 = nnx.LayerNorm(width, epsilon=1e-5, rngs=rngs)
        self.up = nnx.Linear(width, 4 * width, rngs=rngs)
        self.down = nnx.Linear(4 * width, width, rngs=rngs)

    def __call__(self, x):
        """Return x after attention and the MLP."""
        qkv = split_heads(self.qkv(self.norm1(x)), self.heads)
        y = jax.nn.dot_product_attention(*qkv, is_causal=True)
        x = x + self.out(y.reshape(x.shape))
        y = nnx.gelu(self.up(self.norm2(x)), approximate=False)
        return x + self.down(y)


class NnxGpt(nnx.Module):
    """The model in Flax NNX; its parameters have the names of `init_gpt`."""

    def __init__(self, config, *, rngs):
        def small(rows):
            values = jax.random.normal(rngs.params(), (rows, config.width))
            return nnx.Param(0.02 * values)

        @nnx.split_rngs(splits=config.layers)
        @nnx.vmap
        def make_layers(rngs):
            return NnxLayer(config, rngs=rngs)

        self.embedding = small(config.tokens)
        self.positions = small(config.length)
        self.layers = make_layers(rngs)
        self.norm = nnx.LayerNorm(config.width, epsilon=1e-5, rngs=rngs)

    def __call__(self, tokens):
        """Return logits (rows, length, tokens) of tokens (rows, length)."""

        @nnx.scan(in_axes=(nnx.Carry, 0), out_axes=nnx.Carry)
        def apply_layers(x, layer):
            return layer(x)

        table = self.embedding[...]
        x = look_up(table, tokens) + self.positions[: tokens.shape[1]]
        return self.norm(apply_layers(x, self.layers)) @ table.T


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
            lambda path, _: "'kernel'" in jax.tree_util.keystr(path), params
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


def gpt_loss(config, remat=False):
    """Return the loss of (params, {}, (tokens, targets)), and its count."""

    def apply(params, tokens):
        return gpt(params, tokens, config.heads, remat)

    return cross_entropy(stateless(apply))


def make_gpt_step(config, steps, change=lambda loss: loss):
    """Return the step of a run of so many steps; `change` wraps the loss."""
    gradient = gradient_of(change(gpt_loss(config)))
    return make_step(gradient, make_optimizer(steps))


def evaluate(loss, params, data, count):
    """Return the mean loss over the first `count` batches, a float.

    `loss` is that of `gpt_loss`, jitted.
    """
    parts = [loss(params, {}, data[number]) for number in range(count)]
    return float(sum(p for p, _ in parts) / sum(n for _, (n, _) in parts))


def train_gpt(first, data, held_back, config, steps, count=20, report=None):
    """Train for a number of steps; return parameters and a loss curve.

    The curve has some eleven (step, loss of training, loss of validation),
    each the mean over `count` batches, before that step is taken. `report`
    is called with each as soon as it is known.
    """
    optimizer, step = make_optimizer(steps), make_gpt_step(config, steps)
    params = jax.tree.map(jnp.copy, first)
    state, curve = (params, {}, optimizer.init(params)), []
    loss = jax.jit(gpt_loss(config))
    for number in range(steps + 1):
        if number % max(steps // 10, 1) == 0 or number == steps:
            of = [
                evaluate(loss, state[0], d, count) for d in (data, held_back)
            ]
            curve.append((number, *of))
            if report:
                report(*curve[-1])
        if number < steps:
            *state, _ = step(*state, data[number])
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


def torch_gradient(model, batch):
    """Return a function that computes the loss and its gradient in PyTorch."""
    tokens, targets = (torch.tensor(x).long() for x in batch)

    def gradient():
        model.zero_grad()
        logits = model(tokens).flatten(0, 1)
        loss = torch.nn.functional.cross_entropy(logits, targets.flatten())
        loss.backward()
        return loss.detach()

    return gradient


def evaluate_torch(model, data, count):
    """Return the mean loss over the first `count` batches, a float."""
    losses = []
    with torch.no_grad():
        for tokens, targets in (data[number] for number in range(count)):
            logits = model(torch.tensor(tokens).long()).flatten(0, 1)
            right = torch.tensor(targets).long().flatten()
            losses.append(torch.nn.functional.cross_entropy(logits, right))
    return float(sum(losses) / count)


def first_state(key, config, steps):
    """Return the state at the start of a run of so many steps."""
    params = init_gpt(key, config)
    opt_state = make_optimizer(steps).init(params)
    return {"params": params, "opt_state": opt_state, "step": jnp.int32(0)}


def state_on(mesh, config, steps):
    """Return the shapes, dtypes and shardings of a state, as a pytree.

    Each array is sharded along its first axis that the mesh's size divides.
    """
    make = functools.partial(first_state, config=config, steps=steps)
    shapes = jax.eval_shape(make, jax.random.key(0))
    return jax.tree.map(
        lambda x, sharding: jax.ShapeDtypeStruct(
            x.shape, x.dtype, sharding=sharding
        ),
        shapes,
        sharded_over(mesh, shapes),
    )


def start_on(mesh, key, config, steps):
    """Return the first state, of which each device makes its shards."""
    layout = jax.tree.map(lambda x: x.sharding, state_on(mesh, config, steps))
    make = functools.partial(first_state, config=config, steps=steps)
    return in_shards(make, layout)(key)


def continue_run(step, state, data, until):
    """Take the steps up to `until`; return the state and float32 losses.

    The number of a step is the number of its batch.
    """
    losses = []
    for number in range(int(state["step"]), until):
        batch = jax.device_put(data[number], jax.P("data"))
        params, _, opt_state, value = step(
            state["params"], {}, state["opt_state"], batch
        )
        state = {
            "params": params,
            "opt_state": opt_state,
            "step": state["step"] + 1,
        }
        losses.append(float(value))
    return state, np.array(losses, np.float32)


def train_until_killed(folder, text, config, steps, killed_at):
    """Train on all devices, and save every ten steps; dies in a save."""
    mesh = axis_of_devices(jax.devices())
    jax.set_mesh(mesh)
    data = batches(text, config.length, size=16)
    state = start_on(mesh, jax.random.key(0), config, steps)
    step = make_gpt_step(config, steps, gathered)
    manager = ocp.CheckpointManager(pathlib.Path(folder).absolute())
    while True:
        until = int(state["step"]) + 10
        state, _ = continue_run(step, state, data, until)
        manager.save(until, args=ocp.args.StandardSave(state))
        if until == killed_at:
            os.kill(os.getpid(), signal.SIGKILL)


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


def check_room(length, count, config):
    """Return the length of a prompt that fits, as `count` tokens do.

    ValueError where the model has no position for each token.
    """
    if (most := max(length, count)) > config.length:
        raise ValueError(
            f"{most} tokens do not fit into a model of {config.length} "
            "positions: shorten the prompt, or ask for fewer"
        )
    return length


def draw(key, position, logits, temperature):
    """Return a token for each row of logits (rows, tokens).

    Temperature 0 takes the most likely one. `position` chooses the key.
    """
    scaled = logits / jnp.where(temperature > 0, temperature, 1.0)
    drawn = jax.random.categorical(jax.random.fold_in(key, position), scaled)
    return jnp.where(temperature > 0, drawn, logits.argmax(axis=-1))


@jax.jit(static_argnames=("config", "count"))
def generate(params, prompt, key, temperature, config, count, lengths=None):
    """Return prompt (rows, length) and what follows, `count` tokens in all.

    Temperature 0 takes the most likely token. Padded prompts have `lengths`,
    each from 1 to the prompt's own: a longer one repeats its last token.
    """
    length = check_room(prompt.shape[1], count, config)
    lengths = jnp.full(len(prompt), length) if lengths is None else lengths

    def step(carry, position):
        cache, token = carry
        logits, cache = next_logits(
            params, cache, token, position, config.heads
        )
        new = draw(key, position, logits, temperature)
        given = prompt[:, jnp.minimum(position + 1, length - 1)]
        token = jnp.where(position + 1 < lengths, given, new)
        return (cache, token), token

    first = empty_cache(params, config, len(prompt)), prompt[:, 0]
    _, tokens = jax.lax.scan(step, first, jnp.arange(count - 1))
    return jnp.concatenate([prompt[:, :1], tokens.T], axis=1)


@jax.jit(static_argnames=("config", "count"))
def generate_long(params, prompt, key, temperature, config, count):
    """Return prompt (rows, length) and what follows, `count` tokens in all.

    The prompt fits into the model; the text may be longer. Beyond, each token
    follows from the last `config.length` alone, and nothing is cached.
    """
    if count <= config.length:
        return generate(params, prompt, key, temperature, config, count)
    first = generate(params, prompt, key, temperature, config, config.length)

    def step(window, position):
        logits = gpt(params, window, config.heads)[:, -1]
        token = draw(key, position, logits, temperature)[:, None]
        return jnp.concatenate([window[:, 1:], token], axis=1), token[:, 0]

    positions = jnp.arange(config.length - 1, count - 1)
    _, rest = jax.lax.scan(step, first, positions)
    return jnp.concatenate([first, rest.T], axis=1)


def generate_sharded(params, prompt, key, temperature, config, count):
    """Return `generate` of arrays in any layout of the mesh that is set.

    Its axis "data" divides the rows. Where it is explicit, those of the
    result are sharded over it; the other axes may be of either type.
    """

    def chosen(params, prompt, key):
        return generate(params, prompt, key, temperature, config, count)

    explicit = jax.sharding.get_abstract_mesh().explicit_axes
    rows = jax.P("data" if "data" in explicit else None)
    return jax.sharding.auto_axes(chosen, out_sharding=rows)(
        params, prompt, key
    )


def encode(text):
    """Return the tokens of a text, int32 (1, characters)."""
    return np.frombuffer(text.encode("ascii"), np.uint8).astype(np.int32)[None]


def decode(tokens):
    """Return the text of tokens (characters,)."""
    return bytes(np.asarray(tokens, np.uint8)).decode("ascii")


def matrix_elements(params):
    """Return the number of elements by which a token is multiplied."""
    return sum(
        leaf.size
        for path, leaf in jax.tree.leaves_with_path(params)
        if path[-1].key in ("kernel", "embedding")
    )


def export_writer(params, config, count):
    """Return the greedy `generate` of padded prompts, exported.

    Its arguments are {name: parameter}, prompts (1, count) and their lengths
    (1,), both int32.
    """

    def write(tensors, prompt, lengths):
        leaves = [tensors[name] for name in dotted(params)]
        tree = jax.tree.unflatten(jax.tree.structure(params), leaves)
        key = jax.random.key(0)
        return generate(tree, prompt, key, 0.0, config, count, lengths)

    prompt = jax.ShapeDtypeStruct((1, count), jnp.int32)
    lengths = jax.ShapeDtypeStruct((1,), jnp.int32)
    return export.export(jax.jit(write))(dotted(params), prompt, lengths)


def serve_once(port, folder):
    """Answer one request: a prompt in, the text out, both ASCII."""
    import http.server

    import jax
    import numpy as np
    from safetensors.numpy import load_file

    program = (folder / "program.bin").read_bytes()
    exported = jax.export.deserialize(bytearray(program))
    params, write = load_file(folder / "params.safetensors"), exported.call
    tokens = np.zeros(exported.in_avals[-2].shape, np.int32)
    write = (
        jax.jit(write).lower(params, tokens, np.ones(1, np.int32)).compile()
    )

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            prompt = self.rfile.read(int(self.headers["Content-Length"]))
            tokens[0, : len(prompt)] = np.frombuffer(prompt, np.uint8)
            text = write(params, tokens, np.array([len(prompt)], np.int32))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(np.asarray(text[0], np.uint8).tobytes())

    class Server(http.server.HTTPServer):
        allow_reuse_port = True

    Server(("localhost", port), Handler).handle_request()


def ask(port):
    """Send a prompt as soon as somebody listens, and print the answer."""
    import time
    import urllib.error
    import urllib.request

    for _ in range(500):
        try:
            with urllib.request.urlopen(
                f"http://localhost:{port}", data=b"ROMEO:"
            ) as answer:
                return print(repr(answer.read().decode("ascii")))
        except urllib.error.URLError:
            time.sleep(0.1)
    raise TimeoutError("nobody has listened for 50 seconds")


def serve_or_ask():
    """Be the server as process 0, and the client as process 1."""
    import os
    import pathlib

    port = int(os.environ["PORT"])
    if os.environ["NUMBER"] == "0":
        serve_once(port, pathlib.Path(os.environ["FOLDER"]))
    else:
        ask(port)


def serve(folder, params, exported):
    """Write the files, and run a server and a client; return both, Finished.

    Raises RuntimeError where one of them fails.
    """
    (folder / "program.bin").write_bytes(exported.serialize())
    save_file(jax.device_get(dotted(params)), folder / "params.safetensors")

    def variables(port, count, number):
        return {
            "PORT": str(port),
            "FOLDER": str(folder),
            "NUMBER": str(number),
        }

    return launch(
        serve_or_ask, 2, 1, uses=[serve_once, ask], variables=variables
    )


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
