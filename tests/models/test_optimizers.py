"""Recipes for optimizers, against PyTorch's."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import torch
from flax import nnx

from snippets.models import convolutions, modules, optimizers, steps

TRAINING, TEST = steps.digits()
DATA = steps.batches(*TRAINING, epochs=1)
PARAMS = steps.init_mlp(jax.random.key(0))
LOSS = steps.cross_entropy(steps.stateless(steps.mlp))


def models():
    """Return {library: parameters}."""
    _, in_nnx, _ = steps.split_nnx(steps.NnxMlp(rngs=nnx.Rngs(0)))
    _, in_equinox, _ = steps.split_equinox(steps.EquinoxMlp(key=jax.random.key(0)))
    return {"plain": PARAMS, "nnx": in_nnx, "equinox": in_equinox}


def adamw(module):
    kernels, biases = list(module.parameters())[::2], list(module.parameters())[1::2]
    return torch.optim.AdamW(
        [{"params": kernels}, {"params": biases, "weight_decay": 0.0}], 1e-3, weight_decay=0.1
    )


def two_rates(module):
    return torch.optim.Adam(
        [
            {"params": module[:-1].parameters(), "lr": 1e-4},
            {"params": module[-1].parameters(), "lr": 1e-2},
        ]
    )


def last_alone(module):
    module[:-1].requires_grad_(False)
    return torch.optim.Adam(module.parameters(), 1e-3)


def sgd(module):
    more = {"momentum": 0.9, "nesterov": True, "weight_decay": 0.01}
    return torch.optim.SGD(module.parameters(), 0.1, **more)


def adam_with_l2(module):
    return torch.optim.Adam(module.parameters(), 1e-3, weight_decay=0.01)


@pytest.mark.parametrize(
    ("optimizer", "in_torch"),
    [
        (optimizers.last_alone(1e-3), last_alone),
        (optimizers.two_rates(1e-4, 1e-2), two_rates),
        (optimizers.decayed_kernels(1e-3, 0.1), adamw),
        (optimizers.sgd(0.1, 0.01), sgd),
        (optimizers.adam_with_l2(1e-3, 0.01), adam_with_l2),
    ],
    ids=["frozen", "rates", "decay", "sgd", "l2"],
)
def test_groups_train_as_in_pytorch(optimizer, in_torch):
    trained, losses = optimizers.losses_of(LOSS, optimizer, PARAMS, DATA)
    module = optimizers.torch_mlp(PARAMS)
    np.testing.assert_allclose(
        losses, optimizers.train_torch(module, in_torch(module), DATA), rtol=1e-4
    )
    np.testing.assert_allclose(trained[0]["kernel"], module[0].weight.detach().numpy().T, atol=1e-4)
    plain = optimizers.losses_of(LOSS, optax.adam(1e-3), PARAMS, DATA)[1]
    assert not np.allclose(losses, plain, rtol=1e-4)


@pytest.mark.parametrize(("expected", "equal"), [([2.3, 0.5], True), ([2.3, 0.6], False)])
def test_losses_are_compared(expected, equal, capsys):
    optimizers.compare(np.array([2.3, 0.5], np.float32), expected)
    assert capsys.readouterr().out == f"[2.3 0.5] as PyTorch: {equal}\n"


def test_what_is_frozen_stays_and_has_no_state():
    frozen, _ = optimizers.losses_of(LOSS, optimizers.last_alone(1e-3), PARAMS, DATA[:2])
    for before, after in zip(PARAMS[:2], frozen[:2], strict=True):
        np.testing.assert_array_equal(before["kernel"], after["kernel"])
    assert not np.array_equal(PARAMS[2]["kernel"], frozen[2]["kernel"])
    sizes = [
        sum(leaf.nbytes for leaf in jax.tree.leaves(optimizer.init(PARAMS)))
        for optimizer in (optax.adam(1e-3), optimizers.last_alone(1e-3))
    ]
    assert sizes[1] < sizes[0] / 10


def test_gradients_that_nothing_uses_are_not_computed():
    flops = []
    for optimizer in (optax.adam(1e-3), optimizers.last_alone(1e-3)):
        step = steps.make_step(steps.gradient_of(LOSS), optimizer)
        program = step.lower(PARAMS, {}, optimizer.init(PARAMS), DATA[0])
        flops.append(program.compile().cost_analysis()["flops"])
    assert flops[1] < 0.7 * flops[0]


@pytest.mark.parametrize("name", ["plain", "nnx", "equinox"])
def test_names_are_those_of_layers_in_each_library(name):
    params = models()[name]
    last = jax.tree.leaves(optimizers.by_name(optimizers.is_last)(params))
    kernels = jax.tree.leaves(optimizers.kernels(params))
    assert sum(last) == 2 and sum(kernels) == 3 and len(last) == 6
    for leaf, kernel in zip(jax.tree.leaves(params), kernels, strict=True):
        assert (leaf.ndim == 2) == kernel
    optimizers.last_alone(1e-3).init(params)


def blocks():
    """Return {library: parameters of a transformer block}, which has norms."""
    _, in_nnx, _ = steps.split_nnx(modules.NnxBlock(rngs=nnx.Rngs(0)))
    _, in_equinox, _ = steps.split_equinox(modules.first_equinox(jax.random.key(0)))
    return {"plain": modules.first_block(jax.random.key(0)), "nnx": in_nnx, "equinox": in_equinox}


@pytest.mark.parametrize("name", ["plain", "nnx", "equinox"])
def test_norms_and_biases_are_not_decayed(name):
    params = jax.tree.map(jnp.ones_like, blocks()[name])
    optimizer = optimizers.decayed_kernels(1.0, 0.1)
    zeros = jax.tree.map(jnp.zeros_like, params)
    updates, _ = optimizer.update(zeros, optimizer.init(params), params)
    moved = {path: bool(x.any()) for path, x in modules.dotted(updates).items()}
    assert sum(moved.values()) == 4 and len(moved) == 12
    for path in moved:
        layer = path.split(".")[0]
        assert moved[path] == ("norm" not in layer and "bias" not in path), path


def stacked(key):
    """Return three layers of Equinox in one pytree, each a norm and a linear layer."""

    def layer(key):
        return {"norm": eqx.nn.LayerNorm(4), "linear": eqx.nn.Linear(4, 4, key=key)}

    return eqx.filter_vmap(layer)(jax.random.split(key, 3))


@pytest.mark.parametrize("kind", ["LayerNorm", "RMSNorm"])
def test_a_norm_over_several_axes_is_not_decayed(kind):
    made = {"first": getattr(eqx.nn, kind)((4, 8)), "kernel": jnp.ones((4, 8))}
    params, _ = eqx.partition(made, eqx.is_inexact_array)
    found = modules.dotted(optimizers.kernels(params))
    assert found.pop("kernel") and found and not any(found.values())
    optimizer = optimizers.decayed_kernels(1.0, 0.1)
    zeros = jax.tree.map(jnp.zeros_like, params)
    updates, _ = optimizer.update(zeros, optimizer.init(params), params)
    assert not updates["first"].weight.any() and updates["kernel"].any()


def test_norms_of_stacked_layers_are_not_decayed():
    params, _ = eqx.partition(stacked(jax.random.key(0)), eqx.is_inexact_array)
    found = modules.dotted(optimizers.kernels(params))
    # A stacked bias has as many axes as a kernel.
    assert [name for name, decayed in found.items() if decayed] == ["linear.weight"]


def test_each_weight_of_a_recurrent_cell_is_decayed():
    cell = eqx.nn.LSTMCell(3, 4, key=jax.random.key(0))
    params, _ = eqx.partition(cell, eqx.is_inexact_array)
    found = modules.dotted(optimizers.kernels(params))
    assert found == {"weight_ih": True, "weight_hh": True, "bias": False}


def test_an_update_without_parameters_is_refused(raises_declared):
    raises_declared(optimizers.update_without_params, PARAMS)


def test_smoothed_labels_train_as_in_pytorch():
    data = [(x, np.where(np.arange(len(y)) % 5 == 0, -100, y)) for x, y in DATA]
    soft = optimizers.smoothed(steps.stateless(steps.mlp), 0.1)
    _, losses = optimizers.losses_of(soft, optax.adam(1e-3), PARAMS, data)
    module, expected = optimizers.torch_mlp(PARAMS), []
    adam = torch.optim.Adam(module.parameters(), 1e-3)
    for images, labels in data:
        adam.zero_grad()
        value = torch.nn.functional.cross_entropy(
            module(torch.tensor(images)), torch.tensor(labels).long(), label_smoothing=0.1
        )
        value.backward()
        adam.step()
        expected.append(value.item())
    np.testing.assert_allclose(losses, expected, rtol=1e-4)
    hard = optimizers.losses_of(LOSS, optax.adam(1e-3), PARAMS, data)[1]
    assert not np.allclose(losses, hard, rtol=1e-2)


def test_an_average_needs_the_statistics_of_the_last_step():
    model = convolutions.NnxCnn(rngs=nnx.Rngs(0))
    apply, params, stats = steps.split_nnx(model)
    adam = optax.adam(1e-3)
    step = steps.make_step(steps.gradient_of(steps.cross_entropy(apply)), adam)
    data = [(x.reshape(-1, 8, 8, 1), y) for x, y in DATA[:3]]
    _, stats, average = optimizers.train_averaged(step, params, stats, adam.init(params), data, 0.9)
    images = TEST[0].reshape(-1, 8, 8, 1)
    expected, _ = apply(average, stats, images, train=False)
    nnx.update(model, average)
    model.eval()
    with pytest.raises((RuntimeError, ValueError), match="has been deleted"):
        model(images)
    nnx.update(model, average, stats)
    np.testing.assert_allclose(model(images), expected, atol=1e-5)


def test_a_schedule_with_clipping_as_in_pytorch():
    count = len(DATA)
    optimizer = optimizers.with_warmup(1e-3, 4, count, 0.5, 1.0)
    _, losses = optimizers.losses_of(LOSS, optimizer, PARAMS, DATA)
    module = optimizers.torch_mlp(PARAMS)
    in_torch = torch.optim.AdamW(module.parameters(), 1e-3, weight_decay=1.0)
    schedule = optimizers.torch_warmup(in_torch, 4, count)
    expected = optimizers.train_torch(module, in_torch, DATA, 0.5, schedule)
    np.testing.assert_allclose(losses, expected, rtol=1e-4)
    for largest, decay in (1e9, 1.0), (0.5, 0.0):
        other = optimizers.with_warmup(1e-3, 4, count, largest, decay)
        _, losses = optimizers.losses_of(LOSS, other, PARAMS, DATA)
        assert not np.allclose(losses, expected, rtol=1e-4)


def test_four_calls_of_multisteps_are_one_step_of_the_whole_batch():
    optimizer = optimizers.in_steps(optax.sgd(0.1), 4)
    three, _ = optimizers.losses_of(LOSS, optimizer, PARAMS, DATA[:3])
    assert steps.largest_difference(three, PARAMS) == 0
    moved, _ = optimizers.losses_of(LOSS, optimizer, PARAMS, DATA[:4])
    four = [np.concatenate(arrays) for arrays in zip(*DATA[:4], strict=True)]
    at_once, _ = optimizers.losses_of(LOSS, optax.sgd(0.1), PARAMS, [four])
    assert steps.largest_difference(moved, at_once) < 1e-4
    assert steps.largest_difference(at_once, PARAMS) > 1e-3


def test_the_average_is_pytorchs_and_fits_into_a_module():
    adam = optax.adam(1e-3)
    step = steps.make_step(steps.gradient_of(LOSS), adam)
    copy = jax.tree.map(jnp.copy, PARAMS)
    trained, _, average = optimizers.train_averaged(step, copy, {}, adam.init(PARAMS), DATA, 0.9)
    module = optimizers.torch_mlp(PARAMS)
    in_torch = torch.optim.Adam(module.parameters(), 1e-3)
    averaged = optimizers.train_torch_averaged(module, in_torch, DATA, 0.9)
    expected = averaged[0].weight.detach().numpy().T
    np.testing.assert_allclose(average[0]["kernel"], expected, atol=1e-4)
    assert steps.largest_difference(trained, average) > 1e-3

    model = steps.NnxMlp(rngs=nnx.Rngs(0))
    apply, params, stats = steps.split_nnx(model)
    step = steps.make_step(steps.gradient_of(steps.cross_entropy(apply)), adam)
    opt_state = adam.init(params)
    _, stats, average = optimizers.train_averaged(step, params, stats, opt_state, DATA, 0.9)
    nnx.update(model, average)
    np.testing.assert_allclose(model(TEST[0]), apply(average, stats, TEST[0])[0], atol=1e-5)


def test_lbfgs_reaches_what_pytorch_reaches():
    optimizer, step = optimizers.lbfgs(LOSS, DATA[0])
    losses = optimizers.take_steps(optimizer, step, PARAMS, 20)
    expected = optimizers.lbfgs_torch(optimizers.torch_mlp(PARAMS), DATA[0], 20)
    np.testing.assert_allclose(losses[0], expected[0], rtol=1e-5)
    assert losses[-1] < 1e-2 and expected[-1] < 1e-2
    assert (np.diff(losses) < 1e-6).all()


def test_labels_as_a_pytree_of_nnx_are_refused_and_as_a_function_taken(raises_declared):
    before = steps.NnxMlp(rngs=nnx.Rngs(0))
    raises_declared(optimizers.step_of_nnx, optimizers.labels_of_state(before))
    after = optimizers.step_of_nnx(optimizers.by_name(optimizers.is_last))
    np.testing.assert_array_equal(before.layers[0].kernel[...], after.layers[0].kernel[...])
    assert not np.array_equal(before.layers[2].kernel[...], after.layers[2].kernel[...])
