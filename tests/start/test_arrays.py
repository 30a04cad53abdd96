import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from snippets.start import arrays


def lists(one, *lengths):
    """Draw lists of a few lengths only, because each length is compiled anew."""
    return st.sampled_from(lengths).flatmap(lambda n: st.lists(one, min_size=n, max_size=n))


def test_a_jax_array_refuses_assignment(raises_declared):
    raises_declared(arrays.write_in_place, jnp.arange(4))


def test_assignment_is_refused_while_tracing_too(raises_declared):
    raises_declared(jax.jit(arrays.write_in_place), jnp.arange(4))


def test_a_tensorflow_tensor_refuses_assignment(raises_declared):
    raises_declared(arrays.write_in_place_tensorflow, tf.range(4))


def test_numpy_view_is_read_only_and_a_copy_is_not(raises_declared):
    x = jnp.arange(4)
    raises_declared(arrays.write_into_numpy_view, x)
    copy = np.array(x)
    copy[0] = 9
    assert x[0] == 0


def test_torch_changes_the_tensor_of_the_caller():
    x = torch.arange(4)
    assert arrays.write_in_place_torch(x) is x
    assert x.tolist() == [1, 1, 2, 3]


def test_set_first_leaves_its_argument_alone():
    x = jnp.arange(4)
    assert arrays.set_first(x, 9).tolist() == [9, 1, 2, 3]
    assert x.tolist() == [0, 1, 2, 3]


def test_set_first_tensorflow_leaves_its_argument_alone():
    x = tf.range(4)
    assert arrays.set_first_tensorflow(x, 9).numpy().tolist() == [9, 1, 2, 3]
    assert x.numpy().tolist() == [0, 1, 2, 3]


def test_a_tensorflow_variable_changes_where_it_is():
    variable = tf.Variable(tf.range(4))
    assert arrays.assign_first_tensorflow(variable, 9) is variable
    assert variable.numpy().tolist() == [9, 1, 2, 3]


@pytest.mark.parametrize(
    ("make", "changed"),
    [
        (lambda: np.arange(4.0), True),
        (lambda: torch.arange(4.0), True),
        (lambda: jnp.arange(4.0), False),
    ],
)
def test_augmented_assignment_reaches_the_caller_only_where_arrays_can_change(make, changed):
    x = make()
    centred = arrays.centre(x)
    assert centred.tolist() == [-1.5, -0.5, 0.5, 1.5]
    assert (x.tolist() == [-1.5, -0.5, 0.5, 1.5]) is changed


def test_update_methods_do_what_numpy_does():
    x = np.array([1.0, 4.0, 9.0])
    expected = {
        "set": 10,
        "add": 14,
        "subtract": -6,
        "multiply": 40,
        "divide": 0.4,
        "power": 16,
        "min": 0,
        "max": 10,
        "apply": 2,
    }
    updated = arrays.update_methods(jnp.array(x), 1)
    assert updated.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(updated[name], [1, value, 9], rtol=1e-6, err_msg=name)


@given(lists(st.integers(-9, 9), 1, 3, 8))
@settings(deadline=None)
def test_zero_negatives_equals_numpy(values):
    expected = np.array(values)
    expected[expected < 0] = 0
    x = jnp.array(values)
    assert x.at[x < 0].set(0).tolist() == expected.tolist()
    assert arrays.zero_negatives_where(x).tolist() == expected.tolist()


def test_a_mask_cannot_be_an_index_under_jit(raises_declared):
    raises_declared(arrays.zero_negatives_jitted, jnp.array([-1, 2]))


@given(lists(st.integers(0, 4), 1, 5, 20))
@settings(deadline=None)
def test_every_equal_index_is_added(bins):
    expected = np.bincount(bins, minlength=5)
    assert arrays.count_bins(jnp.array(bins), 5).tolist() == expected.tolist()
    lossy = arrays.count_bins_numpy(np.array(bins), 5)
    assert lossy.tolist() == np.minimum(expected, 1).tolist()


@pytest.mark.parametrize("jit", [False, True])
def test_reads_out_of_bounds(jit):
    read = jax.jit(arrays.read_at) if jit else arrays.read_at
    values = read(jnp.arange(4.0), 10)
    assert values["x[i]"] == 3
    assert values["clip"] == 3
    assert values["fill"] == -1
    assert jnp.isnan(values["jnp.take"])


def test_reads_within_bounds_agree_and_negative_indices_count_from_the_end():
    for i, value in ((2, 2), (-1, 3)):
        assert {float(v) for v in arrays.read_at(jnp.arange(4.0), i).values()} == {value}


def test_writes_out_of_bounds():
    written = arrays.write_at(jnp.arange(4), 10)
    assert written["set"].tolist() == [0, 1, 2, 3]
    assert written["clip"].tolist() == [0, 1, 2, 9]


def test_checked_read(raises_declared):
    assert arrays.read_checked(jnp.arange(4.0), 2) == 2
    raises_declared(arrays.read_checked, jnp.arange(4.0), 10)


def test_torch_and_tensorflow_and_numpy_refuse_reads_out_of_bounds():
    assert arrays.element_or_error(torch.arange(4.0), 10) == "IndexError"
    assert arrays.element_or_error(np.arange(4.0), 10) == "IndexError"
    assert arrays.element_or_error(tf.range(4.0), 10) == "InvalidArgumentError"
    assert arrays.element_or_error(jnp.arange(4.0), 10) == 3
    assert arrays.element_or_error(np.arange(4.0), 2) == 2


def test_write_ten_values_and_one_result_buffer():
    x = jnp.zeros(1000)
    assert arrays.write_ten(x)[:11].tolist() == [*range(10), 0]
    sizes = arrays.buffer_sizes(arrays.write_ten, x)
    assert sizes == {"result": x.nbytes, "temporary": 0, "shared": 0}


def test_donation_shares_the_buffer_and_deletes_the_argument(raises_declared):
    x = jnp.zeros(1000)
    sizes = arrays.buffer_sizes(arrays.write_ten, x, donate_argnums=0)
    assert sizes["shared"] == sizes["result"] == x.nbytes
    raises_declared(arrays.use_after_donation, x)
    assert x.is_deleted()


def test_torch_in_place_change_breaks_its_gradient(raises_declared):
    raises_declared(arrays.overwrite_needed_value_torch, torch.arange(3.0))


@given(lists(st.floats(-3, 3, width=32), 1, 2, 6))
@settings(deadline=None)
def test_gradient_through_an_update(values):
    gradient = jax.grad(arrays.exp_without_first)(jnp.array(values))
    expected = np.exp(np.array(values))
    expected[0] = 0
    np.testing.assert_allclose(gradient, expected, rtol=1e-5)


def test_whole_numbers_stay_in_32_bits_and_the_rest_is_cut_off():
    large = np.array([3_000_000_000, 2**40 + 7])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert jnp.asarray(large).tolist() == [3_000_000_000 - 2**32, 7]
    with jax.enable_x64(True):
        assert jnp.asarray(large).tolist() == large.tolist()


def test_64_bits_stay_once_they_are_there_and_asking_by_name_only_warns():
    with jax.enable_x64(True):
        thirds = jnp.arange(3) / 3
    assert thirds.dtype == jnp.sin(thirds).dtype == np.float64
    with pytest.warns(UserWarning, match="float64"):
        assert jnp.ones(1, jnp.float64).dtype == np.float32


def test_dtypes_of_sums_are_those_of_torch_and_not_those_of_numpy():
    in_jax = arrays.dtypes_of_sums(jnp)
    assert list(in_jax.values()) == ["float32", "float16", "float32", "float32", "float16"]
    in_torch = arrays.dtypes_of_sums(torch)
    assert in_torch == {name: f"torch.{dtype}" for name, dtype in in_jax.items()}
    in_numpy = arrays.dtypes_of_sums(np)
    assert [name for name in in_jax if in_numpy[name] == "float64"] == [
        "int32 + 1.5",
        "int32 + float16",
        "int32 + float32",
    ]


@pytest.mark.parametrize(
    ("root", "dtype"),
    [
        (lambda: 2.0**0.5, jnp.bfloat16),
        (lambda: jnp.sqrt(2.0), jnp.bfloat16),
        (lambda: jnp.array(2.0), jnp.bfloat16),
        (lambda: np.sqrt(2.0), jnp.float32),
        (lambda: jnp.float32(2.0), jnp.float32),
    ],
)
def test_only_what_python_made_is_weak(root, dtype):
    assert (jnp.ones(2, jnp.bfloat16) / root()).dtype == dtype


def test_in_torch_a_number_of_numpy_is_weak():
    halves = torch.ones(2, dtype=torch.bfloat16)
    assert (halves / np.sqrt(2.0)).dtype == torch.bfloat16
    assert (halves * torch.tensor(2.0)).dtype == torch.bfloat16
    assert (halves * torch.tensor([2.0])).dtype == torch.float32
