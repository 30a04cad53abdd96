"""LoRA against PyTorch's adapters, and int8 against its bounds."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import torch

from snippets.models import adaptation, optimizers, steps
from snippets.models.memory import nbytes

TRAINING, TEST = steps.digits()
DATA = steps.batches(*TRAINING, epochs=1)
NEW_TASK = [(adaptation.transposed(images), labels) for images, labels in DATA]
ADAM = optax.adam(1e-3)


@pytest.fixture(scope="module")
def params():
    """Return a trained network."""
    start = steps.init_mlp(jax.random.key(0))
    step = steps.make_step(steps.gradient_of(steps.cross_entropy(steps.stateless(steps.mlp))), ADAM)
    trained, *_ = steps.train(step, start, {}, ADAM.init(start), DATA * 3)
    return trained


@pytest.fixture
def adapters(params):
    return adaptation.init_lora(jax.random.key(1), params, rank=4)


def trained_adapters(params, adapters):
    """Return adapters after an epoch, the frozen layers, and the losses."""
    step = steps.make_step(steps.gradient_of(steps.cross_entropy(adaptation.adapted)), ADAM)
    start = jax.tree.map(jnp.copy, (adapters, params))
    trained, frozen, _, losses = steps.train(step, *start, ADAM.init(adapters), NEW_TASK)
    return trained, frozen, losses


def test_transposing_twice_changes_nothing():
    images, _ = DATA[0]
    assert images[0].reshape(8, 8).T.ravel().tolist() == adaptation.transposed(images)[0].tolist()
    np.testing.assert_array_equal(adaptation.transposed(adaptation.transposed(images)), images)


def test_adapters_change_nothing_at_the_start(params, adapters):
    np.testing.assert_array_equal(
        adaptation.adapted_mlp(params, adapters, TEST[0]), steps.mlp(params, TEST[0])
    )
    assert [one["down"].shape for one in adapters] == [(64, 4), (256, 4), (256, 4)]


def test_adapters_train_as_in_pytorch_and_all_else_stays(params, adapters):
    trained, frozen, losses = trained_adapters(params, adapters)
    assert steps.largest_difference(frozen, params) == 0
    module = adaptation.adapted_torch(optimizers.torch_mlp(params), adapters)
    trainable = [each for each in module.parameters() if each.requires_grad]
    expected = optimizers.train_torch(module, torch.optim.Adam(trainable, 1e-3), NEW_TASK)
    np.testing.assert_allclose(losses, expected, rtol=1e-3)
    assert losses[-1] < losses[0]
    np.testing.assert_allclose(
        steps.mlp(adaptation.merged(params, trained), TEST[0]),
        adaptation.adapted_mlp(params, trained, TEST[0]),
        atol=1e-3,
    )


def test_adapters_need_little_state_and_merging_needs_memory(params, adapters):
    state = nbytes(ADAM.init(adapters))
    assert state < nbytes(ADAM.init(params)) / 10
    few = [x[:8] for x in DATA[0]]
    needed = [
        steps.temporary_bytes(steps.gradient_of(steps.cross_entropy(apply)), adapters, params, few)
        for apply in (adaptation.adapted, adaptation.adapted_by_merging)
    ]
    assert needed[1] > 2 * needed[0]


def test_int8_is_pytorchs_and_within_half_a_step(params):
    kernel = params[0]["kernel"]
    quantized, scale = adaptation.quantize(kernel, axis=0)
    assert quantized.dtype == jnp.int8 and scale.shape == (1, 256)
    assert (jnp.abs(quantized).max(axis=0) == 127).all()
    error = jnp.abs(quantized * scale - kernel)
    assert (error <= 0.51 * scale).all()
    same = quantized == adaptation.quantize_torch(kernel)
    assert same.mean() > 0.999
    small = adaptation.quantize_layers(params)
    assert nbytes(small) < 0.27 * nbytes(params)


def test_a_column_of_zeros_stays_zero():
    quantized, scale = adaptation.quantize(jnp.array([[0.0, 1.0], [0.0, -2.0]]), axis=0)
    assert quantized.tolist() == [[0, 64], [0, -127]] and scale.tolist()[0][0] == 1.0


@pytest.mark.parametrize("matmul", [adaptation.weights_in_int8, adaptation.all_in_int8])
def test_a_quantized_network_predicts_nearly_the_same(params, matmul):
    small, exact = adaptation.quantize_layers(params), steps.mlp(params, TEST[0])
    logits = adaptation.quantized_mlp(small, TEST[0], matmul)
    assert 0 < jnp.abs(logits - exact).max() < 0.05 * jnp.abs(exact).max()
    assert (logits.argmax(axis=1) == exact.argmax(axis=1)).mean() > 0.98


def test_an_int8_matmul_accumulates_in_int32(params):
    (layer, *_), x = adaptation.quantize_layers(params), jnp.asarray(TEST[0])
    rows, scale = adaptation.quantize(x, axis=1)
    total = np.asarray(rows, np.int64) @ np.asarray(layer["kernel"], np.int64)
    np.testing.assert_allclose(
        adaptation.all_in_int8(x, layer), total * scale * layer["scale"], rtol=1e-6
    )
    assert np.abs(total).max() > 127
    assert jax.lax.dot(rows, layer["kernel"]).dtype == jnp.int8
