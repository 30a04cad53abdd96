"""One training step for plain pytrees, Flax NNX and Equinox."""

import itertools
import math

import equinox as eqx
import flax
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from sklearn.datasets import load_digits

EXPECTED_ERRORS = {
    "donate_shared_leaves": (
        jax.errors.JaxRuntimeError,
        "Attempt to donate",
    ),
    "merge_outside_of_the_gradient": (
        flax.errors.TraceContextError,
        "from a different trace level",
    ),
}


def digits(training=1536):
    """Return (images, labels) for training and for testing, shuffled.

    Images are float32 (n, 64) from 0 to 1, labels int32 (n,) from 0 to 9.
    """
    data = load_digits()
    order = np.random.default_rng(0).permutation(len(data.target))
    images = (data.data[order] / 16).astype(np.float32)
    labels = data.target[order].astype(np.int32)
    for_training = images[:training], labels[:training]
    return for_training, (images[training:], labels[training:])


def batches(images, labels, epochs, size=128):
    """Return batches of `size` examples, each epoch in an order of its own."""
    rng, chosen = np.random.default_rng(1), []
    for _ in range(epochs):
        order = rng.permutation(len(images))
        for start in range(0, len(images) - size + 1, size):
            chosen.append(order[start : start + size])
    return [(images[rows], labels[rows]) for rows in chosen]


def init_mlp(key, sizes=(64, 256, 256, 10)):
    """Return float32 layers: dicts of a kernel and a bias.

    Kernels (inputs, outputs) are normal with variance 1 / inputs; biases
    (outputs,) are zero.
    """
    keys = jax.random.split(key, len(sizes) - 1)
    params = []
    for own, (inputs, outputs) in zip(
        keys, itertools.pairwise(sizes), strict=True
    ):
        kernel = jax.random.normal(own, (inputs, outputs)) / math.sqrt(inputs)
        params.append({"kernel": kernel, "bias": jnp.zeros(outputs)})
    return params


def mlp(params, x):
    """Return logits (n, 10) for images x (n, 64)."""
    for layer in params[:-1]:
        x = jnp.tanh(x @ layer["kernel"] + layer["bias"])
    return x @ params[-1]["kernel"] + params[-1]["bias"]


class NnxMlp(nnx.Module):
    """The network in Flax NNX: images (n, 64) to logits (n, 10)."""

    def __init__(self, sizes=(64, 256, 256, 10), *, rngs):
        pairs = itertools.pairwise(sizes)
        self.layers = nnx.List([nnx.Linear(*p, rngs=rngs) for p in pairs])

    def __call__(self, x):
        """Return the logits."""
        for layer in self.layers[:-1]:
            x = nnx.tanh(layer(x))
        return self.layers[-1](x)


class EquinoxMlp(eqx.Module):
    """The network in Equinox, for one image (64,) to logits (10,)."""

    layers: list

    def __init__(self, sizes=(64, 256, 256, 10), *, key):
        keys = jax.random.split(key, len(sizes) - 1)
        pairs = zip(itertools.pairwise(sizes), keys, strict=True)
        self.layers = [eqx.nn.Linear(*pair, key=k) for pair, k in pairs]

    def __call__(self, x):
        """Return the logits."""
        for layer in self.layers[:-1]:
            x = jnp.tanh(layer(x))
        return self.layers[-1](x)


def stateless(f):
    """Return `apply` for a function f(params, x) without batch statistics."""

    def apply(params, stats, x, train=True):
        return f(params, x), stats

    return apply


def split_nnx(model):
    """Return (apply, params, stats) of an NNX module.

    The statistics are all that is no parameter: those of batch norm, and the
    counters of random generators.
    """
    graphdef, params, stats = nnx.split(model, nnx.Param, ...)

    def apply(params, stats, x, train=True):
        model = nnx.merge(graphdef, params, stats, copy=True)
        model.train() if train else model.eval()
        return model(x), nnx.state(model, nnx.Not(nnx.Param))

    return apply, params, stats


def split_equinox(model):
    """Return (apply, params, stats) of an Equinox module without state."""
    params, static = eqx.partition(model, eqx.is_inexact_array)
    return (
        stateless(lambda params, x: jax.vmap(eqx.combine(params, static))(x)),
        params,
        (),
    )


def split_stateful_equinox(model, state):
    """Return (apply, params, stats) of an Equinox module with batch norm."""
    params, static = eqx.partition(model, eqx.is_inexact_array)

    def apply(params, stats, x, train=True):
        model = eqx.combine(params, static)
        model = eqx.nn.inference_mode(model, value=not train)
        rows = jax.vmap(
            model, in_axes=(0, None), out_axes=(0, None), axis_name="batch"
        )
        return rows(x, stats)

    return apply, params, state


def cross_entropy(apply):
    """Return a loss of (x, labels): -log p(label), added up.

    Labels (n, ...), int32, are the numbers of classes. Those below 0 are
    padding: they add nothing, and nobody counts them.

    As every loss of this book it returns (total, (count, stats)), of which
    `gradient_of` makes a mean. Both are float32, or float64 for float64
    logits: sums and counts of fewer bits would be rounded.
    """

    def loss(params, stats, batch):
        x, labels = batch
        logits, stats = apply(params, stats, x)
        logits = logits.astype(jnp.promote_types(logits.dtype, "float32"))
        real = jnp.asarray(labels) >= 0
        losses = optax.softmax_cross_entropy_with_integer_labels(
            logits, jnp.where(real, labels, 0)
        )
        count = real.sum(dtype=losses.dtype)
        return jnp.where(real, losses, 0).sum(), (count, stats)

    return loss


def mean_squared(apply):
    """Return a loss of (x, target): the squared errors, added up.

    ValueError where the result of x has another shape than the target.
    """

    def loss(params, stats, batch):
        x, target = batch
        y, stats = apply(params, stats, x)
        if y.shape != target.shape:
            raise ValueError(f"results {y.shape} and targets {target.shape}")
        error = y - target
        error = error.astype(jnp.promote_types(error.dtype, "float32"))
        return jnp.sum(error**2), (y.size, stats)

    return loss


def mean_of(sums):
    """Return ((mean, stats), gradients) of ((total, (count, stats)), sums).

    Of nothing, which has the count 0, the mean is 0.
    """
    (total, (count, stats)), grads = sums
    count = jnp.where(count == 0, 1, count)
    value, grads = jax.tree.map(
        lambda x: (x / count).astype(x.dtype), (total, grads)
    )
    return (value, stats), grads


def gradient_of(loss):
    """Return a function of (params, stats, batch): ((mean, stats), grads)."""

    def gradient(params, stats, batch):
        sums = jax.value_and_grad(loss, has_aux=True)
        return mean_of(sums(params, stats, batch))

    return gradient


def make_step(gradient, optimizer, out_shardings=None):
    """Return a compiled training step; all but the batch is donated.

    It returns new parameters, statistics and optimizer state, and the loss
    before the step.
    """

    def train_step(params, stats, opt_state, batch):
        (value, stats), grads = gradient(params, stats, batch)
        updates, opt_state = optimizer.update(grads, opt_state, params)
        params = optax.apply_updates(params, updates)
        return params, stats, opt_state, value

    return jax.jit(
        train_step,
        donate_argnames=("params", "stats", "opt_state"),
        out_shardings=out_shardings,
    )


def train(step, params, stats, opt_state, data):
    """Take a step for each batch; return the last state and the losses."""
    losses = []
    for batch in data:
        params, stats, opt_state, value = step(params, stats, opt_state, batch)
        losses.append(float(value))
    return params, stats, opt_state, np.array(losses, np.float32)


def split_batch(batch, parts):
    """Reshape each array (n, ...) of a batch to (parts, n / parts, ...).

    Row i goes to part i % parts, so that a row stays on its device.
    ValueError where `parts` is less than 1 or does not divide n.
    """

    def split(x):
        if parts < 1 or len(x) % parts:
            raise ValueError(
                f"{len(x)} rows do not divide into {parts} parts: take "
                "another number of parts, or pad the batch"
            )
        return x.reshape(-1, parts, *x.shape[1:]).swapaxes(0, 1)

    return jax.tree.map(split, batch)


def accumulated(loss, parts):
    """Return what `gradient_of` does, one microbatch at a time.

    Totals, counts and gradients are added up, and divided once: microbatches
    may count differently. ValueError where `parts` does not divide a batch.
    """

    def gradient(params, stats, batch):
        def add(carry, microbatch):
            sums, stats = carry
            (total, (count, stats)), grads = jax.value_and_grad(
                loss, has_aux=True
            )(params, stats, microbatch)
            sums = jax.tree.map(jnp.add, sums, (total, count, grads))
            return (sums, stats), None

        zeros = *jnp.zeros(2), jax.tree.map(jnp.zeros_like, params)
        ((total, count, grads), stats), _ = jax.lax.scan(
            add, (zeros, stats), split_batch(batch, parts)
        )
        return mean_of(((total, (count, stats)), grads))

    return gradient


def rematerialized(loss):
    """Return the loss; its backward pass recomputes all but the matmuls."""
    policy = jax.checkpoint_policies.dots_saveable
    return jax.checkpoint(loss, policy=policy)


def to_bfloat16(tree):
    """Return a pytree with its floating-point leaves in bfloat16."""

    def low(x):
        floats = jnp.issubdtype(x.dtype, jnp.floating)
        return x.astype(jnp.bfloat16) if floats else x

    return jax.tree.map(low, tree)


def like(tree, other):
    """Return a pytree with the dtypes of another; keys stay as they are."""
    return jax.tree.map(
        lambda x, y: x if x.dtype == y.dtype else x.astype(y.dtype),
        tree,
        other,
    )


def in_bfloat16(apply):
    """Return the model, computing in bfloat16; its result is float32.

    The running statistics stay float32: small updates would be rounded away.
    """

    def low_apply(params, stats, x, train=True):
        params, x = to_bfloat16((params, x))
        y, new = apply(params, stats, x, train)
        return y.astype(jnp.float32), like(new, stats)

    return low_apply


def moving_average(old, new, decay):
    """Return a pytree that keeps a share `decay` of the old one."""
    return jax.tree.map(lambda o, n: decay * o + (1 - decay) * n, old, new)


def adam(rate, decay=0.9, square_decay=0.999, epsilon=1e-8):
    """Return Adam (Kingma and Ba, 2015) as the two functions of Optax."""

    def init(params):
        mean, square = (jax.tree.map(jnp.zeros_like, params) for _ in range(2))
        return {"mean": mean, "square": square, "step": jnp.zeros((), "int32")}

    def update(grads, opt_state, params=None):
        squares = jax.tree.map(jnp.square, grads)
        mean = moving_average(opt_state["mean"], grads, decay)
        square = moving_average(opt_state["square"], squares, square_decay)
        step = opt_state["step"] + 1
        m_share = -jnp.expm1(step * math.log(decay))
        s_share = -jnp.expm1(step * math.log(square_decay))

        def move(m, s):
            return -rate * m / m_share / (jnp.sqrt(s / s_share) + epsilon)

        updates = jax.tree.map(move, mean, square)
        return updates, {"mean": mean, "square": square, "step": step}

    return optax.GradientTransformation(init, update)


def largest_difference(tree, other):
    """Return the largest difference of two pytrees of equal shapes."""
    differences = jax.tree.map(lambda x, y: abs(x - y).max(), tree, other)
    return float(max(jax.tree.leaves(differences)))


def same_losses(one, other, data):
    """Train with two optimizers; return whether the losses agree."""
    step_losses = []
    for optimizer in one, other:
        params = init_mlp(jax.random.key(0))
        step = make_step(gradient_of(cross_entropy(stateless(mlp))), optimizer)
        *_, losses = train(step, params, {}, optimizer.init(params), data)
        step_losses.append(losses)
    return bool(np.allclose(*step_losses, rtol=1e-4))


def temporary_bytes(gradient, params, stats, batch):
    """Return the bytes that a gradient needs beside arguments and results."""
    compiled = jax.jit(gradient).lower(params, stats, batch).compile()
    return compiled.memory_analysis().temp_size_in_bytes


def merge_outside_of_the_gradient(x):
    """Update batch norm of a module from outside; raises TraceContextError."""
    graphdef, params, stats = nnx.split(
        nnx.BatchNorm(x.shape[1], rngs=nnx.Rngs(0)), nnx.Param, ...
    )

    def loss(params):
        return nnx.merge(graphdef, params, stats)(x).sum()

    return jax.grad(loss)(params)


def donate_shared_leaves():
    """Donate one norm under two names; raises JaxRuntimeError."""
    norm = {"scale": jnp.ones(8), "bias": jnp.zeros(8)}
    params = {"norm1": norm, "norm2": norm}
    shrink = jax.jit(
        lambda params: jax.tree.map(lambda w: 0.9 * w, params),
        donate_argnames="params",
    )
    return shrink(params)
