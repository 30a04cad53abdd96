import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from jax.test_util import check_grads

from snippets.vectorizing import per_example


@pytest.fixture(scope="module")
def batch():
    return per_example.some_params(4, 5), *per_example.some_examples(7, 4)


@pytest.fixture(scope="module")
def each(batch):
    return per_example.gradients(*batch)


def assert_same(tree, other):
    assert tree.keys() == other.keys()
    for name in tree:
        np.testing.assert_allclose(tree[name], other[name], rtol=1e-4, atol=1e-5)


def test_the_network_computes_what_it_says(batch):
    params, xs, ys = batch
    exact = {name: np.asarray(array, np.float64) for name, array in params.items()}
    x = np.asarray(xs[0], np.float64)
    hidden = np.tanh(x @ exact["w1"] + exact["b1"])
    expected = hidden @ exact["w2"] + exact["b2"]
    assert per_example.predict(params, xs[0]) == pytest.approx(expected, rel=1e-4)
    assert per_example.loss(params, xs[0], ys[0]) == pytest.approx(
        (expected - float(ys[0])) ** 2, rel=1e-3
    )


def test_the_data():
    params = per_example.some_params(4, 5)
    assert per_example.shapes(params) == {"w1": (4, 5), "b1": (5,), "w2": (5,), "b2": ()}
    xs, ys = per_example.some_examples(7, 4)
    assert xs.shape == (7, 4)
    np.testing.assert_allclose(ys, np.sin(np.asarray(xs).sum(1)), rtol=1e-4, atol=1e-5)


def test_one_gradient_is_finite_differences_of_the_loss(batch):
    params, xs, ys = batch
    check_grads(
        lambda params: per_example.loss(params, xs[0], ys[0]), (params,), order=1, modes=["rev"]
    )
    assert_same(
        per_example.gradient(params, xs[0], ys[0]),
        jax.jacfwd(per_example.loss)(params, xs[0], ys[0]),
    )


def test_there_is_one_gradient_for_each_example(batch, each):
    params, xs, ys = batch
    assert per_example.shapes(each) == {n: (7, *p.shape) for n, p in params.items()}
    for i in range(7):
        expected = per_example.gradient(params, xs[i], ys[i])
        assert_same({name: array[i] for name, array in each.items()}, expected)


def test_loop_hand_and_torch_agree_with_vmap(batch, each):
    params, xs, ys = batch
    assert_same(per_example.gradients_in_a_loop(*batch), each)
    compiled = jax.jit(per_example.gradient)
    assert_same(per_example.gradients_in_a_loop(*batch, gradient=compiled), each)
    assert_same(per_example.gradients_by_hand(*batch), each)
    x, y = torch.tensor(np.asarray(xs)), torch.tensor(np.asarray(ys))
    assert_same(per_example.gradients_torch(per_example.in_torch(params), x, y), each)


def test_the_loss_in_torch_is_that_in_jax(batch):
    params, xs, ys = batch
    data = per_example.in_torch({"x": xs, "y": ys})
    for i in range(7):
        got = per_example.loss_torch(per_example.in_torch(params), data["x"][i], data["y"][i])
        assert float(got) == pytest.approx(float(per_example.loss(params, xs[i], ys[i])), rel=1e-3)


def test_the_mean_of_the_gradients_is_the_gradient_of_the_mean(batch, each):
    mean = {name: array.mean(0) for name, array in each.items()}
    assert_same(jax.grad(per_example.mean_loss)(*batch), mean)


def test_largest_difference():
    one = {"a": jnp.array([1.0, 2.0]), "b": jnp.array(3.0)}
    other = {"a": np.array([1.0, 2.5]), "b": np.array(2.0)}
    assert per_example.largest_difference(one, other) == 1
    assert per_example.largest_difference(one, one) == 0


def test_norms_are_those_of_all_parameters_together(each):
    flat = np.concatenate([np.asarray(g).reshape(7, -1) for g in each.values()], axis=1)
    np.testing.assert_allclose(per_example.norms(each), np.linalg.norm(flat, axis=1), rtol=1e-5)


def test_a_wrong_label_has_the_largest_gradient_norm():
    params = per_example.some_params(32, 64)
    xs, ys = per_example.some_examples(64, 32)
    lengths = per_example.norms(per_example.gradients(params, xs, ys.at[17].set(30.0)))
    assert lengths.argmax() == 17


@pytest.mark.parametrize("limit", [0.1, 1.0, 100.0])
def test_clipping_limits_each_norm_before_the_mean(each, limit):
    flat = np.concatenate([np.asarray(g).reshape(7, -1) for g in each.values()], axis=1)
    lengths = np.linalg.norm(flat, axis=1, keepdims=True)
    expected = (flat * np.minimum(1, limit / lengths)).mean(0)
    clipped = per_example.clipped_mean(each, limit)
    got = np.concatenate([np.asarray(g).ravel() for g in clipped.values()])
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-6)
    assert np.linalg.norm(got) <= limit * 1.001


def test_without_need_clipping_changes_nothing(each):
    mean = {name: array.mean(0) for name, array in each.items()}
    assert_same(per_example.clipped_mean(each, 1e6), mean)


def test_the_clipped_gradient_in_one_function(batch, each):
    assert_same(per_example.clipped_gradient(*batch), per_example.clipped_mean(each, 1.0))


def test_memory_of_the_result_and_within(batch):
    size = sum(array.nbytes for array in batch[0].values())
    of_each = per_example.memory(per_example.gradients, *batch)
    of_the_mean = per_example.memory(jax.grad(per_example.mean_loss), *batch)
    clipped = per_example.memory(per_example.clipped_gradient, *batch)
    assert of_each["result"] >= 7 * size
    assert size <= of_the_mean["result"] < 2 * size
    assert size <= clipped["result"] < 2 * size
    assert of_the_mean["within"] < 7 * size <= clipped["within"] + clipped["result"]


def test_the_program_of_vmap_copies_its_largest_array_and_that_by_hand_does_not():
    batch = per_example.some_params(32, 64), *per_example.some_examples(64, 32)
    assert per_example.compiled_copies(per_example.gradients, *batch) == ["[64,32,64]"]
    assert per_example.compiled_copies(per_example.gradients_by_hand, *batch) == []
