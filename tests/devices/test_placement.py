import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from snippets.devices import placement

FIRST, SECOND, THIRD = jax.devices()[:3]


@pytest.mark.parametrize("device", [FIRST, THIRD])
def test_three_ways_give_the_same_array_there(device):
    arrays = placement.made_on(device)
    for array in arrays:
        assert array.devices() == {device}
        np.testing.assert_array_equal(array, np.ones(3, np.float32))
        assert array.dtype == jnp.float32
    assert [array.committed for array in arrays] == [False, True, True]


def test_three_questions_name_the_device():
    array = jax.device_put(jnp.ones(3), SECOND)
    device, devices, sharding = placement.where_is(array)
    assert device == SECOND and devices == {SECOND} and sharding.device_set == {SECOND}


def test_plain_array_is_on_the_first_device_and_not_committed():
    array = jnp.ones(3)
    assert array.device == FIRST and not array.committed


def test_committed_results_stay_and_others_do_not():
    by_context, by_argument, by_put = placement.made_on(SECOND)
    assert placement.result_of(by_argument) == (SECOND, True)
    assert placement.result_of(by_put) == (SECOND, True)
    assert placement.result_of(by_context) == (FIRST, False)


def test_context_does_not_move_a_committed_array():
    array = jax.device_put(jnp.ones(3), SECOND)
    with jax.default_device(THIRD):
        assert placement.result_of(array) == (SECOND, True)


def test_uncommitted_array_follows_a_committed_one():
    assert (jnp.ones(3) + jax.device_put(jnp.ones(3), SECOND)).device == SECOND


def test_a_context_leaves_key_and_matmul_on_the_first_device():
    assert placement.matrix_in_context(SECOND, 4) == (FIRST, SECOND, FIRST)


def test_committed_key_keeps_everything_on_its_device():
    assert placement.matrix_committed(SECOND, 4) == (SECOND, SECOND, SECOND)


def test_copy_to_the_cpu():
    array = jax.device_put(jnp.arange(3.0), SECOND)
    copy = placement.to_cpu(array)
    assert isinstance(copy, jax.Array) and copy.devices() == {jax.devices("cpu")[0]}
    assert copy.committed
    np.testing.assert_array_equal(copy, [0, 1, 2])


def test_addresses_are_those_of_the_first_number():
    host = np.arange(4, dtype=np.float32)
    assert placement.address(host) == host.__array_interface__["data"][0]
    tensor = torch.from_numpy(host)
    assert placement.address(tensor) == placement.address(host)
    assert placement.address(tensor[1:]) == placement.address(host) + 4


def test_asarray_looks_into_a_cpu_array_and_array_copies():
    assert placement.on_host(jnp.ones(3)) == {
        "np.asarray": {"same memory": True, "writeable": False},
        "np.array": {"same memory": False, "writeable": True},
    }


@pytest.mark.parametrize(
    ("cuda", "backend", "asked"),
    [
        (True, "gpu", "gpu"),
        (False, "gpu", "cpu"),
        (True, "cpu", "cpu"),
        (False, "cpu", "cpu"),
        (False, "tpu", "cpu"),
    ],
)
def test_the_shared_device_is_one_that_both_can_use(monkeypatch, cuda, backend, asked):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(placement.jax, "default_backend", lambda: backend)
    monkeypatch.setattr(placement.jax, "devices", lambda platform: [platform])
    assert placement.shared_device() == asked


SHAPES = st.lists(st.integers(1, 8), max_size=3)


@settings(deadline=None)
@given(SHAPES, st.sampled_from([jnp.float32, jnp.bfloat16, jnp.int32, jnp.bool_]))
def test_an_array_keeps_address_and_values_on_its_way_to_torch(shape, dtype):
    values = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    array = jnp.array(values)
    tensor = placement.to_torch(array)
    assert tensor.data_ptr() == array.unsafe_buffer_pointer()
    np.testing.assert_array_equal(tensor.float().numpy(), values.astype(np.float32))


@settings(deadline=None)
@given(SHAPES)
def test_a_tensor_keeps_address_and_values_on_its_way_to_jax(shape):
    tensor = torch.rand(shape)
    array = placement.to_jax(tensor)
    assert tensor.data_ptr() == array.unsafe_buffer_pointer()
    np.testing.assert_array_equal(tensor.numpy(), array)


def test_a_copy_on_the_way_is_noticed(monkeypatch):
    monkeypatch.setattr(torch, "from_dlpack", lambda array: torch.zeros(3))
    with pytest.raises(AssertionError):
        placement.to_torch(jnp.zeros(3))


def test_writing_to_the_tensor_changes_the_array_and_to_a_clone_does_not():
    np.testing.assert_array_equal(placement.write_through(FIRST), [7, 0, 0])
    array = jnp.zeros(3)
    torch.from_dlpack(array).clone()[0] = 7
    np.testing.assert_array_equal(array, [0, 0, 0])


TENSOR = torch.arange(24.0).reshape(4, 6)


@pytest.mark.parametrize(
    ("tensor", "dtype", "same"),
    [
        (TENSOR, "float32", True),
        (TENSOR.bfloat16(), "bfloat16", True),
        (TENSOR.double(), "float32", False),
        (TENSOR.T, "float32", True),
        (TENSOR.flatten()[1:], "float32", False),
        (TENSOR.flatten()[16:], "float32", True),
        (TENSOR[:, ::2].contiguous(), "float32", True),
        (TENSOR.clone().requires_grad_().detach(), "float32", True),
    ],
)
def test_what_is_shared_and_what_is_copied(tensor, dtype, same):
    assert placement.shares(tensor) == (dtype, same)
    np.testing.assert_array_equal(jnp.from_dlpack(tensor).astype(float), tensor.float().numpy())


def test_what_would_be_copied_is_refused_where_copies_are():
    with pytest.raises(ValueError, match="aligned"):
        placement.to_jax(TENSOR.flatten()[1:])


def test_gaps_and_gradients_are_refused(raises_declared):
    raises_declared(placement.every_second_column, TENSOR)
    raises_declared(placement.with_gradient, TENSOR)


def test_torch_stays_on_the_cpu_by_default():
    cpu, meta = torch.device("cpu"), torch.device("meta")
    assert placement.torch_made_on("cpu") == (cpu, cpu, cpu)
    assert placement.torch_made_on("meta") == (cpu, meta, meta)


def test_torch_refuses_to_mix(raises_declared):
    raises_declared(placement.torch_mix)


def test_torch_mixes_only_what_has_no_axes():
    assert placement.torch_mix_with_number() == torch.device("meta")


def test_tensorflow_names_the_device():
    by_default, by_context = placement.tensorflow_made_on("/CPU:0")
    assert by_default.endswith("/device:CPU:0") and by_context.endswith("/device:CPU:0")


@pytest.mark.skipif(bool(tf.config.list_physical_devices("GPU")), reason="there is a GPU")
def test_tensorflow_silently_falls_back():
    assert placement.tensorflow_made_on("/GPU:0")[1].endswith("/device:CPU:0")
