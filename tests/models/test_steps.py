import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import torch
from flax import nnx
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits

from snippets.models import convolutions, modules, optimizers, steps

KEY = jax.random.key(0)


@pytest.fixture(scope="module")
def training():
    return steps.digits()[0]


@pytest.fixture(scope="module")
def batch(training):
    return training[0][:128], training[1][:128]


def split_models():
    return {
        "plain": (steps.stateless(steps.mlp), steps.init_mlp(KEY), {}),
        "nnx": steps.split_nnx(steps.NnxMlp(rngs=nnx.Rngs(0))),
        "equinox": steps.split_equinox(steps.EquinoxMlp(key=KEY)),
    }


def numpy_loss(params, batch):
    x = np.asarray(batch[0], np.float64)
    for layer in params[:-1]:
        x = np.tanh(x @ layer["kernel"] + layer["bias"])
    z = x @ params[-1]["kernel"] + params[-1]["bias"]
    log_p = z - np.log(np.exp(z).sum(axis=1, keepdims=True))
    return -log_p[np.arange(len(z)), batch[1]].mean()


def in_float64(params):
    return jax.tree.map(lambda x: np.array(x, np.float64), params)


def test_digits_are_those_of_scikit_learn_in_another_order():
    (images, labels), (rest, rest_labels) = steps.digits()
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
    (_, labels), (_, rest) = steps.digits()
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
    params = steps.init_mlp(jax.random.key(3))
    shapes = [(64, 256), (256, 256), (256, 10)]
    assert [layer["kernel"].shape for layer in params] == shapes
    assert [layer["bias"].shape for layer in params] == [(256,), (256,), (10,)]
    for layer, (inputs, _) in zip(params, shapes, strict=True):
        assert not layer["bias"].any()
        np.testing.assert_allclose(layer["kernel"].var() * inputs, 1, rtol=0.1)


@given(st.integers(0, 2**31 - 1))
@settings(max_examples=5, deadline=None)
def test_loss_equals_numpy(seed):
    rng = np.random.default_rng(seed)
    params = steps.init_mlp(jax.random.key(seed))
    batch = rng.random((5, 64), np.float32), rng.integers(0, 10, 5).astype(np.int32)
    loss = steps.cross_entropy(steps.stateless(steps.mlp))
    expected = numpy_loss(in_float64(params), batch)
    total, (count, _) = loss(params, {}, batch)
    np.testing.assert_allclose(total / count, expected, rtol=1e-5)
    assert steps.mlp(params, batch[0]).shape == (5, 10)


def test_gradient_equals_finite_differences(batch):
    rng = np.random.default_rng(0)
    params, (images, labels) = steps.init_mlp(KEY), batch
    batch = images[:16], labels[:16]
    loss = steps.cross_entropy(steps.stateless(steps.mlp))
    _, grads = steps.gradient_of(loss)(params, {}, batch)
    exact = in_float64(params)
    for layer, derivatives in zip(exact, grads, strict=True):
        for name, x in layer.items():
            for _ in range(5):
                at = tuple(rng.integers(0, n) for n in x.shape)
                middle, ends = x[at], []
                for step in (1e-5, -1e-5):
                    x[at] = middle + step
                    ends.append(numpy_loss(exact, batch))
                x[at] = middle
                expected = (ends[0] - ends[1]) / 2e-5
                np.testing.assert_allclose(derivatives[name][at], expected, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("name", ["plain", "nnx", "equinox"])
def test_the_step_trains_each_model_and_donates_all_but_the_batch(name, batch):
    apply, params, stats = split_models()[name]
    optimizer = optax.adam(1e-3)
    step = steps.make_step(steps.gradient_of(steps.cross_entropy(apply)), optimizer)
    batch, opt_state = jax.device_put(batch), optimizer.init(params)
    before = jax.tree.leaves((params, stats, opt_state))
    *_, losses = steps.train(step, params, stats, opt_state, [batch] * 20)
    assert losses.shape == (20,) and losses[-1] < losses[0] / 1.5
    assert all(x.is_deleted() for x in before)
    assert not any(x.is_deleted() for x in batch)


def test_modules_predict_without_changing_their_statistics():
    x = np.random.default_rng(0).random((16, 8, 8, 1), np.float32)
    apply, params, stats = steps.split_nnx(convolutions.NnxCnn(rngs=nnx.Rngs(0)))
    _, trained = apply(params, stats, x)
    assert (trained["norm1"]["mean"][...] != stats["norm1"]["mean"][...]).all()
    _, same = apply(params, trained, x, train=False)
    np.testing.assert_array_equal(same["norm1"]["mean"][...], trained["norm1"]["mean"][...])
    made = eqx.nn.make_with_state(convolutions.EquinoxCnn)(key=KEY)
    apply, params, state = steps.split_stateful_equinox(*made)
    x = np.moveaxis(x, -1, 1)
    _, trained = apply(params, state, x)
    y, same = apply(params, trained, x, train=False)
    assert y.shape == (16, 10)
    for before, after in zip(jax.tree.leaves(trained), jax.tree.leaves(same), strict=True):
        np.testing.assert_array_equal(before, after)


def test_the_generator_of_dropout_moves_on_with_each_step():
    class Model(nnx.Module):
        def __init__(self, rngs):
            self.drop = nnx.Dropout(0.5, rngs=rngs)
            self.out = nnx.Linear(4, 4, rngs=rngs)

        def __call__(self, x):
            return self.drop(self.out(x))

    apply, params, stats = steps.split_nnx(Model(nnx.Rngs(0)))
    one, stats = apply(params, stats, jnp.ones((2, 4)))
    two, stats = apply(params, stats, jnp.ones((2, 4)))
    assert (one != two).any()
    assert stats["drop"]["rngs"]["count"][...] == 2


def test_an_epoch_takes_each_image_once(training):
    images, labels = training
    rows = np.arange(len(images))
    data = steps.batches(rows, labels, epochs=2)
    assert len(data) == 24
    epochs = [np.concatenate([b[0] for b in data[n : n + 12]]) for n in (0, 12)]
    for epoch in epochs:
        np.testing.assert_array_equal(np.sort(epoch), rows)
    assert (epochs[0] != epochs[1]).any()
    for chosen, its_labels in data:
        np.testing.assert_array_equal(its_labels, labels[chosen])


def test_batches_leaves_out_what_fills_no_batch():
    data = steps.batches(np.arange(100), np.arange(100), epochs=1, size=32)
    assert [len(images) for images, _ in data] == [32, 32, 32]


@given(st.integers(0, 2**31 - 1))
@settings(max_examples=10, deadline=None)
def test_adam_equals_torch(seed):
    rng = np.random.default_rng(seed)
    start = rng.normal(size=5).astype(np.float32)
    optimizer = steps.adam(0.001)
    params = {"w": jnp.array(start)}
    opt_state = optimizer.init(params)
    weights = torch.tensor(start.copy(), requires_grad=True)
    in_torch = torch.optim.Adam([weights], 0.001)
    for _ in range(20):
        grads = rng.normal(size=5).astype(np.float32)
        updates, opt_state = optimizer.update({"w": grads}, opt_state, params)
        params = optax.apply_updates(params, updates)
        weights.grad = torch.tensor(grads)
        in_torch.step()
    np.testing.assert_allclose(params["w"], weights.detach(), rtol=1e-5, atol=1e-6)


def test_adam_by_hand_trains_as_that_of_optax(training):
    data = steps.batches(*training, epochs=1)
    assert steps.same_losses(steps.adam(1e-3), optax.adam(1e-3), data)
    assert not steps.same_losses(steps.adam(2e-3), optax.adam(1e-3), data)


def test_rows_are_dealt_out_to_microbatches():
    images, labels = steps.split_batch((np.arange(24).reshape(12, 2), np.arange(12)), 3)
    assert images.shape == (3, 4, 2) and labels.shape == (3, 4)
    np.testing.assert_array_equal(labels[1], [1, 4, 7, 10])
    np.testing.assert_array_equal(images[1, :, 0], 2 * labels[1])


@pytest.mark.parametrize("parts", [1, 2, 8])
def test_accumulated_gradients_are_those_of_the_batch(batch, parts):
    apply, params, stats = split_models()["plain"]
    loss = steps.cross_entropy(apply)
    (value, _), grads = steps.gradient_of(loss)(params, stats, batch)
    (mean, _), added = steps.accumulated(loss, parts)(params, stats, batch)
    np.testing.assert_allclose(mean, value, rtol=1e-5)
    assert steps.largest_difference(grads, added) < 1e-6


def padded_batch(seed=0):
    """Return (images, labels), more of whose labels are padding the later they stand."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 10, 16).astype(np.int32)
    return rng.random((16, 64), np.float32), np.where(np.arange(16) % 4 < 3, labels, -100)


@pytest.mark.parametrize("parts", [1, 2, 4, 8])
def test_padding_counts_nowhere_however_the_batch_is_split(parts):
    apply, params, stats = split_models()["plain"]
    x, labels = padded_batch()
    loss = steps.cross_entropy(apply)
    real = labels >= 0
    (value, _), grads = steps.gradient_of(loss)(params, stats, (x[real], labels[real]))
    (mean, _), added = jax.jit(steps.accumulated(loss, parts))(params, stats, (x, labels))
    np.testing.assert_allclose(mean, value, rtol=1e-5)
    assert steps.largest_difference(grads, added) < 1e-6
    # PyTorch's ignores -100 as well.
    logits = torch.tensor(np.asarray(apply(params, stats, x)[0]))
    expected = torch.nn.functional.cross_entropy(logits, torch.tensor(labels).long())
    np.testing.assert_allclose(mean, expected, rtol=1e-5)


@pytest.mark.parametrize("inside", [False, True])
def test_sums_and_counts_of_half_precision_are_not_rounded(inside):
    logits = jax.random.normal(jax.random.key(0), (1001, 7), "bfloat16")
    labels = np.arange(1001, dtype=np.int32) % 7
    loss = steps.cross_entropy(steps.stateless(lambda params, x: x))
    total, (count, _) = (jax.jit(loss) if inside else loss)({}, (), (logits, labels))
    assert (total.dtype, count.dtype, float(count)) == ("float32", "float32", 1001)
    wide = torch.tensor(np.asarray(logits, np.float32))
    expected = torch.nn.functional.cross_entropy(wide, torch.tensor(labels).long(), reduction="sum")
    np.testing.assert_allclose(total, expected, rtol=1e-6)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16, jnp.float32])
def test_many_rows_in_half_precision_are_counted_and_added_up(compiled, dtype):
    def make(apply):
        return optimizers.smoothed(apply, 0.1)

    rows = 60_000
    logits = np.linspace(-1, 1, 10 * rows, dtype=np.float32).reshape(rows, 10)
    labels = np.where(np.arange(rows) % 3 == 0, -1, np.arange(rows) % 10).astype(np.int32)
    loss = make(steps.stateless(lambda params, x: params.astype(dtype) * x.astype(dtype)))
    gradient = jax.jit(steps.gradient_of(loss)) if compiled else steps.gradient_of(loss)
    (value, _), grads = gradient(jnp.float32(1), {}, (logits, labels))
    assert loss(jnp.float32(1), {}, (logits, labels))[1][0] == 40_000
    in_float32 = make(steps.stateless(lambda params, x: params * x))
    (expected, _), wanted = steps.gradient_of(in_float32)(jnp.float32(1), {}, (logits, labels))
    np.testing.assert_allclose((value, grads), (expected, wanted), atol=1e-2)
    assert value.dtype == jnp.float32


def test_a_batch_of_padding_alone_teaches_nothing():
    apply, params, stats = split_models()["plain"]
    batch = np.ones((4, 64), np.float32), np.full(4, -100, np.int32)
    (mean, _), grads = steps.gradient_of(steps.cross_entropy(apply))(params, stats, batch)
    assert mean == 0
    assert all(not np.any(leaf) for leaf in jax.tree.leaves(grads))


@pytest.mark.parametrize("parts", [4, 0, -1])
def test_microbatches_that_do_not_divide_are_refused_in_words(batch, parts):
    apply, params, stats = split_models()["plain"]
    few = jax.tree.map(lambda x: x[:10], batch)
    with pytest.raises(ValueError, match=f"10 rows do not divide into {parts} parts"):
        steps.accumulated(steps.cross_entropy(apply), parts)(params, stats, few)


@pytest.mark.parametrize("train", [True, False])
@pytest.mark.parametrize("compiled", [True, False])
def test_a_module_with_dropout_computes_in_bfloat16_inside_and_outside_of_jit(compiled, train):
    block = modules.NnxBlock(rngs=nnx.Rngs(0))
    apply, params, stats = steps.split_nnx(block)
    low = steps.in_bfloat16(apply)
    low = jax.jit(low, static_argnames="train") if compiled else low
    x = jnp.ones((2, 8, 32))
    y, new = low(params, stats, x, train=train)
    assert y.dtype == jnp.float32
    same = jax.tree.map(lambda a, b: a.dtype == b.dtype, new, stats)
    assert all(jax.tree.leaves(same))


def test_accumulated_gradients_need_less_memory(training):
    apply, params, stats = split_models()["plain"]
    loss = steps.cross_entropy(apply)
    at_once = steps.temporary_bytes(steps.gradient_of(loss), params, stats, training)
    in_twelve = steps.temporary_bytes(steps.accumulated(loss, 12), params, stats, training)
    assert in_twelve < at_once / 2


def test_statistics_are_updated_once_for_each_microbatch():
    apply, params, stats = steps.split_nnx(convolutions.NnxCnn(rngs=nnx.Rngs(0)))
    x = np.random.default_rng(0).random((16, 8, 8, 1), np.float32)
    batch = x, np.arange(16, dtype=np.int32) % 10
    loss = steps.cross_entropy(apply)
    (_, added), _ = steps.accumulated(loss, 2)(params, stats, batch)
    by_hand = stats
    for rows in (slice(0, None, 2), slice(1, None, 2)):
        _, by_hand = apply(params, by_hand, x[rows])
    for a, b in zip(jax.tree.leaves(added), jax.tree.leaves(by_hand), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_in_bfloat16_matmuls_are_and_results_are_not(batch):
    apply, params, stats = split_models()["plain"]
    low = steps.in_bfloat16(apply)
    text = str(jax.make_jaxpr(low)(params, stats, batch[0]))
    products = [line for line in text.splitlines() if "dot_general" in line]
    assert len(products) == 3 and all("bf16[" in line for line in products)
    assert low(params, stats, batch[0])[0].dtype == jnp.float32
    _, grads = steps.gradient_of(steps.cross_entropy(low))(params, stats, batch)
    assert {g.dtype for g in jax.tree.leaves(grads)} == {jnp.dtype("float32")}


def test_only_matmuls_are_kept_for_the_backward_pass(batch):
    apply, params, stats = split_models()["plain"]
    loss = steps.cross_entropy(apply)

    def recomputed(loss):
        return str(jax.make_jaxpr(steps.gradient_of(loss))(params, stats, batch)).count("tanh")

    assert recomputed(steps.rematerialized(loss)) > recomputed(loss)


def test_the_mean_squared_error_is_that():
    loss = steps.mean_squared(steps.stateless(lambda params, x: params * x))
    batch = jnp.array([1.0, 2.0]), jnp.array([2.0, 1.0])
    assert steps.gradient_of(loss)(2.0, {}, batch)[0] == (4.5, {})


def test_squared_errors_of_many_rows_in_float16_do_not_overflow():
    loss = steps.mean_squared(steps.stateless(lambda params, x: params * x))
    x = np.full(70_000, 2, np.float16)
    (value, _), _ = steps.gradient_of(loss)(jnp.float16(1), {}, (x, x - 1))
    assert value == 1


def test_targets_of_another_shape_are_refused_and_not_broadcast():
    loss = steps.mean_squared(steps.stateless(lambda params, x: params * x))
    with pytest.raises(ValueError, match=r"results \(4, 1\) and targets \(4,\)"):
        loss(jnp.ones(()), {}, (np.ones((4, 1)), np.ones(4)))


def test_a_module_merged_outside_of_the_gradient_raises(raises_declared):
    raises_declared(steps.merge_outside_of_the_gradient, jnp.ones((4, 8)))


def test_two_names_for_one_array_cannot_be_donated(raises_declared):
    raises_declared(steps.donate_shared_leaves)
