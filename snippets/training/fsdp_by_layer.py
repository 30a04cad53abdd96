"""FSDP with the weights of one layer gathered at a time; a block split by features."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

from snippets.models.memory import mib, nbytes, planned
from snippets.training.data_parallel import count_collectives

LAYERS = 12
WIDTH = 128
ROWS = 64
OPTIMIZER = optax.adamw(1e-3)

EXPECTED_ERRORS = {
    "features_stay_split": (
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


def mean_squared(params, batch, network):
    """Return the mean squared error of a network on (x, target)."""
    x, target = batch
    return jnp.mean((network(params, x) - target) ** 2)


@jax.jit(static_argnames="network", donate_argnames=("params", "opt_state"))
def step(params, opt_state, batch, network):
    """Return parameters and optimizer state after a step, and the loss before it."""
    loss, grads = jax.value_and_grad(mean_squared)(params, batch, network)
    updates, opt_state = OPTIMIZER.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, loss


def train(params, batch, network, steps=5):
    """Return the losses (steps,), and the parameters after the last step."""
    opt_state = OPTIMIZER.init(params)
    losses = []
    for _ in range(steps):
        params, opt_state, loss = step(params, opt_state, batch, network)
        losses.append(loss)
    return np.array(losses), params


def at_once(params, x):
    """Make all weights whole on every device, and apply the blocks."""
    return blocks(jax.reshard(params, jax.P()), x)


def gather_and_apply(x, layer):
    """Make the weights of one block whole on every device, and apply it."""
    return block(jax.reshard(layer, jax.P()), x), None


def by_layer(params, x):
    """Apply the blocks, and gather the weights of each when its turn comes."""
    return jax.lax.scan(gather_and_apply, x, params)[0]


def by_layer_twice(params, x):
    """Do as `by_layer`, and gather the weights again for the backward pass."""
    policy = jax.checkpoint_policies.dots_saveable
    body = jax.checkpoint(gather_and_apply, policy=policy)
    return jax.lax.scan(body, x, params)[0]


def compiled_step(params, batch, network):
    """Return the step, compiled for these parameters."""
    opt_state = OPTIMIZER.init(params)
    return step.lower(params, opt_state, batch, network).compile()


def temporaries(compiled):
    """Return the bytes that a step needs on one device beside arguments and results."""
    return planned(compiled)["temporaries"]


def report(compiled):
    """Print the bytes of temporaries, and the collectives of a compiled step."""
    print(mib(temporaries(compiled)), "of temporaries")
    for kind, counts in count_collectives(compiled.as_text()).items():
        print(
            f"{kind}: {counts['operations']}, with {counts['numbers']} numbers"
        )


def on_each_device(tree):
    """Return the bytes of a pytree that one device holds."""
    return nbytes(
        [x.addressable_shards[0].data for x in jax.tree.leaves(tree)]
    )


def split_block(layer, x):
    """Return what `block` returns, with the features between its products split."""
    hidden = jnp.tanh(x @ layer["up"])
    return x + jnp.dot(hidden, layer["down"], out_sharding=jax.P("data"))


def by_features(params, x):
    """Apply the blocks, each with its features split."""
    return jax.lax.scan(
        lambda x, layer: (split_block(layer, x), None), x, params
    )[0]


def features_stay_split(params, x):
    """Ask for split sums in a loop; raises TypeError."""

    def body(x, layer):
        hidden = jnp.tanh(x @ layer["up"])
        sums = jnp.dot(
            hidden, layer["down"], out_sharding=jax.P("data", "model")
        )
        return x + sums, None

    return jax.lax.scan(body, x, params)[0]
