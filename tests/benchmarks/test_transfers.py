import functools
import statistics
import sys
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
import torch

from snippets.benchmarks import transfers
from snippets.timing.timer import Comparison

INTO = transfers.INTO_JAX | transfers.INTO_TORCH | transfers.INTO_TENSORFLOW
SHARE_ALIGNED = {"jax.device_put(x)", "jnp.from_dlpack(x)", "torch.from_numpy(x)"}


@pytest.fixture(autouse=True)
def on_one_cpu():
    with jax.default_device(jax.devices("cpu")[0]):
        yield


@pytest.mark.parametrize("way", INTO)
def test_a_conversion_keeps_the_numbers(way):
    x = transfers.numbers(3, 5)
    np.testing.assert_array_equal(np.asarray(INTO[way](x)), x)


@pytest.mark.parametrize("way", INTO)
def test_who_shares_what_is_aligned(way):
    x = transfers.aligned(transfers.numbers(50))
    expected = "shared" if way in SHARE_ALIGNED else "copied"
    assert transfers.copies(INTO[way], x) == expected


@pytest.mark.parametrize("way", INTO)
def test_only_torch_shares_what_is_not(way):
    x = transfers.shifted(transfers.numbers(50))
    expected = "shared" if way == "torch.from_numpy(x)" else "copied"
    assert transfers.copies(INTO[way], x) == expected


def test_the_way_back():
    array, tensor = jnp.ones(5), tf.ones(5)
    assert transfers.copies(np.asarray, array) == "shared"
    assert transfers.copies(np.array, array) == "copied"
    assert transfers.copies(torch.Tensor.numpy, torch.ones(5)) == "shared"
    assert transfers.copies(lambda t: t.numpy(), tensor) == "copied"
    assert transfers.copies(np.from_dlpack, tensor) == "shared"


def test_a_tensor_has_the_memory_of_its_array():
    x = transfers.shifted(transfers.numbers(50))
    assert transfers.copies(transfers.into_torch, x) == "shared"


def test_what_has_no_address_here_is_on_another_device():
    def elsewhere(array):
        raise BufferError("not on the CPU")

    assert transfers.copies(elsewhere, np.ones(3)) == "copied, to another device"


@pytest.mark.parametrize(("make", "rest"), [(transfers.aligned, 0), (transfers.shifted, 16)])
def test_arrays_begin_where_they_should(make, rest):
    for shape in ((3,), (7, 5), (1000,)):
        x = transfers.numbers(*shape)
        copy = make(x)
        assert copy.ctypes.data % 64 == rest
        np.testing.assert_array_equal(copy, x)
        assert not np.shares_memory(copy, x)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other allocators")
def test_large_arrays_of_numpy_begin_sixteen_bytes_too_late():
    assert np.empty(10_000_000, np.float32).ctypes.data % 64 == 16


def test_writing_afterwards_changes_what_is_shared_and_no_copy():
    twos = np.full(3, 2, np.float32)
    shared = transfers.changed_afterwards(transfers.aligned(twos))
    copied = transfers.changed_afterwards(transfers.shifted(twos))
    assert shared.tolist() == [7, 2, 2]
    assert copied.tolist() == [2, 2, 2]
    x = transfers.aligned(twos)
    arrays = jnp.asarray(x), jnp.array(x)
    x[0] = 7
    assert [array.tolist() for array in arrays] == [[2, 2, 2]] * 2


def test_all_journeys_give_the_same():
    x = transfers.numbers(20, 20)
    functions = {
        "smooth": (transfers.smooth, transfers.smooth_torch, transfers.smooth_tensorflow),
        "square": (transfers.square, transfers.square_torch, transfers.square_torch),
    }
    exact = {
        "smooth": 1 / (1 + np.exp(-x.astype(np.float64))),
        "square": x.astype(np.float64) @ x,
    }
    for name, (in_jax, in_torch, in_tensorflow) in functions.items():
        trips = transfers.journeys(in_jax, x) | transfers.journeys_tensorflow(in_tensorflow, x)
        trips["numpy@torch"] = functools.partial(transfers.in_and_out_torch, in_torch, x)
        assert len(trips) == 5
        for key, journey in trips.items():
            result = journey()
            assert isinstance(result, jax.Array if key == "device" else np.ndarray)
            np.testing.assert_allclose(result, exact[name], atol=1e-5)
    np.testing.assert_allclose(transfers.smooth_numpy(x), exact["smooth"], rtol=1e-6)


def timed(*samples):
    return types.SimpleNamespace(
        first_call=1, median=statistics.median(samples), latency=list(samples)
    )


@pytest.mark.parametrize(
    ("ways", "size"),
    [
        ({10: 9.0, 100: 1.5, 1000: 1.2}, 100),
        ({10: 1.5, 100: 9.0, 1000: 1.2}, 1000),
        ({10: 1.5, 100: 1.5, 1000: 2.5}, None),
        ({10: 1.5, 100: 1.5}, 10),
    ],
)
def test_computing_outweighs_the_way_where_it_takes_more_than_half(ways, size):
    races = {}
    for n, seconds in ways.items():
        both = {"device": timed(1.0), "numpy@jax": timed(seconds)}
        races[n] = Comparison("a", both)
    assert transfers.outweighs(races) == size
