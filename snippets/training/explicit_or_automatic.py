"""A transformer on a mesh of explicit axes, automatic ones, or both."""

import ast
import collections
import inspect
import re
import textwrap

import jax
import jax.numpy as jnp
from flax import nnx
from jax import lax, reshard

from snippets.models.modules import layer_norm, linear
from snippets.models.steps import cross_entropy, gradient_of
from snippets.project.gpt import look_up
from snippets.training.annotated import rows_of
from snippets.training.data_parallel import count_collectives

EXPECTED_ERRORS = {
    "reshard_mixed": (
        ValueError,
        "cannot contain axis names that are of type Auto",
    ),
}

COLUMNS = {"kernel": jax.P(None, None, "model"), "bias": jax.P(None, "model")}
ROWS = {"kernel": jax.P(None, "model"), "bias": jax.P()}
HEADS = {
    "kernel": jax.P(None, None, None, "model"),
    "bias": jax.P(None, None, "model"),
}


def tensor_parallel(params, qkv):
    """Return a spec for each parameter of `gpt`; `qkv` are those of qkv.

    What lies between two matmuls is sharded over "model", all else replicated.
    """
    specs = jax.tree.map(lambda _: jax.P(), params)
    specs["layers"] |= {"qkv": qkv, "out": ROWS, "up": COLUMNS, "down": ROWS}
    return specs


def mesh_of(data, model):
    """Return a mesh of 2 x 4 devices; a kind is "Explicit" or "Auto"."""
    kinds = jax.sharding.AxisType[data], jax.sharding.AxisType[model]
    return jax.make_mesh((2, 4), ("data", "model"), kinds)


def traffic(program):
    """Return {kind: elements that the collectives return on one device}.

    `program` is the text of a compiled function. A collective in a loop counts
    once for each iteration; ValueError if the text doesn't say how many.
    """
    blocks = {}
    for block in program.split("\n\n"):
        if named := re.match(r"\s*(ENTRY )?%?([\w.-]+) \(", block):
            blocks["ENTRY" if named[1] else named[2]] = block
    total = collections.Counter()

    def add(name, times):
        found = count_collectives(blocks[name])
        total.update({k: times * n["elements"] for k, n in found.items()})
        for line in blocks[name].splitlines():
            runs, loop = times, "body=" in line
            if loop:
                counted = re.search(r'known_trip_count.*?"(\d+)"', line)
                if counted is None:
                    raise ValueError(f"how often does this loop run? {line}")
                runs *= int(counted[1])
            pattern = r"(?:body|calls|to_apply)=%?([\w.-]+)"
            for inner in re.findall(pattern, line):
                add(inner, runs)

    add("ENTRY", 1)
    return dict(total)


def loss_and_traffic(apply, params, batch, stats=()):
    """Return a loss to five decimals, and the `traffic` of its gradient."""
    gradient = jax.jit(gradient_of(cross_entropy(apply)))
    compiled = gradient.lower(params, stats, batch).compile()
    (loss, _), _ = compiled(params, stats, batch)
    return round(float(loss), 5), traffic(compiled.as_text())


def by_heads(params, heads):
    """Return parameters of `gpt` whose kernels have an axis of the heads."""
    layers = params["layers"]

    def packed(x):
        return x.reshape(*x.shape[:-1], 3, heads, -1)

    kernel = layers["out"]["kernel"]
    kernel = kernel.reshape(len(kernel), heads, -1, kernel.shape[-1])
    out = layers["out"] | {"kernel": kernel}
    qkv = jax.tree.map(packed, layers["qkv"])
    return params | {"layers": layers | {"qkv": qkv, "out": out}}


def layer_by_heads(params, x, rows):
    """Return an array like x (rows, length, width) after one layer.

    `rows` is the layout of x, or None on automatic axes.
    """
    y, qkv = layer_norm(params["norm1"], x), params["qkv"]
    qkv = jnp.einsum("rld,dchn->rlchn", y, qkv["kernel"]) + qkv["bias"]
    y = jax.nn.dot_product_attention(*jnp.unstack(qkv, axis=2), is_causal=True)
    out, down = params["out"], params["down"]
    y = jnp.einsum("rlhn,hnd->rld", y, out["kernel"], out_sharding=rows)
    x = x + y + out["bias"]
    y = linear(params["up"], layer_norm(params["norm2"], x))
    y = jax.nn.gelu(y, approximate=False)
    y = jnp.matmul(y, down["kernel"], out_sharding=rows)
    return x + y + down["bias"]


def gpt_by_heads(params, tokens, rows_of=rows_of):
    """Return what `gpt` returns; `rows_of` the layout of the sums, or None."""
    x = look_up(params["embedding"], tokens)
    x = x + params["positions"][: tokens.shape[1]]

    def apply_layer(x, params):
        return layer_by_heads(params, x, rows_of(x)), None

    x, _ = jax.lax.scan(apply_layer, x, params["layers"])
    return layer_norm(params["norm"], x) @ params["embedding"].T


def layouts_named(*functions):
    """Count the places in functions where the code names a layout."""
    named = "out_sharding", "reshard", "with_sharding_constraint"
    found = 0
    for function in functions:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
        for node in ast.walk(tree):
            if isinstance(node, ast.keyword):
                found += node.arg == named[0]
            if isinstance(node, ast.Call):
                name = ast.unparse(node.func).rpartition(".")[2]
                found += name in named[1:]
    return found


def parted(inputs, outputs, axis, rngs):
    """Return `nnx.LinearGeneral` of axes {name: size}."""
    return nnx.LinearGeneral(
        tuple(inputs.values()),
        tuple(outputs.values()),
        axis=axis,
        kernel_metadata={"out_sharding": (*inputs, *outputs)},
        bias_metadata={"out_sharding": tuple(outputs)},
        rngs=rngs,
    )


class NnxLayer(nnx.Module):
    """A layer of `NnxGpt`, whose parameters name axes."""

    def __init__(self, config, *, rngs):
        width, up = {"width": config.width}, {"up": 4 * config.width}
        heads = {"heads": config.heads, "size": config.width // config.heads}
        self.norm1 = nnx.LayerNorm(config.width, epsilon=1e-5, rngs=rngs)
        self.qkv = parted(width, {"qkv": 3} | heads, -1, rngs)
        self.out = parted(heads, width, (-2, -1), rngs)
        self.norm2 = nnx.LayerNorm(config.width, epsilon=1e-5, rngs=rngs)
        self.up = parted(width, up, -1, rngs)
        self.down = parted(up, width, -1, rngs)

    def __call__(self, x):
        """Return an array like x (rows, length, width)."""
        qkv = jnp.unstack(self.qkv(self.norm1(x)), axis=2)
        y = jax.nn.dot_product_attention(*qkv, is_causal=True)
        x = x + self.out(y, out_sharding=rows_of(x))
        y = nnx.gelu(self.up(self.norm2(x)), approximate=False)
        return x + self.down(y, out_sharding=rows_of(x))


class NnxGpt(nnx.Module):
    """The model in NNX, whose layers name axes; a mesh has to be set."""

    def __init__(self, config, *, rngs):
        width = config.width
        self.embedding = nnx.Embed(config.tokens, width, rngs=rngs)
        self.positions = nnx.Embed(config.length, width, rngs=rngs)
        self.layers = nnx.List(
            NnxLayer(config, rngs=rngs) for _ in range(config.layers)
        )
        self.norm = nnx.LayerNorm(width, epsilon=1e-5, rngs=rngs)

    def __call__(self, tokens):
        """Return logits (rows, length, tokens) of tokens (rows, length)."""
        rows = rows_of(tokens[..., None])
        x = self.embedding(tokens, out_sharding=rows)
        x = x + self.positions.embedding[: tokens.shape[1]]
        for layer in self.layers:
            x = layer(x)
        return self.embedding.attend(self.norm(x))


RULES = dict.fromkeys(["width", "qkv", "size"]) | dict.fromkeys(
    ["heads", "up"], "model"
)


@jax.jit
def reshard_mixed(x):
    """Name an automatic axis in a reshard; raises ValueError."""
    return reshard(2 * x, jax.P("data", "model"))


def along(spec, axes, others):
    """Return a spec with only those axes of the mesh.

    ValueError where one entry has others as well, because their order would
    be lost, or where it has a name that is neither.
    """
    entries = []
    for entry in spec:
        names = (entry,) if isinstance(entry, str) else entry or ()
        if names is jax.P.UNCONSTRAINED or {*names} - {*axes, *others}:
            raise ValueError(
                f"{entry} in {spec}: name explicit or automatic axes of the "
                f"mesh, {*axes, *others}, or None"
            )
        kept = tuple(name for name in names if name in axes)
        if kept and kept != names:
            raise ValueError(
                f"{names} shard one axis of the array, and are of two kinds: "
                "give it axes of one kind"
            )
        entries.append(kept or None)
    return jax.P(*entries)


@jax.jit(static_argnames="spec")
def lay_out(x, spec):
    """Return an array in a layout, on axes of either kind; without a mesh, x.

    ValueError for names of no such axis, or if explicit and automatic axes
    together shard one axis of x.
    """
    mesh = jax.sharding.get_abstract_mesh()
    if mesh.empty:
        return x
    kinds = mesh.explicit_axes, mesh.auto_axes
    explicit, auto = along(spec, *kinds), along(spec, *kinds[::-1])
    if mesh.explicit_axes:
        x = reshard(x, explicit)
    if mesh.auto_axes:
        x = lax.with_sharding_constraint(x, auto)
    return x
