import functools
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
import torch

from snippets.benchmarks import transfers

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


def test_back_to_numpy():
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


FUNCTIONS = {
    "smooth": (transfers.smooth, lambda x: 1 / (1 + np.exp(-x)), (50,), 1),
    "product": (transfers.product, np.matmul, (20, 20), 2),
}


@pytest.fixture
def second_device(monkeypatch):
    """Let the last of the virtual CPU devices count as an transfers."""
    devices = jax.devices()
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(
        jax, "devices", lambda name=None: devices if name else [devices[-1], *devices]
    )
    return devices[-1]


def test_without_an_accelerator_there_is_the_cpu_alone():
    assert transfers.processors() == {"cpu": jax.devices("cpu")[0]}
    assert list(transfers.contenders(transfers.smooth, transfers.draw(3))) == ["cpu"]


def test_each_contender_computes_where_it_says(second_device):
    found = transfers.contenders(transfers.smooth, transfers.draw(10))
    assert found["cpu"]().device == jax.devices("cpu")[0] != second_device
    assert found["accelerator"]().device == second_device
    assert isinstance(found["with_copies"](), np.ndarray)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_all_compute_the_same(second_device, name):
    function, in_numpy, shape, count = FUNCTIONS[name]
    arrays = transfers.draw(*shape, count=count)
    exact = in_numpy(*(array.astype(np.float64) for array in arrays))
    contenders = transfers.contenders(function, arrays)
    assert len(contenders) == 3
    for function in contenders.values():
        np.testing.assert_allclose(function(), exact, rtol=1e-5)


def test_an_orbit_is_a_thousand_steps_of_the_logistic_map():
    jaxpr = str(jax.make_jaxpr(transfers.orbit)(jnp.ones(2)))
    assert "length=1000" in jaxpr
    assert "3.7" in jaxpr
    assert transfers.orbit(jnp.float32([0, 1])).tolist() == [0, 0]
    # The map is chaotic: of other numbers only the range is certain.
    (x,) = transfers.draw(100)
    assert 0 < transfers.orbit(x).min() <= transfers.orbit(x).max() <= 3.7 / 4 + 1e-6


def test_numbers_lie_between_0_and_1():
    a, b = transfers.draw(4, 5, count=2)
    assert a.shape == b.shape == (4, 5)
    assert a.dtype == np.float32
    assert not np.array_equal(a, b)
    assert 0 <= min(a.min(), b.min()) <= max(a.max(), b.max()) < 1
