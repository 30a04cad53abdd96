import types

import jax
import numpy as np
import pytest
import tensorflow as tf
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from snippets.benchmarks import matmul

FRAMEWORKS = ("numpy", "torch", "tensorflow", "jax")


@pytest.fixture
def measured(monkeypatch):
    """Run what would be measured once, and keep it in order."""
    seen = []

    def fake(name, function, *args, **settings):
        given_settings = {"work": None, "error": None, "framework": None} | settings
        found = types.SimpleNamespace(
            name=name, args=args, result=function(*args), **given_settings
        )
        seen.append(found)
        return found

    monkeypatch.setattr(matmul, "measure", fake)
    return seen


@pytest.fixture
def restored(monkeypatch):
    """Undo what `equal_terms` sets; TensorFlow has started, so its call is only looked at."""
    threads, asked = torch.get_num_threads(), []
    precision = torch.get_float32_matmul_precision()
    threading = tf.config.threading
    monkeypatch.setattr(threading, "set_intra_op_parallelism_threads", asked.append)
    monkeypatch.setattr(threading, "get_intra_op_parallelism_threads", lambda: asked[-1])
    yield asked
    torch.set_num_threads(threads)
    torch.set_float32_matmul_precision(precision)
    tf.config.experimental.enable_tensor_float_32_execution(True)
    jax.config.update("jax_default_matmul_precision", None)


def test_equal_terms_are_equal(restored, monkeypatch):
    for variables in (*("PJRT_NPROC", "NPROC"), *("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")):
        monkeypatch.delenv(variables, raising=False)
    terms = matmul.equal_terms()
    assert tuple(terms) == FRAMEWORKS
    expected = {"threads": matmul.usable_cores(), "float32 products": "highest"}
    assert all(term == expected for term in terms.values())
    assert restored == [matmul.usable_cores()]
    assert torch.get_num_threads() == matmul.usable_cores()
    assert not tf.config.experimental.tensor_float_32_execution_enabled()


def test_operands_differ_and_are_float32():
    a, b = matmul.operands(100)
    assert a.dtype == b.dtype == np.float32
    assert a.shape == b.shape == (100, 100)
    assert not np.shares_memory(a, b)
    assert abs(np.corrcoef(a.ravel(), b.ravel())[0, 1]) < 0.05
    np.testing.assert_array_equal(a, matmul.operands(100)[0])


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("size", [1, 2, 64, 129])
def test_every_product_is_the_float64_product(framework, size):
    a, b = matmul.operands(size)
    exact = np.matmul(a, b, dtype=np.float64)
    product = matmul.product_on_host(framework, *matmul.on_device(framework, [a, b]))
    assert np.asarray(product).dtype == np.float32
    assert matmul.relative_error(product, exact) < 1e-6


@given(st.floats(1e-6, 1e3), st.integers(1, 5))
def test_relative_error_of_a_scaled_array(scale, size):
    exact = np.arange(1.0, size + 1)
    assert matmul.relative_error(exact * (1 + scale), exact) == pytest.approx(scale)


def test_operations_counts_multiplications_and_additions():
    assert matmul.operations(1) == 2
    assert matmul.operations(3000) == 54_000_000_000


def test_a_race_is_run_by_every_framework_on_the_same_numbers(measured):
    found = matmul.race("a/race", 8, budget=0.1)
    assert found == measured
    assert [each.name for each in found] == ["a/race"] * 4
    for each, framework in zip(found, FRAMEWORKS, strict=True):
        assert each.work == matmul.operations(8)
        assert each.budget == 0.1
        np.testing.assert_array_equal(
            matmul.ON_HOST[framework](each.args[0]), matmul.operands(8)[0]
        )
        np.testing.assert_array_equal(
            matmul.ON_HOST[framework](each.args[1]), matmul.operands(8)[1]
        )


def test_a_race_with_errors_records_small_ones(measured):
    found = matmul.race_with_error("a/error", 32)
    assert all(0 < each.error < 1e-6 for each in found)


def test_a_race_to_the_host_ends_in_host_arrays(measured):
    found = matmul.race_to_host("a/host", 8)
    assert [each.framework for each in found] == list(FRAMEWORKS)
    for each in found:
        if each.framework == "torch":
            assert each.result.device.type == "cpu"
        else:
            assert isinstance(each.result, np.ndarray)


def test_time_and_error_are_written_side_by_side():
    one = types.SimpleNamespace(framework="jax", median=0.25, error=3.14e-7)
    assert matmul.time_and_error([one]) == {"jax": "250 ms, error 3.1e-07"}


def test_cores_used_is_processor_time_over_elapsed_time(monkeypatch):
    elapsed, busy = iter([10.0, 12.0]), iter([5.0, 8.0])
    monkeypatch.setattr(matmul.time, "perf_counter", lambda: next(elapsed))
    monkeypatch.setattr(matmul.time, "process_time", lambda: next(busy))
    assert matmul.cores_used("numpy", 3) == 1.5


def test_numpy_times_itself_and_its_own_transpose(measured):
    matmul.with_own_transpose(4)
    a, _ = matmul.operands(4)
    itself, transpose = measured
    np.testing.assert_allclose(itself.result, a @ a)
    np.testing.assert_allclose(transpose.result, a @ a.T)


def test_which_host_copies_share_the_memory_of_the_array(monkeypatch):
    if jax.default_backend() == "cpu":
        shares = {framework: matmul.shares_memory(framework) for framework in FRAMEWORKS}
        assert shares == {"numpy": True, "torch": True, "tensorflow": False, "jax": True}

    def elsewhere(array):
        raise BufferError

    monkeypatch.setattr(matmul.np, "from_dlpack", elsewhere)
    assert matmul.shares_memory("jax") is False


def test_torch_uses_the_cpu_without_an_accelerator(monkeypatch):
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda check_available: None)
    assert matmul.torch_tensor(np.ones(2, np.float32)).device.type == "cpu"


@settings(deadline=None)
@given(st.integers(1, 4), st.integers(1, 5))
def test_multiply_add_computes_what_it_counts(chains, steps):
    x = np.array([0.0, 0.25, 0.5], np.float32)
    exact = 0
    for chain in range(chains):
        value = x.astype(np.float64) + chain
        for _ in range(steps):
            value = value * x + x
        exact = exact + value
    got = matmul.multiply_add.__wrapped__(x, chains, steps)
    np.testing.assert_allclose(got, exact, rtol=1e-5)


def test_multiply_add_compiles_to_the_same_values(measured):
    found = matmul.measure_multiply_add(3, size=16, steps=4)
    assert found.name == "matmul/ceiling/3"
    assert found.work == 2 * 3 * 4 * 16
    plain = matmul.multiply_add.__wrapped__(np.full(16, 0.5, np.float32), 3, 4)
    np.testing.assert_allclose(found.result, plain, rtol=1e-6)


def test_share_of_ceiling_is_a_percentage():
    one = types.SimpleNamespace(framework="jax", rate=2.5e9)
    assert matmul.share_of_ceiling([one], 5e9) == {"jax": "50%"}


def test_the_posts_ratios_follow_from_its_times_except_one():
    on_cpu, on_gpu, to_host, on_tpu = matmul.POST_MILLISECONDS
    assert round(matmul.post_ratio(on_cpu, on_gpu)) == 27
    assert int(matmul.post_ratio(on_cpu, on_tpu)) == 156
    assert matmul.post_ratio(on_gpu, on_tpu) == 5.9
    assert matmul.post_ratio(to_host, on_tpu) == 4.0
    assert matmul.post_ratio(on_gpu, to_host) == 1.5
