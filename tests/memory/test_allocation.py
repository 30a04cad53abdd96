import gc
import math
import os
from unittest import mock

import jax
import jax.numpy as jnp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snippets.memory import allocation

shapes = st.lists(st.integers(1, 20), min_size=1, max_size=3).map(tuple)
NAMES = (
    "XLA_CLIENT_MEM_FRACTION",
    "XLA_PYTHON_CLIENT_MEM_FRACTION",
    "XLA_PYTHON_CLIENT_PREALLOCATE",
    "XLA_PYTHON_CLIENT_ALLOCATOR",
)


@pytest.fixture(autouse=True)
def no_variables(monkeypatch):
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)


class FakeGpu:
    """Stands in for `torch.cuda`: one GPU of 100 bytes."""

    def __init__(self):
        self.free, self.allocated, self.reserved = 100, 0, 0

    def is_available(self):
        return True

    def mem_get_info(self):
        return self.free, 100

    def memory_allocated(self):
        return self.allocated

    def memory_reserved(self):
        return self.reserved

    def empty_cache(self):
        self.reserved = self.allocated


def test_share_without_a_gpu_is_none():
    with mock.patch("torch.cuda.is_available", return_value=False):
        assert allocation.gpu_share() is None
        assert allocation.torch_memory() is None
        assert allocation.share_around(allocation.first_jax_operation) == (None, None)
        assert allocation.torch_hold_and_drop((2, 3)) == (None, None, None)


def test_share_with_a_gpu():
    gpu = FakeGpu()

    def take():
        gpu.free = 25

    with mock.patch("torch.cuda", gpu):
        assert allocation.share_around(take) == (0.0, 0.75)


def test_torch_keeps_what_a_tensor_leaves():
    gpu = FakeGpu()

    class Tensor:
        def __del__(self):
            gpu.allocated = 0

    def ones(shape, device):
        assert device == "cuda"
        gpu.allocated, gpu.reserved = 24, 40
        return Tensor()

    with mock.patch("torch.cuda", gpu), mock.patch("torch.ones", ones):
        assert allocation.torch_hold_and_drop((2, 3)) == ((24, 40), (0, 40), (0, 0))


def test_first_operation_gives_an_array():
    assert allocation.first_jax_operation().tolist() == [1.0]


def test_jax_memory_on_a_cpu_is_none():
    assert jax.devices()[0].platform == "cpu"
    assert allocation.jax_memory() is None


def test_jax_memory_on_a_device_that_reports():
    stats = {"bytes_in_use": 256, "bytes_limit": 1024, "num_allocs": 3}
    device = mock.Mock()
    device.memory_stats.return_value = stats
    with mock.patch("jax.devices", return_value=[device]):
        assert allocation.jax_memory() == {"bytes_in_use": 256, "bytes_limit": 1024}


def test_default_leaves_preallocation_and_fraction_to_xla():
    assert allocation.gpu_options() == {"allocator": "default"}


@pytest.mark.parametrize(
    ("variables", "option", "value"),
    [
        ({"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}, "preallocate", False),
        ({"XLA_PYTHON_CLIENT_PREALLOCATE": "true"}, "preallocate", True),
        ({"XLA_CLIENT_MEM_FRACTION": ".5"}, "memory_fraction", 0.5),
        ({"XLA_PYTHON_CLIENT_MEM_FRACTION": ".5"}, "memory_fraction", 0.5),
        ({"XLA_PYTHON_CLIENT_ALLOCATOR": "platform"}, "allocator", "platform"),
    ],
)
def test_each_variable_is_read(variables, option, value):
    assert allocation.gpu_options(**variables)[option] == value


def test_a_wrong_allocator_is_an_error():
    with pytest.raises(ValueError, match="XLA_PYTHON_CLIENT_ALLOCATOR"):
        allocation.gpu_options(XLA_PYTHON_CLIENT_ALLOCATOR="arena")


def test_a_misspelled_name_is_no_error():
    assert allocation.gpu_options(XLA_CLIENT_PREALLOCATE="false") == allocation.gpu_options()


def test_variables_are_put_back():
    allocation.gpu_options(XLA_CLIENT_MEM_FRACTION=".5")
    assert "XLA_CLIENT_MEM_FRACTION" not in os.environ


def test_both_names_raise(raises_declared):
    raises_declared(allocation.both_fractions)


def test_late_changes_raise_where_a_framework_checks(raises_declared):
    raises_declared(allocation.jax_change_late)
    raises_declared(allocation.tensorflow_change_late)


def test_late_variables_are_ignored():
    assert allocation.jax_variable_late() == jax.devices()
    assert os.environ["JAX_PLATFORMS"] == "cpu"


def test_growth_is_set_on_every_gpu():
    grown = {}
    with (
        mock.patch("tensorflow.config.list_physical_devices", return_value=["a", "b"]),
        mock.patch("tensorflow.config.experimental.set_memory_growth", grown.__setitem__),
        mock.patch("tensorflow.config.experimental.get_memory_growth", grown.get),
    ):
        assert allocation.tensorflow_grow_on_demand() == [True, True]


def test_growth_without_a_gpu():
    with mock.patch("tensorflow.config.list_physical_devices", return_value=[]):
        assert allocation.tensorflow_grow_on_demand() == []


@settings(max_examples=20, deadline=None)
@given(shapes)
def test_array_is_counted_while_it_lives(shape):
    gc.collect()
    assert allocation.hold_and_drop(shape) == (4 * math.prod(shape), 0)


def test_live_bytes_counts_each_array():
    gc.collect()
    start = allocation.live_bytes()
    arrays = [jnp.ones(3), jnp.ones((2, 2), jnp.int8)]
    assert allocation.live_bytes() - start == 3 * 4 + 4
    del arrays


@settings(max_examples=20, deadline=None)
@given(shapes)
def test_bytes_agree_between_the_frameworks(shape):
    assert set(allocation.array_bytes(shape).values()) == {4 * math.prod(shape)}
