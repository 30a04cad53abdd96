import math
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

FLOATS = st.floats(-50, 50, width=32)
SPECIAL = np.array([-80.0, -1.0, -1e-6, -0.0, 0.0, 1e-6, 1.0, 80.0], np.float32)
VARIANTS = {
    "jax eager": lambda x: selu.selu(jnp.asarray(x)),
    "jax jit": lambda x: jax.jit(selu.selu)(jnp.asarray(x)),
    "jax jit again": lambda x: selu.jit_again(jnp.asarray(x)),
    "jax jit a lambda": lambda x: selu.jit_a_lambda(jnp.asarray(x)),
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


def test_the_same_function_is_traced_once_and_a_lambda_every_time():
    assert selu.count_traces(jax.jit) == 1
    assert selu.count_traces(lambda f: jax.jit(lambda x: f(x))) == 5


def timed(first_call, median):
    return types.SimpleNamespace(first_call=first_call, median=median)


@given(st.floats(1e-6, 1), st.floats(1e-6, 1), st.floats(1e-6, 100))
def test_calls_until_paid_is_the_first_count_at_which_the_totals_meet(eager, compiled, first):
    calls = selu.calls_until_paid(timed(0, eager), timed(first, compiled))

    def total(n):
        return first + (n - 1) * compiled

    if calls is None:
        assert compiled >= eager
        assert first > eager
    else:
        assert total(calls) <= calls * eager * (1 + 1e-9)
        if calls > 1:
            assert total(calls - 1) > (calls - 1) * eager * (1 - 1e-9)


def test_calls_until_paid_by_hand():
    assert selu.calls_until_paid(timed(9, 1.0), timed(10.5, 0.5)) == 20
    assert selu.calls_until_paid(timed(9, 1.0), timed(0.9, 5.0)) == 1
    assert selu.calls_until_paid(timed(9, 1.0), timed(10.0, 1.0)) is None


def test_without_a_compiler_torch_compile_says_so(monkeypatch, capsys):
    monkeypatch.setattr(selu.shutil, "which", lambda name: None)
    monkeypatch.setattr(selu, "measure", lambda *args: pytest.fail("must not be measured"))
    assert not selu.has_cpp_compiler()
    assert selu.measure_torch_compile("a/compile", torch.ones(2)) is None
    assert "needs a C++ compiler" in capsys.readouterr().out


def test_the_compiler_is_looked_for_by_name(monkeypatch):
    monkeypatch.setenv("CXX", "my-own-c++")
    monkeypatch.setattr(selu.shutil, "which", lambda name: name == "my-own-c++")
    assert selu.has_cpp_compiler()


def test_torch_compile_starts_from_an_empty_cache(monkeypatch):
    folders = []

    def fake(name, function, x):
        folders.append(selu.os.environ["TORCHINDUCTOR_CACHE_DIR"])
        assert selu.os.listdir(folders[-1]) == []
        return name, function(x)

    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "before")
    monkeypatch.setattr(selu.shutil, "which", lambda name: name)
    monkeypatch.setattr(selu, "measure", fake)
    monkeypatch.setattr(selu.torch, "compile", lambda function: function)
    name, result = selu.measure_torch_compile("a/compile", torch.ones(2))
    assert name == "a/compile"
    torch.testing.assert_close(result, selu.selu_torch(torch.ones(2)))
    assert not selu.os.path.exists(folders[0])
    assert selu.os.environ["TORCHINDUCTOR_CACHE_DIR"] == "before"


def test_largest_difference():
    assert selu.largest_difference(np.float32([1, 2]), np.array([1.0, 2.5])) == 0.5


@pytest.fixture
def measured(monkeypatch):
    """Run what would be measured once, and keep the result by name."""
    seen = {}

    def fake(name, function, *args, **settings):
        seen[name] = function(*args)
        return name

    monkeypatch.setattr(selu, "measure", fake)
    return seen


def test_what_is_measured_in_jax_is_selu(measured):
    x = selu.normal(8)
    assert selu.measure_jax("some", jnp.asarray(x)) == ("some/eager", "some/jit")
    selu.measure_jit_in_the_loop("some", jnp.asarray(x))
    assert set(measured) == {"some/eager", "some/jit", "some/jit_again", "some/jit_a_lambda"}
    for result in measured.values():
        assert selu.largest_difference(result, selu.exact_selu(x)) < 5e-6


def test_what_is_measured_in_tensorflow_is_selu(measured):
    x = selu.normal(8)
    assert selu.measure_tensorflow(tf.constant(x)) == tuple(measured)
    assert list(measured) == ["selu/eager", "selu/graph", "selu/xla"]
    for result in measured.values():
        assert selu.largest_difference(result, selu.exact_selu(x)) < 5e-6


def test_what_is_measured_in_torch_is_selu(measured, monkeypatch):
    monkeypatch.setattr(selu.torch, "compile", lambda function: function)
    monkeypatch.setattr(selu.shutil, "which", lambda name: name)
    x = selu.normal(8)
    assert selu.measure_torch(torch.tensor(x)) == ("selu/eager", "selu/compile")
    for result in measured.values():
        assert selu.largest_difference(result, selu.exact_selu(x)) < 5e-6


def test_in_place_takes_over_the_memory_of_its_argument(measured):
    x = jnp.asarray(selu.normal(8))
    assert selu.measure_in_place("some", x) == "some/jit_in_place"
    assert selu.largest_difference(measured["some/jit_in_place"], selu.exact_selu(x)) < 5e-6
    assert not x.is_deleted()
    given_away = jnp.copy(x)
    result = selu.selu_in_place(given_away)
    assert given_away.is_deleted()
    assert selu.largest_difference(result, selu.exact_selu(x)) < 5e-6


def test_page_faults_are_counted_for_one_call(monkeypatch):
    counts = iter([100, 140])
    usage = lambda who: types.SimpleNamespace(ru_minflt=next(counts))  # noqa: E731
    monkeypatch.setattr(selu.resource, "getrusage", usage)
    called = []
    assert selu.page_faults(called.append, 3, calls=4) == 10
    assert called == [3] * 4
