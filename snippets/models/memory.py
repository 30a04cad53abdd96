"""The bytes of a training step: donated, recomputed, and in a scan."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import optax
import torch
from jax.ad_checkpoint import checkpoint_name
from torch.utils.checkpoint import checkpoint

LAYERS = 6
WIDTH = 128
ROWS = 256
WEIGHTS = {"up": "float32[4,256,1024]", "down": "float32[4,1024,256]"}
EXAMPLES = ["float32[4096,256]", "float32[4096,256]"]
COMPILED = {
    "loop_gradient": [WEIGHTS, EXAMPLES],
    "loop_remat_gradient": [WEIGHTS, EXAMPLES],
    "scan_gradient": [WEIGHTS, EXAMPLES],
    "scan_remat_gradient": [WEIGHTS, EXAMPLES],
    "loop_offload_gradient": [WEIGHTS, EXAMPLES],
    "scan_offload_gradient": [WEIGHTS, EXAMPLES],
}


def layer(params, x):
    """Return an array like x (rows, width), from two matmuls."""
    y = jax.nn.gelu(x @ params["up"], approximate=False)
    return x + jnp.tanh(y @ params["down"])


def first_params(key, layers=LAYERS, width=WIDTH):
    """Return float32 weights of all layers, stacked along their first axis."""
    up, down = jax.random.split(key)
    return {
        "up": jax.random.normal(up, (layers, width, 4 * width))
        / math.sqrt(width),
        "down": jax.random.normal(down, (layers, 4 * width, width))
        / math.sqrt(width)
        / 4,
    }


def in_a_loop(params, x, layer=layer):
    """Apply the layers one after the other, in a loop of Python."""
    for n in range(len(params["up"])):
        x = layer({name: weights[n] for name, weights in params.items()}, x)
    return x


def in_a_scan(params, x, layer=layer):
    """Apply the layers in one loop that is compiled once."""

    def body(x, params):
        return layer(params, x), None

    return jax.lax.scan(body, x, params)[0]


OPTIMIZER = optax.adamw(1e-3)


def mean_squared(params, batch, network):
    """Return the mean squared error of a network on (x, target)."""
    x, target = batch
    return jnp.mean((network(params, x) - target) ** 2)


def train_step(params, opt_state, batch, network):
    """Return parameters and optimizer state after a step, and its loss."""
    loss, grads = jax.value_and_grad(mean_squared)(params, batch, network)
    updates, opt_state = OPTIMIZER.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, loss


def some_batch(key, rows=ROWS, width=WIDTH):
    """Return x and a target, both (rows, width), float32."""
    return tuple(jax.random.normal(key, (2, rows, width)))


def nbytes(tree):
    """Return the bytes of all arrays of a pytree."""
    return sum(leaf.nbytes for leaf in jax.tree.leaves(tree))


def mib(count):
    """Return a count of bytes in MiB, as a text of fixed width."""
    return f"{count / 2**20:6.1f} MiB"


def saved_bytes(network, params, batch):
    """Return the bytes that `jax.vjp` keeps for the backward pass.

    What has the shape of weights, of all layers or of one, is not counted.
    """
    backward = jax.vjp(
        lambda params: mean_squared(params, batch, network), params
    )[1]
    shapes = {leaf.shape for leaf in jax.tree.leaves(params)}
    shapes |= {shape[1:] for shape in shapes}
    kept = {
        leaf.unsafe_buffer_pointer(): leaf.nbytes
        for leaf in jax.tree.leaves(backward)
        if leaf.shape not in shapes
    }
    return sum(kept.values())


def parts_over_a_step(params, opt_state, batch):
    """Return {moment: {part: bytes}}; half is half of the layers.

    The forward pass keeps the activations of each layer. The backward pass
    frees them, and makes the gradient of the layer's weights.
    """
    layers = len(params["up"])
    half = layers // 2
    moments = {
        "before": (0, 0),
        "half of the forward pass": (half, 0),
        "whole forward pass": (layers, 0),
        "half of the backward pass": (half, layers - half),
        "whole backward pass": (0, layers),
    }
    parts = {}
    for moment, (kept, done) in moments.items():
        first, last = (
            jax.tree.map(lambda weights, n=n: weights[:n], params)
            for n in (kept, done)
        )
        parts[moment] = {
            "parameters": nbytes(params),
            "optimizer": nbytes(opt_state),
            "activations": saved_bytes(in_a_loop, first, batch),
            "gradients": nbytes(last),
        }
    return parts


def compiled_step(network, state, donate=()):
    """Return the step, compiled for (parameters, optimizer state, batch)."""
    jitted = jax.jit(
        train_step, static_argnames="network", donate_argnames=donate
    )
    return jitted.lower(*state, network=network).compile()


def planned(compiled):
    """Return the bytes that a compiled function needs, as XLA plans."""
    plan = compiled.memory_analysis()
    return {
        "arguments": plan.argument_size_in_bytes,
        "results": plan.output_size_in_bytes - plan.alias_size_in_bytes,
        "temporaries": plan.temp_size_in_bytes,
    }


def counted(compiled, operation):
    """Return how often an operation stands in a compiled function."""
    return compiled.as_text().count(f" {operation}(")


def policies():
    """Return {name: a layer}: as it is, and recomputed by three policies."""
    some = jax.checkpoint_policies
    return {
        "keep all": layer,
        "recompute all": jax.checkpoint(layer),
        "keep matmuls": jax.checkpoint(layer, policy=some.dots_saveable),
        "keep a named one": jax.checkpoint(
            named_layer, policy=some.save_only_these_names("up")
        ),
    }


def named_layer(params, x):
    """Return what `layer` returns; the first matmul has a name."""
    up = checkpoint_name(x @ params["up"], "up")
    y = jax.nn.gelu(up, approximate=False)
    return x + jnp.tanh(y @ params["down"])


def short_layer(params, x):
    """Return x plus two matmuls with a tanh between them."""
    return x + jnp.tanh(x @ params["up"]) @ params["down"]


def loop_gradient(params, batch):
    """Return the gradient of the error of a Python loop over layers."""
    network = functools.partial(in_a_loop, layer=short_layer)
    return jax.grad(mean_squared)(params, batch, network)


def loop_remat_gradient(params, batch):
    """Return the same gradient, each layer recomputed."""
    network = functools.partial(in_a_loop, layer=jax.checkpoint(short_layer))
    return jax.grad(mean_squared)(params, batch, network)


def scan_gradient(params, batch):
    """Return the gradient of the error of a scan over layers."""
    network = functools.partial(in_a_scan, layer=short_layer)
    return jax.grad(mean_squared)(params, batch, network)


def scan_remat_gradient(params, batch):
    """Return the same gradient, each layer recomputed."""
    network = functools.partial(in_a_scan, layer=jax.checkpoint(short_layer))
    return jax.grad(mean_squared)(params, batch, network)


def layer_on_host():
    """Return the layer, recomputed from an input that the host keeps."""
    policy = jax.checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=[],
        names_which_can_be_offloaded=["input"],
        offload_src="device",
        offload_dst="pinned_host",
    )

    def named(params, x):
        return short_layer(params, checkpoint_name(x, "input"))

    return jax.checkpoint(named, policy=policy)


def loop_offload_gradient(params, batch):
    """Return the same gradient, the inputs of layers on the host."""
    network = functools.partial(in_a_loop, layer=layer_on_host())
    return jax.grad(mean_squared)(params, batch, network)


def scan_offload_gradient(params, batch):
    """Return the same gradient, the inputs of layers on the host."""
    network = functools.partial(in_a_scan, layer=layer_on_host())
    return jax.grad(mean_squared)(params, batch, network)


def gradient(network, params, batch):
    """Return the gradient of the error, compiled."""
    return jax.jit(jax.grad(mean_squared), static_argnums=2)(
        params, batch, network
    )


def largest_difference(tree, other):
    """Return the largest difference between the arrays of two pytrees."""
    pairs = zip(jax.tree.leaves(tree), jax.tree.leaves(other), strict=True)
    return max(
        float(abs(np.asarray(a) - np.asarray(b)).max()) for a, b in pairs
    )


def torch_layer(up, down, x):
    """Return what `layer` returns, in PyTorch."""
    return x + torch.tanh(torch.nn.functional.gelu(x @ up) @ down)


def torch_network(params, x, recompute=False):
    """Apply the layers; `recompute` keeps only what goes into each."""
    for up, down in zip(params["up"], params["down"], strict=True):
        if recompute:
            x = checkpoint(torch_layer, up, down, x, use_reentrant=False)
        else:
            x = torch_layer(up, down, x)
    return x


def torch_saved(params, batch, recompute):
    """Return the bytes kept for the backward pass, and the gradient.

    Parameters are not counted, for they are there anyway.
    """
    x, target = batch
    there = {tensor.untyped_storage().data_ptr() for tensor in params.values()}
    kept = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in there:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        y = torch_network(params, x, recompute)
        error = torch.nn.functional.mse_loss(y, target)
    total = sum(kept.values())
    error.backward()
    return total, {name: tensor.grad for name, tensor in params.items()}


def in_torch(tree):
    """Return copies of the arrays of a pytree as tensors."""
    return jax.tree.map(lambda x: torch.tensor(np.array(x)), tree)


def with_gradient(params):
    """Return a dictionary's tensors, set to require gradients."""
    return {name: tensor.requires_grad_() for name, tensor in params.items()}


def ways_to_train(networks, state):
    """Return {name: a jitted step bound to its arguments}, no donation."""
    ways = {}
    for name, network in networks.items():
        jitted = jax.jit(functools.partial(train_step, network=network))
        ways[name] = functools.partial(jitted, *state)
    return ways
