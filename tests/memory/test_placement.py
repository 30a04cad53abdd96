import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
import torch

from snippets.memory import placement

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


def test_adding_on_one_device():
    total = placement.add_across(SECOND, SECOND)
    assert total.device == SECOND
    np.testing.assert_array_equal(total, np.full(3, 2, np.float32))


def test_adding_across_devices_raises():
    with pytest.raises(ValueError, match="incompatible devices"):
        placement.add_across(SECOND, THIRD)


def test_context_of_the_post_leaves_key_and_product_on_the_first_device():
    assert placement.matrix_in_context(SECOND, 4) == (FIRST, SECOND, FIRST)


def test_committed_key_keeps_everything_on_its_device():
    assert placement.matrix_committed(SECOND, 4) == (SECOND, SECOND, SECOND)


def test_copy_to_the_cpu():
    array = jax.device_put(jnp.arange(3.0), SECOND)
    copy = placement.to_cpu(array)
    assert isinstance(copy, jax.Array) and copy.devices() == {jax.devices("cpu")[0]}
    assert copy.committed
    np.testing.assert_array_equal(copy, [0, 1, 2])


def test_torch_stays_on_the_cpu_by_default():
    cpu, meta = torch.device("cpu"), torch.device("meta")
    assert placement.torch_made_on("cpu") == (cpu, cpu, cpu)
    assert placement.torch_made_on("meta") == (cpu, meta, meta)


def test_torch_refuses_to_mix(raises_declared):
    raises_declared(placement.torch_mix)


def test_tensorflow_names_the_device():
    by_default, by_context = placement.tensorflow_made_on("/CPU:0")
    assert by_default.endswith("/device:CPU:0") and by_context.endswith("/device:CPU:0")


@pytest.mark.skipif(bool(tf.config.list_physical_devices("GPU")), reason="there is a GPU")
def test_tensorflow_silently_falls_back():
    assert placement.tensorflow_made_on("/GPU:0")[1].endswith("/device:CPU:0")
