import contextlib
import itertools
import os
import pathlib
import re
import types
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from executed.options import Options
from measured.options import MeasuredOptions
from snippets.benchmarks import matmul

CONTESTANTS = (matmul.NUMPY, matmul.JAX, matmul.TORCH, matmul.TENSORFLOW)
NAMES = [each.name for each in CONTESTANTS]
each_contestant = pytest.mark.parametrize("contestant", CONTESTANTS, ids=NAMES)


@pytest.fixture
def measured(monkeypatch):
    """Run what would be measured once, and keep it in order."""
    seen = []

    def fake(name, function, *args, **settings):
        found = types.SimpleNamespace(name=name, args=args, result=function(*args), **settings)
        seen.append(found)
        return found

    monkeypatch.setattr(matmul, "measure", fake)
    return seen


@pytest.fixture
def compared(monkeypatch):
    """Run every alternative once, and return the results with what was said of them."""

    def fake(name, alternatives, **settings):
        results = {key: function() for key, function in alternatives.items()}
        return types.SimpleNamespace(name=name, results=results, **settings)

    monkeypatch.setattr(matmul, "compare", fake)


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
    matmul.jax_terms()
    matmul.torch_terms()
    matmul.tensorflow_terms()
    expected = f"{matmul.usable_cores()} threads, float32 products: highest"
    assert matmul.terms(CONTESTANTS) == [f"{name}: {expected}" for name in NAMES]
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


@each_contestant
@pytest.mark.parametrize("size", [1, 2, 64, 129])
def test_every_matmul_is_that_in_float64(contestant, size):
    pair = matmul.operands(size)
    product = matmul.product_on_host(contestant, *map(contestant.on_device, pair))
    assert np.asarray(product).dtype == np.float32
    assert matmul.relative_error(product, matmul.float64_product(pair)) < 1e-6


def test_the_exact_matmul_is_float64():
    a, b = matmul.operands(9)
    exact = matmul.float64_product([a, b])
    assert exact.dtype == np.float64
    np.testing.assert_allclose(exact, a.astype(float) @ b.astype(float), rtol=1e-13)


@given(st.floats(1e-6, 1e3), st.integers(1, 5))
def test_relative_error_of_a_scaled_array(scale, size):
    exact = np.arange(1.0, size + 1)
    assert matmul.relative_error(exact * (1 + scale), exact) == pytest.approx(scale)


def test_operations_counts_multiplications_and_additions():
    assert matmul.operations(1) == 2
    assert matmul.operations(3000) == 54_000_000_000


def test_every_framework_multiplies_the_same_numbers():
    found = matmul.products(CONTESTANTS, 8)
    assert list(found) == NAMES
    exact = matmul.float64_product(matmul.operands(8))
    for contestant in CONTESTANTS:
        product = contestant.on_host(found[contestant.name]())
        assert matmul.relative_error(product, exact) < 1e-6


def test_a_hundred_matmuls_are_the_same_in_one_call_and_in_a_row():
    found = matmul.loops(CONTESTANTS, 6)
    assert list(found) == ["one_call@jax", *(f"in_a_row@{name}" for name in NAMES)]
    a, b = (x.astype(np.float64) for x in matmul.operands(6))
    exact = a @ np.linalg.matrix_power(b / 6**0.5, 100)
    for function in found.values():
        assert matmul.relative_error(np.asarray(function()), exact) < 1e-3


def test_each_framework_has_the_error_of_its_own_matmul():
    exact = matmul.float64_product(matmul.operands(16))
    found = matmul.products(CONTESTANTS, 16)
    found["torch"] = lambda: matmul.torch_tensor(exact.astype(np.float32) * 1.5)
    errors = matmul.errors_of(found, CONTESTANTS, exact)
    assert list(errors) == NAMES
    assert errors.pop("torch") == pytest.approx(0.5)
    assert all(0 < error < 1e-6 for error in errors.values())


def test_each_framework_leaves_its_result_and_brings_it_to_the_host():
    found = matmul.left_and_copied(CONTESTANTS[1:], 16)
    assert list(found) == [f"{place}@{n}" for n in NAMES[1:] for place in ("left", "copied")]
    assert isinstance(found["left@jax"](), jax.Array)
    assert isinstance(found["copied@jax"](), np.ndarray)
    assert isinstance(found["copied@tensorflow"](), np.ndarray)
    assert found["copied@torch"]().device.type == "cpu"


@pytest.mark.parametrize(("backend", "largest"), [("cpu", 1024), ("gpu", 8192), ("tpu", 8192)])
def test_larger_sizes_are_measured_on_accelerators(monkeypatch, backend, largest):
    monkeypatch.setattr(matmul.jax, "default_backend", lambda: backend)
    sizes = matmul.sizes()
    assert (sizes[0], sizes[-1]) == (64, largest)
    assert all(after == 2 * before for before, after in itertools.pairwise(sizes))


def rounded(x, bits):
    """Round float32 numbers to so many mantissa bits."""
    step = np.exp2(np.floor(np.log2(np.abs(x), where=x != 0, out=np.zeros_like(x))) - bits)
    return (np.round(x / step) * step).astype(np.float32)


def a_device(product):
    """Return a contestant that multiplies float32 arrays by `product`."""
    return matmul.NUMPY._replace(product=product)


def test_probe_numbers_need_the_bits_they_are_said_to_need():
    numbers, bits = matmul.probe_numbers(50)
    assert numbers.dtype == np.float32
    assert sorted(set(bits)) == list(range(1, 24))
    scaled = numbers.astype(np.float64) * 2.0**bits
    assert np.all(scaled % 2 == 1)
    assert np.all((numbers >= 1) & (numbers < 2))


@given(st.integers(1, 23))
def test_a_matmul_that_rounds_its_inputs_is_found_out(bits):
    device = a_device(lambda a, b: rounded(a, bits) @ rounded(b, bits))
    assert matmul.mantissa_bits_kept(device, 32) == bits


@pytest.mark.parametrize(
    "cut",
    [lambda bits: bits & 0xFFFFE000, lambda bits: (bits + 0x1000) & 0xFFFFE000],
    ids=["truncated", "rounded away from zero"],
)
def test_tf32_is_found_however_it_rounds(cut):
    def short(x):
        return cut(x.view(np.uint32).astype(np.uint64)).astype(np.uint32).view(np.float32)

    assert matmul.mantissa_bits_kept(a_device(lambda a, b: short(a) @ short(b)), 32) == 10


def test_a_sum_of_rounded_matmuls_is_not_taken_for_full_float32():
    def in_three_passes(a, b):
        high, low = rounded(a, 7), rounded(a - rounded(a, 7), 7)
        return high @ b + low @ b

    assert 10 < matmul.mantissa_bits_kept(a_device(in_three_passes), 32) < 23


@each_contestant
def test_on_a_cpu_float32_is_kept_whole_and_bfloat16_is_not(contestant):
    if jax.default_backend() == "cpu":
        assert matmul.mantissa_bits_kept(contestant, 32) == 23
    if contestant is not matmul.NUMPY:
        assert matmul.mantissa_bits_kept(contestant, 32, "bfloat16") == 7


@each_contestant
def test_lower_precision_is_allowed_within_and_then_as_before(contestant):
    if contestant is not matmul.NUMPY:
        setting = matmul.float32_precision
        before, asked = setting(contestant.name), []
        for allowed in (False, True):
            way = contestant._replace(product=lambda a, b: asked.append(setting(contestant.name)))
            matmul.product_allowed(way, allowed, 1, 2)
        assert asked[0] == "highest"
        assert asked[1] in ("default", "high", "tf32 allowed")
        assert setting(contestant.name) == before


@each_contestant
@pytest.mark.parametrize("allowed", [False, True])
def test_the_precision_comes_back_after_an_error(contestant, allowed):
    if contestant is not matmul.NUMPY:
        before = matmul.float32_precision(contestant.name)
        with pytest.raises(ZeroDivisionError), contestant.lower_precision(allowed):
            raise ZeroDivisionError
        assert matmul.float32_precision(contestant.name) == before


def test_jit_folds_a_transpose_into_the_matmul():
    x = jax.ShapeDtypeStruct((1024, 1024), jnp.float32)
    for function, copies in ((lambda x: x @ x.T, False), (lambda x: x.T, True)):
        program = jax.jit(function).lower(x).compile().as_text()
        if jax.default_backend() == "cpu":
            assert bool(re.search(r"\b(transpose|copy)\(", program)) == copies


def test_three_precisions_are_compared_in_each_framework(compared):
    found = matmul.compare_precisions(CONTESTANTS[1:], 40)
    assert found.name == "matmul/precision"
    assert list(found.results) == [f"{way}@{name}" for name in NAMES[1:] for way in matmul.WAYS]
    for name in NAMES[1:]:
        assert found.precision[f"full@{name}"] == "float32"
        assert found.precision[f"bfloat16@{name}"] == "bfloat16"
        assert found.error[f"full@{name}"] < 1e-6 < 1e-3 < found.error[f"bfloat16@{name}"] < 1e-2
        assert found.error[f"shortened@{name}"] < 1e-3
        assert "bfloat16" in str(found.results[f"bfloat16@{name}"].dtype)


def test_a_rounded_matmul_is_recorded_as_what_it_is(compared):
    written_for = {10: "TF32", 7: "bfloat16", 23: "float32", 16: "16 mantissa bits"}
    for bits, written in written_for.items():
        device = a_device(lambda a, b, bits=bits: rounded(a, bits) @ rounded(b, bits))
        device = device._replace(cast=lambda x, dtype: x)
        found = matmul.compare_precisions([device], 30)
        assert found.precision["full@numpy"] == written
        assert (found.error["full@numpy"] > 1e-5) == (bits < 16)


def test_libraries_are_named_by_what_they_say():
    assert re.fullmatch(r"\S+ [\d.]+", matmul.numpy_library())
    for dtype in ("float32", "bfloat16"):
        multiplied, kind = matmul.jax_library(dtype)
        assert multiplied in ("f32", "bf16")
        assert kind == "no library" or kind.startswith("__")
    assert matmul.torch_library("float32").startswith(("MKL, SGEMM", "oneDNN, ", "neither"))


@pytest.mark.parametrize(
    ("log", "said"),
    [
        ("...,exec,cpu,matmul,brg_matmul:avx512_core_bf16,undef,...", "oneDNN, brg_matmul:avx512"),
        (
            "MKL_VERBOSE oneMKL for Intel(R) 64 architecture Some enabled processors, Lnx\n"
            "MKL_VERBOSE SGEMM(N,N,512",
            "MKL, SGEMM for Some enabled",
        ),
        ("", "neither"),
    ],
)
def test_what_a_library_logs_is_read(monkeypatch, log, said):
    monkeypatch.setattr(matmul, "printed", lambda *args: log)
    assert matmul.torch_library("float32").startswith(said)


def test_what_c_code_prints_is_caught_and_the_output_is_put_back(capfd):
    switch = contextlib.nullcontext()
    assert matmul.printed(switch, os.write, 1, b"caught") == "caught"
    with pytest.raises(ZeroDivisionError):
        matmul.printed(switch, lambda: 1 / 0)
    os.write(1, b"free")
    assert capfd.readouterr().out == "free"


def test_the_page_has_the_peaks_of_the_options():
    options = Options.from_file(pathlib.Path(__file__).parents[2] / "conf.py")
    for name, peaks in options.of(MeasuredOptions).peaks.items():
        shown = matmul.PUBLISHED_PEAKS.get(name.replace(" lite", "e"), {})
        assert shown.items() <= peaks.rates.items(), name


def a_rate(rate, kind="cpu", precision="float32"):
    return types.SimpleNamespace(
        name="matmul/precision/full",
        framework="jax",
        device_kind=kind,
        precision=precision,
        work=2 * rate,
        median=2.0,
    )


@pytest.mark.parametrize(
    ("kind", "precision", "teraflops"),
    [
        ("NVIDIA H200", "float32", 67),
        ("NVIDIA H200", "TF32", 494.5),
        ("NVIDIA H200", "bfloat16", 989.5),
        ("TPU v5 lite", "bfloat16", 197),
        ("TPU v5e", "bfloat16", 197),
        ("TPU v6 lite", "bfloat16", 918),
    ],
)
def test_the_peak_is_that_of_the_device_and_the_precision(kind, precision, teraflops):
    assert matmul.share_of_peak(a_rate(teraflops * 1e12, kind, precision)) == "100%"
    assert matmul.share_of_peak(a_rate(teraflops * 0.25e12, kind, precision)) == "25%"


@pytest.mark.parametrize(
    ("kind", "precision"),
    [
        ("cpu", "float32"),
        ("NVIDIA H200 NVL", "float32"),
        ("NVIDIA H200", "16 digits"),
        ("TPU v5 lite", "float32"),
    ],
)
def test_without_a_published_peak_there_is_no_share(kind, precision):
    assert matmul.share_of_peak(a_rate(1e12, kind, precision)) is None


def test_cores_used_is_processor_time_over_elapsed_time(monkeypatch):
    elapsed, busy = iter([10.0, 12.0]), iter([5.0, 8.0])
    monkeypatch.setattr(matmul.time, "perf_counter", lambda: next(elapsed))
    monkeypatch.setattr(matmul.time, "process_time", lambda: next(busy))
    assert matmul.cores_used(matmul.NUMPY, 3) == 1.5


def test_which_host_copies_share_the_memory_of_the_array():
    if jax.default_backend() == "cpu":
        shares = {each.name: matmul.shares_memory(each) for each in CONTESTANTS}
        assert shares == {"numpy": True, "jax": True, "torch": True, "tensorflow": False}


def test_what_is_on_another_device_shares_nothing(monkeypatch):
    monkeypatch.setattr(matmul, "device_kind", lambda framework, array: "NVIDIA H200")
    assert matmul.shares_memory(matmul.JAX) is False


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
    got = matmul.multiply_add(x, chains, steps)
    np.testing.assert_allclose(got, exact, rtol=1e-5)


def test_multiply_add_compiles_to_the_same_values(measured):
    found = matmul.measure_multiply_add(3, size=16, steps=4)
    assert found.name == "matmul/ceiling/3"
    assert found.work == 2 * 3 * 4 * 16
    plain = matmul.multiply_add(np.full(16, 0.5, np.float32), 3, 4)
    np.testing.assert_allclose(found.result, plain, rtol=1e-6)


def test_the_vector_width_of_a_cpu_is_asked_of_a_cpu_only(measured, monkeypatch):
    assert matmul.options_for("cpu") == {"xla_cpu_prefer_vector_width": 512}
    assert matmul.options_for("gpu") is None
    assert matmul.options_for("tpu") is None
    asked = []
    jit = jax.jit
    monkeypatch.setattr(matmul.jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(
        matmul.jax, "jit", lambda f, **options: asked.append(options) or jit(f, **options)
    )
    matmul.measure_multiply_add(2, size=4, steps=1)
    assert asked[0] == {"compiler_options": None}


def test_the_posts_ratios_follow_from_its_times_except_one():
    on_cpu, on_gpu, to_host, on_tpu = matmul.POST_MILLISECONDS
    assert round(matmul.post_ratio(on_cpu, on_gpu)) == 27
    assert int(matmul.post_ratio(on_cpu, on_tpu)) == 156
    assert matmul.post_ratio(on_gpu, on_tpu) == 5.9
    assert matmul.post_ratio(to_host, on_tpu) == 4.0
    assert matmul.post_ratio(on_gpu, to_host) == 1.5


SIZES = {"product": 20, "gauss": 300, "solve": 20}
IN_FLOAT64 = {
    "JAX": matmul.contenders_jax,
    "PyTorch": matmul.contenders_torch,
    "TensorFlow": matmul.contenders_tensorflow,
}


@pytest.fixture(params=SIZES)
def case(request):
    return request.param, SIZES[request.param]


@pytest.mark.parametrize("framework", IN_FLOAT64)
def test_float64_and_float32_are_exact_to_their_precision(framework, case):
    with jax.enable_x64(True):
        found = matmul.errors_in(IN_FLOAT64[framework](*case), *case)
    limits = {"float64": (0, 1e-13), "float32": (1e-9, 1e-4)}
    for key, error in found.items():
        low, high = limits[key[:7]]
        assert low <= error < high


def test_results_have_the_dtype_that_was_asked_for(case):
    with jax.enable_x64(True):
        for contenders in IN_FLOAT64.values():
            for key, function in contenders(*case).items():
                assert np.asarray(function()).dtype.name == key[:7]


def test_inputs_can_be_written_in_float32(case):
    for array in (*matmul.inputs(*case), *matmul.system(30)):
        assert array.dtype == np.float64
        np.testing.assert_array_equal(array.astype(np.float32), array)


def test_the_solution_of_the_system_is_exact():
    matrix, right, solution = matmul.system(40)
    np.testing.assert_array_equal(matrix @ solution, right)
    assert np.linalg.matrix_rank(matrix) == 40


def test_a_small_error_is_seen(case):
    with jax.enable_x64(True):
        right = np.asarray(matmul.contenders_jax(*case)["float64"]())
    assert matmul.error_of(*case, right * (1 + 1e-7)) == pytest.approx(1e-7, rel=1e-3)


def test_a_matmul_is_compared_on_its_first_rows():
    a, b = matmul.inputs("product", 20)
    product = a @ b
    product[matmul.ROWS :] = 0
    assert matmul.error_of("product", 20, product) < 1e-14


def test_without_the_switch_the_error_is_that_of_float32_and_nothing_warns():
    matrix, right, _ = matmul.system(100)
    with jax.enable_x64(False), warnings.catch_warnings():
        warnings.simplefilter("error")
        found = jnp.linalg.solve(matrix, right)
    assert found.dtype == jnp.float32
    assert matmul.error_of("solve", 100, found) > 1e-9


def test_the_time_of_the_post_is_longer_than_at_the_peak_of_either_chip():
    for chip in ("TPU v5e", "TPU v6e"):
        seconds = matmul.operations(3000) / matmul.PUBLISHED_PEAKS[chip]["bfloat16"]
        assert seconds < 2.12e-3
