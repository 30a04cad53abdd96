import copy

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from snippets.models import convolutions as page
from snippets.models.modules import from_torch, into_equinox, into_nnx, linear

KEY = jax.random.key(0)


@pytest.fixture(scope="module")
def data():
    return page.image_batches(epochs=2)


def new_cnn(seed=0):
    torch.manual_seed(seed)
    return page.TorchCnn()


def nnx_cnn(module):
    return into_nnx(page.NnxCnn(rngs=nnx.Rngs(0)), *from_torch(module))


def equinox_cnn(module):
    model, state = eqx.nn.make_with_state(page.EquinoxCnn)(key=KEY)
    return into_equinox(model, module), state


def difference(x, y):
    return max(jax.tree.leaves(jax.tree.map(lambda a, b: float(abs(a - b).max()), x, y)))


def test_images_have_channels_and_labels(data):
    batches, (images, labels) = data
    assert len(batches) == 24
    assert batches[0][0].shape == (128, 8, 8, 1) and images.shape == (261, 8, 8, 1)
    assert images.dtype == np.float32 and set(labels) == set(range(10))


def test_to_torch_moves_the_channels():
    x = np.arange(24, dtype=np.float32).reshape(1, 2, 3, 4)
    tensor = page.to_torch(x)
    assert tensor.shape == (1, 4, 2, 3)
    assert tensor[0, 3, 1, 2] == x[0, 1, 2, 3]


@pytest.mark.parametrize("train", [True, False])
def test_networks_give_the_same(data, train):
    module = new_cnn()
    module.norm1.running_mean += 0.5
    module.norm2.running_var *= 2
    params, stats = from_torch(module)
    model = nnx_cnn(module)
    if not train:
        module.eval(), model.eval()
    images = data[0][0][0]
    expected = module(page.to_torch(images)).detach().numpy()
    y, new = page.cnn(params, stats, images, train)
    np.testing.assert_allclose(y, expected, atol=1e-5)
    np.testing.assert_allclose(model(images), expected, atol=1e-5)
    assert difference(new, from_torch(module)[1]) < 1e-5
    assert (difference(new, stats) > 0.01) == train
    equinox, state = equinox_cnn(module)
    if train:
        y, _ = page.on_batch(equinox, state, images)
        np.testing.assert_allclose(y, expected, atol=1e-5)


def test_losses_are_those_of_torch_and_so_are_predictions(data):
    batches, (images, labels) = data
    module = new_cnn()
    model, (equinox, state) = nnx_cnn(module), equinox_cnn(module)
    params, stats, plain = page.train(*from_torch(module), batches)
    of_nnx = page.train_nnx(model, batches)
    equinox, state, of_equinox = page.train_equinox(equinox, state, batches)
    expected = page.train_torch(module, batches)
    assert expected[-1] < 0.95 * expected[0]
    for losses in (plain, of_nnx, of_equinox):
        np.testing.assert_allclose(losses, expected, rtol=1e-4)
    theirs = from_torch(module)[1]
    assert difference(stats, theirs) < 1e-4
    n, start = 128 * 16, 0.9 ** len(batches)
    biased = start + (theirs["norm2"]["var"] - start) * (n - 1) / n
    np.testing.assert_allclose(model.norm2.var[...], biased, rtol=1e-5)
    np.testing.assert_allclose(state.get(equinox.norm2.batch_state_index)[1], biased, rtol=1e-5)
    module.eval(), model.eval()
    logits = module(page.to_torch(images)).detach().numpy()
    y, same = page.cnn(params, stats, images, train=False)
    assert same == stats
    np.testing.assert_allclose(y, logits, atol=1e-3)
    np.testing.assert_allclose(model(images), logits, atol=0.05)
    assert page.accuracy(y, labels) == page.accuracy(logits, labels)


def test_accuracy_is_a_fraction():
    assert page.accuracy(np.eye(4), np.array([0, 1, 2, 0])) == 0.75


def test_while_training_a_prediction_depends_on_the_batch(data):
    _, (images, _) = data
    params, stats = from_torch(new_cnn())
    for train, differ in (True, True), (False, False):
        alone, _ = page.cnn(params, stats, images[:2], train)
        together, _ = page.cnn(params, stats, images[:64], train)
        assert (difference(alone, together[:2]) > 0.01) == differ


def test_a_norm_that_was_never_trained_predicts_with_mean_0_and_variance_1():
    x = jax.random.normal(KEY, (64, 3)) * 2 + 1
    ours, theirs = nnx.BatchNorm(3, rngs=nnx.Rngs(0)), torch.nn.BatchNorm1d(3)
    ours.eval(), theirs.eval()
    np.testing.assert_allclose(ours(x), x, atol=1e-4)
    np.testing.assert_allclose(theirs(torch.tensor(np.array(x))).detach(), x, atol=1e-4)


def rows(norm, state, x):
    mapped = jax.vmap(norm, axis_name="batch", in_axes=(0, None), out_axes=(0, None))
    return mapped(x, state)


def test_variances_of_equinox_before_many_steps():
    x = jax.random.normal(KEY, (64, 3)) * 2 + 1
    make = eqx.nn.make_with_state(eqx.nn.BatchNorm)
    norm, state = make(3, "batch", mode="ema", momentum=0.9)
    y, _ = rows(eqx.nn.inference_mode(norm), state, x)
    assert difference(y, x) > 100
    norm, state = make(3, "batch", mode="batch", momentum=0.9)
    y, _ = rows(eqx.nn.inference_mode(norm), state, x)
    np.testing.assert_allclose(y, x, atol=1e-4)
    trained, state = rows(norm, state, x)
    y, _ = rows(eqx.nn.inference_mode(norm), state, x)
    var = x.var(axis=0)
    np.testing.assert_allclose(y, (x - x.mean(axis=0)) / jnp.sqrt(var + 0.9 / 0.1), atol=1e-4)
    for _ in range(100):
        trained, state = rows(norm, state, x)
    y, _ = rows(eqx.nn.inference_mode(norm), state, x)
    np.testing.assert_allclose(y, trained, atol=1e-3)


def test_a_kernel_after_flatten():
    features = np.random.default_rng(0).normal(size=(2, 2, 3, 4)).astype(np.float32)
    head = torch.nn.Linear(24, 10)
    expected = head(page.to_torch(features).flatten(1)).detach().numpy()
    params, _ = from_torch(head)
    assert difference(linear(params, features.reshape(2, -1)), expected) > 0.1
    kernel = page.kernel_after_flatten(params["kernel"], height=2, width=3)
    y = linear(params | {"kernel": kernel}, features.reshape(2, -1))
    np.testing.assert_allclose(y, expected, atol=1e-5)


def test_same_padding_with_a_stride_is_not_padding_of_one():
    module = torch.nn.Conv2d(1, 1, 3, 2, padding=1)
    params, _ = from_torch(module)
    image = np.random.default_rng(0).normal(size=(1, 8, 8, 1)).astype(np.float32)
    same = nnx.Conv(1, 1, (3, 3), strides=2, padding="SAME", rngs=nnx.Rngs(0))
    y = into_nnx(same, params, {})(image)
    assert difference(y, page.conv(params, image, stride=2)) > 0.1
    expected = np.moveaxis(module(page.to_torch(image)).detach().numpy(), 1, -1)
    np.testing.assert_allclose(page.conv(params, image, stride=2), expected, atol=1e-5)


def test_batches_are_not_donated(data):
    batches = data[0][:1]
    params, stats = from_torch(new_cnn())
    copies = copy.deepcopy((params, stats))
    placed = jax.tree.map(jnp.asarray, batches)
    page.train(params, stats, placed)
    assert all(x.is_deleted() for x in jax.tree.leaves(params))
    page.train(*copies, placed)


@pytest.mark.parametrize("size", [8, 7])
@pytest.mark.parametrize("kind", ["max", "avg"])
def test_pooling_with_strides_is_that_of_pytorch(kind, size):
    x = np.random.default_rng(0).normal(size=(2, size, size, 3)).astype(np.float32)
    nchw = x.transpose(0, 3, 1, 2)
    expected = getattr(torch.nn.functional, f"{kind}_pool2d")(torch.tensor(nchw), 2)
    found = getattr(nnx, f"{kind}_pool")(x, (2, 2), strides=(2, 2))
    np.testing.assert_allclose(found.transpose(0, 3, 1, 2), expected, rtol=1e-5, atol=1e-6)
    layer = getattr(eqx.nn, f"{kind.capitalize()}Pool2d")(2, stride=2)
    np.testing.assert_allclose(jax.vmap(layer)(nchw), expected, rtol=1e-5, atol=1e-6)
    # Without them a window moves by one, and nothing says so.
    assert getattr(nnx, f"{kind}_pool")(x, (2, 2)).shape == (2, size - 1, size - 1, 3)
