import math
import os
import pathlib
import statistics
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from snippets.benchmarks import selu
from snippets.timing.timer import Comparison

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
        assert selu.largest_difference(VARIANTS[variant](x), selu.exact_selu(x)) < 5e-6


@settings(deadline=None)
@given(FLOATS)
def test_jax_and_torch_agree_with_the_closed_form(x):
    exact = selu.SCALE * (x if x > 0 else selu.ALPHA * math.expm1(x))
    assert float(selu.selu(jnp.float32(x))) == pytest.approx(exact, rel=1e-6, abs=1e-6)
    assert selu.selu_torch(torch.tensor(x)).item() == pytest.approx(exact, rel=1e-6, abs=1e-6)


def test_the_libraries_own_selu_is_the_same():
    x = selu.normal(30)
    exact = selu.exact_selu(x)
    assert selu.largest_difference(jax.nn.selu(x), exact) < 5e-6
    assert selu.largest_difference(torch.nn.functional.selu(torch.tensor(x)), exact) < 5e-6
    assert selu.largest_difference(tf.nn.selu(x), exact) < 5e-6


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


def test_torch_uses_the_cpu_without_an_accelerator(monkeypatch):
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda check_available: None)
    assert selu.torch_tensor(np.ones(2, np.float32)).device.type == "cpu"


def timed(first_call, *samples):
    return types.SimpleNamespace(
        first_call=first_call, median=statistics.median(samples), samples=list(samples)
    )


def compared(other, compiled, control=None):
    alternatives = {"other": other, "compiled": compiled}
    return Comparison.of("a/b", alternatives, control or other.samples)


@given(st.floats(1e-6, 1), st.floats(1e-6, 1), st.floats(1e-6, 100))
def test_calls_until_paid_is_the_first_count_at_which_the_totals_meet(eager, compiled, first):
    both = compared(timed(0, eager), timed(first, compiled))
    calls = selu.calls_until_paid(both, "other", "compiled")

    def total(n):
        return first + (n - 1) * compiled

    if calls is None:
        assert compiled >= eager
        assert first > eager
    else:
        assert total(calls) <= calls * eager * (1 + 1e-9)
        if calls > 1:
            assert total(calls - 1) > (calls - 1) * eager * (1 - 1e-9)


@pytest.mark.parametrize(
    ("first", "sample", "calls"), [(10.5, 0.5, 20), (0.9, 5.0, 1), (10.0, 1.0, None)]
)
def test_calls_until_paid_by_hand(first, sample, calls):
    both = compared(timed(9, 1.0), timed(first, sample))
    assert selu.calls_until_paid(both, "other", "compiled") == calls


def test_what_cannot_be_told_apart_is_not_said_to_pay():
    slow, fast = timed(9, *[0.5, 1.0, 1.5] * 9), timed(20, *[0.4, 0.9, 1.4] * 9)
    assert selu.calls_until_paid(compared(slow, fast), "other", "compiled") is None


def test_without_a_compiler_there_is_none(monkeypatch):
    monkeypatch.setattr(selu.shutil, "which", lambda name: None)
    assert not selu.has_cpp_compiler()


def test_the_compiler_is_looked_for_by_name(monkeypatch):
    monkeypatch.setenv("CXX", "my-own-c++")
    monkeypatch.setattr(selu.shutil, "which", lambda name: name == "my-own-c++")
    assert selu.has_cpp_compiler()


def test_the_cache_of_torch_is_empty_and_then_what_it_was(monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "before")
    with selu.empty_torch_cache():
        folder = pathlib.Path(os.environ["TORCHINDUCTOR_CACHE_DIR"])
        assert list(folder.iterdir()) == []
    assert not folder.exists()
    assert os.environ["TORCHINDUCTOR_CACHE_DIR"] == "before"
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR")
    with selu.empty_torch_cache():
        pass
    assert "TORCHINDUCTOR_CACHE_DIR" not in os.environ


def test_largest_difference():
    assert selu.largest_difference(np.float32([1, 2]), np.array([1.0, 2.5])) == 0.5


def test_in_place_takes_over_the_memory_of_its_last_result():
    x = jnp.asarray(selu.normal(8))
    step = selu.in_place(x)
    first = step()
    once = np.array(first)
    second = step()
    assert first.is_deleted()
    assert not x.is_deleted()
    assert selu.largest_difference(once, selu.exact_selu(x)) < 5e-6
    assert selu.largest_difference(second, selu.exact_selu(once)) < 5e-6


def test_functions_are_compared_on_the_same_numbers():
    functions = {
        "jit": (jax.jit(selu.selu), jnp.asarray),
        "eager@torch": (selu.selu_torch, torch.tensor),
        "eager@tensorflow": (selu.selu_tensorflow, tf.constant),
    }
    bound = selu.at_size(functions, 20)
    assert list(bound) == list(functions)
    for function in bound.values():
        assert selu.largest_difference(function(), selu.exact_selu(selu.normal(20))) < 5e-6


def test_new_memory_is_counted_in_arrays_for_one_call(monkeypatch):
    counts = iter([100, 148])
    usage = lambda who: types.SimpleNamespace(ru_minflt=next(counts))  # noqa: E731
    monkeypatch.setattr(selu.resource, "getrusage", usage)
    monkeypatch.setattr(selu.resource, "getpagesize", lambda: 4096)
    called = []
    x = np.ones((128, 64), np.float32)
    assert selu.fresh_arrays(called.append, x, calls=4) == 1.5
    assert len(called) == 4
