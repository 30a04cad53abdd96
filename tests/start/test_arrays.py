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


def test_write_ten_values_and_one_result_buffer():
    x = jnp.zeros(1000)
    assert arrays.write_ten(x)[:11].tolist() == [*range(10), 0]
    sizes = arrays.buffer_sizes(arrays.write_ten, x)
    assert sizes == {"result": x.nbytes, "temporary": 0, "shared": 0}


def test_donation_shares_the_buffer():
    x = jnp.zeros(1000)
    sizes = arrays.buffer_sizes(arrays.write_ten, x, donate_argnums=0)
    assert sizes["shared"] == sizes["result"] == x.nbytes


def test_torch_in_place_change_breaks_its_gradient(raises_declared):
    raises_declared(arrays.overwrite_needed_value_torch, torch.arange(3.0))


@given(lists(st.floats(-3, 3, width=32), 1, 2, 6))
@settings(deadline=None)
def test_gradient_through_an_update(values):
    gradient = jax.grad(arrays.exp_without_first)(jnp.array(values))
    expected = np.exp(np.array(values))
    expected[0] = 0
    np.testing.assert_allclose(gradient, expected, rtol=1e-5)


def test_integers_keep_their_low_32_bits():
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


def test_an_update_that_nobody_keeps_does_nothing():
    x = jnp.array([3, 1, 2])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x.at[0].set(9)
        x.sort()
    assert x.tolist() == [3, 1, 2]
    assert x.at[0].set(9).tolist() == [9, 1, 2]
    assert x.sort().tolist() == [1, 2, 3]
    in_numpy = np.array([3, 1, 2])
    in_numpy.sort()
    assert in_numpy.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("zeros", "after"), [(np.zeros, [-1, -1]), (torch.zeros, [-1, -1]), (jnp.zeros, [0, 0])]
)
def test_a_loop_with_minus_changes_arrays_of_numpy_and_torch(zeros, after):
    params = [zeros(2)]
    for param, grad in zip(params, [zeros(2) + 1], strict=True):
        param -= grad
    assert params[0].tolist() == after


def test_a_dict_is_changed_for_the_caller_only_without_jit():
    params, grads = {"w": jnp.zeros(2)}, {"w": jnp.ones(2)}
    jax.jit(arrays.descend_in_dict)(params, grads)
    assert params["w"].tolist() == [0, 0]
    arrays.descend_in_dict(params, grads)
    assert params["w"].tolist() == [-1, -1]


def test_setting_counts_repeated_indices_once():
    bins, counts = np.array([0, 2, 2, 2]), jnp.zeros(3, jnp.int32)
    assert counts.at[bins].set(counts[bins] + 1).tolist() == [1, 0, 1]


def test_a_jitted_function_reads_an_aligned_buffer_until_its_result_is_ready():
    aligned, elsewhere = arrays.aligned_zeros(1000), arrays.aligned_zeros(1001)[1:]
    assert aligned.ctypes.data % 64 == 0 != elsewhere.ctypes.data % 64
    assert arrays.sum_and_refill(aligned, aligned) == 1000
    assert arrays.sum_and_refill(elsewhere, elsewhere) == 0
    buffer = arrays.aligned_zeros(1000)
    assert arrays.sum_and_refill(buffer, buffer.copy()) == 0
    assert buffer.sum() == 1000


def test_waiting_for_the_result_makes_a_buffer_free():
    buffer = arrays.aligned_zeros(1000)
    total = jax.block_until_ready(arrays.late_sum(buffer, jnp.zeros((700, 700))))
    buffer[:] = 1
    assert total == 0


def test_waiting_for_a_copy_makes_a_large_buffer_free():
    for put in (jnp.array, jax.device_put):
        buffer = arrays.aligned_zeros(2**22 + 1)[1:]
        array = put(buffer).block_until_ready()
        buffer[:] = 1
        assert not array.any(), put


def test_device_put_shares_the_memory_of_numpy():
    buffer = arrays.aligned_zeros(1000)
    assert (buffer.ctypes.data % 64, buffer.shape) == (0, (1000,))
    put = jax.device_put(buffer).block_until_ready()
    told = jax.device_put(buffer, may_alias=False).block_until_ready()
    copied = jnp.array(buffer).block_until_ready()
    own = jax.device_put(buffer.copy()).block_until_ready()
    buffer[0] = 5
    assert [float(array[0]) for array in (put, told, copied, own)] == [5, 5, 0, 0]


def test_a_donated_array_is_gone_under_all_its_names():
    weights = jnp.zeros(1000)
    best, kept = weights, weights.copy()
    jax.jit(lambda w: w + 1, donate_argnums=0)(weights)
    with pytest.raises(RuntimeError, match="Array has been deleted"):
        best[0]
    assert kept[0] == 0


def test_one_array_cannot_be_donated_twice(raises_declared):
    raises_declared(arrays.donate_twice, jnp.ones(3))
    state = arrays.first_moments(jnp.ones(3))
    assert state["mean"] is state["square"]


def test_a_donated_array_cannot_be_another_argument():
    x = jnp.ones(1000)
    with pytest.raises(jax.errors.JaxRuntimeError, match="previously donated in the same call"):
        jax.jit(lambda a, b: (a + 1) * b, donate_argnums=0)(x, x)


def test_separate_arrays_are_donated():
    state = {name: jnp.zeros(3) for name in ("mean", "square")}
    new = arrays.update_moments(state, jnp.full(3, 2.0))
    np.testing.assert_allclose(new["mean"], 0.2 * np.ones(3), rtol=1e-6)
    np.testing.assert_allclose(new["square"], 0.4 * np.ones(3), rtol=1e-6)
    assert all(array.is_deleted() for array in state.values())


def test_a_donation_without_use_warns_and_leaves_the_array():
    total, deleted, warning = arrays.sum_donated(jnp.ones(1000))
    assert total == 1000
    assert not deleted
    assert warning.startswith("Some donated buffers were not usable: float32[1000]")


def test_a_view_of_numpy_keeps_a_donated_array():
    x = jnp.ones(1000)
    view = np.asarray(x)
    result = jax.jit(lambda x: x + 1, donate_argnums=0)(x)
    assert not x.is_deleted()
    assert (view[0], result[0]) == (1, 2)


def test_a_list_of_the_function_itself_is_harmless():
    @jax.jit
    def powers(x):
        rows = []
        for exponent in range(4):
            rows.append(x**exponent)
        return jnp.stack(rows)

    for x in (2, 3):
        assert powers(x).tolist() == [1, x, x**2, x**3]


def test_a_ref_from_outside_changes():
    total = jax.new_ref(jnp.zeros(2))

    @jax.jit
    def add(row):
        total[...] += row

    def add_in_scan(_, row):
        total[...] += row
        return None, None

    for row in jnp.ones((2, 2)):
        add(row)
    jax.lax.scan(add_in_scan, None, jnp.ones((3, 2)))
    assert total[...].tolist() == [5, 5]


def test_a_ref_inside_of_a_function():
    x = jnp.zeros(3)
    assert arrays.filled(x).tolist() == [1, 1, 0]
    assert x.tolist() == [0, 0, 0]
    assert jax.vmap(arrays.filled)(jnp.zeros((2, 3))).tolist() == [[1, 1, 0]] * 2


def test_mistakes_with_refs(raises_declared):
    raises_declared(arrays.write_integer, jnp.zeros(3))
    raises_declared(arrays.call_with_ref_twice, jnp.ones(3))
    raises_declared(arrays.add_rows_to_ref, jnp.ones((3, 2)))


def test_two_refs_may_be_passed():
    source, target = jax.new_ref(jnp.ones(3)), jax.new_ref(jnp.ones(3))
    arrays.move(source, target)
    assert source[...].tolist() == [0, 0, 0]
    assert target[...].tolist() == [2, 2, 2]


def test_a_ref_can_be_written_after_it_was_frozen_outside_of_jit():
    ref = jax.new_ref(jnp.zeros(2))
    frozen = jax.freeze(ref)
    assert frozen.tolist() == [0, 0]
    ref[0] = 1.0
    # In JAX 0.12 the frozen array follows.
    assert ref[...].tolist() == [1, 0]


def test_a_frozen_ref_cannot_be_read_while_tracing():
    @jax.jit
    def read_on(x):
        ref = jax.new_ref(x)
        return jax.freeze(ref) + ref[...]

    with pytest.raises(ValueError, match="must be called on `Ref` types"):
        read_on(jnp.zeros(3))


def test_refs_count_like_numpy_unless_told_otherwise():
    bins = np.array([0, 2, 2, 2])
    once, every = (jax.new_ref(jnp.zeros(3, jnp.int32)) for _ in range(2))
    once[bins] += 1
    jax.ref.addupdate(every, bins, jnp.ones(4, jnp.int32))
    assert once[...].tolist() == [1, 0, 1]
    assert every[...].tolist() == [1, 0, 3]


def test_a_ref_changes_where_it_is_also_from_several_functions():
    ref = jax.new_ref(jnp.zeros((), jnp.int32))
    assert [int(arrays.add_to_ref(ref, n)) for n in (1, 2, 3)] == [1, 3, 6]
    jax.jit(lambda: arrays.add_to_ref(ref, 1))()
    assert ref[...] == 7


def test_the_limits_of_a_ref():
    ref = jax.new_ref(jnp.zeros((), jnp.int32))
    with pytest.raises(ValueError, match="cannot be returned"):
        jax.jit(lambda n: jax.new_ref(n))(1)
    with pytest.raises(ValueError, match="only one reference"):
        jax.jit(lambda a, b: a[...] + b[...])(ref, ref)
    with pytest.raises(Exception, match="unbatched array reference"):
        jax.vmap(arrays.add_to_ref, in_axes=(None, 0))(ref, jnp.arange(3))
    # Of JAX 0.10, and of 0.12.
    with pytest.raises((ValueError, TypeError), match=r"cotangent type|Ref-typed argument"):
        jax.grad(lambda r: r[...] ** 2)(jax.new_ref(3.0))
