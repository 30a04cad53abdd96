"""Parts of a training step: frozen layers, groups, decay, averages."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import torch
from flax import nnx
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from snippets.models.modules import name_of
from snippets.models.steps import (
    NnxMlp,
    gradient_of,
    make_step,
    train,
)

NORMS = (
    eqx.nn.LayerNorm,
    eqx.nn.RMSNorm,
    eqx.nn.GroupNorm,
    eqx.nn.BatchNorm,
)
EXPECTED_ERRORS = {
    "step_of_nnx": (
        ValueError,
        "pytree structure error: different types at key path",
    ),
    "update_without_params": (
        ValueError,
        "requires the current value of parameters",
    ),
}


def by_name(label):
    """Return a function of params that makes label(name) of each leaf."""

    def labels(params):
        return jax.tree.map_with_path(
            lambda path, leaf: label(name_of(path).removesuffix(".value")),
            params,
        )

    return labels


def is_last(name):
    """Say whether a leaf belongs to the last of three layers."""
    return name.split(".")[-2] == "2"


def kernels(params):
    """Say of each leaf whether it is a kernel: a weight with several axes.

    None is in a norm of Equinox, whose weight has as many axes as it
    normalizes, and another if layers are stacked.
    """

    def is_norm(node):
        return isinstance(node, NORMS)

    def is_kernel(path, leaf):
        if is_norm(leaf):
            return jax.tree.map(lambda _: False, leaf)
        name = name_of(path).removesuffix(".value").split(".")[-1]
        return name.startswith(("kernel", "weight")) and leaf.ndim > 1

    return jax.tree.map_with_path(is_kernel, params, is_leaf=is_norm)


def torch_mlp(params):
    """Return PyTorch's module with copies of the layers of `init_mlp`."""
    layers = []
    for layer in params:
        linear = torch.nn.Linear(*layer["kernel"].shape)
        linear.weight.data = torch.tensor(np.array(layer["kernel"].T))
        linear.bias.data = torch.tensor(np.array(layer["bias"]))
        layers += [linear, torch.nn.Tanh()]
    return torch.nn.Sequential(*layers[:-1])


def losses_of(loss, optimizer, params, data):
    """Train a copy of params; return the trained ones and the losses."""
    params = jax.tree.map(jnp.copy, params)
    step = make_step(gradient_of(loss), optimizer)
    params, _, _, losses = train(
        step, params, {}, optimizer.init(params), data
    )
    return params, losses


def train_torch(module, optimizer, data, largest=None, schedule=None):
    """Take a step for each batch of (images, labels); return the losses.

    Gradients are clipped to the norm `largest`.
    """
    losses = []
    for images, labels in data:
        optimizer.zero_grad()
        logits = module(torch.tensor(images))
        value = torch.nn.functional.cross_entropy(
            logits, torch.tensor(labels).long()
        )
        value.backward()
        if largest:
            torch.nn.utils.clip_grad_norm_(module.parameters(), largest)
        optimizer.step()
        if schedule:
            schedule.step()
        losses.append(value.item())
    return np.array(losses, np.float32)


def compare(losses, expected):
    """Print the first and the last loss, and whether all are as expected."""
    equal = np.allclose(losses, expected, rtol=1e-4)
    print(losses[[0, -1]].round(2), "as PyTorch:", equal)


def last_alone(rate):
    """Return Adam for the last layer; the others stay as they are."""
    parts = {True: optax.adam(rate), False: optax.set_to_zero()}
    return optax.partition(parts, by_name(is_last))


def two_rates(rate, last_rate):
    """Return Adam with a rate of its own for the last layer."""
    parts = {True: optax.adam(last_rate), False: optax.adam(rate)}
    return optax.partition(parts, by_name(is_last))


def decayed_kernels(rate, decay):
    """Return AdamW that decays kernels, and neither biases nor norms."""
    return optax.adamw(rate, weight_decay=decay, mask=kernels)


def sgd(rate, decay):
    """Return PyTorch's SGD with weight decay and Nesterov momentum 0.9."""
    return optax.chain(
        optax.add_decayed_weights(decay),
        optax.sgd(rate, momentum=0.9, nesterov=True),
    )


def adam_with_l2(rate, decay):
    """Return PyTorch's Adam with weight decay, which Adam rescales."""
    return optax.chain(optax.add_decayed_weights(decay), optax.adam(rate))


def smoothed(apply, share):
    """Return the loss `cross_entropy`, with labels that are smoothed.

    Every class gets an equal part of `share`, and the label the rest.
    """

    def loss(params, stats, batch):
        x, labels = batch
        logits, stats = apply(params, stats, x)
        logits = logits.astype(jnp.promote_types(logits.dtype, "float32"))
        targets = jax.nn.one_hot(labels, logits.shape[-1])
        losses = optax.softmax_cross_entropy(
            logits, optax.smooth_labels(targets, share)
        )
        real = labels >= 0
        count = real.sum(dtype=losses.dtype)
        return jnp.where(real, losses, 0).sum(), (count, stats)

    return loss


def update_without_params(params):
    """Take a step of AdamW without parameters; raises ValueError."""
    optimizer = optax.adamw(1e-3)
    opt_state = optimizer.init(params)
    grads = jax.tree.map(jnp.ones_like, params)
    return optimizer.update(grads, opt_state)


def with_warmup(rate, warmup, steps, largest, decay):
    """Return AdamW with clipped gradients and a rate that rises, then falls.

    The rate rises in `warmup` steps and falls to zero along a cosine.
    """
    schedule = optax.warmup_cosine_decay_schedule(0.0, rate, warmup, steps)
    return optax.chain(
        optax.clip_by_global_norm(largest),
        optax.adamw(schedule, weight_decay=decay),
    )


def torch_warmup(optimizer, warmup, steps):
    """Return the schedule of `with_warmup` for an optimizer of PyTorch."""

    def share(step):
        if step < warmup:
            return step / warmup
        done = (step - warmup) / (steps - warmup)
        return 0.5 * (1 + np.cos(np.pi * done))

    return torch.optim.lr_scheduler.LambdaLR(optimizer, share)


def in_steps(optimizer, parts):
    """Return an optimizer that moves the parameters in each parts-th step."""
    return optax.MultiSteps(optimizer, every_k_schedule=parts)


@jax.jit
def averaged(average, params, decay):
    """Return the average, a share 1 - decay nearer to the parameters."""
    return optax.incremental_update(params, average, step_size=1 - decay)


def train_averaged(step, params, stats, opt_state, data, decay):
    """Train; return parameters, statistics and the parameters' average."""
    average = jax.tree.map(jnp.copy, params)
    for batch in data:
        params, stats, opt_state, _ = step(params, stats, opt_state, batch)
        average = averaged(average, params, decay)
    return params, stats, average


def train_torch_averaged(module, optimizer, data, decay):
    """Train; return the module of averages that PyTorch keeps."""
    average = AveragedModel(module, multi_avg_fn=get_ema_multi_avg_fn(decay))
    average.update_parameters(module)
    for batch in data:
        train_torch(module, optimizer, [batch])
        average.update_parameters(module)
    return average.module


def lbfgs(loss, batch):
    """Return L-BFGS, and its step on one batch, which returns the loss."""
    optimizer = optax.lbfgs()

    def value_of(params):
        total, (count, _) = loss(params, {}, batch)
        return total / count

    value_and_grad = optax.value_and_grad_from_state(value_of)

    @jax.jit
    def step(params, opt_state):
        value, grads = value_and_grad(params, state=opt_state)
        more = {"value": value, "grad": grads, "value_fn": value_of}
        updates, opt_state = optimizer.update(grads, opt_state, params, **more)
        return optax.apply_updates(params, updates), opt_state, value

    return optimizer, step


def take_steps(optimizer, step, params, steps):
    """Take steps from params; return the losses before each."""
    opt_state, losses = optimizer.init(params), []
    for _ in range(steps):
        params, opt_state, value = step(params, opt_state)
        losses.append(float(value))
    return np.array(losses, np.float32)


def lbfgs_torch(module, batch, steps):
    """Take steps of PyTorch's L-BFGS on one batch; return the losses."""
    images, labels = torch.tensor(batch[0]), torch.tensor(batch[1]).long()
    optimizer = torch.optim.LBFGS(
        module.parameters(), max_iter=1, line_search_fn="strong_wolfe"
    )

    def closure():
        optimizer.zero_grad()
        value = torch.nn.functional.cross_entropy(module(images), labels)
        value.backward()
        return value

    losses = [optimizer.step(closure).item() for _ in range(steps)]
    return np.array(losses, np.float32)


def step_of_nnx(labels):
    """Take a step with nnx.Optimizer; `labels` are as optax.partition takes.

    Raises ValueError where they are a pytree of `nnx.state`.
    """
    model = NnxMlp(rngs=nnx.Rngs(0))
    parts = {True: optax.adam(1e-3), False: optax.set_to_zero()}
    optimizer = nnx.Optimizer(
        model, optax.partition(parts, labels), wrt=nnx.Param
    )
    grads = nnx.grad(lambda model: model(jnp.ones((2, 64))).sum())(model)
    optimizer.update(model, grads)
    return model


def labels_of_state(model):
    """Return labels as a pytree like the parameters of an NNX module."""
    return by_name(is_last)(nnx.state(model, nnx.Param))
