"""A transformer block: as a plain pytree, in NNX, Equinox and PyTorch."""

import dataclasses
import inspect
import math

import equinox as eqx
import flax
import jax
import jax.numpy as jnp
import numpy as np
import optax
import torch
from flax import nnx

EXPECTED_ERRORS = {
    "unknown_layer": (TypeError, "from_torch has no layout for"),
    "names_that_do_not_fit": (ValueError, "The names or shapes differ"),
    "donate_twice": (
        jax.errors.JaxRuntimeError,
        "Attempt to donate",
    ),
    "norm_in_jit": (
        flax.errors.TraceContextError,
        "from a different trace level",
    ),
    "grad_of_generator": (
        TypeError,
        "grad requires real- or complex-valued inputs",
    ),
    "list_of_layers": (ValueError, "assigned to static attribute 'layers'"),
    "nnx_dropout": (ValueError, "is False, but no"),
    "assign_weight": (
        dataclasses.FrozenInstanceError,
        "cannot assign to field",
    ),
    "jit_of_mlp": (TypeError, "Error interpreting argument to"),
    "optimizer_of_mlp": (
        TypeError,
        "zeros_like requires ndarray or scalar arguments",
    ),
    "equinox_dropout": (RuntimeError, "Dropout requires a key"),
    "norm_of_one": (NameError, "Found an unbound axis name: batch"),
    "dropout_twice": (jax.errors.KeyReuseError, "Previously-consumed key"),
}

STEPS = 50
WARMUP = 10
RATE = 0.01
DECAY = 0.01


class TorchBlock(torch.nn.Module):
    """A transformer block on float32 (rows, length, width)."""

    def __init__(self, width=32, heads=4, dropout=0.1):
        super().__init__()
        self.heads = heads
        self.norm1 = torch.nn.LayerNorm(width)
        self.qkv = torch.nn.Linear(width, 3 * width)
        self.out = torch.nn.Linear(width, width)
        self.norm2 = torch.nn.LayerNorm(width)
        self.up = torch.nn.Linear(width, 2 * width)
        self.down = torch.nn.Linear(2 * width, width)
        self.drop = torch.nn.Dropout(dropout)

    def forward(self, x):
        """Return an array like `x`; dropout while training."""
        qkv = self.qkv(self.norm1(x)).unflatten(-1, (3, self.heads, -1))
        y = torch.nn.functional.scaled_dot_product_attention(
            *qkv.permute(2, 0, 3, 1, 4)
        )
        x = x + self.drop(self.out(y.transpose(1, 2).flatten(2)))
        y = torch.nn.functional.gelu(self.up(self.norm2(x)))
        return x + self.drop(self.down(y))


def linear(params, x):
    """Return x (..., inputs) times a kernel (inputs, outputs), plus a bias."""
    return x @ params["kernel"] + params["bias"]


def layer_norm(params, x):
    """Return x (..., width) standardized, then scaled and shifted.

    It computes in float32 at least, and returns the dtype of x.
    """
    y = x.astype(jnp.promote_types(x.dtype, jnp.float32))
    y = y - y.mean(axis=-1, keepdims=True)
    y = y * jax.lax.rsqrt(jnp.square(y).mean(axis=-1, keepdims=True) + 1e-5)
    return (y * params["scale"] + params["bias"]).astype(x.dtype)


def drop(key, x, rate):
    """Return x with dropout at this rate, or x itself where key is None."""
    if key is None:
        return x
    keep = jax.random.bernoulli(key, 1 - rate, x.shape)
    return jnp.where(keep, x / (1 - rate), 0)


def attend(qkv, heads):
    """Return attention (..., length, width) of qkv (..., length, 3 width)."""
    qkv = qkv.reshape(*qkv.shape[:-1], 3, heads, -1)
    y = jax.nn.dot_product_attention(*jnp.unstack(qkv, axis=-3))
    return y.reshape(*y.shape[:-2], -1)


def block(params, x, key=None, *, heads=4, dropout=0.1):
    """Return an array like x (..., length, width); dropout with a key only."""
    first, second = (None, None) if key is None else jax.random.split(key)
    y = attend(linear(params["qkv"], layer_norm(params["norm1"], x)), heads)
    x = x + drop(first, linear(params["out"], y), dropout)
    y = linear(params["up"], layer_norm(params["norm2"], x))
    y = jax.nn.gelu(y, approximate=False)
    return x + drop(second, linear(params["down"], y), dropout)


def first_linear(key, inputs, outputs):
    """Draw a kernel of variance 1 / inputs, and make a bias of zeros."""
    kernel = jax.random.normal(key, (inputs, outputs)) / math.sqrt(inputs)
    return {"kernel": kernel, "bias": jnp.zeros(outputs)}


def first_norm(width):
    """Return a scale of ones and a bias of zeros, both (width,)."""
    return {"scale": jnp.ones(width), "bias": jnp.zeros(width)}


def first_block(key, width=32):
    """Return the float32 parameters of `block`."""
    keys = jax.random.split(key, 4)
    return {
        "norm1": first_norm(width),
        "qkv": first_linear(keys[0], width, 3 * width),
        "out": first_linear(keys[1], width, width),
        "norm2": first_norm(width),
        "up": first_linear(keys[2], width, 2 * width),
        "down": first_linear(keys[3], 2 * width, width),
    }


class NnxBlock(nnx.Module):
    """The block in Flax NNX, on float32 (rows, length, width)."""

    def __init__(self, width=32, heads=4, dropout=0.1, *, rngs):
        self.heads = heads
        self.norm1 = nnx.LayerNorm(width, epsilon=1e-5, rngs=rngs)
        self.qkv = nnx.Linear(width, 3 * width, rngs=rngs)
        self.out = nnx.Linear(width, width, rngs=rngs)
        self.norm2 = nnx.LayerNorm(width, epsilon=1e-5, rngs=rngs)
        self.up = nnx.Linear(width, 2 * width, rngs=rngs)
        self.down = nnx.Linear(2 * width, width, rngs=rngs)
        self.drop = nnx.Dropout(dropout, rngs=rngs)

    def __call__(self, x):
        """Return an array like `x`; dropout while training."""
        y = attend(self.qkv(self.norm1(x)), self.heads)
        x = x + self.drop(self.out(y))
        y = nnx.gelu(self.up(self.norm2(x)), approximate=False)
        return x + self.drop(self.down(y))


class EquinoxBlock(eqx.Module):
    """The block in Equinox, on one sequence, float32 (length, width)."""

    norm1: eqx.nn.LayerNorm
    qkv: eqx.nn.Linear
    out: eqx.nn.Linear
    norm2: eqx.nn.LayerNorm
    up: eqx.nn.Linear
    down: eqx.nn.Linear
    drop: eqx.nn.Dropout
    heads: int = eqx.field(static=True)

    def __call__(self, x, key=None):
        """Return an array like `x`; dropout while training, with the key."""
        first, second = (None, None) if key is None else jax.random.split(key)
        y = attend(jax.vmap(self.qkv)(jax.vmap(self.norm1)(x)), self.heads)
        x = x + self.drop(jax.vmap(self.out)(y), key=first)
        y = jax.vmap(self.up)(jax.vmap(self.norm2)(x))
        y = jax.vmap(self.down)(jax.nn.gelu(y, approximate=False))
        return x + self.drop(y, key=second)


def first_equinox(key, width=32, heads=4, dropout=0.1):
    """Return an Equinox block with weights drawn at random."""
    keys = jax.random.split(key, 4)
    return EquinoxBlock(
        norm1=eqx.nn.LayerNorm(width),
        qkv=eqx.nn.Linear(width, 3 * width, key=keys[0]),
        out=eqx.nn.Linear(width, width, key=keys[1]),
        norm2=eqx.nn.LayerNorm(width),
        up=eqx.nn.Linear(width, 2 * width, key=keys[2]),
        down=eqx.nn.Linear(2 * width, width, key=keys[3]),
        drop=eqx.nn.Dropout(dropout),
        heads=heads,
    )


LAYOUTS = {
    torch.nn.Linear: ("kernel", (1, 0)),
    torch.nn.Conv1d: ("kernel", (2, 1, 0)),
    torch.nn.Conv2d: ("kernel", (2, 3, 1, 0)),
    torch.nn.Embedding: ("embedding", (0, 1)),
    torch.nn.LayerNorm: ("scale", (0,)),
    torch.nn.BatchNorm1d: ("scale", (0,)),
    torch.nn.BatchNorm2d: ("scale", (0,)),
}


def as_array(tensor):
    """Return an array that shares no memory with the tensor."""
    return jnp.array(tensor.detach().numpy().copy())


def nested(flat):
    """Return {"a.0.b": leaf} as {"a": {0: {"b": leaf}}}."""
    tree = {}
    for name, leaf in flat.items():
        *path, last = [int(w) if w.isdigit() else w for w in name.split(".")]
        inner = tree
        for word in path:
            inner = inner.setdefault(word, {})
        inner[last] = leaf
    return tree


def require_untied(module):
    """Raise ValueError where two layers share a parameter.

    Two copies of it would be trained apart.
    """
    names = {}
    for name, tensor in module.named_parameters(remove_duplicate=False):
        first = names.setdefault(id(tensor), name)
        if first != name:
            raise ValueError(
                f"{name} and {first} are one parameter; make a tree with one "
                "leaf for it, and use that twice"
            )


def from_torch(module):
    """Return (params, stats): copies of a module's arrays, under NNX's names.

    `stats` are the running mean and variance of batch norms. Raises TypeError
    for a layer that is not in `LAYOUTS`, ValueError for a shared parameter.
    """
    require_untied(module)
    params, stats = {}, {}
    for path, layer in module.named_modules():
        start = f"{path}." if path else ""
        for name, tensor in layer.named_parameters(recurse=False):
            if type(layer) not in LAYOUTS:
                kind = type(layer).__name__
                raise TypeError(
                    f"from_torch has no layout for {kind} ({path})"
                )
            array = as_array(tensor)
            if name == "weight":
                name, axes = LAYOUTS[type(layer)]
                array = array.transpose(axes)
            params[start + name] = array
        if getattr(layer, "running_mean", None) is not None:
            stats[f"{start}mean"] = as_array(layer.running_mean)
            stats[f"{start}var"] = as_array(layer.running_var)
    return nested(params), nested(stats)


def unknown_layer():
    """Convert a layer that is not in `LAYOUTS`; raises TypeError."""
    return from_torch(torch.nn.TransformerEncoderLayer(d_model=32, nhead=4))


def name_of(path):
    """Return the path of a leaf in a pytree as a name such as "a.0.b"."""
    return jax.tree_util.keystr(path, simple=True, separator=".")


def dotted(tree):
    """Return {"a.0.b": leaf} of a pytree."""
    leaves = jax.tree.leaves_with_path(tree)
    return {name_of(path): leaf for path, leaf in leaves}


def require_same_shapes(model, given):
    """Raise ValueError where the names or shapes of two pytrees differ."""
    ours, theirs = (
        jax.tree.map(jnp.shape, dotted(tree)) for tree in (model, given)
    )
    wrong = [
        f"{n}: {ours.get(n)} in the model, {theirs.get(n)} given"
        for n in sorted(ours.keys() | theirs.keys())
        if ours.get(n) != theirs.get(n)
    ]
    if wrong:
        raise ValueError("\n".join(["The names or shapes differ:", *wrong]))


def into_nnx(model, params, stats):
    """Write copies of parameters and statistics into an NNX module; return it.

    Raises ValueError where a name or a shape is not the module's.
    """
    for kind, tree in (nnx.Param, params), (nnx.BatchStat, stats):
        require_same_shapes(nnx.to_pure_dict(nnx.state(model, kind)), tree)
        nnx.update(model, jax.tree.map(jnp.copy, tree))
    return model


def names_that_do_not_fit(params):
    """Rename a layer and write it into a block; raises ValueError."""
    renamed = {"fc1" if n == "up" else n: v for n, v in params.items()}
    return into_nnx(NnxBlock(rngs=nnx.Rngs(0)), renamed, {})


def into_equinox(model, module):
    """Return an Equinox module with copies of a torch module's parameters.

    Raises ValueError where a name or a shape is not the module's. The bias of
    a convolution has two more axes in Equinox.
    """
    params, rest = eqx.partition(model, eqx.is_inexact_array)
    leaves = dotted(params)
    arrays = {name: as_array(t) for name, t in module.named_parameters()}
    for name in arrays.keys() & leaves.keys():
        if leaves[name].shape == (*arrays[name].shape, 1, 1):
            arrays[name] = arrays[name][:, None, None]
    require_same_shapes(leaves, arrays)
    params = jax.tree.map_with_path(
        lambda path, _: arrays[name_of(path)], params
    )
    return eqx.combine(params, rest)


def in_torch(x):
    """Return a copy of an array as a tensor."""
    return torch.tensor(np.array(x))


def largest_difference(x, y):
    """Return the largest difference of two arrays or tensors."""
    x, y = (
        a.detach().numpy() if isinstance(a, torch.Tensor) else a
        for a in (x, y)
    )
    return float(abs(np.array(x) - np.array(y)).max())


def mean_squared(y, target):
    """Return the mean of the squared differences."""
    return jnp.mean((y - target) ** 2)


def sequences(steps=STEPS, rows=8, length=16, width=32):
    """Return batches of random x (rows, length, width), and targets like x.

    A target is twenty times the mean of x over the length. All is float32.
    """
    rng = np.random.default_rng(0)
    x = rng.normal(size=(steps, rows, length, width)).astype(np.float32)
    mean = x.mean(axis=2, keepdims=True)
    target = np.broadcast_to(20 * mean, x.shape).copy()
    return list(zip(x, target, strict=True))


OPTIMIZER = optax.chain(
    optax.clip_by_global_norm(1.0),
    optax.adamw(
        optax.warmup_cosine_decay_schedule(0.0, RATE, WARMUP, STEPS),
        weight_decay=DECAY,
    ),
)


@jax.jit(donate_argnames=("params", "opt_state"), static_argnames="dropout")
def train_step(params, opt_state, batch, key, dropout):
    """Return the parameters and optimizer state after a step, and the loss."""

    def loss(params, batch):
        x, target = batch
        return mean_squared(block(params, x, key, dropout=dropout), target)

    value, grads = jax.value_and_grad(loss)(params, batch)
    updates, opt_state = OPTIMIZER.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, value


def train(params, batches, key, dropout=0.1):
    """Train the plain block, donating `params`; return the losses (steps,)."""
    opt_state, losses = OPTIMIZER.init(params), []
    for n, batch in enumerate(batches):
        own = jax.random.fold_in(key, n)
        params, opt_state, loss = train_step(
            params, opt_state, batch, own, dropout
        )
        losses.append(loss)
    return np.array(losses)


@nnx.jit(donate_argnames=("model", "optimizer"))
def nnx_step(model, optimizer, batch):
    """Update module and optimizer in place; return the loss before it."""

    def loss(model, batch):
        x, target = batch
        return mean_squared(model(x), target)

    value, grads = nnx.value_and_grad(loss)(model, batch)
    optimizer.update(model, grads)
    return value


def train_nnx(model, batches):
    """Train an NNX module in place; return the losses (steps,)."""
    optimizer = nnx.Optimizer(model, OPTIMIZER, wrt=nnx.Param)
    losses = []
    for batch in batches:
        losses.append(nnx_step(model, optimizer, batch))
    return np.array(losses)


@eqx.filter_jit
def equinox_step(model, opt_state, batch, keys):
    """Return the module and optimizer state after a step, and the loss."""

    def loss(model, batch):
        x, target = batch
        return mean_squared(jax.vmap(model)(x, keys), target)

    value, grads = eqx.filter_value_and_grad(loss)(model, batch)
    params = eqx.filter(model, eqx.is_inexact_array)
    updates, opt_state = OPTIMIZER.update(grads, opt_state, params)
    return eqx.apply_updates(model, updates), opt_state, value


def train_equinox(model, batches, key):
    """Train an Equinox block; return the losses (steps,)."""
    params = eqx.filter(model, eqx.is_inexact_array)
    opt_state, losses = OPTIMIZER.init(params), []
    for n, batch in enumerate(batches):
        keys = jax.random.split(jax.random.fold_in(key, n), len(batch[0]))
        model, opt_state, loss = equinox_step(model, opt_state, batch, keys)
        losses.append(loss)
    return np.array(losses)


def donate_twice(params, batch, key):
    """Give two norms the same arrays; raises JaxRuntimeError."""
    norm = first_norm(32)
    params = params | {"norm1": norm, "norm2": norm}
    opt_state = OPTIMIZER.init(params)
    return train_step(params, opt_state, batch, key, dropout=0.1)


def warmup_cosine(step):
    """Return the learning rate of a step, as a fraction of the highest."""
    if step < WARMUP:
        return step / WARMUP
    return (1 + math.cos(math.pi * (step - WARMUP) / (STEPS - WARMUP))) / 2


def train_torch(model, batches):
    """Train a torch module in place; return the losses (steps,)."""
    params, losses = list(model.parameters()), []
    optimizer = torch.optim.AdamW(params, lr=RATE, weight_decay=DECAY)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, warmup_cosine)
    for x, target in batches:
        optimizer.zero_grad()
        y = model(torch.from_numpy(x))
        loss = torch.nn.functional.mse_loss(y, torch.from_numpy(target))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(params, 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.detach())
    return torch.stack(losses).numpy()


def same_twice(f):
    """Return whether two calls give the same array."""
    return bool(largest_difference(f(), f()) == 0)


def defaults():
    """Return {setting: {library: its default}} of settings that differ."""
    rngs = nnx.Rngs(0)
    norms = {
        "PyTorch": torch.nn.LayerNorm(1).eps,
        "NNX": nnx.LayerNorm(1, rngs=rngs).epsilon,
        "Equinox": eqx.nn.LayerNorm(1).eps,
    }
    approximate = {
        "PyTorch": torch.nn.GELU().approximate != "none",
        "JAX": default_of(jax.nn.gelu, "approximate"),
    }
    decay = {
        "PyTorch": default_of(torch.optim.AdamW, "weight_decay"),
        "Optax": default_of(optax.adamw, "weight_decay"),
    }
    return {
        "epsilon of layer norm": norms,
        "gelu is approximate": approximate,
        "weight decay of AdamW": decay,
    }


def default_of(function, argument):
    """Return the default of an argument."""
    return inspect.signature(function).parameters[argument].default


@jax.jit
def predict_and_forget(model, x):
    """Call an NNX module under `jax.jit`."""
    return model(x)


@nnx.jit
def predict_and_keep(model, x):
    """Call an NNX module under `nnx.jit`."""
    return model(x)


def norm_in_jit(x):
    """Change a module from a closure; raises TraceContextError."""
    norm = nnx.BatchNorm(x.shape[-1], rngs=nnx.Rngs(0))
    return jax.jit(lambda x: norm(x))(x)


def grad_of_generator(x):
    """Differentiate by a module with a random generator; raises TypeError."""
    layer = nnx.Dropout(0.5, rngs=nnx.Rngs(0))
    return jax.grad(lambda layer: layer(x).sum())(layer)


class ListOfLayers(nnx.Module):
    """Layers in a Python list, which NNX refuses."""

    def __init__(self, rngs):
        self.layers = [nnx.Linear(2, 2, rngs=rngs)]


def list_of_layers():
    """Make a module with layers in a list; raises ValueError."""
    return ListOfLayers(nnx.Rngs(0))


def nnx_dropout(x):
    """Drop without a generator; raises ValueError."""
    return nnx.Dropout(0.5)(x)


def assign_weight():
    """Assign to a layer of Equinox; raises FrozenInstanceError."""
    layer = eqx.nn.Linear(2, 2, key=jax.random.key(0))
    layer.weight = jnp.zeros((2, 2))


def replace_weight():
    """Return a layer of Equinox with other weights (2, 2)."""
    layer = eqx.nn.Linear(2, 2, key=jax.random.key(0))
    return eqx.tree_at(lambda layer: layer.weight, layer, jnp.zeros((2, 2)))


def jit_of_mlp(mlp, x):
    """Pass a module with a function to `jax.jit`; raises TypeError."""
    return jax.jit(lambda mlp, x: mlp(x))(mlp, x)


def optimizer_of_mlp(mlp):
    """Make optimizer state for all leaves of a module; raises TypeError."""
    return OPTIMIZER.init(mlp)


def equinox_dropout(x):
    """Drop without a key; raises RuntimeError."""
    return eqx.nn.Dropout(0.5)(x)


def norm_of_one(x):
    """Normalize one example (features,) without `vmap`; raises NameError."""
    make = eqx.nn.make_with_state(eqx.nn.BatchNorm)
    norm, state = make(len(x), "batch", mode="batch")
    return norm(x, state)


def dropout_twice(key, x):
    """Drop twice with one key and the check on; raises KeyReuseError."""
    with jax.debug_key_reuse(True):
        return drop(key, drop(key, x, 0.5), 0.5)
