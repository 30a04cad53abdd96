import re
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.sharding import AxisType
from sklearn.datasets import load_digits

from snippets.training import data_parallel

DEVICES = jax.devices("cpu")
MESH = data_parallel.axis_of_devices(DEVICES)
SPLIT = jax.NamedSharding(MESH, jax.P("data"))
COPIED = jax.NamedSharding(MESH, jax.P())


@pytest.fixture(scope="module")
def training():
    return data_parallel.digits()[0]


@pytest.fixture(scope="module")
def batch(training):
    return training[0][:128], training[1][:128]


def numpy_loss(params, batch):
    x = np.asarray(batch[0], np.float64)
    for layer in params[:-1]:
        x = np.tanh(x @ layer["weights"] + layer["biases"])
    z = x @ params[-1]["weights"] + params[-1]["biases"]
    log_p = z - np.log(np.exp(z).sum(axis=1, keepdims=True))
    return -log_p[np.arange(len(z)), batch[1]].mean()


def in_float64(params):
    return jax.tree.map(lambda x: np.array(x, np.float64), params)


def relative(a, b):
    return np.abs(a / b - 1).max()


def test_digits_are_those_of_scikit_learn_in_another_order():
    (images, labels), (rest, rest_labels) = data_parallel.digits()
    data = load_digits()
    assert images.dtype == rest.dtype == np.float32
    assert labels.dtype == rest_labels.dtype == np.int32
    assert images.shape == (1536, 64) and rest.shape == (261, 64)
    assert images.min() == 0 and images.max() == 1
    assert set(labels) == set(rest_labels) == set(range(10))
    ours = np.c_[np.r_[images, rest] * 16, np.r_[labels, rest_labels]]
    theirs = np.c_[data.data, data.target]
    assert sorted(map(tuple, ours)) == sorted(map(tuple, theirs))


def test_digits_are_mixed_well():
    (_, labels), (_, rest) = data_parallel.digits()
    together = np.concatenate([labels, rest])
    share = np.bincount(together) / len(together)
    for part in (labels, rest):
        width = np.sqrt(len(part) * share * (1 - share) * (1 - len(part) / len(together)))
        off = np.bincount(part) - len(part) * share
        assert (abs(off) < 4 * width).all()
    for distance in range(1, 21):
        equal = (together[distance:] == together[:-distance]).mean()
        assert abs(equal - 0.1) < 4 * np.sqrt(0.1 * 0.9 / len(together)), distance


def test_first_params_have_variance_one_over_inputs():
    params = data_parallel.first_params(jax.random.key(3))
    shapes = [(64, 256), (256, 256), (256, 10)]
    assert [layer["weights"].shape for layer in params] == shapes
    assert [layer["biases"].shape for layer in params] == [(256,), (256,), (10,)]
    for layer, (inputs, _) in zip(params, shapes, strict=True):
        assert not layer["biases"].any()
        np.testing.assert_allclose(layer["weights"].var() * inputs, 1, rtol=0.1)
    assert data_parallel.count_numbers(params) == 85002


@given(st.integers(0, 2**31 - 1))
@settings(max_examples=10, deadline=None)
def test_loss_equals_numpy(seed):
    rng = np.random.default_rng(seed)
    params = data_parallel.first_params(jax.random.key(seed))
    batch = rng.random((5, 64), np.float32), rng.integers(0, 10, 5).astype(np.int32)
    expected = numpy_loss(in_float64(params), batch)
    np.testing.assert_allclose(data_parallel.loss(params, batch), expected, rtol=1e-5)
    assert data_parallel.scores(params, batch[0]).shape == (5, 10)


@given(st.integers(0, 2**31 - 1))
@settings(max_examples=5, deadline=None)
def test_gradient_equals_finite_differences(seed):
    rng = np.random.default_rng(seed)
    params = data_parallel.first_params(jax.random.key(seed))
    batch = rng.random((16, 64), np.float32), rng.integers(0, 10, 16).astype(np.int32)
    grads = jax.grad(data_parallel.loss)(params, batch)
    exact = in_float64(params)
    for layer, slopes in zip(exact, grads, strict=True):
        for name, x in layer.items():
            for _ in range(5):
                at = tuple(rng.integers(0, n) for n in x.shape)
                middle, ends = x[at], []
                for step in (1e-5, -1e-5):
                    x[at] = middle + step
                    ends.append(numpy_loss(exact, batch))
                x[at] = middle
                expected = (ends[0] - ends[1]) / 2e-5
                np.testing.assert_allclose(slopes[name][at], expected, rtol=1e-3, atol=1e-6)


def test_accuracy_is_the_share_of_right_guesses(training):
    params = data_parallel.first_params(jax.random.key(0))
    images, labels = training
    expected = np.mean(np.argmax(data_parallel.scores(params, images), axis=1) == labels)
    np.testing.assert_allclose(data_parallel.accuracy(params, images, labels), expected, rtol=1e-6)


def test_the_state_holds_three_numbers_for_each_parameter_and_the_count():
    state = data_parallel.first_state(jax.random.key(0))
    parameters = data_parallel.count_numbers(state.params)
    assert data_parallel.count_numbers(state) == 3 * parameters + 1


@pytest.mark.parametrize("steps", [1, 2, 10, 1000, 100_000])
@pytest.mark.parametrize("decay", [0.9, 0.999])
def test_correction_equals_float64(decay, steps):
    result = data_parallel.correction(decay, jnp.int32(steps))
    np.testing.assert_allclose(result, 1 - decay**steps, rtol=3e-7)


def test_the_direct_correction_loses_digits():
    assert relative(1 - jnp.float32(0.999) ** 1, 1e-3) > 1e-5


@given(st.integers(0, 2**31 - 1))
@settings(max_examples=10, deadline=None)
def test_adam_equals_torch(seed):
    rng = np.random.default_rng(seed)
    start = rng.normal(size=5).astype(np.float32)
    state = data_parallel.TrainState({"w": start}, {"w": 0 * start}, {"w": 0 * start}, 0)
    weights = torch.tensor(start.copy(), requires_grad=True)
    optimizer = torch.optim.Adam([weights], data_parallel.RATE)
    for _ in range(20):
        grads = rng.normal(size=5).astype(np.float32)
        state = data_parallel.adam(state, {"w": grads})
        weights.grad = torch.tensor(grads)
        optimizer.step()
    np.testing.assert_allclose(state.params["w"], weights.detach(), rtol=1e-5, atol=1e-6)


def test_an_epoch_takes_each_image_once(training):
    images, labels = training
    rows = np.arange(len(images))
    data = data_parallel.batches(rows, labels, epochs=2)
    assert len(data) == 24
    epochs = [np.concatenate([b[0] for b in data[n : n + 12]]) for n in (0, 12)]
    for epoch in epochs:
        np.testing.assert_array_equal(np.sort(epoch), rows)
    assert (epochs[0] != epochs[1]).any()
    for chosen, its_labels in data:
        np.testing.assert_array_equal(its_labels, labels[chosen])


def test_batches_leaves_out_what_fills_no_batch():
    data = data_parallel.batches(np.arange(100), np.arange(100), epochs=1, size=32)
    assert [len(images) for images, _ in data] == [32, 32, 32]


@pytest.mark.parametrize("seed", range(2))
def test_one_device_eight_devices_and_torch_have_equal_losses(training, seed):
    data = data_parallel.batches(*training, epochs=10)
    state = data_parallel.first_state(jax.random.key(seed))
    torch_losses = data_parallel.train_torch(data_parallel.torch_model(state.params), data)
    one, one_losses = data_parallel.train(state, data, DEVICES[0])
    assert all(x.is_deleted() for x in jax.tree.leaves(state))
    copied = jax.device_put(data_parallel.first_state(jax.random.key(seed)), COPIED)
    eight, eight_losses = data_parallel.train(copied, data, SPLIT)
    assert len(one_losses) == 120
    assert one_losses[-1] < 0.1 * one_losses[0]
    assert relative(eight_losses, one_losses) < 1e-4
    assert relative(torch_losses, one_losses) < 1e-4
    assert data_parallel.close(one.params, eight.params)


def test_what_was_trained_reads_digits_it_has_not_seen():
    training, test = data_parallel.digits()
    state = data_parallel.first_state(jax.random.key(0))
    data = data_parallel.batches(*training, epochs=10)
    state, _ = data_parallel.train(state, data, DEVICES[0])
    assert data_parallel.accuracy(state.params, *test) > 0.95


def test_layouts_of_batch_and_state(batch):
    images = jax.device_put(batch[0], SPLIT)
    shares = data_parallel.shares(images)
    assert shares == {device.id: (16, 64) for device in DEVICES}
    state = jax.device_put(data_parallel.first_state(jax.random.key(0)), COPIED)
    new, value = data_parallel.train_step(state, jax.device_put(batch, SPLIT))
    for x in (*jax.tree.leaves(new), value):
        assert x.sharding.device_set == set(DEVICES)
        assert x.sharding.is_fully_replicated


def test_one_all_reduce_carries_the_gradients_and_the_loss(training, batch):
    state = data_parallel.first_state(jax.random.key(0))
    copied = jax.device_put(state, COPIED)
    expected = {"all-reduce": {"operations": 1, "numbers": 85003}}
    for data in (batch, training):
        data = jax.device_put(data, SPLIT)
        assert data_parallel.collectives(data_parallel.train_step, copied, data) == expected
    assert data_parallel.collectives(data_parallel.train_step, state, batch) == {}


@pytest.mark.parametrize(
    ("collective", "kind", "numbers"),
    [
        (lambda x: jax.lax.psum(x, "data"), "all-reduce", 6),
        (lambda x: jax.lax.all_gather(x, "data", tiled=True), "all-gather", 48),
        (lambda x: jax.lax.ppermute(x, "data", [(0, 1), (1, 0)]), "collective-permute", 6),
        (
            lambda x: jax.lax.psum_scatter(x.reshape(-1)[:8], "data", tiled=True)[:, None],
            "reduce-scatter",
            1,
        ),
    ],
)
def test_collectives_counts_each_kind(collective, kind, numbers):
    step = jax.jit(
        jax.shard_map(
            collective, mesh=MESH, in_specs=jax.P("data"), out_specs=jax.P("data"), check_vma=False
        )
    )
    rows = 24 if kind != "reduce-scatter" else 32
    x = jax.device_put(jnp.ones((rows, 2)), SPLIT)
    assert data_parallel.collectives(step, x) == {kind: {"operations": 1, "numbers": numbers}}


def test_collectives_in_two_operations_count_once():
    text = """
  all-gather-start = (f32[6,2], f32[48,2]) all-gather-start(part), dimensions={0}
  all-gather-done = f32[48,2]{1,0} all-gather-done(all-gather-start)
  all-reduce.1 = (f32[3]{0}, f32[4]{0}) all-reduce(a, b), to_apply=add
"""
    step = mock.Mock()
    step.lower.return_value.compile.return_value.as_text.return_value = text
    assert data_parallel.collectives(step, 1) == {
        "all-gather": {"operations": 1, "numbers": 96},
        "all-reduce": {"operations": 1, "numbers": 7},
    }


@given(st.sampled_from([1, 2, 4, 8, 16]))
@settings(deadline=None)
def test_the_average_of_parts_is_the_gradient(parts):
    images, labels = data_parallel.digits()[0]
    batch = images[:128], labels[:128]
    params = data_parallel.first_params(jax.random.key(0))
    grads = jax.grad(data_parallel.loss)(params, batch)
    assert data_parallel.close(data_parallel.average_of_parts(params, batch, parts), grads)


def test_cut_keeps_the_order():
    images, labels = data_parallel.cut((np.arange(24).reshape(12, 2), np.arange(12)), 3)
    assert images.shape == (3, 4, 2) and labels.shape == (3, 4)
    np.testing.assert_array_equal(labels[1], [4, 5, 6, 7])


def test_close_tells_trees_apart():
    tree = {"a": np.ones(3, np.float32), "b": [np.zeros(2, np.float32)]}
    nearly = jax.tree.map(lambda x: x + np.float32(1e-6), tree)
    assert data_parallel.close(tree, nearly)
    for name in ("a", "b"):
        other = {**tree, name: jax.tree.map(lambda x: x + 0.01, tree[name])}
        assert not data_parallel.close(tree, other)


def test_the_mean_belongs_to_the_loss_not_to_the_gradient(batch):
    params = data_parallel.first_params(jax.random.key(0))
    grads = jax.grad(data_parallel.loss)(params, batch)
    on_eight = jax.device_put(params, COPIED), jax.device_put(batch, SPLIT)
    with jax.set_mesh(MESH):
        right = jax.jit(data_parallel.gradient_of_the_average)(*on_eight)
        wrong = jax.jit(data_parallel.average_of_the_gradients)(*on_eight)
    assert data_parallel.close(right, grads)
    assert data_parallel.close(wrong, jax.tree.map(lambda g: 8 * g, grads))
    assert data_parallel.times_larger(right, grads) == 1
    assert data_parallel.times_larger(wrong, grads) == 8


def test_torch_model_computes_the_same_scores(batch):
    params = data_parallel.first_params(jax.random.key(0))
    in_torch = data_parallel.torch_model(params)(torch.tensor(batch[0])).detach()
    expected = data_parallel.scores(params, batch[0])
    np.testing.assert_allclose(in_torch, expected, rtol=1e-4, atol=1e-5)


def test_drawn_curves_lie_where_their_losses_are():
    curves = {"one": np.array([10.0, 1.0, 0.1]), "two": np.array([1.0, 1.0, 1.0])}
    svg = data_parallel.draw_curves(curves).data
    points = re.findall(r'polyline points="([^"]+)"', svg)
    assert points[0] == "60.0,20.0 265.0,140.0 470.0,260.0"
    assert points[1] == "60.0,140.0 265.0,140.0 470.0,140.0"
    assert 'aria-label="Loss over 3 steps: one from 10 to 0.1, two from 1 to 1"' in svg
    texts = re.findall(r">([^<]+)</text>", svg)
    assert {"one", "two", "0.1", "1", "10", "step", "3"} <= set(texts)
    assert "currentColor" in svg


def test_relu_has_a_kink_where_tanh_has_none():
    slopes = [float(jax.grad(f)(x)) for f in (jax.nn.relu, jnp.tanh) for x in (-1e-8, 1e-8)]
    assert slopes == [0, 1, 1, 1]


def test_the_axis_is_explicit_and_types_say_what_is_split(batch):
    assert MESH.axis_types == (AxisType.Explicit,)
    params = jax.device_put(data_parallel.first_params(jax.random.key(0)), COPIED)
    images, labels = jax.device_put(batch, SPLIT)
    assert jax.typeof(data_parallel.scores(params, images)).sharding.spec == jax.P("data", None)
    grads = jax.jit(jax.grad(data_parallel.loss))(params, (images, labels))
    for grad in jax.tree.leaves(grads):
        assert grad.sharding.is_fully_replicated


@pytest.fixture(scope="module")
def of_processes(batch):
    params = data_parallel.first_params(jax.random.key(0))
    return data_parallel.gradient_in_processes(data_parallel.torch_model(params), batch)


def test_ddp_leaves_the_gradient_of_the_whole_batch_in_each_process(batch, of_processes):
    params = data_parallel.first_params(jax.random.key(0))
    expected = jax.grad(data_parallel.loss)(params, batch)
    _, of_each = of_processes
    assert len(of_each) == 2
    for tensors in of_each:
        assert data_parallel.close(data_parallel.as_params(tensors), expected)


def test_each_process_sees_half_of_the_batch_and_learns_the_loss_of_all(batch, of_processes):
    params = data_parallel.first_params(jax.random.key(0))
    whole = float(data_parallel.loss(params, batch))
    for number, ended in enumerate(of_processes[0]):
        rows = slice(64 * number, 64 * (number + 1))
        own = float(data_parallel.loss(params, (batch[0][rows], batch[1][rows])))
        pattern = r"64 images, own loss ([\d.]+)\nloss of all ([\d.]+)"
        found = re.fullmatch(pattern, ended.text.strip())
        assert [float(each) for each in found.groups()] == pytest.approx([own, whole], abs=6e-4)
