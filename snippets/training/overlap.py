"""An FSDP step that gathers each layer in a loop, to be compiled for GPUs."""

import jax
import jax.numpy as jnp

RATE = 0.001

STEP = [
    {
        "up": "bfloat16[12,4096@data,16384]",
        "down": "bfloat16[12,16384@data,4096]",
    },
    ["bfloat16[8192@data,4096]", "bfloat16[8192@data,4096]"],
]
SCALED = {
    "fsdp_step": {
        "no option": {"arguments": STEP, "targets": ["gpu-h200"]},
        "xla_gpu_enable_latency_hiding_scheduler=false": {
            "arguments": STEP,
            "targets": ["gpu-h200"],
            "options": {"xla_gpu_enable_latency_hiding_scheduler": False},
        },
        "xla_gpu_enable_latency_hiding_scheduler=true": {
            "arguments": STEP,
            "targets": ["gpu-h200"],
            "options": {"xla_gpu_enable_latency_hiding_scheduler": True},
        },
        "xla_gpu_enable_while_loop_double_buffering=true": {
            "arguments": STEP,
            "targets": ["gpu-h200"],
            "options": {"xla_gpu_enable_while_loop_double_buffering": True},
        },
        "optimization_level=O1": {
            "arguments": STEP,
            "targets": ["gpu-h200"],
            "options": {"optimization_level": "O1"},
        },
    }
}


def gather_and_apply(x, layer):
    """Gather the weights of a layer, and return x (rows, width) after it."""
    layer = jax.lax.with_sharding_constraint(layer, jax.P())
    return x + jnp.tanh(x @ layer["up"]) @ layer["down"], None


def loss(params, batch):
    """Return the mean squared error of the layers on (x, target)."""
    x, target = batch
    y, _ = jax.lax.scan(gather_and_apply, x, params)
    return jnp.mean((y - target) ** 2)


def fsdp_step(params, batch):
    """Return the layers after a step of gradient descent, and the loss."""
    value, grads = jax.value_and_grad(loss)(params, batch)
    moved = jax.tree.map(lambda p, g: p - RATE * g, params, grads)
    return moved, value
