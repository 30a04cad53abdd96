import re
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import torch
from flax import nnx
from jax._src.core import ShardingTypeError
from jax.sharding import AxisType

from snippets.models import convolutions, modules, steps
from snippets.training import data_parallel

DEVICES = jax.devices("cpu")
MESH = data_parallel.axis_of_devices(DEVICES)
SHARDED = jax.NamedSharding(MESH, jax.P("data"))
REPLICATED = jax.NamedSharding(MESH, jax.P())
OPTIMIZER = optax.adam(data_parallel.RATE)


@pytest.fixture(scope="module")
def training():
    return steps.digits()[0]


@pytest.fixture(scope="module")
def batch(training):
    return training[0][:128], training[1][:128]


def torch_model(seed=0):
    torch.manual_seed(seed)
    return data_parallel.TorchMlp()


def start(seed=0):
    """Return apply, and parameters, statistics and optimizer state as NumPy arrays."""
    model = steps.NnxMlp(rngs=nnx.Rngs(0))
    model = modules.into_nnx(model, *modules.from_torch(torch_model(seed)))
    apply, params, stats = steps.split_nnx(model)
    return apply, *jax.device_get((params, stats, OPTIMIZER.init(params)))


@pytest.fixture(scope="module")
def loss():
    return steps.cross_entropy(start()[0])


@pytest.fixture(scope="module")
def step(loss):
    return steps.make_step(steps.gradient_of(loss), OPTIMIZER)


@pytest.fixture(scope="module")
def grads(loss, batch):
    return steps.gradient_of(loss)(*start()[1:3], batch)[1]


def relative(a, b):
    return np.abs(a / b - 1).max()


@pytest.mark.parametrize("seed", range(2))
def test_one_device_eight_devices_and_torch_have_equal_losses(training, step, seed):
    data = steps.batches(*training, epochs=10)
    _, *first = start(seed)
    one, *_, one_losses = steps.train(step, *first, data)
    with jax.set_mesh(MESH):
        on_eight = [jax.device_put(each, SHARDED) for each in data]
        first = jax.device_put(first, REPLICATED)
        eight, *_, eight_losses = steps.train(step, *first, on_eight)
    torch_losses = data_parallel.train_torch(torch_model(seed), data)
    assert len(one_losses) == 120
    assert one_losses[-1] < 0.1 * one_losses[0]
    assert relative(eight_losses, one_losses) < 1e-4
    assert relative(torch_losses, one_losses) < 1e-4
    assert data_parallel.close(one, eight)


def test_what_was_trained_reads_digits_it_has_not_seen(training, step):
    (images, labels), (apply, *first) = steps.digits()[1], start()
    params, stats, *_ = steps.train(step, *first, steps.batches(*training, epochs=10))
    logits, _ = apply(params, stats, images, train=False)
    assert data_parallel.share_correct(logits, labels) > 0.95


def test_layouts_of_batch_and_state(batch, step):
    images = jax.device_put(batch[0], SHARDED)
    shapes = data_parallel.shard_shapes(images)
    assert shapes == {device.id: (16, 64) for device in DEVICES}
    state = jax.device_put(start()[1:], REPLICATED)
    with jax.set_mesh(MESH):
        new = step(*state, jax.device_put(batch, SHARDED))
    for x in jax.tree.leaves(new):
        assert x.sharding.device_set == set(DEVICES)
        assert x.sharding.is_fully_replicated


def test_one_all_reduce_carries_the_gradients_the_loss_and_the_count(training, batch, step):
    _, *state = start()
    expected = {"all-reduce": {"operations": 1, "elements": 85004}}
    for data in (batch, training):
        with jax.set_mesh(MESH):
            on_eight = jax.device_put(state, REPLICATED), jax.device_put(data, SHARDED)
            assert data_parallel.collectives(step, *on_eight[0], on_eight[1]) == expected
    assert data_parallel.collectives(step, *state, batch) == {}


@pytest.mark.parametrize("parts", [2, 4, 16])
def test_accumulated_gradients_leave_rows_on_their_device(batch, loss, grads, parts):
    params, stats = jax.device_put(start()[1:3], REPLICATED)
    gradient = jax.jit(steps.accumulated(loss, parts))
    with jax.set_mesh(MESH):
        sharded = jax.device_put(batch, SHARDED)
        text = gradient.lower(params, stats, sharded).compile().as_text()
        (_, _), added = gradient(params, stats, sharded)
    assert data_parallel.close(added, grads)
    found = data_parallel.count_collectives(text)
    assert set(found) == {"all-reduce"}
    # The rows that a device multiplies at a time.
    rows = {int(n) for n in re.findall(r"= f32\[(\d+),\d+\]\S* dot\(", text)}
    assert 128 // parts // 8 in rows and 128 // parts not in rows


def test_a_microbatch_needs_rows_for_all_devices(batch, loss):
    params, stats = jax.device_put(start()[1:3], REPLICATED)
    with jax.set_mesh(MESH):
        sharded = jax.device_put(batch, SHARDED)
        with pytest.raises(ShardingTypeError, match="This reshape is not supported"):
            jax.jit(steps.accumulated(loss, 32))(params, stats, sharded)


def test_batch_norm_on_eight_devices_sees_the_whole_batch(batch):
    apply, params, stats = steps.split_nnx(convolutions.NnxCnn(rngs=nnx.Rngs(0)))
    x = batch[0].reshape(-1, 8, 8, 1)
    y, new = jax.jit(apply)(params, stats, x)
    own, _ = jax.jit(apply)(params, stats, x[:16])
    with jax.set_mesh(MESH):
        state = jax.device_put((params, stats), REPLICATED)
        on_eight, sharded = jax.jit(apply)(*state, jax.device_put(x, SHARDED))
    np.testing.assert_allclose(on_eight, y, rtol=1e-4, atol=1e-5)
    for a, b in zip(jax.tree.leaves(new), jax.tree.leaves(sharded), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
    assert abs(own - y[:16]).max() > 0.01


@pytest.mark.parametrize(
    ("collective", "kind", "elements"),
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
def test_collectives_counts_each_kind(collective, kind, elements):
    step = jax.jit(
        jax.shard_map(
            collective, mesh=MESH, in_specs=jax.P("data"), out_specs=jax.P("data"), check_vma=False
        )
    )
    rows = 24 if kind != "reduce-scatter" else 32
    x = jax.device_put(jnp.ones((rows, 2)), SHARDED)
    assert data_parallel.collectives(step, x) == {kind: {"operations": 1, "elements": elements}}


def test_collectives_in_two_operations_count_once():
    text = """
  all-gather-start = (f32[6,2], f32[48,2]) all-gather-start(part), dimensions={0}
  all-gather-done = f32[48,2]{1,0} all-gather-done(all-gather-start)
  all-reduce.1 = (f32[3]{0}, f32[4]{0}) all-reduce(a, b), to_apply=add
"""
    step = mock.Mock()
    step.lower.return_value.compile.return_value.as_text.return_value = text
    assert data_parallel.collectives(step, 1) == {
        "all-gather": {"operations": 1, "elements": 96},
        "all-reduce": {"operations": 1, "elements": 7},
    }


@pytest.mark.parametrize("count", [1, 2, 8, 16])
def test_the_mean_of_the_gradients_of_microbatches_is_the_gradient(batch, loss, grads, count):
    gradient = data_parallel.mean_of_gradients(loss, count)
    assert data_parallel.close(gradient(*start()[1:3], batch)[1], grads)


def test_close_tells_trees_apart():
    tree = {"a": np.ones(3, np.float32), "b": [np.zeros(2, np.float32)]}
    nearly = jax.tree.map(lambda x: x + np.float32(1e-6), tree)
    assert data_parallel.close(tree, nearly)
    for name in ("a", "b"):
        other = {**tree, name: jax.tree.map(lambda x: x + 0.01, tree[name])}
        assert not data_parallel.close(tree, other)


def test_the_mean_belongs_to_the_loss_not_to_the_gradient(batch, loss, grads):
    on_eight = jax.device_put(start()[1], REPLICATED), jax.device_put(batch, SHARDED)
    with jax.set_mesh(MESH):
        right = jax.jit(data_parallel.gradient_of_the_mean(loss))(*on_eight)
        wrong = jax.jit(data_parallel.mean_of_the_gradients(loss))(*on_eight)
    assert data_parallel.close(right, grads)
    assert data_parallel.close(wrong, jax.tree.map(lambda g: 8 * g, grads))
    assert data_parallel.times_larger(right, grads) == 1
    assert data_parallel.times_larger(wrong, grads) == 8


def test_by_hand_padding_counts_nowhere(batch, loss):
    x, labels = batch
    labels = np.where(np.arange(len(labels)) % 24 < 8, -100, labels)
    params, stats = start()[1:3]
    _, expected = steps.gradient_of(loss)(params, stats, (x[labels >= 0], labels[labels >= 0]))
    on_eight = jax.device_put(params, REPLICATED), jax.device_put((x, labels), SHARDED)
    with jax.set_mesh(MESH):
        found = jax.jit(data_parallel.gradient_of_the_mean(loss))(*on_eight)
    assert data_parallel.close(found, expected)


def test_the_elements_of_a_tree_are_counted():
    assert data_parallel.count_elements({"a": np.zeros((2, 3)), "b": [np.zeros(4)]}) == 10
    assert data_parallel.count_elements(start()[1]) == 85002


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
    spread = data_parallel.draw_curves({"one": curves["one"]}, steps=200).data
    assert "Loss over 200 steps" in spread and ">200</text>" in spread


def test_the_axis_is_explicit_and_types_say_what_is_sharded(batch, loss):
    assert MESH.axis_types == (AxisType.Explicit,)
    apply, *first = start()
    with jax.set_mesh(MESH):
        params, stats = jax.device_put(first[:2], REPLICATED)
        batch = jax.device_put(batch, SHARDED)
        logits, _ = apply(params, stats, batch[0])
        _, grads = jax.jit(steps.gradient_of(loss))(params, stats, batch)
    assert jax.typeof(logits).sharding.spec == jax.P("data", None)
    assert all(grad.sharding.is_fully_replicated for grad in jax.tree.leaves(grads))


@pytest.fixture(scope="module")
def of_processes(batch):
    return data_parallel.gradient_in_processes(torch_model(), batch)


def test_ddp_leaves_the_gradient_of_the_whole_batch_in_each_process(of_processes, grads):
    _, of_each = of_processes
    assert len(of_each) == 2
    for tensors in of_each:
        for n, layer in nnx.to_pure_dict(grads)["layers"].items():
            assert data_parallel.close(layer["kernel"], tensors[2 * n].numpy().T)
            assert data_parallel.close(layer["bias"], tensors[2 * n + 1].numpy())


def test_each_process_sees_half_of_the_batch_and_learns_the_loss_of_all(batch, of_processes, loss):
    params, stats = start()[1:3]

    def mean(batch):
        return float(steps.gradient_of(loss)(params, stats, batch)[0][0])

    for number, ended in enumerate(of_processes[0]):
        rows = slice(64 * number, 64 * (number + 1))
        own = mean((batch[0][rows], batch[1][rows]))
        pattern = r"64 images, own loss ([\d.]+)\nloss of all ([\d.]+)"
        found = re.fullmatch(pattern, ended.text.strip())
        losses = [float(each) for each in found.groups()]
        assert losses == pytest.approx([own, mean(batch)], abs=6e-4)
