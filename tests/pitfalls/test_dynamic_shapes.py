import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from snippets.pitfalls import dynamic_shapes

# Each size is compiled anew.
vectors = arrays(np.float32, st.sampled_from([1, 2, 5]), elements=st.integers(-9, 9))
sizes = st.sampled_from([0, 1, 3, 8])


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    monkeypatch.setattr(dynamic_shapes, "TRACED_LENGTHS", [])


def test_boolean_index_raises_under_jit(raises_declared):
    x = jnp.array([-1.0, 2, -3])
    assert dynamic_shapes.negatives(x).tolist() == [-1, -3]
    raises_declared(dynamic_shapes.negatives_jitted, x)


def test_similar_functions_raise_under_jit(raises_declared):
    x = jnp.array([-1.0, 2, -3])
    raises_declared(dynamic_shapes.positions_jitted, x)
    raises_declared(dynamic_shapes.distinct_jitted, x)
    raises_declared(dynamic_shapes.first_jitted, x, 2)
    raises_declared(dynamic_shapes.count_up_jitted, 3)


@pytest.mark.parametrize("size", range(1, 6))
def test_different_elements_in_a_fixed_number_are_the_least_padded(size):
    x = np.array([3.0, 1.0, 3.0, 2.0], np.float32)
    expected = [*np.unique(x), *[np.nan] * 5][:size]
    found = jnp.unique(jnp.asarray(x), size=size, fill_value=np.nan)
    np.testing.assert_array_equal(found, np.array(expected, np.float32))


def test_jit_sees_only_the_shape_and_type_of_the_mask(raises_declared):
    error = raises_declared(dynamic_shapes.negatives_jitted, jnp.arange(10.0))
    assert "bool[10]" in str(error)
    assert isinstance(error, IndexError)


def test_tensorflow_leaves_the_length_open():
    concrete = dynamic_shapes.negatives_tensorflow.get_concrete_function(tf.TensorSpec([3]))
    assert concrete.output_shapes == tf.TensorShape([None])
    assert dynamic_shapes.negatives_tensorflow(tf.constant([-1.0, 2, -3])).numpy().tolist() == [
        -1,
        -3,
    ]


def test_torch_compile_leaves_the_choice_to_python():
    values = dynamic_shapes.negatives_torch(torch.tensor([-1.0, 2, -3]))
    assert values.tolist() == [-1, -3]


def test_a_name_after_as_catches_everything():
    x = jnp.array([-1.0, 2])
    caught = dynamic_shapes.name_of_caught
    assert caught(dynamic_shapes.negatives_jitted, x) == "NonConcreteBooleanIndexError"
    assert caught(int, "seven") == "ValueError"
    assert caught(len, "seven") == 5


@given(vectors)
@settings(deadline=None, max_examples=50)
def test_masked_fixes_equal_numpy(x):
    negative = x[x < 0]
    assert dynamic_shapes.keep_negatives(x).tolist() == np.where(x < 0, x, 0).tolist()
    assert dynamic_shapes.sum_negatives(x) == negative.sum()
    largest = dynamic_shapes.largest_negative(x)
    assert largest == (negative.max() if len(negative) else -np.inf)
    mean = dynamic_shapes.mean_negatives(x)
    if len(negative):
        assert mean == pytest.approx(negative.mean(), rel=1e-5)
    else:
        assert jnp.isnan(mean)


@given(vectors, sizes)
@settings(deadline=None, max_examples=50)
def test_padded_fix_equals_numpy(x, size):
    negative = x[x < 0]
    values, count = dynamic_shapes.negatives_padded(x, size=size)
    assert values.shape == (size,)
    assert count == len(negative)
    assert values[: len(negative)].tolist() == negative[:size].tolist()
    assert np.isnan(values[len(negative) :]).all()


@given(vectors, sizes)
@settings(deadline=None, max_examples=50)
def test_default_fill_is_position_zero(x, size):
    expected = [*np.flatnonzero(x < 0), *[0] * 8][:size]
    assert jnp.nonzero(x < 0, size=size)[0].tolist() == expected


@given(st.integers(0, 12))
@settings(deadline=None)
def test_window_is_moved_to_stay_inside(start):
    expected = min(start, 7)
    values = dynamic_shapes.window(jnp.arange(10), start, length=3)
    assert values.tolist() == [expected, expected + 1, expected + 2]


@given(st.integers(0, 10))
@settings(deadline=None)
def test_first_with_a_static_length(n):
    assert dynamic_shapes.first(jnp.arange(8), n).tolist() == list(range(8))[:n]


@given(vectors)
@settings(deadline=None, max_examples=50)
def test_fixes_outside_of_jit_equal_numpy(x):
    negative = x[x < 0]
    result = dynamic_shapes.rms_of_negatives_in_buckets(jnp.array(x))
    if len(negative):
        assert result == pytest.approx(np.sqrt(np.mean(negative**2)), rel=1e-5)
    else:
        assert jnp.isnan(result)


def test_buckets_make_fewer_traces_than_lengths():
    dynamic_shapes.padded_root_mean_square.clear_cache()
    for n in range(1, 9):
        dynamic_shapes.rms_of_negatives_in_buckets(-jnp.ones(n))
    assert dynamic_shapes.TRACED_LENGTHS == [1, 2, 4, 8]


def test_a_length_met_before_is_not_traced_again():
    dynamic_shapes.padded_root_mean_square.clear_cache()
    for n in (3, 3, 2):
        dynamic_shapes.padded_root_mean_square(*dynamic_shapes.padded(np.ones(n), 4))
    assert dynamic_shapes.TRACED_LENGTHS == [4]


@given(st.integers(0, 10_000))
def test_a_bucket_is_the_next_power_of_two(n):
    length = dynamic_shapes.bucket(n)
    assert length.bit_count() == 1
    assert n <= length < max(2 * n, 2)


@given(st.integers(0, 4), st.integers(0, 3))
def test_padding_adds_zeros_and_marks_what_is_real(n, missing):
    for x in (np.ones(n), np.ones((n, 2))):
        rows, real = dynamic_shapes.padded(x, n + missing)
        assert rows.shape == (n + missing, *x.shape[1:])
        np.testing.assert_array_equal(rows[real], x)
        assert not rows[~real].any() and (~real).sum() == missing


def test_the_mean_of_a_padded_batch_is_that_of_its_rows():
    dynamic_shapes.mean_of_rows.clear_cache()
    x = np.arange(20.0).reshape(10, 2)
    for start in range(0, 10, 4):
        batch = x[start : start + 4]
        mean = dynamic_shapes.mean_of_rows(*dynamic_shapes.padded(batch, 4))
        np.testing.assert_allclose(mean, batch.mean(axis=0))
    assert dynamic_shapes.TRACED_LENGTHS == [4]


def test_the_mean_does_not_look_at_the_padding():
    rows = np.array([[1.0], [3.0], [np.nan], [np.inf]])
    assert dynamic_shapes.mean_of_rows(rows, np.arange(4) < 2) == 2
