import functools
import math
import platform
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from snippets.benchmarks import race, selu

FLOATS = st.floats(-50, 50, width=32)
SPECIAL = np.array([-80.0, -1.0, -1e-6, -0.0, 0.0, 1e-6, 1.0, 80.0], np.float32)
VARIANTS = {
    "jax eager": lambda x: selu.selu(jnp.asarray(x)),
    "jax jit": lambda x: jax.jit(selu.selu)(jnp.asarray(x)),
    "jax in place": lambda x: selu.in_place(jnp.asarray(x))(),
    "torch eager": lambda x: selu.selu_torch(torch.tensor(x)),
    "tensorflow eager": lambda x: selu.selu_tensorflow(tf.constant(x)),
    "tensorflow graph": lambda x: tf.function(selu.selu_tensorflow)(tf.constant(x)),
    "tensorflow xla": lambda x: tf.function(selu.selu_tensorflow, jit_compile=True)(tf.constant(x)),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_is_the_exact_selu(variant):
    for x in (SPECIAL, selu.normal(40)):
        assert race.largest_difference(VARIANTS[variant](x), selu.exact_selu(x)) < 5e-6


@settings(deadline=None)
@given(FLOATS)
def test_jax_and_torch_agree_with_the_closed_form(x):
    exact = selu.SCALE * (x if x > 0 else selu.ALPHA * math.expm1(x))
    assert float(selu.selu(jnp.float32(x))) == pytest.approx(exact, rel=1e-6, abs=1e-6)
    assert selu.selu_torch(torch.tensor(x)).item() == pytest.approx(exact, rel=1e-6, abs=1e-6)


def test_the_libraries_own_selu_is_the_same():
    x = selu.normal(30)
    exact = selu.exact_selu(x)
    assert race.largest_difference(jax.nn.selu(x), exact) < 5e-6
    assert race.largest_difference(torch.nn.functional.selu(torch.tensor(x)), exact) < 5e-6
    assert race.largest_difference(tf.nn.selu(x), exact) < 5e-6


def test_the_constants_are_those_of_the_closed_form():
    alpha, scale = selu.constants()
    assert selu.ALPHA == pytest.approx(alpha, rel=1e-14)
    assert selu.SCALE == pytest.approx(scale, rel=1e-14)


def test_the_constants_keep_mean_and_variance():
    grid = np.linspace(-12, 12, 400_001)
    density = np.exp(-(grid**2) / 2) / np.sqrt(2 * np.pi)
    y = selu.exact_selu(grid)
    assert np.trapezoid(y * density, grid) == pytest.approx(0, abs=1e-9)
    assert np.trapezoid(y**2 * density, grid) == pytest.approx(1, abs=1e-9)


def test_normal_is_float32():
    x = selu.normal(200)
    assert x.dtype == np.float32
    assert abs(x.std() - 1) < 0.02


def test_in_place_takes_over_the_memory_of_its_last_result():
    x = jnp.asarray(selu.normal(8))
    step = selu.in_place(x)
    first = step()
    once = np.array(first)
    second = step()
    assert first.is_deleted()
    assert not x.is_deleted()
    assert race.largest_difference(once, selu.exact_selu(x)) < 5e-6
    assert race.largest_difference(second, selu.exact_selu(once)) < 5e-6


def test_functions_are_compared_on_the_same_numbers():
    functions = {
        "jit": (jax.jit(selu.selu), jnp.asarray),
        "eager@torch": (selu.selu_torch, torch.tensor),
        "eager@tensorflow": (selu.selu_tensorflow, tf.constant),
    }
    bound = race.bound(functions, selu.normal(20))
    assert list(bound) == list(functions)
    for function in bound.values():
        assert race.largest_difference(function(), selu.exact_selu(selu.normal(20))) < 5e-6


@pytest.mark.parametrize(
    ("framework", "function"), [("jax", selu.selu), ("torch", selu.selu_torch)]
)
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="settings of glibc")
def test_a_process_that_keeps_its_memory_gets_no_new_one(framework, function):
    above_the_limit = 3000, 3000

    def fewest(tunables, calls):
        with selu.in_own_process(framework, function, above_the_limit, tunables) as call:
            call()
            return min(call() for _ in range(calls))

    new = fewest("", 3)
    assert new > 3000
    # It may take some calls until all memory that is needed has been kept. Where another thread
    # held glibc's first arena when a process began to allocate, it never is.
    assert any(fewest(selu.KEEPING, 10) < 0.1 * new for _ in range(5))


def test_a_first_call_does_not_wait_for_the_imports_of_its_process(monkeypatch, tmp_path):
    ready = tmp_path / "ready"
    slow = f"import time; time.sleep(0.2); open({str(ready)!r}, 'w'); call = lambda: None"
    monkeypatch.setitem(selu.SET_UP, "jax", slow)
    with selu.in_own_process("jax", selu.selu, (2,)) as call:
        assert ready.exists()
        assert call() >= 0


def test_a_function_that_fails_in_its_process_is_no_time():
    with selu.in_own_process("jax", selu.selu_tensorflow, (2,)) as call:
        with pytest.raises(ValueError):
            call()


def test_new_memory_is_counted_in_arrays_for_one_call(monkeypatch):
    counts = iter([100, 148])
    usage = lambda who: types.SimpleNamespace(ru_minflt=next(counts))  # noqa: E731
    monkeypatch.setattr(selu.resource, "getrusage", usage)
    monkeypatch.setattr(selu.resource, "getpagesize", lambda: 4096)
    called = []
    x = np.ones((128, 64), np.float32)
    assert selu.fresh_arrays(called.append, x, calls=4) == 1.5
    assert len(called) == 4


CONVERT = {"jax": jnp.asarray, "torch": torch.tensor, "tensorflow": tf.constant}


@pytest.fixture
def numbers():
    return selu.uniform(1000)


@pytest.fixture
def arrays(numbers):
    return {name: convert(numbers) for name, convert in CONVERT.items()}


def test_numbers_are_float32_and_stay_in_range(numbers):
    assert numbers.dtype == np.float32
    assert np.abs(numbers).max() <= 1
    assert np.abs(selu.exact_chain(numbers, 32)).max() <= 2


@pytest.mark.parametrize(("length", "result"), [(0, 4), (1, 3), (2, 3.5), (3, 2.625), (4, 3.125)])
def test_multiplications_and_additions_take_turns(length, result):
    assert selu.chain(4.0, length) == result


@pytest.mark.parametrize("length", [1, 2, 7, 32])
def test_every_contender_computes_the_chain(arrays, numbers, length):
    contenders = selu.chains(arrays, length)
    contenders["xla@tensorflow"] = selu.chain_in_xla(arrays["tensorflow"], length)
    assert len(contenders) == 5
    exact = selu.exact_chain(numbers, length)
    for key, function in contenders.items():
        assert race.largest_difference(function(), exact) < 1e-6, key


@settings(deadline=None, max_examples=20)
@given(st.floats(-1, 1, width=32), st.integers(0, 32))
def test_the_chain_in_float32_is_near_the_one_in_float64(x, length):
    x = np.float32(x)
    got = selu.chain(x, length)
    assert got == pytest.approx(selu.exact_chain(x, length), abs=1e-6)


def test_without_the_other_frameworks_jax_races_alone(arrays):
    assert list(selu.chains({"jax": arrays["jax"]}, 2)) == ["jit@jax", "eager@jax"]


@pytest.mark.parametrize("length", [1, 8, 32])
def test_compiled_it_is_one_kernel_that_moves_two_arrays(length):
    x = jnp.asarray(selu.uniform(2**20))
    whole = functools.partial(selu.chain, length=length)
    assert selu.kernels(whole, x) == 1
    assert jax.jit(whole).lower(x).compile().cost_analysis()["flops"] == length * x.size
    assert selu.arrays_moved(whole, x) == 2


def test_a_sum_reads_an_array_and_writes_none():
    assert selu.arrays_moved(jnp.sum, jnp.ones(2**16)) == 1


def test_every_chain_of_tanh_is_the_exact_one(numbers):
    exact = selu.exact_tanhs(numbers)
    for function, name in (
        (selu.tanhs, "jax"),
        (jax.jit(selu.tanhs), "jax"),
        (selu.tanhs_in_a_loop, "jax"),
        (selu.tanhs_torch, "torch"),
        (selu.tanhs_tensorflow, "tensorflow"),
    ):
        assert race.largest_difference(function(CONVERT[name](numbers)), exact) < 1e-6


def test_tanh_eight_times_by_hand():
    x = 0.5
    for _ in range(8):
        x = np.tanh(x)
    assert selu.exact_tanhs(np.float64(0.5)) == x


def test_plain_tanhs_are_one_kernel():
    assert selu.kernels(selu.tanhs, jnp.ones(2**20)) == 1


def test_quarters_take_as_many_tanhs_in_one_kernel():
    x = jnp.asarray(selu.uniform(1 << 10))
    exact = selu.exact_tanhs(x).reshape(4, -1).sum(0)
    assert race.largest_difference(jax.jit(selu.tanhs_of_quarters)(x), exact) < 1e-5
    assert selu.kernels(selu.tanhs_of_quarters, x) == selu.kernels(selu.tanhs, x) == 1
