"""What the pages teach composes: models, steps, layouts, checkpoints and exports.

Each model of the book that is trained takes two steps of each kind in each layout, and its losses
and parameters are those of one device. Where work is to be shared out, the compiled program shows
that it was.
"""

import contextlib
import functools
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

from snippets.models import convolutions, modules, steps
from snippets.training import data_parallel, sharded_parameters

DEVICES = jax.devices("cpu")
ROWS, PARTS = 48, 2
RATE = 1e-3
# With a smaller epsilon Adam takes steps of one size for noise, too, where a parameter has no
# influence, such as a bias in front of batch norm.
EPSILON = 1e-3
KEY = jax.random.key(0)
SIZES = (64, 32, 10)
# Equinox averages over the axis that `vmap` maps; from 0.11 on JAX cannot lower that where the
# axis is sharded and explicit.
BROKEN = tuple(map(int, jax.__version__.split(".")[:2])) >= (0, 11)


class Case(NamedTuple):
    """A model ready to be trained."""

    apply: callable
    params: object
    stats: object
    batch: tuple
    loss: callable = steps.cross_entropy


def images(shape):
    (x, labels), _ = steps.digits()
    return x[:ROWS].reshape(ROWS, *shape), labels[:ROWS]


def sequences():
    return modules.sequences(steps=1, rows=ROWS, length=4, width=16)[0]


def plain_mlp():
    return Case(steps.stateless(steps.mlp), steps.init_mlp(KEY, SIZES), {}, images((64,)))


def nnx_mlp():
    return Case(*steps.split_nnx(steps.NnxMlp(SIZES, rngs=nnx.Rngs(0))), images((64,)))


def equinox_mlp():
    return Case(*steps.split_equinox(steps.EquinoxMlp(SIZES, key=KEY)), images((64,)))


def plain_block():
    apply = steps.stateless(functools.partial(modules.block, heads=4))
    return Case(apply, modules.first_block(KEY, 16), {}, sequences(), steps.mean_squared)


def nnx_block():
    model = modules.NnxBlock(16, dropout=0.0, rngs=nnx.Rngs(0))
    return Case(*steps.split_nnx(model), sequences(), steps.mean_squared)


def equinox_block():
    model = modules.first_equinox(KEY, 16, dropout=0.0)
    return Case(*steps.split_equinox(model), sequences(), steps.mean_squared)


def plain_cnn():
    params, stats = modules.from_torch(convolutions.TorchCnn(8))
    return Case(convolutions.cnn, params, stats, images((8, 8, 1)))


def nnx_cnn():
    params, stats = modules.from_torch(convolutions.TorchCnn(8))
    model = modules.into_nnx(convolutions.NnxCnn(8, rngs=nnx.Rngs(0)), params, stats)
    return Case(*steps.split_nnx(model), images((8, 8, 1)))


def equinox_cnn():
    model, state = eqx.nn.make_with_state(convolutions.EquinoxCnn)(8, key=KEY)
    model = modules.into_equinox(model, convolutions.TorchCnn(8))
    return Case(*steps.split_stateful_equinox(model, state), images((1, 8, 8)))


MODELS = {
    f.__name__: f
    for f in (
        *(plain_mlp, nnx_mlp, equinox_mlp),
        *(plain_block, nnx_block, equinox_block),
        *(plain_cnn, nnx_cnn, equinox_cnn),
    )
}
GRADIENTS = {
    "at once": steps.gradient_of,
    "accumulated": lambda loss: steps.accumulated(loss, PARTS),
    "rematerialized": lambda loss: steps.gradient_of(steps.rematerialized(loss)),
}
ADAM = optax.adam(RATE, eps=EPSILON)
STEPS = {
    "adam": (ADAM, "at once"),
    "by hand": (steps.adam(RATE, epsilon=EPSILON), "at once"),
    "clipped": (optax.chain(optax.clip_by_global_norm(0.1), ADAM), "at once"),
    "accumulated": (ADAM, "accumulated"),
    "rematerialized": (ADAM, "rematerialized"),
    "bfloat16": (ADAM, "at once"),
}
LAYOUTS = {
    (layout, kind): None
    for layout in ("replicated", "sharded")
    for kind in ("explicit", "automatic")
}


def on_mesh(kind):
    mesh = data_parallel.axis_of_devices(DEVICES)
    return mesh if kind == "explicit" else sharded_parameters.automatic(mesh)


class Run(NamedTuple):
    """What two steps left, and the program that took them."""

    params: object
    stats: object
    opt_state: object
    losses: np.ndarray
    compiled: object


def take_two_steps(case, how, layout=None):
    """Train for two steps, on one device or in a layout."""
    optimizer, name = STEPS[how]
    params, stats = jax.tree.map(jnp.copy, (case.params, case.stats))
    opt_state, batch = optimizer.init(params), case.batch
    apply = steps.in_bfloat16(case.apply) if how == "bfloat16" else case.apply
    loss, shardings, around = case.loss(apply), None, contextlib.nullcontext()
    if layout:
        mesh = on_mesh(layout[1])
        replicated = functools.partial(sharded_parameters.replicated_over, mesh)
        place = replicated
        if layout[0] == "sharded":
            place = functools.partial(sharded_parameters.sharded_over, mesh)
        shardings = place(params), replicated(stats), place(opt_state), None
        params, stats, opt_state = jax.device_put((params, stats, opt_state), shardings[:3])
        batch = jax.device_put(batch, jax.NamedSharding(mesh, jax.P("data")))
        around = jax.set_mesh(mesh)
        if layout == ("sharded", "explicit"):
            loss = sharded_parameters.gathered(loss)
    step = steps.make_step(GRADIENTS[name](loss), optimizer, shardings)
    with around:
        compiled = step.lower(params, stats, opt_state, batch).compile()
        before = jax.tree.leaves((params, stats, opt_state))
        data = [batch, batch]
        params, stats, opt_state, losses = steps.train(step, params, stats, opt_state, data)
    assert all(x.is_deleted() for x in before)
    return Run(params, stats, opt_state, losses, compiled)


@functools.cache
def model(name):
    return MODELS[name]()


@functools.cache
def alone(name, how):
    return take_two_steps(model(name), how)


def agree(one, other, tolerance):
    for a, b in zip(floats(one), floats(other), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=tolerance)


def floats(tree):
    return [x for x in jax.tree.leaves(tree) if jnp.issubdtype(x.dtype, jnp.floating)]


@pytest.mark.parametrize("how", STEPS)
@pytest.mark.parametrize("name", MODELS)
def test_each_model_takes_each_step_as_it_takes_the_plain_one(name, how):
    run, plain = alone(name, how), alone(name, "adam")
    assert np.isfinite(run.losses).all() and run.losses[1] != run.losses[0]
    if how == "accumulated" and name.endswith("cnn"):
        # Batch norm sees the microbatches one after the other.
        assert abs(run.losses[0] - plain.losses[0]) > 1e-5
        return
    tolerance = {"bfloat16": 3e-2}.get(how, 1e-4)
    np.testing.assert_allclose(run.losses[0], plain.losses[0], rtol=tolerance)
    if how not in ("clipped", "bfloat16"):
        agree(run.params, plain.params, 0.02 * RATE)


@pytest.mark.parametrize("layout", LAYOUTS, ids=" ".join)
@pytest.mark.parametrize("how", STEPS)
@pytest.mark.parametrize("name", MODELS)
def test_each_layout_gives_what_one_device_gives(name, how, layout):
    if name == "equinox_cnn" and layout[1] == "explicit" and BROKEN:
        with pytest.raises(ValueError, match=r"Length of sharding.spec \(2\) must be equal"):
            take_two_steps(model(name), how, layout)
        return
    run, one = take_two_steps(model(name), how, layout), alone(name, how)
    tolerance = 3e-2 if how == "bfloat16" else 2e-4
    np.testing.assert_allclose(run.losses, one.losses, rtol=tolerance)
    if how != "bfloat16":
        agree(run.params, one.params, 0.02 * RATE)
        agree(run.stats, one.stats, 1e-5)
    # The work is shared out: a device computes a share of it, and sums are exchanged.
    flops = [each.compiled.cost_analysis()["flops"] for each in (run, one)]
    assert flops[0] < 0.5 * flops[1], flops
    found = data_parallel.count_collectives(run.compiled.as_text())
    assert "all-reduce" in found or "reduce-scatter" in found
    for leaf in (*jax.tree.leaves(run.params), *floats(run.opt_state)):
        shape = leaf.addressable_shards[0].data.shape
        if layout[0] == "replicated":
            assert shape == leaf.shape
        elif any(length % len(DEVICES) == 0 for length in leaf.shape):
            assert np.prod(shape) == leaf.size // len(DEVICES)
    if layout == ("sharded", "explicit"):
        assert "all-gather" in found
