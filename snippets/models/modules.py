"""One block and one network: as plain pytrees, in NNX, Equinox, PyTorch and Keras."""

import dataclasses
import inspect
import math
from operator import attrgetter

import equinox as eqx
import flax
import jax
import jax.numpy as jnp
import keras
import numpy as np
import optax
import torch
from flax import nnx

EXPECTED_ERRORS = {
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
    """Return x (..., width) with mean 0 and variance 1, then scaled and shifted."""
    y = jax.nn.standardize(x, epsilon=1e-5)
    return y * params["scale"] + params["bias"]


def drop(key, x, rate):
    """Set a share `rate` of x to zero and enlarge the rest; without a key, nothing."""
    if key is None:
        return x
    keep = jax.random.bernoulli(key, 1 - rate, x.shape)
    return jnp.where(keep, x / (1 - rate), 0)


def attend(qkv, heads):
    """Return attention (..., length, width) of qkv (..., length, 3 width)."""
    parts = jnp.split(qkv, 3, axis=-1)
    parts = [x.reshape(*x.shape[:-1], heads, -1) for x in parts]
    y = jax.nn.dot_product_attention(*parts)
    return y.reshape(*y.shape[:-2], -1)


def block(params, x, key=None, *, heads=4, dropout=0.1):
    """Return an array like x (..., length, width); dropout where there is a key."""
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


class KerasBlock(keras.Model):
    """The block in Keras, on float32 (rows, length, width)."""

    def __init__(self, width=32, heads=4, dropout=0.1, seed=None):
        super().__init__()
        self.heads = heads
        self.norm1 = keras.layers.LayerNormalization(epsilon=1e-5)
        self.qkv = keras.layers.Dense(3 * width)
        self.out = keras.layers.Dense(width)
        self.norm2 = keras.layers.LayerNormalization(epsilon=1e-5)
        self.up = keras.layers.Dense(2 * width, "gelu")
        self.down = keras.layers.Dense(width)
        self.drop = keras.layers.Dropout(dropout, seed=seed)

    def call(self, x, training=False):
        """Return an array like `x`; dropout while training."""
        _, length, width = x.shape
        shape = -1, length, 3, self.heads, width // self.heads
        qkv = keras.ops.reshape(self.qkv(self.norm1(x)), shape)
        y = keras.ops.dot_product_attention(*keras.ops.unstack(qkv, axis=2))
        y = self.out(keras.ops.reshape(y, (-1, length, width)))
        x = x + self.drop(y, training=training)
        y = self.down(self.up(self.norm2(x)))
        return x + self.drop(y, training=training)


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
    """Return a copy of a tensor as an array, which shares no memory with it."""
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


def from_torch(module):
    """Return (params, stats): copies of a module's arrays, under NNX's names.

    Kernels become (inputs, outputs) or (height, width, inputs, outputs), and
    statistics are the running mean and variance of batch norms. Raises
    TypeError for a kind of layer that is not in `LAYOUTS`.
    """
    params, stats = {}, {}
    for path, layer in module.named_modules():
        own = dict(layer.named_parameters(path, recurse=False))
        if own and type(layer) not in LAYOUTS:
            raise TypeError(f"{path}: no layout for {type(layer).__name__}")
        for name, tensor in own.items():
            if name.endswith("weight"):
                kind, axes = LAYOUTS[type(layer)]
                params[f"{path}.{kind}"] = as_array(tensor).transpose(axes)
            else:
                params[name] = as_array(tensor)
        if getattr(layer, "running_mean", None) is not None:
            stats[f"{path}.mean"] = as_array(layer.running_mean)
            stats[f"{path}.var"] = as_array(layer.running_var)
    return nested(params), nested(stats)


def name_of(path):
    """Return the path of a leaf in a pytree as a name such as "a.0.b"."""
    return jax.tree_util.keystr(path, simple=True, separator=".")


def dotted(tree):
    """Return {"a.0.b": leaf} of a pytree."""
    leaves = jax.tree.leaves_with_path(tree)
    return {name_of(path): leaf for path, leaf in leaves}


def require_same_shapes(ours, theirs):
    """Raise ValueError where the names or shapes of two pytrees differ."""
    ours, theirs = (jax.tree.map(jnp.shape, dotted(t)) for t in (ours, theirs))
    wrong = [
        f"{name}: {ours.get(name)} here, {theirs.get(name)} there"
        for name in sorted(ours.keys() | theirs.keys())
        if ours.get(name) != theirs.get(name)
    ]
    if wrong:
        raise ValueError("; ".join(wrong))


def into_nnx(model, params, stats):
    """Write parameters and statistics into an NNX module, and return it.

    Raises ValueError where a name or a shape is not the module's.
    """
    for kind, tree in (nnx.Param, params), (nnx.BatchStat, stats):
        require_same_shapes(nnx.to_pure_dict(nnx.state(model, kind)), tree)
        nnx.update(model, tree)
    return model


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
    """Return the largest difference of two arrays or tensors of equal shapes."""
    x, y = (
        a.detach().numpy() if isinstance(a, torch.Tensor) else a
        for a in (x, y)
    )
    return float(abs(np.array(x) - np.array(y)).max())


def mean_squared(y, target):
    """Return the mean of the squared differences."""
    return jnp.mean((y - target) ** 2)


def sequences(steps=STEPS, rows=8, length=16, width=32):
    """Return batches of x (rows, length, width) and twenty times its mean by length."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(steps, rows, length, width)).astype(np.float32)
    target = np.broadcast_to(
        20 * x.mean(axis=2, keepdims=True), x.shape
    ).copy()
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
    """Return parameters and optimizer state after a step, and the loss before it."""

    def loss(params):
        x, target = batch
        return mean_squared(block(params, x, key, dropout=dropout), target)

    value, grads = jax.value_and_grad(loss)(params)
    updates, opt_state = OPTIMIZER.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, value


def train(params, batches, key, dropout=0.1):
    """Train the plain block; its parameters are donated. Return the losses (steps,)."""
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
    """Change module and optimizer by one step; return the loss before it."""

    def loss(model):
        x, target = batch
        return mean_squared(model(x), target)

    value, grads = nnx.value_and_grad(loss)(model)
    optimizer.update(model, grads)
    return value


def train_nnx(model, batches):
    """Train an NNX module where it is; return the losses (steps,)."""
    optimizer = nnx.Optimizer(model, OPTIMIZER, wrt=nnx.Param)
    return np.array([nnx_step(model, optimizer, batch) for batch in batches])


@eqx.filter_jit(donate="all-except-first")
def equinox_step(inputs, model, opt_state):
    """Return module and optimizer state after a step, and the loss before it."""

    def loss(model):
        x, target, keys = inputs
        return mean_squared(jax.vmap(model)(x, keys), target)

    value, grads = eqx.filter_value_and_grad(loss)(model)
    params = eqx.filter(model, eqx.is_inexact_array)
    updates, opt_state = OPTIMIZER.update(grads, opt_state, params)
    return eqx.apply_updates(model, updates), opt_state, value


def train_equinox(model, batches, key):
    """Train an Equinox block; its arrays are donated. Return the losses (steps,)."""
    opt_state = OPTIMIZER.init(eqx.filter(model, eqx.is_inexact_array))
    losses = []
    for n, (x, target) in enumerate(batches):
        keys = jax.random.split(jax.random.fold_in(key, n), len(x))
        model, opt_state, loss = equinox_step(
            (x, target, keys), model, opt_state
        )
        losses.append(loss)
    return np.array(losses)


def train_keras(model, batches):
    """Train a Keras model where it is; return the losses (steps,)."""
    rate = keras.optimizers.schedules.CosineDecay(
        0.0, STEPS - WARMUP, warmup_target=RATE, warmup_steps=WARMUP
    )
    optimizer = keras.optimizers.AdamW(
        rate, weight_decay=DECAY, global_clipnorm=1.0
    )
    model.compile(optimizer, loss="mse")
    return np.array([model.train_on_batch(x, target) for x, target in batches])


def warmup_cosine(step):
    """Return the share of the learning rate that a step has."""
    if step < WARMUP:
        return step / WARMUP
    return (1 + math.cos(math.pi * (step - WARMUP) / (STEPS - WARMUP))) / 2


def train_torch(model, batches):
    """Train a torch module where it is; return the losses (steps,)."""
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


class TorchNetwork(torch.nn.Module):
    """A network with batch normalization, float32 (rows, features) to (rows, 1)."""

    def __init__(self, features=8, hidden=16):
        super().__init__()
        self.first = torch.nn.Linear(features, hidden)
        self.norm = torch.nn.BatchNorm1d(hidden)
        self.last = torch.nn.Linear(hidden, 1)

    def forward(self, x):
        """Return one number for each row."""
        return self.last(torch.tanh(self.norm(self.first(x))))


def network(params, stats, x, train):
    """Return one number for each row of x (rows, features), and the statistics."""
    x = linear(params["first"], x)
    mean, var = (x.mean(axis=0), x.var(axis=0)) if train else stats
    if train:
        unbiased = var * len(x) / (len(x) - 1)
        new = mean, unbiased
        stats = jax.tree.map(
            lambda old, new: 0.9 * old + 0.1 * new, stats, new
        )
    x = (x - mean) / jnp.sqrt(var + 1e-5)
    x = x * params["norm"]["scale"] + params["norm"]["bias"]
    return linear(params["last"], jnp.tanh(x)), stats


class NnxNetwork(nnx.Module):
    """The network in Flax NNX."""

    def __init__(self, features=8, hidden=16, *, rngs):
        self.first = nnx.Linear(features, hidden, rngs=rngs)
        self.norm = nnx.BatchNorm(hidden, momentum=0.9, rngs=rngs)
        self.last = nnx.Linear(hidden, 1, rngs=rngs)

    def __call__(self, x):
        """Return one number for each row; while training, change the statistics."""
        return self.last(nnx.tanh(self.norm(self.first(x))))


class EquinoxNetwork(eqx.Module):
    """The network in Equinox, for one example (features,), under `vmap`."""

    first: eqx.nn.Linear
    norm: eqx.nn.BatchNorm
    last: eqx.nn.Linear

    def __init__(self, features=8, hidden=16, *, key):
        one, two = jax.random.split(key)
        self.first = eqx.nn.Linear(features, hidden, key=one)
        self.norm = eqx.nn.BatchNorm(
            hidden, "batch", momentum=0.9, mode="batch"
        )
        self.last = eqx.nn.Linear(hidden, 1, key=two)

    def __call__(self, x, state):
        """Return one number and the new state."""
        x, state = self.norm(self.first(x), state)
        return self.last(jnp.tanh(x)), state


def for_rows(model):
    """Return an Equinox network as a function of rows (rows, features) and state."""
    return jax.vmap(
        model, axis_name="batch", in_axes=(0, None), out_axes=(0, None)
    )


def keras_network(features=8, hidden=16):
    """Return the network in Keras, with PyTorch's epsilon and momentum."""
    return keras.Sequential(
        [
            keras.Input((features,)),
            keras.layers.Dense(hidden),
            keras.layers.BatchNormalization(momentum=0.9, epsilon=1e-5),
            keras.layers.Activation("tanh"),
            keras.layers.Dense(1),
        ]
    )


def into_keras(model, params):
    """Write {layer: {kind: array}} into a Keras model with the same order of layers."""
    arrays = [array for layer in params.values() for array in layer.values()]
    for variable, array in zip(model.trainable_variables, arrays, strict=True):
        variable.assign(array)
    return model


def table(rows=32, features=8, steps=STEPS):
    """Return batches of x (rows, features), far from mean 0, and y (rows, 1)."""
    rng = np.random.default_rng(1)
    x = rng.normal(2, 3, (steps, rows, features)).astype(np.float32)
    y = np.sin(x[..., :1]) + x[..., 1:2]
    return list(zip(x, y, strict=True))


@jax.jit(donate_argnames=("params", "stats", "opt_state"))
def network_step(params, stats, opt_state, batch):
    """Return parameters, statistics and optimizer state after a step, and the loss."""

    def loss(params):
        x, target = batch
        y, new = network(params, stats, x, train=True)
        return mean_squared(y, target), new

    (value, stats), grads = jax.value_and_grad(loss, has_aux=True)(params)
    updates, opt_state = OPTIMIZER.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), stats, opt_state, value


def train_network(params, stats, batches):
    """Train the plain network; return its statistics and losses (steps,)."""
    opt_state, losses = OPTIMIZER.init(params), []
    for batch in batches:
        params, stats, opt_state, loss = network_step(
            params, stats, opt_state, batch
        )
        losses.append(loss)
    return stats, np.array(losses)


@eqx.filter_jit(donate="all-except-first")
def equinox_network_step(batch, model, state, opt_state):
    """Return module, its state and the optimizer's after a step, and the loss."""

    def loss(model, state):
        x, target = batch
        y, state = for_rows(model)(x, state)
        return mean_squared(y, target), state

    found = eqx.filter_value_and_grad(loss, has_aux=True)(model, state)
    (value, state), grads = found
    params = eqx.filter(model, eqx.is_inexact_array)
    updates, opt_state = OPTIMIZER.update(grads, opt_state, params)
    return eqx.apply_updates(model, updates), state, opt_state, value


def train_equinox_network(model, state, batches):
    """Train an Equinox network; return (module, state, losses)."""
    opt_state = OPTIMIZER.init(eqx.filter(model, eqx.is_inexact_array))
    losses = []
    for batch in batches:
        new = equinox_network_step(batch, model, state, opt_state)
        model, state, opt_state, loss = new
        losses.append(loss)
    return model, state, np.array(losses)


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
        "Keras": keras.layers.LayerNormalization().epsilon,
    }
    old_share = {
        "PyTorch": 1 - torch.nn.BatchNorm1d(1).momentum,
        "NNX": nnx.BatchNorm(1, rngs=rngs).momentum,
        "Equinox": eqx.nn.BatchNorm(1, "batch", mode="batch").momentum,
        "Keras": keras.layers.BatchNormalization().momentum,
    }
    decay = {
        "PyTorch": default_of(torch.optim.AdamW, "weight_decay"),
        "Optax": default_of(optax.adamw, "weight_decay"),
        "Keras": default_of(keras.optimizers.AdamW, "weight_decay"),
    }
    epsilons = {
        "PyTorch": default_of(torch.optim.AdamW, "eps"),
        "Optax": default_of(optax.adamw, "eps"),
        "Keras": default_of(keras.optimizers.AdamW, "epsilon"),
    }
    approximate = {
        "PyTorch": torch.nn.GELU().approximate != "none",
        "JAX": default_of(jax.nn.gelu, "approximate"),
        "Keras": default_of(keras.activations.gelu, "approximate"),
    }
    return {
        "epsilon of layer norm": norms,
        "batch norm keeps of the old": old_share,
        "weight decay of AdamW": decay,
        "epsilon of AdamW": epsilons,
        "gelu is approximate": approximate,
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


class NnxStack(nnx.Module):
    """Layers in NNX with two small arrays each."""

    def __init__(self, layers, *, rngs):
        self.layers = nnx.List(
            [nnx.LayerNorm(4, rngs=rngs) for _ in range(layers)]
        )


class EquinoxStack(eqx.Module):
    """Layers in Equinox with two small arrays each."""

    layers: list

    def __init__(self, layers):
        self.layers = [eqx.nn.LayerNorm(4) for _ in range(layers)]


def shrink(params):
    """Return a pytree with every array a little smaller."""
    return jax.tree.map(lambda w: 0.999 * w, params)


def shrink_nnx(model):
    """Make every parameter of an NNX module a little smaller."""
    nnx.update(model, shrink(nnx.state(model, nnx.Param)))


@jax.jit
def shrink_split(graphdef, params):
    """Return the parameters after `shrink_nnx`, from a module that was split."""
    model = nnx.merge(graphdef, params)
    shrink_nnx(model)
    return nnx.state(model, nnx.Param)


def shrink_equinox(model):
    """Return an Equinox module with every array a little smaller."""
    arrays, rest = eqx.partition(model, eqx.is_array)
    return eqx.combine(shrink(arrays), rest)


def ways_to_call(leaves):
    """Return {name: a call that changes as many arrays as `leaves` says}."""
    model = NnxStack(leaves // 2, rngs=nnx.Rngs(0))
    graphdef, params = nnx.split(model)
    cached = nnx.cached_partial(nnx.jit(shrink_nnx), model)
    plain = [
        {"scale": jnp.ones(4), "bias": jnp.zeros(4)}
        for _ in range(leaves // 2)
    ]
    equinox = EquinoxStack(leaves // 2)
    arrays = eqx.filter(equinox, eqx.is_array)
    jitted, filtered = jax.jit(shrink), eqx.filter_jit(shrink_equinox)
    of_graph, of_tree = nnx.jit(shrink_nnx), nnx.jit(shrink_nnx, graph=False)
    return {
        "jit": lambda: jitted(plain),
        "nnx_jit": lambda: of_graph(model),
        "nnx_jit_tree": lambda: of_tree(model),
        "nnx_cached": cached,
        "nnx_split_once": lambda: shrink_split(graphdef, params),
        "filter_jit": lambda: filtered(equinox),
        "equinox_arrays": lambda: jitted(arrays),
    }


def norm_in_jit(x):
    """Change a module that a jitted function closes over; raises TraceContextError."""
    norm = nnx.BatchNorm(x.shape[1], rngs=nnx.Rngs(0))
    return jax.jit(lambda x: norm(x))(x)


def grad_of_generator(x):
    """Differentiate by a module with a random generator; raises TypeError."""
    layer = nnx.Dropout(0.5, rngs=nnx.Rngs(0))
    return jax.grad(lambda layer: layer(x).sum())(layer)


class ListOfLayers(nnx.Module):
    """Layers in a list of Python, which NNX refuses."""

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
    """Pass a module that holds a function through `jax.jit`; raises TypeError."""
    return jax.jit(lambda mlp, x: mlp(x))(mlp, x)


def optimizer_of_mlp(mlp):
    """Make optimizer state for all leaves of a module; raises TypeError."""
    return OPTIMIZER.init(mlp)


def equinox_dropout(x):
    """Drop without a key; raises RuntimeError."""
    return eqx.nn.Dropout(0.5)(x)


def norm_of_one(x):
    """Normalise one example (features,) without `vmap`; raises NameError."""
    make = eqx.nn.make_with_state(eqx.nn.BatchNorm)
    norm, state = make(len(x), "batch", mode="batch")
    return norm(x, state)


def dropout_twice(key, x):
    """Drop twice with one key and the check on; raises KeyReuseError."""
    with jax.debug_key_reuse(True):
        return drop(key, drop(key, x, 0.5), 0.5)
