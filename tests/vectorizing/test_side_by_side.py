import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from snippets.vectorizing import side_by_side
from snippets.vectorizing.vmap import convolve

NUMBERS = np.array([1, 2, 3], np.float32)


def correlate_rows(xs, ws):
    return np.stack([np.correlate(x, w, "valid") for x, w in zip(xs, ws, strict=True)])


def in_each(xs, ws):
    """Map the three functions over the same two arrays."""
    mapped = side_by_side.map_tensorflow(side_by_side.convolve_tensorflow)
    return (
        jax.vmap(convolve)(jnp.array(xs), jnp.array(ws)),
        torch.func.vmap(side_by_side.convolve_torch)(torch.tensor(xs), torch.tensor(ws)),
        mapped((tf.constant(xs), tf.constant(ws))),
    )


def test_the_values_of_the_example_in_each_framework():
    for result in in_each(side_by_side.XS, side_by_side.WS):
        assert np.asarray(result).tolist() == [[11, 20, 29], [140, 260, 380]]


@given(st.sampled_from([(1, 1, 1), (1, 5, 2), (3, 1, 4), (4, 6, 6)]), st.integers(0, 99))
@settings(deadline=None, max_examples=10)
def test_the_three_agree_with_numpy(sizes, seed):
    count, size, width = sizes
    numbers = np.random.default_rng(seed)
    xs = numbers.integers(-9, 9, (count, size + width)).astype(np.float32)
    ws = numbers.integers(-9, 9, (count, width)).astype(np.float32)
    results = in_each(xs, ws)
    assert side_by_side.all_equal(correlate_rows(xs, ws), *results)


def test_all_equal():
    assert side_by_side.all_equal(NUMBERS, jnp.array(NUMBERS), torch.tensor(NUMBERS))
    assert not side_by_side.all_equal(NUMBERS, NUMBERS, NUMBERS + 1)
    assert not side_by_side.all_equal(NUMBERS, NUMBERS[:2])


def test_one_vector_and_two_weights():
    x, ws = side_by_side.XS[1], side_by_side.WS
    tensor = tf.constant(x)
    shared = side_by_side.map_tensorflow(lambda w: side_by_side.convolve_tensorflow((tensor, w)))
    assert side_by_side.all_equal(
        correlate_rows([x, x], ws),
        jax.vmap(convolve, in_axes=(None, 0))(x, ws),
        torch.func.vmap(side_by_side.convolve_torch, in_dims=(None, 0))(
            torch.tensor(x), torch.tensor(ws)
        ),
        shared(tf.constant(ws)),
    )


def test_the_batch_on_another_axis_and_in_portions():
    xs, ws = side_by_side.XS, side_by_side.WS
    expected, tensors = correlate_rows(xs, ws), (torch.tensor(xs), torch.tensor(ws))
    in_torch = side_by_side.convolve_torch
    assert side_by_side.all_equal(
        expected.T,
        jax.vmap(convolve, out_axes=1)(xs, ws),
        torch.func.vmap(in_torch, out_dims=1)(*tensors),
    )
    assert side_by_side.all_equal(
        expected,
        jax.lax.map(lambda pair: convolve(*pair), (xs, ws), batch_size=1),
        torch.func.vmap(in_torch, chunk_size=1)(*tensors),
    )


def test_outcome_is_the_numbers_or_the_name_of_the_error():
    assert side_by_side.outcome(lambda x: x + 1, jnp.array([1, 2])) == [2, 3]
    assert side_by_side.outcome(lambda: 1 / 0) == "ZeroDivisionError"


def adding(a, b):
    """Return what the addition of each framework makes of two NumPy arrays."""
    adders = {
        "JAX": side_by_side.add_jax,
        "PyTorch": side_by_side.add_torch,
        "TensorFlow": side_by_side.add_tensorflow,
    }
    return {name: side_by_side.outcome(add, a, b) for name, add in adders.items()}


def test_what_each_does_with_sizes():
    equal = [11.0, 22.0, 33.0]
    assert adding(NUMBERS, 10 * NUMBERS) == {
        "JAX": equal,
        "PyTorch": equal,
        "TensorFlow": equal,
    }
    assert adding(NUMBERS, NUMBERS[:2]) == {
        "JAX": "ValueError",
        "PyTorch": "ValueError",
        "TensorFlow": "InvalidArgumentError",
    }
    assert adding(NUMBERS, 10 * NUMBERS[:1]) == {
        "JAX": "ValueError",
        "PyTorch": "ValueError",
        "TensorFlow": [11.0, 12.0, 13.0],
    }


def test_a_branch_fails_in_each_and_a_selection_works():
    negate = side_by_side.negate_small
    mapped = {
        "JAX": (jax.vmap(negate), jnp.array(NUMBERS)),
        "PyTorch": (torch.func.vmap(negate), torch.tensor(NUMBERS)),
        "TensorFlow": (side_by_side.map_tensorflow(negate), tf.constant(NUMBERS)),
    }
    assert {name: side_by_side.outcome(*call) for name, call in mapped.items()} == {
        "JAX": "TracerBoolConversionError",
        "PyTorch": "RuntimeError",
        "TensorFlow": "OperatorNotAllowedInGraphError",
    }
    assert [side_by_side.negate_small(x) for x in (1, 2, 3)] == [-1, 2, 3]
    in_tensorflow = side_by_side.map_tensorflow(side_by_side.negate_small_tensorflow)
    assert side_by_side.all_equal(
        np.array([-1, 2, 3]),
        jax.vmap(side_by_side.negate_small_jax)(NUMBERS),
        torch.func.vmap(side_by_side.negate_small_torch)(torch.tensor(NUMBERS)),
        in_tensorflow(tf.constant(NUMBERS)),
    )


def test_random_numbers_in_each():
    distinct = side_by_side.distinct
    assert distinct(np.array([1, 2, 1])) == 2
    key = jax.random.key(0)
    assert distinct(jax.vmap(lambda x: x + jax.random.normal(key))(jnp.zeros(4))) == 1
    assert distinct(jax.vmap(jax.random.normal)(jax.random.split(key, 4))) == 4
    draw = side_by_side.draw_torch
    with pytest.raises(RuntimeError, match="randomness"):
        torch.func.vmap(draw)(torch.zeros(4))
    assert distinct(torch.func.vmap(draw, randomness="same")(torch.zeros(4))) == 1
    assert distinct(torch.func.vmap(draw, randomness="different")(torch.zeros(4))) == 4
    in_tensorflow = side_by_side.map_tensorflow(side_by_side.draw_tensorflow)
    assert distinct(in_tensorflow(tf.zeros(4))) == 4


def test_torch_changes_the_tensor_of_the_caller():
    given_tensor = torch.zeros(3)
    result = torch.func.vmap(side_by_side.add_one_in_place)(given_tensor)
    assert result.tolist() == given_tensor.tolist() == [1, 1, 1]


def test_how_often_the_body_runs():
    transforms = {
        "jax.vmap": (jax.vmap, jnp.ones(2)),
        "jax.jit of jax.vmap": (lambda f: jax.jit(jax.vmap(f)), jnp.ones(2)),
        "torch.func.vmap": (torch.func.vmap, torch.ones(2)),
        "tf.vectorized_map": (side_by_side.map_anew, tf.ones(2)),
        "tf.function of it": (side_by_side.map_tensorflow, tf.ones(2)),
    }
    count = side_by_side.count_body_runs
    assert {name: count(*each) for name, each in transforms.items()} == {
        "jax.vmap": 3,
        "jax.jit of jax.vmap": 1,
        "torch.func.vmap": 3,
        "tf.vectorized_map": 3,
        "tf.function of it": 1,
    }
    assert count(jax.vmap, jnp.ones(2), calls=1) == 1


def test_models_that_are_mapped_give_what_each_gives_alone():
    keys, x = jax.random.split(jax.random.key(1), 3), jnp.arange(5.0)
    weights = jax.vmap(side_by_side.init)(keys)
    together = jax.vmap(side_by_side.predict, in_axes=(0, None))(weights, x)
    alone = [side_by_side.predict(side_by_side.init(key), x) for key in keys]
    np.testing.assert_allclose(together, np.stack(alone), rtol=1e-5)
    assert len(np.unique(together)) == 6


def test_modules_that_are_stacked_give_what_each_gives_alone():
    torch.manual_seed(4)
    modules, x = [torch.nn.Linear(5, 2) for _ in range(3)], torch.arange(5.0)
    stacked = torch.func.stack_module_state(modules)
    together = side_by_side.predict_torch(modules[0], *stacked, x).detach()
    alone = torch.stack([module(x) for module in modules]).detach()
    np.testing.assert_allclose(together, alone, rtol=1e-5)
    # JAX's function computes the same with their weights, of which no bias is 0.
    weights = {name: jnp.array(value.detach().numpy()) for name, value in stacked[0].items()}
    weights["weight"] = weights["weight"].swapaxes(1, 2)
    found = jax.vmap(side_by_side.predict, in_axes=(0, None))(weights, jnp.arange(5.0))
    np.testing.assert_allclose(found, together, rtol=1e-5, atol=1e-6)
