"""Training in float32, in bfloat16, and in float16 with a scaled loss."""

import copy
import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import torch

OPTIMIZER = optax.adam(3e-4)


def matrices(size=512):
    """Return two float32 matrices (size, size) of normal values."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(2, size, size)).astype(np.float32)


def error(result, a, b):
    """Return the largest error of a matmul, against its largest entry."""
    exact = a.astype(np.float64) @ b.astype(np.float64)
    return (
        np.abs(np.asarray(result, np.float64) - exact).max()
        / np.abs(exact).max()
    )


def rounded_matmul(a, b, mantissa_bits):
    """Return the matmul of float32 inputs rounded to so many bits."""
    rounded = functools.partial(
        jax.lax.reduce_precision, exponent_bits=8, mantissa_bits=mantissa_bits
    )
    return jnp.dot(rounded(a), rounded(b), precision="highest")


def precision_in(lowered):
    """Return the precision of a lowered matmul, one for each operand."""
    text = lowered.as_text().partition("precision = [")[2]
    return text.partition("]")[0]


def first_params(seed, sizes=(64, 256, 256, 10)):
    """Return layers, dicts of float32 weights (in, out) and biases (out,)."""
    rng, params = np.random.default_rng(seed), []
    for inputs, outputs in itertools.pairwise(sizes):
        weights = rng.normal(size=(inputs, outputs)) / inputs**0.5
        layer = {"weights": weights, "biases": np.zeros(outputs)}
        params.append(jax.tree.map(jnp.float32, layer))
    return params


def examples(seed, count=1024):
    """Return inputs float32 (count, 64) and a network's labels (count,)."""
    inputs = np.random.default_rng(seed).normal(size=(count, 64))
    inputs = jnp.asarray(inputs, jnp.float32)
    return inputs, network(first_params(seed + 1), inputs).argmax(axis=1)


def network(params, x):
    """Return logits (n, 10) for inputs (n, 64), in the dtype of both."""
    for layer in params[:-1]:
        x = jnp.tanh(x @ layer["weights"] + layer["biases"])
    return x @ params[-1]["weights"] + params[-1]["biases"]


def cast(tree, dtype):
    """Return a pytree whose arrays have another dtype."""
    return jax.tree.map(lambda leaf: leaf.astype(dtype), tree)


def loss(params, batch, dtype):
    """Return the mean loss in float32; the network computes in `dtype`."""
    inputs, labels = batch
    logits = network(cast(params, dtype), inputs.astype(dtype))
    logits = logits.astype(jnp.float32)
    losses = optax.softmax_cross_entropy_with_integer_labels(logits, labels)
    return losses.mean()


@jax.jit(static_argnames="dtype", donate_argnames=("params", "opt_state"))
def train_step(params, opt_state, batch, dtype):
    """Return parameters and optimizer state after one step, and its loss."""
    value, grads = jax.value_and_grad(loss)(params, batch, dtype)
    updates, opt_state = OPTIMIZER.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, value


def train(params, batch, dtype, steps):
    """Return the parameters after steps, and losses, float32 (steps,)."""
    params = copy.deepcopy(params)
    opt_state, losses = OPTIMIZER.init(params), []
    for _ in range(steps):
        params, opt_state, value = train_step(params, opt_state, batch, dtype)
        losses.append(value)
    return params, np.stack(losses)


def close(curves, name):
    """Return whether a curve stays within 1 % of that of float32."""
    return np.allclose(curves[name], curves["float32"], rtol=0.01)


def changed(params, batch, dtype):
    """Return the share of parameters that one step changes."""
    after, _ = train(params, batch, dtype, steps=1)
    pairs = zip(jax.tree.leaves(params), jax.tree.leaves(after), strict=True)
    differ = np.concatenate([np.ravel(a != b) for a, b in pairs])
    return differ.mean()


def torch_device():
    """Return PyTorch's accelerator, or its CPU where there is none."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def torch_model(params):
    """Return the same network as a module with the same weights."""
    modules = []
    for layer in params:
        linear = torch.nn.Linear(*layer["weights"].shape)
        with torch.no_grad():
            linear.weight.copy_(torch.tensor(np.asarray(layer["weights"]).T))
            linear.bias.copy_(torch.tensor(np.asarray(layer["biases"])))
        modules += [linear, torch.nn.Tanh()]
    return torch.nn.Sequential(*modules[:-1]).to(torch_device())


def torch_batch(batch):
    """Return a batch as tensors on PyTorch's device."""
    inputs, labels = (torch.tensor(np.asarray(part)) for part in batch)
    return inputs.to(torch_device()), labels.long().to(torch_device())


def torch_step(model, optimizer, batch, dtype):
    """Take one step under autocast, or in float32; return its loss."""
    inputs, labels = batch
    shorter = dtype != torch.float32
    with torch.autocast(torch_device(), dtype=dtype, enabled=shorter):
        outputs = model(inputs)
    value = torch.nn.functional.cross_entropy(outputs.float(), labels)
    optimizer.zero_grad()
    value.backward()
    optimizer.step()
    return value.detach()


def train_torch(params, batch, dtype, steps):
    """Return the losses of the same steps in PyTorch, float32 (steps,)."""
    model, batch = torch_model(params), torch_batch(batch)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)
    losses = [torch_step(model, optimizer, batch, dtype) for _ in range(steps)]
    return torch.stack(losses).cpu().numpy()


def auxiliary(params, batch, dtype):
    """Return the loss with a weight of 1/10,000, as one of several terms."""
    return loss(params, batch, dtype) / 10_000


@jax.jit
def half_gradient(params, batch, scale):
    """Return the gradient of `auxiliary`, in float16 from a scaled loss."""

    def scaled(params):
        return auxiliary(params, batch, jnp.float16) * scale

    return jax.tree.map(lambda g: g / scale, jax.grad(scaled)(params))


@jax.jit
def distance(grads, others):
    """Return the norm of the difference, against that of the others."""
    difference = jax.tree.map(jnp.subtract, grads, others)
    return optax.tree.norm(difference) / optax.tree.norm(others)


@jax.jit
def scaled_step(params, opt_state, scaling, batch):
    """Return params, opt_state and (scale, good) after a float16 step.

    A step whose gradient is not finite changes nothing but the scale, which it
    halves. After 2000 good steps the scale doubles.
    """
    scale, good = scaling
    grads = half_gradient(params, batch, scale)
    finite = jnp.isfinite(optax.tree.norm(grads))
    updates, new_state = OPTIMIZER.update(grads, opt_state, params)
    new = optax.apply_updates(params, updates), new_state
    choose = functools.partial(jnp.where, finite)
    params, opt_state = jax.tree.map(choose, new, (params, opt_state))
    good = jnp.where(finite, good + 1, 0)
    doubled = jnp.where(good % 2000 == 0, scale * 2, scale)
    return params, opt_state, (jnp.where(finite, doubled, scale / 2), good)


def scales(params, batch, scale, steps):
    """Return the scale after each of some steps, a list of floats."""
    opt_state, scaling, seen = (
        OPTIMIZER.init(params),
        (jnp.float32(scale), 0),
        [],
    )
    for _ in range(steps):
        params, opt_state, scaling = scaled_step(
            params, opt_state, scaling, batch
        )
        seen.append(float(scaling[0]))
    return seen


def scales_torch(params, batch, scale, steps):
    """Return the same from PyTorch's GradScaler."""
    model, (inputs, labels) = torch_model(params), torch_batch(batch)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)
    device = torch_device()
    scaler, seen = torch.amp.GradScaler(device, init_scale=scale), []
    for _ in range(steps):
        with torch.autocast(device, dtype=torch.float16):
            outputs = model(inputs)
        value = (
            torch.nn.functional.cross_entropy(outputs.float(), labels) / 10_000
        )
        optimizer.zero_grad()
        scaler.scale(value).backward()
        scaler.step(optimizer)
        scaler.update()
        seen.append(scaler.get_scale())
    return seen


def kibibytes(params, batch, dtype):
    """Return the KiB kept between steps, and those of temporaries."""
    state = params, OPTIMIZER.init(params)
    compiled = train_step.lower(*state, batch, dtype=dtype).compile()
    found = compiled.memory_analysis()
    kept = sum(leaf.nbytes for leaf in jax.tree.leaves(state))
    return {
        "kept": kept // 1024,
        "temporary": found.temp_size_in_bytes // 1024,
    }


def stepper(params, batch, dtype):
    """Return a function that takes the next step and returns its loss."""
    params = copy.deepcopy(params)
    state = [params, OPTIMIZER.init(params)]

    def advance():
        *state[:], value = train_step(*state, batch, dtype)
        return value

    return advance


def stepper_torch(params, batch, dtype):
    """Return the same for PyTorch."""
    model, batch = torch_model(params), torch_batch(batch)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)
    return functools.partial(torch_step, model, optimizer, batch, dtype)
