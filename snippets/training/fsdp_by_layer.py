"""FSDP that gathers one layer at a time; a block with sharded features."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

from snippets.devices.resharding import replicate
from snippets.models.memory import mib, nbytes, planned
from snippets.training.data_parallel import count_collectives

LAYERS = 12
WIDTH = 128
ROWS = 64
OPTIMIZER = optax.adamw(1e-3)

EXPECTED_ERRORS = {
    "features_stay_sharded": (
        TypeError,
        "carry input and carry output must have equal types",
    ),
}


def first_params():
    """Return float32 weights of all blocks, stacked along their first axis."""
    rng = np.random.default_rng(0)
    up = rng.normal(size=(LAYERS, WIDTH, 4 * WIDTH)) / WIDTH**0.5
    down = rng.normal(size=(LAYERS, 4 * WIDTH, WIDTH)) / (4 * WIDTH**0.5)
    return {"up": up.astype(np.float32), "down": down.astype(np.float32)}


def some_batch():
    """Return x and a target, both (rows, width), float32."""
    rng = np.random.default_rng(1)
    return tuple(rng.normal(size=(2, ROWS, WIDTH)).astype(np.float32))


def block(layer, x):
    """Return an array like x (rows, width)."""
    return x + jnp.tanh(x @ layer["up"]) @ layer["down"]


def blocks(params, x):
    """Apply the blocks one after the other, with their weights as they are."""
    return jax.lax.scan(lambda x, layer: (block(layer, x), None), x, params)[0]


def loss(params, batch, network):
    """Return the mean squared error of a network on (x, target)."""
    x, target = batch
    return jnp.mean((network(params, x) - target) ** 2)


@jax.jit(static_argnames="network", donate_argnames=("params", "opt_state"))
def train_step(params, opt_state, batch, network):
    """Return the parameters and optimizer state after a step, and the loss."""
    value, grads = jax.value_and_grad(loss)(params, batch, network)
    updates, opt_state = OPTIMIZER.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, value


def train(params, batch, network, steps=5):
    """Return the losses (steps,), and the parameters after the last step."""
    opt_state, losses = OPTIMIZER.init(params), []
    for _ in range(steps):
        params, opt_state, loss = train_step(params, opt_state, batch, network)
        losses.append(loss)
    return np.array(losses), params


def at_once(params, x):
    """Gather all weights on every device, and apply the blocks."""
    return blocks(replicate(params), x)


def gather_and_apply(x, layer):
    """Gather the weights of one block on every device, and apply it."""
    return block(replicate(layer), x), None


def by_layer(params, x):
    """Apply the blocks, and gather the weights of each before its use."""
    return jax.lax.scan(gather_and_apply, x, params)[0]


def by_layer_twice(params, x):
    """Do as `by_layer`, and gather the weights again for the backward pass."""
    policy = jax.checkpoint_policies.dots_saveable
    body = jax.checkpoint(gather_and_apply, policy=policy)
    return jax.lax.scan(body, x, params)[0]


def compiled_step(params, batch, network):
    """Return the step, compiled for these parameters."""
    opt_state = OPTIMIZER.init(params)
    return train_step.lower(params, opt_state, batch, network).compile()


def temporaries(compiled):
    """Return the bytes per device beside arguments and results of a step."""
    return planned(compiled)["temporaries"]


def report(compiled):
    """Print the temporaries and the collectives of a compiled step."""
    print(mib(temporaries(compiled)), "of temporaries")
    for kind, counts in count_collectives(compiled.as_text()).items():
        print(f"{kind}: {counts['operations']}, {counts['elements']} elements")


def on_each_device(tree):
    """Return the bytes of a pytree that one device holds."""
    return nbytes(
        [x.addressable_shards[0].data for x in jax.tree.leaves(tree)]
    )


def sharded_block(layer, x):
    """Return what `block` returns, with sharded features in between."""
    hidden = jnp.tanh(x @ layer["up"])
    return x + jnp.dot(hidden, layer["down"], out_sharding=jax.P("data"))


def by_features(params, x):
    """Apply the blocks, each with sharded features."""
    return jax.lax.scan(
        lambda x, layer: (sharded_block(layer, x), None), x, params
    )[0]


def features_stay_sharded(params, x):
    """Ask for sharded sums in a loop; raises TypeError."""

    def body(x, layer):
        hidden = jnp.tanh(x @ layer["up"])
        sums = jnp.dot(
            hidden, layer["down"], out_sharding=jax.P("data", "model")
        )
        return x + sums, None

    return jax.lax.scan(body, x, params)[0]
